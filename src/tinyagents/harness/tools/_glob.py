"""Patterns for paths: ``*``, ``?``, ``[…]``, ``{a,b}``, and ``**`` for any folders."""

import re
from fnmatch import translate

from ..tool import ToolError

_LONGEST = 1_000
_MOST_PARTS = 64
_MOST_ALTERNATIVES = 64
_BRACES = re.compile(r"\{([^{}]*)\}")


class Glob:
    """A pattern for paths relative to a folder, in time that grows with neither badly.

    Upper and lower case differ. ``*`` and ``?`` match a leading dot too; a part never spans folders.

    Raises:
        ToolError: The pattern is too long, absolute, or climbs with ``..``.
    """

    def __init__(self, pattern: str) -> None:
        self._alternatives = [_parts(each) for each in _expanded(_checked(pattern))]

    def matches(self, path: str) -> bool:
        """Whether a path, its parts joined by ``/``, is one of those."""
        parts = path.split("/")
        return any(_matches(pattern, parts) for pattern in self._alternatives)

    def may_match_below(self, folder: str) -> bool:
        """Whether anything below a folder can be one of those."""
        parts = folder.split("/")
        return any(_may_begin(pattern, parts) for pattern in self._alternatives)


_Part = re.Pattern[str] | None
"""How one part of a path looks; ``None`` for any number of parts."""


def _checked(pattern: str) -> str:
    if not pattern or len(pattern) > _LONGEST:
        raise ToolError(f"the pattern is empty, or longer than {_LONGEST} characters")
    pattern = pattern.replace("\\", "/").removeprefix("./")
    if pattern.startswith("/") or ".." in pattern.split("/"):
        raise ToolError("a pattern is relative and holds no `..`: say with `path` where to search")
    return pattern


def _expanded(pattern: str) -> list[str]:
    """Return the pattern with each choice of ``{a,b}`` taken; innermost braces first."""
    waiting, done = [pattern], list[str]()
    while waiting:
        each = waiting.pop()
        braces = _BRACES.search(each)
        if braces is None:
            done.append(each)
        else:
            start, end = braces.span()
            waiting += [each[:start] + choice + each[end:] for choice in braces[1].split(",")]
        if len(waiting) + len(done) > _MOST_ALTERNATIVES:
            raise ToolError(f"the braces stand for more than {_MOST_ALTERNATIVES} patterns")
    return done


def _parts(pattern: str) -> list[_Part]:
    names = [name for name in pattern.split("/") if name not in ("", ".")]
    if len(names) > _MOST_PARTS:
        raise ToolError(f"the pattern has more than {_MOST_PARTS} parts")
    # Since Python 3.11 what `translate` writes for `*` never goes back: its time is bounded.
    return [None if name == "**" else re.compile(translate(name)) for name in names]


def _matches(pattern: list[_Part], parts: list[str]) -> bool:
    """Match part by part, keeping every place of the pattern that can have been reached."""
    reached = _and_on(pattern, {0})
    for part in parts:
        reached = _and_on(pattern, _after(pattern, reached, part))
        if not reached:
            return False
    return len(pattern) in reached


def _may_begin(pattern: list[_Part], parts: list[str]) -> bool:
    reached = _and_on(pattern, {0})
    for part in parts:
        reached = _and_on(pattern, _after(pattern, reached, part))
    return any(place < len(pattern) for place in reached)


def _after(pattern: list[_Part], reached: set[int], part: str) -> set[int]:
    after: set[int] = set()
    for place in reached:
        if place == len(pattern):
            continue
        expected = pattern[place]
        if expected is None:
            after.add(place)
        elif expected.match(part):
            after.add(place + 1)
    return after


def _and_on(pattern: list[_Part], reached: set[int]) -> set[int]:
    """Add the places that are reached because ``**`` stands for nothing as well."""
    for place in sorted(reached):
        while place < len(pattern) and pattern[place] is None:
            place += 1
            reached.add(place)
    return reached
