"""``grep_files``: lines of files that hold a text or match a regular expression."""

import os
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from typing import Annotated, Any, BinaryIO

from pydantic import Field

from ..errors import UnsafePathError
from ..safe_open import Entry, open_inside
from ..tool import Tool, ToolContext, tool
from ._file_access import Target, is_binary, target, told_to_model
from ._file_limits import READS, FileToolLimits
from ._glob import Glob
from ._line_matcher import LineMatcher, literal_matcher, regex_matcher
from ._read_file import cut_line
from ._search import Search

_LONGEST_SEARCHED = 4_096
"""Characters of a line that are looked at, so that one line cannot take the whole time."""
_LONG = 200
"""Longer lines may take an expression a while: the time is looked at before each."""
_LONGEST_SHOWN = 300


def grep_files_tool(limits: FileToolLimits | None = None) -> Tool:
    """Return the tool ``grep_files``, which finds lines in files of the workspace."""
    bounds = limits or FileToolLimits()

    @tool(policy=READS)
    def grep_files(
        ctx: ToolContext[Any],
        pattern: str,
        path: str = ".",
        glob: str = "**",
        regex: bool = False,
        ignore_case: bool = False,
        context_lines: Annotated[int, Field(ge=0, le=10)] = 0,
    ) -> str:
        """Find lines in text files of the workspace. Each comes as path:line number:text.

        Args:
            pattern: What to find in a line: a plain text, or with `regex` a regular expression
                without look-around and backreferences.
            path: The file, or the folder to search in, relative to the root of the workspace.
            glob: Which files of the folder, such as *.py at its top or **/*.py everywhere.
            regex: Whether the pattern is a regular expression.
            ignore_case: Whether upper and lower case are the same.
            context_lines: How many lines to show before and after each.
        """
        make = regex_matcher if regex else literal_matcher
        matcher = make(pattern, ignore_case=ignore_case)
        grep = _Grep(Search.begin(ctx, bounds), matcher, context_lines)
        wanted = Glob(glob)
        with told_to_model(ctx, path):
            place = target(ctx, path)
            grep.run(place, wanted)
        return "\n".join([*(grep.shown or ["[nothing found]"]), *grep.search.footer()])

    return grep_files


class _Grep:
    """One search for lines."""

    def __init__(self, search: Search, matcher: LineMatcher, around: int) -> None:
        self.search = search
        self.shown: list[str] = []
        self._matcher = matcher
        self._around = around
        self._found = 0
        self._bytes = 0
        self._chars = 0

    def run(self, place: Target, wanted: Glob) -> None:
        """Search a file, or the files below a folder."""
        try:
            file = open_inside(place.root, place.path, within=place.within)
        except UnsafePathError as error:
            if error.reason != "not_regular":
                raise
        else:
            self._search_file(file, place.shown)
            return
        with closing(self.search.files(place, wanted)) as files:
            for entry in files:
                # A link leads to a file that is found under its own name, or not for us.
                if entry.kind == "link":
                    continue
                if not self._search_entry(entry, place):
                    return

    def _search_entry(self, entry: Entry, place: Target) -> bool:
        try:
            file = entry.open()
        except (OSError, UnsafePathError):
            self.search.unread += 1
            return True
        return self._search_file(file, place.below(entry.path))

    def _search_file(self, file: BinaryIO, name: str) -> bool:
        """Show what a file holds, and tell whether to go on."""
        limits = self.search.limits
        with file:
            content = file.read(limits.max_file_bytes)
            size = os.fstat(file.fileno()).st_size
        if is_binary(content):
            return True
        self._bytes += len(content)
        if self._bytes > limits.max_searched_bytes:
            self.search.stop(f"stopped after {limits.max_searched_bytes} bytes")
            return False
        if size > len(content):
            self.search.stop(f"of {name!r} only the first {len(content)} bytes were searched")
        return self._search_text(content.decode("utf-8", "replace"), name)

    def _search_text(self, text: str, name: str) -> bool:
        if not self._matcher.may_match_in(text):
            return True
        lines, limits = text.removesuffix("\n").split("\n"), self.search.limits
        found = list(islice(self._matching(lines), limits.max_matches - self._found + 1))
        matching, last = set(found), -1
        for number in found:
            if self._found == limits.max_matches or self._chars > limits.max_output_chars:
                self.search.stop(f"only the first {self._found} lines")
                return False
            self._found += 1
            first = max(number - self._around, last + 1)
            if self._around and self.shown and first != last + 1:
                self.shown.append("--")
            last = max(last, min(number + self._around, len(lines) - 1))
            for each in range(first, last + 1):
                self._show(name, each + 1, lines[each], is_match=each in matching)
        return True

    def _matching(self, lines: list[str]) -> Iterator[int]:
        matches, search = self._matcher.matches, self.search
        for number, line in enumerate(lines):
            if (len(line) > _LONG or number % 256 == 0) and search.out_of_time():
                return
            if matches(line if len(line) <= _LONGEST_SEARCHED else line[:_LONGEST_SEARCHED]):
                yield number

    def _show(self, name: str, number: int, line: str, *, is_match: bool) -> None:
        mark = ":" if is_match else "-"
        text = cut_line(line.removesuffix("\r"), _LONGEST_SHOWN)
        self.shown.append(f"{name}{mark}{number}{mark}{text}")
        self._chars += len(self.shown[-1]) + 1
