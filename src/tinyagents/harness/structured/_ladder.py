"""JSON out of what a model wrote: as it stands first, then ever more leniently, each way by name."""

import re
from collections.abc import Callable
from typing import Final, Literal, TypeAlias, get_args

from pydantic import JsonValue

from ..text import MAX_JSON_DEPTH, parse_json, unfenced
from ..tool_calling import relaxed_parts

LadderStep: TypeAlias = Literal["strict", "code_fence", "slice", "relaxed", "closed"]
"""How JSON was read out of a text, from the strictest way to the most lenient one."""

LADDER: Final[tuple[LadderStep, ...]] = get_args(LadderStep)

_MOST_TRIMMED = 64
"""How many characters may be missing at the end once what is open has been closed."""
_FENCED = re.compile(r"```[\w-]*[ \t]*\r?\n(.*?)```", re.DOTALL)
_CLOSERS = {"{": "}", "[": "]"}
_OUTSIDE = re.compile(r'["{}\[\]]')
_INSIDE = re.compile(r'["\\]')

_Found: TypeAlias = "tuple[JsonValue] | None"
"""In a tuple, as ``null`` is a value too."""


def read_json(text: str, *, may_close: bool = False) -> tuple[JsonValue, LadderStep]:
    """Read the JSON value that a text holds; the first way that succeeds counts.

    - ``strict``: the text itself.
    - ``code_fence``: what stands in a Markdown code fence.
    - ``slice``: from the first opening bracket to the last closing one.
    - ``relaxed``: an object with bare keys, doubled braces, or a template's own quotes.
    - ``closed``: the same with the strings and brackets closed that are open at the end, after
      leaving out 64 characters there at most.

    Args:
        text: What the model wrote.
        may_close: Whether the last way is open: a text that was cut off must never take it, for
            what is missing at its end would look like what was meant.

    Raises:
        ValueError: There is no JSON in it; the message is about the text as it stands.
    """
    text = text.strip()
    if not text:
        raise ValueError("it is empty")
    try:
        return parse_json(text), "strict"
    except ValueError as exc:
        strict = exc
    for step, read in _LENIENT.items():
        if (step != "closed" or may_close) and (found := read(text)) is not None:
            return found[0], step
    raise strict


def _in_fence(text: str) -> _Found:
    if "```" not in text:
        return None
    inside = unfenced(text)
    # What is around all of it first: a fence may stand in a string of the value too.
    candidates = [inside] if inside != text else []
    candidates += [match[1] for match in _FENCED.finditer(text)]
    return next((found for each in candidates if (found := _parsed(each)) is not None), None)


def _sliced(text: str) -> _Found:
    end = _last_closer(text)
    for start in _openers(text):
        if end > start and (found := _parsed(text[start : end + 1])) is not None:
            return found
    return None


def _relaxed(text: str) -> _Found:
    start, end = text.find("{"), _last_closer(text)
    parts = relaxed_parts(text[start : end + 1]) if 0 <= start < end else None
    # A bracket too many, or a second object, meant something else.
    return (parts[0],) if parts is not None and not parts[1].strip() else None


def _closed(text: str) -> _Found:
    """Read a value that lacks its end.

    The brackets that are open are known at each of the last places from one pass over the text.
    """
    openers = _openers(text)
    if not openers:
        return None
    text = text[openers[0] :].rstrip()
    walk = _Walk()
    tried = list[tuple[int, str]]()
    for end in range(max(1, len(text) - _MOST_TRIMMED), len(text) + 1):
        if not walk.advance(text, end):
            return None
        if (tail := walk.tail()) is not None:
            tried.append((end, tail))
    for end, tail in reversed(tried):
        found = _parsed(text[:end] + tail)
        if found is not None:
            return found if found[0] else None  # a bracket that nothing follows is no answer
    return None


class _Walk:
    """Which strings and brackets are open, on the way through a text."""

    __slots__ = ("_at", "_inside", "_open")

    def __init__(self) -> None:
        self._at = 0
        self._inside = False
        self._open: list[str] = []

    def advance(self, text: str, end: int) -> bool:
        """Go on to ``end``; tell whether the brackets match so far."""
        while self._at < end:
            found = (_INSIDE if self._inside else _OUTSIDE).search(text, self._at, end)
            if found is None:
                self._at = end
            elif found[0] == "\\":
                self._at = found.end() + 1  # past what it escapes
            else:
                self._at = found.end()
                if not self._take(found[0]):
                    return False
        return True

    def _take(self, character: str) -> bool:
        if character == '"':
            self._inside = not self._inside
        elif character in _CLOSERS:
            self._open.append(_CLOSERS[character])
            return len(self._open) <= MAX_JSON_DEPTH
        elif not self._open or self._open.pop() != character:
            return False
        return True

    def tail(self) -> str | None:
        """Return what closes the text; ``None`` where nothing is open."""
        if not self._open:
            return None
        return ('"' if self._inside else "") + "".join(reversed(self._open))


def _openers(text: str) -> list[int]:
    """Return the first place of each kind of opening bracket, in order."""
    return sorted(place for opener in _CLOSERS if (place := text.find(opener)) >= 0)


def _last_closer(text: str) -> int:
    return max(text.rfind(closer) for closer in _CLOSERS.values())


def _parsed(text: str) -> _Found:
    try:
        return (parse_json(text.strip()),)
    except ValueError:
        return None


_LENIENT: Final[dict[LadderStep, Callable[[str], _Found]]] = {
    "code_fence": _in_fence,
    "slice": _sliced,
    "relaxed": _relaxed,
    "closed": _closed,
}
