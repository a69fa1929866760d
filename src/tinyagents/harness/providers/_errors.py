"""From what a provider sends when it fails to the error that a caller can act on.

Pure functions: no I/O, and the system's clock only for a ``Retry-After`` that is a date, where no
time is passed in. The order in which a failure is judged: a prompt that is too long, blocked content,
then the HTTP status, and only without a status the provider's code and words.
"""

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from email.utils import parsedate_to_datetime
from typing import Any

from ..errors import (
    AuthenticationError,
    BadRequestError,
    ConfigurationError,
    ContentFilterError,
    ContextOverflowError,
    MalformedResponseError,
    ModelError,
    NetworkError,
    ProviderTimeoutError,
    RateLimitError,
    ServerError,
    TinyAgentsError,
)
from ..text import clean_text, parse_json
from ._failure_facts import LONGEST_MESSAGE, FailureFacts, failure_facts, seconds_in
from ._json import as_list, as_object

_REDACTED = "[redacted]"

_REQUEST_ID_HEADERS = (
    "x-request-id",
    "request-id",
    "x-groq-request-id",
    "apim-request-id",
    "x-ms-request-id",
    "x-amzn-requestid",
    "x-goog-request-id",
    "x-litellm-call-id",
    "cf-ray",
)

# Statuses with which a provider says that the prompt was too long, and what it then says.
_OVERFLOW_STATUSES = frozenset({None, 400, 413, 422, 500})
_OVERFLOW_CODES = frozenset(
    {
        "context_length_exceeded",
        "context_overflow",
        "exceed_context_size_error",
        "string_above_max_length",
    }
)
_OVERFLOW_WORDS = (
    "context length",
    "context window",
    "maximum context",
    "context size",
    "too many tokens",
    "reduce the length of the messages",
    "prompt is too long",
    "exceeds the maximum",
)
# "max_tokens exceeds the maximum" speaks of the answer, not of the prompt.
_ANSWER_LENGTH = re.compile(r"max_(?:completion_|output_|new_)?tokens\W+[\w\s]{0,40}?exceeds")

_FILTER_CODES = frozenset(
    {
        "content_filter",
        "content_policy_violation",
        "contentfilter",
        "moderation_blocked",
        "responsibleaipolicyviolation",
    }
)
_FILTER_WORDS = ("content management policy", "content policy", "flagged by moderation")

_QUOTA_WORDS = (
    "plan does not include",
    "doesn't include",
    "not include",
    "insufficient balance",
    "insufficient_balance",
    "insufficient quota",
    "insufficient_quota",
    "exceeded your current quota",
    "quota exhausted",
    "out of credits",
    "insufficient credits",
    "no available package",
    "package not active",
    "purchase package",
    "billing_error",
    "model not available for your plan",
)
# What local runtimes say when the model's chat template cannot render the messages: LM Studio,
# llama.cpp, and the templates themselves.
_TEMPLATE_STATUSES = frozenset({None, 400, 422, 500})
_TEMPLATE_WORDS = re.compile(
    r"rendering prompt with jinja|jinja exception|chat[_ ]template"
    r"|roles must alternate|system role (?:is )?not supported|requires --jinja"
)
_TEMPLATE_CODE = "chat_template"
_TEMPLATE_ADVICE = (
    "the model's chat template cannot render these messages: `fold_system=True` in the preset puts "
    "system messages into the user's, otherwise give the server a template for the roles and tools "
    "in use"
)

# Zhipu's codes for an account without balance, as whole numbers only.
_QUOTA_NUMBERS = re.compile(r"(?<!\d)(?:1113|1311)(?!\d)")

_RATE_WORDS = re.compile(r"rate.?limit|too many requests|tokens per minute|requests per minute")
_OUTAGE_WORDS = re.compile(
    r"overloaded|unavailable|bad gateway|gateway time|server.?error|internal error|disconnected"
    r"|over capacity|try again later|upstream"
)
_AUTH_WORDS = re.compile(r"authenticat|unauthori[sz]ed|invalid.{0,8}api.?key|permission|forbidden")
_REFUSED_WORDS = re.compile(
    r"invalid.?request|bad.?request|tool_use_failed|not_found_error|request_too_large"
    r"|model.{0,80}(?:not found|unknown|unsupported|does not exist|invalid)"
)
_MISSING_MODEL = re.compile(r"model.{0,200}(?:not found|not exist)")
_TIMEOUT_WORDS = re.compile(r"timed? ?out|timeout|deadline exceeded")


def error_from_response(
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    *,
    provider: str,
    model: str,
    secrets: Sequence[str] = (),
    missing_model: str | None = None,
    now: float | None = None,
) -> ModelError:
    """Return the error that a failed HTTP answer stands for.

    Args:
        status: The HTTP status.
        headers: The answer's headers; looked up in lower case.
        body: The body as it came, or its beginning.
        provider: The provider's name.
        model: The model that was asked.
        secrets: Texts that must not appear in the error, should the answer repeat them.
        missing_model: What helps when the server does not have the model; may hold ``{model}``.
        now: Seconds since the epoch, for a ``Retry-After`` that is a date.
    """
    for secret in secrets:
        body = body.replace(secret.encode(), _REDACTED.encode())
    text = body.decode("utf-8", "replace")
    try:
        payload: Any = parse_json(body)
    except ValueError:
        payload = clean_text(text)
    payload = redacted(payload, secrets)  # once more: JSON may have written it with escapes
    facts = failure_facts(payload, status)
    if missing_model is not None and status == 404 and _MISSING_MODEL.search(facts.quoted):
        advice = missing_model.format(model=model)
        facts = replace(facts, message=f"{facts.message}: {advice}")
    return _judged(
        facts,
        status=status,
        retry_after=retry_after(headers, now=now),
        request_id=redacted(request_id(headers), secrets),
        provider=provider,
        model=model,
        raw=payload,
    )


def refusal_of(error: ModelError) -> tuple[str, str]:
    """Return what a provider's refusal says and the parameter that it names, in lower case."""
    facts = failure_facts(error.raw, error.status)
    return facts.quoted[: 2 * LONGEST_MESSAGE], facts.parameter


def error_from_payload(
    payload: Any,
    *,
    provider: str,
    model: str,
    request_id: str | None = None,
    secrets: Sequence[str] = (),
) -> ModelError:
    """Return the error that a payload inside an answer of status 200 stands for.

    The payload is the whole document, with its ``error``. Its status is the one that it names; with
    none the provider's code and words decide, and what nothing is known of may be tried again.
    """
    if secrets:
        payload = redacted(payload, secrets)
    facts = failure_facts(payload, None)
    return _judged(
        facts,
        status=facts.status,
        retry_after=None,
        request_id=request_id,
        provider=provider,
        model=model,
        raw=payload,
    )


def error_from_exception(
    exc: Exception, *, provider: str, model: str, doing: str = "the request"
) -> TinyAgentsError | None:
    """Return the error that an exception of httpx or httpx2 stands for; ``None`` for a stranger.

    Both packages use the same class names, so those decide and neither has to be imported. What an
    HTTP library lets through from below it (sockets, TLS) counts as a broken connection.
    """
    names = {cls.__name__ for cls in type(exc).__mro__}
    if "TimeoutException" in names:
        what = {
            "ConnectTimeout": "no connection was made in time",
            "PoolTimeout": "no connection of the pool became free in time",
            "WriteTimeout": "the request could not be sent in time",
        }.get(type(exc).__name__, f"the provider fell silent during {doing}")
        return ProviderTimeoutError(what, provider=provider, model=model)
    if names & {"InvalidURL", "UnsupportedProtocol", "LocalProtocolError"}:
        # Their texts quote headers, which hold the key.
        return ConfigurationError(
            f"the request to {provider} cannot be sent ({type(exc).__name__}): "
            "check the base URL and the headers"
        )
    if "DecodingError" in names:
        return MalformedResponseError(
            f"the body of the answer cannot be decoded: {exc}", provider=provider, model=model
        )
    if names & {"TransportError", "OSError", "EndOfStream"} or (
        names & {"ClosedResourceError", "BrokenResourceError"}
    ):
        told = f": {exc}" if str(exc) else ""
        return NetworkError(
            f"the connection failed during {doing} ({type(exc).__name__}{told})",
            provider=provider,
            model=model,
        )
    return None


def retry_after(headers: Mapping[str, str], *, now: float | None = None) -> float | None:
    """Return the seconds that an answer asks to wait; ``None`` when it does not say.

    ``Retry-After`` is seconds, whole or not, or an HTTP date (RFC 9110, 10.2.3), of which a past
    one means 0. ``retry-after-ms`` is finer and wins, except that its 0 says nothing.
    """
    milliseconds = seconds_in(headers.get("retry-after-ms"))
    if milliseconds:
        return milliseconds / 1000
    value = headers.get("retry-after")
    if value is None:
        return milliseconds
    seconds = seconds_in(value)
    if seconds is not None:
        return seconds
    try:
        date = parsedate_to_datetime(value)
    except ValueError:
        return None
    return max(0.0, date.timestamp() - (time.time() if now is None else now))


def request_id(headers: Mapping[str, str]) -> str | None:
    """Return the provider's id of a request, from whichever header it uses."""
    return next((headers[name] for name in _REQUEST_ID_HEADERS if headers.get(name)), None)


def _judged(
    facts: FailureFacts,
    *,
    status: int | None,
    retry_after: float | None,
    request_id: str | None,
    provider: str,
    model: str,
    raw: Any,
) -> ModelError:
    if status in _TEMPLATE_STATUSES and _TEMPLATE_WORDS.search(facts.quoted):
        message = f"{facts.message}: {_TEMPLATE_ADVICE}"
        facts = replace(facts, message=message, code=_TEMPLATE_CODE)
    cls, retryable = _class_of(facts, status)
    code = facts.code
    if cls is ContextOverflowError and (code is None or code.isdecimal()):
        code = "context_overflow"
    return cls(
        facts.message,
        provider=provider,
        model=model,
        status=status,
        code=code,
        request_id=request_id or facts.request_id,
        retry_after=facts.retry_after if retry_after is None else retry_after,
        retryable=retryable,
        raw=raw,
    )


def _class_of(facts: FailureFacts, status: int | None) -> tuple[type[ModelError], bool | None]:
    """Return the class of a failure, and whether to retry where the class alone does not tell."""
    words, code = facts.quoted, (facts.code or "").lower()
    if status in _OVERFLOW_STATUSES and _is_overflow(words, code):
        return ContextOverflowError, None
    if code in _FILTER_CODES or any(phrase in words for phrase in _FILTER_WORDS):
        return ContentFilterError, None
    if code == _TEMPLATE_CODE:
        return BadRequestError, None
    match status:
        case None:
            return _class_by_words(words, code)
        case 402:
            return RateLimitError, False
        case 429:
            return RateLimitError, facts.renewed or not _is_quota(words)
        case 400 if "api_key_invalid" in words:  # Google's
            return AuthenticationError, None
        case 401 | 403:
            return AuthenticationError, None
        case 408:
            return ProviderTimeoutError, None
        case 409 | 498:  # a conflict, and Groq's "capacity exceeded", are gone a moment later
            return ServerError, None
        case _ if status >= 500:
            return ServerError, None
        case _:
            return BadRequestError, None


def _class_by_words(words: str, code: str) -> tuple[type[ModelError], bool | None]:
    if _is_quota(words):
        return RateLimitError, False
    if _RATE_WORDS.search(words) or code == "too_many_requests":
        return RateLimitError, None
    if _TIMEOUT_WORDS.search(words):
        return ProviderTimeoutError, None
    if _OUTAGE_WORDS.search(words):
        return ServerError, None
    if _AUTH_WORDS.search(words):
        return AuthenticationError, None
    if _REFUSED_WORDS.search(words):
        return BadRequestError, None
    return ServerError, None


def _is_overflow(words: str, code: str) -> bool:
    if code in _OVERFLOW_CODES:
        return True
    return any(phrase in words for phrase in _OVERFLOW_WORDS) and not _ANSWER_LENGTH.search(words)


def _is_quota(words: str) -> bool:
    return any(hint in words for hint in _QUOTA_WORDS) or bool(_QUOTA_NUMBERS.search(words))


def redacted(value: Any, secrets: Sequence[str]) -> Any:
    """Return JSON with every secret in its texts blotted out."""
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, _REDACTED)
        return value
    if (document := as_object(value)) is not None:
        return {name: redacted(item, secrets) for name, item in document.items()}
    if (listed := as_list(value)) is not None:
        return [redacted(item, secrets) for item in listed]
    return value
