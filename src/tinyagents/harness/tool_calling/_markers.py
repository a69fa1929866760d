"""The marks between which models write calls: where one begins, where it ends, and how to break it.

Names are compared without regard to case. Bars inside a tag are what some chat templates leak;
DeepSeek's are full-width, with U+2581 between the words.
"""

import re
from dataclasses import dataclass
from html import unescape
from typing import Final, Literal, TypeAlias

_BAR = "|\uff5c"
_CALL_TAGS: Final = ("tool_call", "toolcall", "tool-call", "invoke")
_DEEPSEEK_BEGIN: Final = ("tool\u2581call\u2581begin", "tool_call_begin")
_DEEPSEEK_END: Final = ("tool\u2581call\u2581end", "tool_call_end")
_WRAPPERS: Final = ("tool_calls", "function_calls")
_DEEPSEEK_WRAPPERS: Final = ("tool\u2581calls\u2581begin", "tool_calls_begin")
_DEEPSEEK_WRAPPER_ENDS: Final = ("tool\u2581calls\u2581end", "tool_calls_end")
_FENCE = "```"

_LONGEST_TAG = 300
_LONGEST_CLOSE = 64

_BARRED = (*_DEEPSEEK_BEGIN, *_DEEPSEEK_WRAPPERS)
_ENDS = (*_DEEPSEEK_END, *_DEEPSEEK_WRAPPER_ENDS)
_OPENING_WORDS = (*_CALL_TAGS, *_WRAPPERS, *_BARRED)
_CLOSING_WORDS = (*_CALL_TAGS, *_WRAPPERS, "function", *_ENDS)


def _any_of(words: tuple[str, ...]) -> str:
    return "|".join(map(re.escape, words))


_TAG = re.compile(
    rf"<(?P<bar>[{_BAR}]?)(?P<word>[\w\u2581-]{{1,32}})(?P<rest>(?:[\s{_BAR}][^<>]{{0,256}}+)?)>"
)
_TAG_BEGIN = re.compile(rf"<[{_BAR}]?(?P<word>[\w\u2581-]*)(?P<rest>(?:[\s{_BAR}][^<>]*+)?)\Z")
_CLOSE = re.compile(
    rf"<(?:"
    rf"(?:/[{_BAR}]?|[{_BAR}]/)(?:{_any_of((*_CALL_TAGS, *_WRAPPERS, 'function'))})\s?[{_BAR}]?"
    rf"|[{_BAR}](?:{_any_of(_ENDS)})[{_BAR}]"
    rf"|(?P<either>[{_BAR}](?:{_any_of(_CALL_TAGS)})[{_BAR}]?|(?:{_any_of(_CALL_TAGS)})[{_BAR}])"
    rf")>",
    re.IGNORECASE,
)
_CLOSE_BEGIN = re.compile(rf"<[/{_BAR}]{{0,2}}(?P<word>[\w\u2581-]*)[\s{_BAR}]{{0,2}}\Z")
_FENCE_OPEN = re.compile(
    r"```(?:tool_call|tool-call|toolcall|tool|invoke)[ \t]*\r?\n", re.IGNORECASE
)
_FENCE_BEGIN = re.compile(r"`{1,2}\Z|```[\w-]{0,12}[ \t\r]{0,8}\Z")
_NAME_ATTRIBUTE = re.compile(r"""\bname\s*=\s*(?:"([^"]*)"|'([^']*)')""")

_FORGED = re.compile(
    rf"<(?=[/{_BAR}]{{0,2}}(?:{_any_of(('tool_result', *_CALL_TAGS, *_BARRED, *_ENDS))})"
    rf"(?:[\s/>{_BAR}]|\Z))",
    re.IGNORECASE,
)
_FORGED_FENCE = re.compile(r"```(?=(?:tool_call|tool-call|toolcall|tool|invoke)\s)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Opening:
    """Where a call begins: the mark goes up to ``end``."""

    end: int
    name: str = ""
    """The tool, where an attribute of the mark says it."""
    fence: bool = False
    """The mark is the opening of a Markdown code fence."""


Unknown: TypeAlias = Literal["unknown"]
"""More text has to come before it can be told."""


def opening_at(text: str, at: int, before: str) -> Opening | Unknown | None:
    """Tell whether the mark at a ``<`` or a backtick opens a call.

    Args:
        text: The text so far.
        at: Where the mark is.
        before: The character before it; empty at the beginning of a reply.
    """
    if text[at] == "`":
        return _fence_at(text, at, before)
    # In a code span somebody writes about the tag.
    return None if before == "`" else _tag_at(text, at, wrapped=False)


def closing_at(text: str, at: int) -> re.Match[str] | Unknown | None:
    """Tell whether the mark at a ``<`` closes a call; group ``either`` is set if it may open one."""
    if (found := _CLOSE.match(text, at)) is not None:
        return found
    tail = text[at : at + _LONGEST_CLOSE]
    begun = _CLOSE_BEGIN.match(tail)
    if begun is None or len(tail) == _LONGEST_CLOSE:
        return None
    return "unknown" if _begins(begun["word"], _CLOSING_WORDS) else None


def closing_in(text: str, start: int, end: int) -> re.Match[str] | None:
    """Return the first mark that closes a call between two places."""
    return _CLOSE.search(text, start, end)


LONGEST_CLOSE: Final = _LONGEST_CLOSE
"""How many characters before the end of a text may be the beginning of a closing mark."""


def neutralized(text: str) -> str:
    """Return the text of a tool in a form in which it can neither open a call nor end its result.

    The ``<`` of the protocol's own tags becomes ``&lt;``, and a code fence that is labelled as a
    call loses its label to a space; all other text is unchanged.
    """
    if "<" in text:
        text = _FORGED.sub("&lt;", text)
    return _FORGED_FENCE.sub("``` ", text) if _FENCE in text else text


def _fence_at(text: str, at: int, before: str) -> Opening | Unknown | None:
    if before not in ("", "\n"):
        return None
    if (found := _FENCE_OPEN.match(text, at)) is not None:
        return Opening(found.end(), fence=True)
    return "unknown" if _FENCE_BEGIN.match(text, at) else None


def _tag_at(text: str, at: int, *, wrapped: bool) -> Opening | Unknown | None:
    found = _TAG.match(text, at)
    if found is None:
        return _begun_tag(text, at)
    word = found["word"].lower()
    if word in _CALL_TAGS:
        named = _NAME_ATTRIBUTE.search(found["rest"])
        name = unescape(named[1] or named[2] or "") if named else ""
        return Opening(found.end(), name)
    barred = bool(found["bar"]) and found["rest"] in ("|", "\uff5c")
    if barred and word in _DEEPSEEK_BEGIN:
        return Opening(found.end())
    is_wrapper = (barred and word in _DEEPSEEK_WRAPPERS) or (
        word in _WRAPPERS and not found["bar"] and not found["rest"]
    )
    return _wrapped_at(text, found.end()) if is_wrapper and not wrapped else None


def _begun_tag(text: str, at: int) -> Unknown | None:
    tail = text[at : at + _LONGEST_TAG]
    begun = _TAG_BEGIN.match(tail)
    if begun is None or len(tail) == _LONGEST_TAG:
        return None
    words = _CALL_TAGS if begun["rest"] and begun["rest"][0] not in _BAR else _OPENING_WORDS
    known = begun["word"].lower() in words if begun["rest"] else _begins(begun["word"], words)
    return "unknown" if known else None


def _wrapped_at(text: str, at: int) -> Opening | Unknown | None:
    """Tell whether a call begins right after a tag around several of them."""
    ahead = text[at : at + _LONGEST_TAG]
    gap = len(ahead) - len(ahead.lstrip())
    if gap == len(ahead):
        return "unknown" if len(ahead) < _LONGEST_TAG else None
    return _tag_at(text, at + gap, wrapped=True) if ahead[gap] == "<" else None


def _begins(word: str, words: tuple[str, ...]) -> bool:
    return any(each.startswith(word.lower()) for each in words)
