"""``read_file``: lines of a text file with their numbers."""

import os
from dataclasses import dataclass
from mimetypes import guess_type
from typing import Annotated, Any

from pydantic import Field

from ..safe_open import open_inside
from ..tool import Tool, ToolContext, ToolResult, tool
from ._file_access import digest, is_binary, target, told_to_model
from ._file_limits import READS, FileToolLimits


@dataclass(frozen=True, slots=True)
class _Text:
    """A file's text, and what has to be said of it."""

    lines: list[str]
    notes: list[str]
    is_cut: bool


def read_file_tool(limits: FileToolLimits | None = None) -> Tool:
    """Return the tool ``read_file``, which shows lines of a text file of the workspace."""
    bounds = limits or FileToolLimits()

    @tool(policy=READS)
    def read_file(
        ctx: ToolContext[Any],
        path: str,
        start_line: Annotated[int, Field(ge=1)] = 1,
        line_count: Annotated[int | None, Field(ge=1)] = None,
    ) -> ToolResult:
        """Read a text file of the workspace. Each line comes with its number and a tab before it.

        Args:
            path: The file, relative to the root of the workspace.
            start_line: The first line to show, from 1.
            line_count: How many lines to show; as many as allowed by default.
        """
        with told_to_model(ctx, path):
            place = target(ctx, path)
            with open_inside(place.root, place.path, within=place.within) as file:
                content = file.read(bounds.max_file_bytes)
                size = max(os.fstat(file.fileno()).st_size, len(content))
        if is_binary(content):
            kind = guess_type(place.path)[0] or "unknown type"
            return ToolResult(f"[binary file, {kind}, {size} bytes: not shown]")
        text = _text(content, size)
        return ToolResult(_window(text, start_line, line_count, bounds))

    return read_file


def numbered(lines: list[str], first: int, max_chars: int) -> list[str]:
    """Return lines with their numbers, the long ones cut."""
    return [
        f"{number:6d}\t{cut_line(line, max_chars)}"
        for number, line in enumerate(lines, start=first)
    ]


def cut_line(line: str, max_chars: int) -> str:
    """Return a line with no more than so many characters of it, and a note if it has more."""
    if len(line) <= max_chars:
        return line
    return f"{line[:max_chars]} [cut: {len(line) - max_chars} more characters]"


def _text(content: bytes, size: int) -> _Text:
    notes = [f"{size} bytes"]
    is_cut = size > len(content)
    if is_cut:
        notes.append(f"only the first {len(content)} bytes can be read: search for the rest")
    else:
        notes.append(f"sha256 {digest(content)}")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        text = content.decode("utf-8-sig", "replace")
        if not (is_cut and error.reason == "unexpected end of data"):
            notes.append("not UTF-8: what could not be read is shown as \N{REPLACEMENT CHARACTER}")
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    if lines and lines[0].endswith("\r"):
        notes.append("lines end with CRLF")
        lines = [line.removesuffix("\r") for line in lines]
    return _Text(lines, notes, is_cut)


def _window(text: _Text, start: int, count: int | None, limits: FileToolLimits) -> str:
    total = f"{len(text.lines)}{'+' if text.is_cut else ''}"
    if not text.lines:
        return f"[empty file; {'; '.join(text.notes)}]"
    if start > len(text.lines):
        return f"[no line {start}: the file has {total} lines; {'; '.join(text.notes)}]"
    wanted = min(count or limits.max_lines, limits.max_lines)
    shown = numbered(text.lines[start - 1 : start - 1 + wanted], start, limits.max_line_chars)
    length = 0
    for number, line in enumerate(shown):
        length += len(line) + 1
        if length > limits.max_output_chars and number > 0:
            shown = shown[:number]
            break
    last = start + len(shown) - 1
    more = "" if last >= len(text.lines) else f"; go on with start_line={last + 1}"
    return "\n".join([*shown, f"[lines {start}-{last} of {total}{more}; {'; '.join(text.notes)}]"])
