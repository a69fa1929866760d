"""Finding what must not be seen, and taking it out of texts, streams, messages and logs."""

from ._credentials import api_key, jwt, private_key, url_credentials
from ._detector import Detector, LiteralDetector, Span, WindowDetector, detect_pattern
from ._errors import RedactingFilter, redact_error
from ._identity import credit_card, email, iban, ip_address, mac_address, phone
from ._messages import redact_blocks, redact_calls, redact_message, redact_partial
from ._redactor import Match, Redactor, Strategy, all_detectors
from ._stream import TextStream

__all__ = (
    "Detector",
    "LiteralDetector",
    "Match",
    "RedactingFilter",
    "Redactor",
    "Span",
    "Strategy",
    "TextStream",
    "WindowDetector",
    "all_detectors",
    "api_key",
    "credit_card",
    "detect_pattern",
    "email",
    "iban",
    "ip_address",
    "jwt",
    "mac_address",
    "phone",
    "private_key",
    "redact_blocks",
    "redact_calls",
    "redact_error",
    "redact_message",
    "redact_partial",
    "url_credentials",
)
