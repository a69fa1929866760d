"""Which lines a search finds: a text, or a regular expression in time that cannot explode."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pydantic_core import SchemaError, SchemaValidator, core_schema

from ..tool import ToolError


@dataclass(frozen=True, slots=True)
class LineMatcher:
    """Tells which lines are found, and of most files at once that none is."""

    matches: Callable[[str], bool]
    may_match_in: Callable[[str], bool]
    """Whether any line of a text can be one."""


_LONGEST_PATTERN: Final = 500
_MOST_STEPS: Final = 5_000
"""How long an expression may be when all its counted repetitions are written out."""
_TOKEN: Final = re.compile(
    r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{(?P<least>\d+)(?P<to>,(?P<most>\d*))?\}|.", re.DOTALL
)


def literal_matcher(text: str, *, ignore_case: bool) -> LineMatcher:
    """Return what finds a text in a line.

    Raises:
        ToolError: The text is empty or longer than a line.
    """
    if not text or "\n" in text:
        raise ToolError("the pattern is empty or spans lines: search for a piece of one line")
    folded = text.casefold()

    def matches(where: str) -> bool:
        return text in where

    def matches_folded(where: str) -> bool:
        return folded in where.casefold()

    chosen = matches_folded if ignore_case else matches
    return LineMatcher(chosen, chosen)


def regex_matcher(pattern: str, *, ignore_case: bool) -> LineMatcher:
    """Return what finds a regular expression in a line.

    The engine is the one of Rust that pydantic brings, whose time grows with the length of the line
    only, and which therefore has no look-around and no backreferences. What it does grow with, the
    length of the expression with its repetitions written out, is bounded here.

    Raises:
        ToolError: The expression is none, or too large.
    """
    if not pattern or len(pattern) > _LONGEST_PATTERN:
        raise ToolError(f"the pattern is empty, or longer than {_LONGEST_PATTERN} characters")
    if _written_out(pattern) > _MOST_STEPS:
        raise ToolError("the pattern repeats too much: use smaller counts in `{…}`")
    flagged = f"(?i){pattern}" if ignore_case else pattern
    schema = core_schema.str_schema(pattern=flagged, regex_engine="rust-regex")
    try:
        validator = SchemaValidator(schema)
    except SchemaError as error:
        said = str(error).rpartition("error: ")[2].strip()[:200]
        raise ToolError(
            f"the pattern is no regular expression that this tool knows: {said}; there is no "
            "look-around and no backreference, and without regex=true the pattern is a plain text"
        ) from error
    return LineMatcher(validator.isinstance_python, lambda text: True)


def _written_out(pattern: str) -> int:
    """Return about how long an expression is when ``x{3}`` is written as ``xxx``."""
    sums, last = [0], 0
    for token in _TOKEN.finditer(pattern):
        if token[0] == "(":
            sums.append(0)
            last = 0
        elif token[0] == ")" and len(sums) > 1:
            last = sums.pop()
            sums[-1] += last
        elif token["least"] is not None:
            times = max(int(token["most"] or token["least"]), 1)
            sums[-1] += last * (times - 1)
            last *= times
        else:
            last = 1
            sums[-1] += 1
    return sum(sums)
