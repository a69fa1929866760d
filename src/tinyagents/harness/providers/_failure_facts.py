"""What a provider's account of a failure says, whichever way it is written down."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from ..text import clean_text
from ._json import as_integer, as_list, as_object, as_text

LONGEST_MESSAGE = 2_000
"""Characters of a provider's own words that an error repeats; ``raw`` holds them all."""

_MOST_PLACES = 20
"""Places in a request that an error is told of."""

_LONGEST_PAGE = 10_000
"""Characters of a page that are searched for words: the search takes their square."""

# A status in running text counts only where one is announced: "500 tokens" is none.
_STATUS_IN_TEXT = re.compile(r"(?:\A|\(|http |status[: ] ?)([45]\d\d)(?!\d)", re.IGNORECASE)
_WAIT_IN_TEXT = re.compile(
    r"(?:try again|retry) in (\d+(?:\.\d+)?) ?(ms|s|seconds|m)\b", re.IGNORECASE
)
_HTML_TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(r"<[^>]+>")


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureFacts:
    """What a provider's account of a failure says."""

    message: str
    code: str | None
    status: int | None
    retry_after: float | None
    renewed: bool
    """A used-up quota is there again after ``retry_after``: it counts by the minute."""
    request_id: str | None
    quoted: str
    """Everything that a judgement may rest on, in lower case."""
    parameter: str
    """The part of the request that is at fault, in lower case; empty when it is not named."""


def failure_facts(payload: Any, status: int | None) -> FailureFacts:
    """Return what a payload says; ``status`` is that of HTTP, where there was one."""
    # Google's surface wraps the document in a list.
    while (wrapped := as_list(payload)) is not None and len(wrapped) == 1:
        payload = wrapped[0]
    document = as_object(payload) or {}
    details = as_object(document.get("error")) or document
    listed = [*filter(None, map(as_object, as_list(details.get("details")) or ()))]
    message = _message(payload, document, details)
    code = _code(details)
    named_status = status or _status(details, message)
    told, wait = _retry_info(listed), _wait_in(message)
    parameter = as_text(details.get("param")) or _places(document)
    quotable = (message, code, details.get("type"), parameter)
    quoted = " ".join(str(value) for value in (*quotable, *_reasons(listed)) if value)
    return FailureFacts(
        message=message,
        code=code,
        status=named_status,
        retry_after=wait if told is None else told,
        renewed=told is not None and not _is_daily(listed),
        request_id=as_text(document.get("request_id")),
        quoted=quoted.lower(),
        parameter=parameter.lower(),
    )


def _message(payload: Any, document: Mapping[str, Any], details: Mapping[str, Any]) -> str:
    names = ("message", "error", "detail")
    candidates: list[Any] = [details.get("message"), *(document.get(name) for name in names)]
    text = next((said for candidate in candidates if (said := _spoken(candidate))), "")
    if not text and isinstance(payload, str):
        text = _plain(payload)
    metadata = as_object(details.get("metadata")) or {}
    if raw := as_text(metadata.get("raw")):
        # OpenRouter's own words are "Provider returned error"; the reason is below.
        text = f"{text}: {raw}"
    text = clean_text(text).strip() or "the provider refused without giving a reason"
    return text if len(text) <= LONGEST_MESSAGE else f"{text[:LONGEST_MESSAGE]}…"


def _spoken(value: Any) -> str:
    """Return the words of a message, wherever a document keeps them."""
    if isinstance(value, str):
        return value
    if (listed := as_list(value)) is not None:  # FastAPI lists what is wrong with each field
        return "; ".join(filter(None, map(_spoken, listed)))
    document = as_object(value) or {}
    return as_text(document.get("message")) or as_text(document.get("msg")) or ""


def _places(document: Mapping[str, Any]) -> str:
    """Return where FastAPI found something wrong: ``body.tools.0.strict``."""
    found = as_list(document.get("detail"))
    if found is None:  # Mistral's
        found = as_list((as_object(document.get("message")) or {}).get("detail"))
    places = (as_list((as_object(one) or {}).get("loc")) for one in found or ())
    named = (".".join(map(str, place)) for place in islice(places, _MOST_PLACES) if place)
    return " ".join(named)[:LONGEST_MESSAGE]


def _plain(text: str) -> str:
    text = text[:_LONGEST_PAGE]
    title = _HTML_TITLE.search(text)
    if title:
        return title[1]
    return _TAG.sub(" ", text) if text.lstrip().startswith("<") else text


def _code(details: Mapping[str, Any]) -> str | None:
    metadata = as_object(details.get("metadata")) or {}
    words = (details.get("code"), details.get("type"), metadata.get("error_type"))
    named = next(filter(None, map(as_text, (*words, details.get("status")))), None)
    if named is not None and named != "error":  # the name of an event, where it is the error itself
        return named
    number = as_integer(details.get("code"))
    return None if number is None else str(number)


def _status(details: Mapping[str, Any], message: str) -> int | None:
    for name in ("status_code", "code", "status"):
        value = details.get(name)
        if isinstance(value, str) and len(value) == 3 and value.isdecimal():
            value = int(value)
        if isinstance(value, int) and 400 <= value <= 599:
            return value
    found = _STATUS_IN_TEXT.search(message)
    return int(found[1]) if found else None


def _retry_info(details: Sequence[Mapping[str, Any]]) -> float | None:
    """Return the seconds of ``google.rpc.RetryInfo``: ``{"retryDelay": "31s"}``."""
    delays = (as_text(item.get("retryDelay")) for item in details)
    delay = next(filter(None, delays), None)
    return None if delay is None else seconds_in(delay.removesuffix("s"))


def _is_daily(details: Sequence[Mapping[str, Any]]) -> bool:
    """Whether ``google.rpc.QuotaFailure`` names a quota that a wait of seconds does not renew."""
    violations = (as_list(item.get("violations")) or () for item in details)
    ids = (as_text((as_object(one) or {}).get("quotaId")) for some in violations for one in some)
    return any("PerDay" in name for name in ids if name)


def _reasons(details: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the reasons of ``google.rpc.ErrorInfo``."""
    return [*filter(None, (as_text(item.get("reason")) for item in details))]


def _wait_in(message: str) -> float | None:
    found = _WAIT_IN_TEXT.search(message)
    if found is None:
        return None
    scale = {"ms": 0.001, "m": 60.0}.get(found[2].lower(), 1.0)
    return float(found[1]) * scale


def seconds_in(text: str | None) -> float | None:
    """Return the seconds that a text holds and nothing else; ``None`` where it holds no wait."""
    try:
        value = float(text) if text else None
    except ValueError:
        return None
    # "nan" and "inf" are numbers to Python; a negative wait is none.
    return value if value is None or 0 <= value < float("inf") else None
