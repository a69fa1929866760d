"""Detectors of keys, tokens and passwords."""

import re
from collections.abc import Iterable

from ._detector import Detector, PatternDetector

_WORD = "A-Za-z0-9"
_LONGEST = 512

# The beginning of a key, what the rest is made of, and how much of it there is at least. From the
# providers' documentation and the rules of gitleaks and trufflehog, December 2026.
_KEYS = (
    ("sk-", rf"{_WORD}_-", 20),  # OpenAI, Anthropic, OpenRouter, DeepSeek, …
    ("AIza", rf"{_WORD}_-", 35),  # Google
    ("ya29.", rf"{_WORD}_-", 20),
    ("AKIA", "A-Z0-9", 16),  # AWS
    ("ASIA", "A-Z0-9", 16),
    ("ghp_", _WORD, 36),  # GitHub
    ("gho_", _WORD, 36),
    ("ghu_", _WORD, 36),
    ("ghs_", _WORD, 36),
    ("ghr_", _WORD, 36),
    ("github_pat_", rf"{_WORD}_", 22),
    ("glpat-", rf"{_WORD}_-", 20),  # GitLab
    ("xoxa-", rf"{_WORD}-", 10),  # Slack
    ("xoxb-", rf"{_WORD}-", 10),
    ("xoxe-", rf"{_WORD}-", 10),
    ("xoxp-", rf"{_WORD}-", 10),
    ("xoxr-", rf"{_WORD}-", 10),
    ("xoxs-", rf"{_WORD}-", 10),
    ("xapp-", rf"{_WORD}-", 10),
    ("sk_live_", _WORD, 16),  # Stripe
    ("sk_test_", _WORD, 16),
    ("rk_live_", _WORD, 16),
    ("rk_test_", _WORD, 16),
    ("whsec_", rf"{_WORD}+/=", 16),
    ("hf_", _WORD, 30),  # Hugging Face
    ("gsk_", _WORD, 20),  # Groq
    ("xai-", _WORD, 20),  # xAI
    ("pplx-", _WORD, 20),  # Perplexity
    ("r8_", _WORD, 20),  # Replicate
    ("npm_", _WORD, 36),
    ("pypi-", rf"{_WORD}_-", 50),
    ("SG.", rf"{_WORD}_.-", 40),  # SendGrid
    ("Bearer ", rf"{_WORD}._~+/=-", 16),
)


def api_key() -> Detector:
    """Return a detector of the keys of common providers, labelled ``API_KEY``.

    They are told by their beginnings: OpenAI, Anthropic, Google, AWS, GitHub, GitLab, Slack, Stripe,
    Hugging Face, Groq, xAI, Perplexity, Replicate, npm, PyPI, SendGrid, and any ``Bearer`` token.
    """
    whole = (f"{re.escape(head)}[{body}]{{{least},{_LONGEST}}}" for head, body, least in _KEYS)
    begun = (f"{re.escape(head)}[{body}]{{0,{_LONGEST}}}" for head, body, _ in _KEYS)
    return PatternDetector(
        "API_KEY",
        rf"(?<![{_WORD}])(?:{'|'.join(whole)})",
        tail=rf"(?<![{_WORD}])(?:{'|'.join(begun)}|{_beginnings(head for head, _, _ in _KEYS)})",
        longest=_LONGEST + 16,
    )


def _beginnings(heads: Iterable[str]) -> str:
    """Return a pattern of everything that one of the texts begins with."""
    parts = {head[:size] for head in heads for size in range(1, len(head))}
    return "|".join(re.escape(part) for part in sorted(parts, key=len, reverse=True))


_SEGMENT = f"{_WORD}_-"


def jwt() -> Detector:
    """Return a detector of JSON web tokens, labelled ``JWT``."""
    return PatternDetector(
        "JWT",
        rf"(?<![{_SEGMENT}])eyJ[{_SEGMENT}]{{5,1024}}\.eyJ[{_SEGMENT}]{{2,4096}}"
        rf"(?:\.[{_SEGMENT}]{{0,1024}})?",
        tail=rf"(?<![{_SEGMENT}])e(?:y(?:J[{_SEGMENT}]{{0,1024}}"
        rf"(?:\.(?:e(?:y(?:J[{_SEGMENT}]{{0,4096}}(?:\.[{_SEGMENT}]{{0,1024}})?)?)?)?)?)?)?",
        longest=6_160,
    )


_PEM_HEAD = "-----BEGIN "
_PEM_NAME = "[A-Z0-9 ]{0,24}"
_PEM_BODY = r"(?:[^-]|-(?!-{4})){0,16384}"


def private_key() -> Detector:
    """Return a detector of private keys in PEM form, labelled ``PRIVATE_KEY``; cut ones too."""
    return PatternDetector(
        "PRIVATE_KEY",
        rf"{_PEM_HEAD}{_PEM_NAME}PRIVATE KEY(?: BLOCK)?-----{_PEM_BODY}"
        rf"(?:-----END {_PEM_NAME}PRIVATE KEY(?: BLOCK)?-----)?",
        tail=rf"{_PEM_HEAD}[A-Z0-9 ]{{0,48}}-{{0,5}}"
        rf"|{_PEM_HEAD}{_PEM_NAME}PRIVATE KEY(?: BLOCK)?-----{_PEM_BODY}"
        r"(?:-{1,5}(?:E|EN|END|END [A-Z0-9 ]{0,48}-{0,5})?)?"
        rf"|{_beginnings([_PEM_HEAD])}",
        longest=16_384 + 160,
    )


_IN_URL = r"""[^\s/?#"'<>]"""
_VALUE = r"""[^\s&#"'<>]"""
_NAMES = (
    r"(?:access_?token|refresh_?token|id_?token|auth_?token|token|api_?key|key|client_?secret|secret"
    r"|password|passwd|pwd|sig|signature|X-Amz-Signature|X-Amz-Credential|X-Amz-Security-Token"
    r"|X-Goog-Signature)"
)


def url_credentials() -> Detector:
    """Return a detector of what an address gives away, labelled ``URL_CREDENTIALS``.

    That is the user and password before its host, and the values of parameters such as ``token``,
    ``key`` or ``signature``.
    """
    user = r"""[^\s/?#"'<>@:]{0,128}"""
    return PatternDetector(
        "URL_CREDENTIALS",
        rf"(?<=://){user}:{_IN_URL}{{1,256}}(?=@)"
        rf"|[?&](?i:{_NAMES})=(?P<secret>{_VALUE}{{1,{_LONGEST}}})",
        tail=rf"(?<=://){_IN_URL}{{0,386}}|[?&](?:[A-Za-z_-]{{0,24}}(?:={_VALUE}{{0,{_LONGEST}}})?)?",
        longest=_LONGEST + 28,
    )
