"""What an address answered, as text that a model reads."""

import codecs
import json
import re
from dataclasses import dataclass
from email.message import Message

from ..guarded_fetch import Fetched
from ..html_text import html_to_text, looks_like_html
from ..text import clean_text, parse_json

_ENCODING = re.compile(r"[\w.:-]{1,40}", re.ASCII)
_ENCODINGS = (
    *("utf-8", "utf-16", "utf-32", "ascii", "iso8859", "cp12", "cp8", "cp43", "koi8", "mac"),
    *("gb", "big5", "euc", "shift", "iso2022", "hz"),
)
"""How the names of character encodings begin. Python has codecs that are none, and slow ones."""
_META = re.compile(
    rb"""<meta[^>]{0,200}?charset\s{0,9}=\s{0,9}["']?([\w.:-]{1,40})""", re.IGNORECASE
)
_META_WITHIN = 1_024
"""As browsers look for it (WHATWG HTML, 13.2.3.2)."""
_MARKS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
_TEXT_TYPES = re.compile(
    r"text/.*|application/(?:.*\+)?(?:json|xml|yaml|javascript)"
    r"|application/(?:ld\+json|x-ndjson|x-yaml|toml|x-sh|sql|graphql|rtf|x-www-form-urlencoded)"
    r"|image/svg\+xml"
)
_JSON_TYPES = re.compile(r"(?:application|text)/(?:.*\+)?json")
_HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A body that was read."""

    media_type: str
    """In lower case; empty where the server named none."""
    title: str = ""
    text: str | None = None
    """``None`` for what is no text."""


def read_page(fetched: Fetched, *, as_sent: bool = False) -> Page:
    """Return the text of a body: of HTML what it says, of JSON the same with indents.

    Args:
        fetched: The answer.
        as_sent: Leave HTML and JSON as they were sent.
    """
    media_type, encoding = _content_type(fetched.headers.get("content-type", ""))
    content = fetched.content
    if not _is_text(media_type, content):
        return Page(media_type=media_type)
    text = clean_text(_decoded(content, encoding))
    if as_sent:
        return Page(media_type=media_type, text=text)
    if media_type in _HTML_TYPES or (not media_type and looks_like_html(text)):
        html = html_to_text(text)
        return Page(media_type=media_type, title=html.title, text=html.text)
    if _JSON_TYPES.fullmatch(media_type):
        text = _indented(text)
    return Page(media_type=media_type, text=text)


def _content_type(header: str) -> tuple[str, str]:
    """Return the media type and the character encoding that a header names."""
    if not header or len(header) > 1_000 or not header.isprintable():
        return "", ""
    message = Message()
    message["content-type"] = header
    encoding = message.get_content_charset("")
    return message.get_content_type() if "/" in header else "", encoding


def _is_text(media_type: str, content: bytes) -> bool:
    if media_type:
        return _TEXT_TYPES.fullmatch(media_type) is not None
    return b"\0" not in content or content.startswith((b"\xff\xfe", b"\xfe\xff"))


def _decoded(content: bytes, encoding: str) -> str:
    for mark, marked in _MARKS:
        if content.startswith(mark):
            return content.decode(marked, "replace")
    if not encoding and (found := _META.search(content[:_META_WITHIN])) is not None:
        encoding = found[1].decode("ascii", "replace")
    return content.decode(_known(encoding), "replace")


def _known(encoding: str) -> str:
    if not _ENCODING.fullmatch(encoding):
        return "utf-8"
    try:
        name = codecs.lookup(encoding).name
    except LookupError:
        return "utf-8"
    return name if name.startswith(_ENCODINGS) else "utf-8"


def _indented(text: str) -> str:
    try:
        return json.dumps(parse_json(text), ensure_ascii=False, indent=2)
    except (ValueError, RecursionError):
        return text
