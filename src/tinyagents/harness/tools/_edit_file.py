"""``edit_file``: one exact piece of a text in place of another."""

from dataclasses import dataclass
from typing import Any

from ..safe_open import change_inside
from ..tool import Tool, ToolContext, ToolError, ToolResult, tool
from ._file_access import digest, is_binary, printable, target, told_to_model
from ._file_limits import WRITES, FileToolLimits
from ._read_file import numbered

_AROUND = 3
"""How many lines the result shows before and after the change."""
_MOST_SHOWN = 20
_MOST_COMPARED_LINES = 100_000


@dataclass(frozen=True, slots=True)
class _Edit:
    content: bytes
    places: int
    at: int
    """The byte where the first new piece begins."""
    length: int


def edit_file_tool(limits: FileToolLimits | None = None) -> Tool:
    """Return the tool ``edit_file``, which replaces an exact piece of a file of the workspace."""
    bounds = limits or FileToolLimits()

    @tool(policy=WRITES)
    def edit_file(
        ctx: ToolContext[Any],
        path: str,
        old_text: str,
        new_text: str,
        replace_all: bool = False,
    ) -> ToolResult:
        """Replace a piece of a text file of the workspace. The rest stays exactly as it is.

        Args:
            path: The file, relative to the root of the workspace.
            old_text: What stands there now, exactly, without line numbers. It must be there once
                only: give enough lines around it.
            new_text: What shall stand there.
            replace_all: Replace it everywhere.
        """
        if not old_text:
            raise ToolError("old_text is empty: say what to replace, or use write_file")
        if old_text == new_text:
            raise ToolError("old_text and new_text are the same: there is nothing to change")
        edits: list[_Edit] = []

        def change(content: bytes) -> bytes:
            edit = _edited(content, old_text, new_text, replace_all=replace_all)
            if len(edit.content) > bounds.max_file_bytes:
                raise ToolError(
                    f"the file would have {len(edit.content)} bytes; it may have "
                    f"{bounds.max_file_bytes}"
                )
            edits.append(edit)
            return edit.content

        with told_to_model(ctx, path):
            place = target(ctx, path)
            change_inside(
                place.root,
                place.path,
                change,
                max_bytes=bounds.max_file_bytes,
                within=place.within,
            )
        name = printable(place.shown)
        return ToolResult(
            _report(name, edits[0], bounds), artifacts=[name], summary=f"edited {name}"
        )

    return edit_file


def _edited(content: bytes, old_text: str, new_text: str, *, replace_all: bool) -> _Edit:
    if is_binary(content):
        raise ToolError("the file is binary: this tool edits text")
    # Bytes, so that whatever else is in the file stays as it is, text or not.
    old, new = old_text.encode(), new_text.encode()
    if b"\r\n" in content and b"\r" not in old:
        old = old.replace(b"\n", b"\r\n")
        if b"\r" not in new:
            new = _with_ending_of(content, new)
    at = content.find(old)
    if at < 0 and old != old_text.encode():
        old, new = old_text.encode(), new_text.encode()
        at = content.find(old)
    if at < 0:
        raise ToolError(_not_found(content, old_text))
    if replace_all:
        places = content.count(old)
        return _Edit(content.replace(old, new), places, at, len(new))
    if content.find(old, at + 1) >= 0:
        raise ToolError(_not_unique(content, old))
    changed = content[:at] + new + content[at + len(old) :]
    return _Edit(changed, 1, at, len(new))


def _with_ending_of(content: bytes, new: bytes) -> bytes:
    """Return the new piece with the line ending that most lines of the file have."""
    mostly_crlf = content.count(b"\r\n") * 2 >= content.count(b"\n")
    return new.replace(b"\n", b"\r\n") if mostly_crlf else new


def _not_unique(content: bytes, old: bytes) -> str:
    lines: list[int] = []
    at = content.find(old)
    while at >= 0 and len(lines) <= _MOST_SHOWN:
        lines.append(_line_of(content, at))
        at = content.find(old, at + 1)
    listed = ", ".join(map(str, lines[:_MOST_SHOWN])) + (" …" if len(lines) > _MOST_SHOWN else "")
    return (
        f"old_text is there more than once, at lines {listed}: add lines around it to make it "
        "unique, or set replace_all=true"
    )


def _not_found(content: bytes, old_text: str) -> str:
    """Say why a piece is not there, as far as can be told."""
    lines = content.decode("utf-8", "replace").splitlines()[:_MOST_COMPARED_LINES]
    wanted = [line.strip() for line in old_text.strip("\n").splitlines()]
    found = [line.strip() for line in lines]
    if any(wanted):
        for number in range(len(found) - len(wanted) + 1):
            if found[number : number + len(wanted)] == wanted:
                return (
                    f"old_text is not there, but line {number + 1} begins the same with other "
                    "indentation or spaces: copy the lines exactly as read_file shows them"
                )
    first = next((line for line in wanted if line), "")
    number_part, tab, _ = old_text.partition("\t")
    if tab and number_part.strip().isdigit():
        return "old_text is not there: leave out the line numbers and tabs that read_file adds"
    near = [n for n, line in enumerate(found, start=1) if first and line == first][:_MOST_SHOWN]
    if near:
        listed = ", ".join(map(str, near))
        return f"old_text is not there; its first line is, at line {listed}: read it there again"
    return "old_text is not there: read the file again and copy the text exactly"


def _line_of(content: bytes, at: int) -> int:
    return content.count(b"\n", 0, at) + 1


def _report(name: str, edit: _Edit, limits: FileToolLimits) -> str:
    line = _line_of(edit.content, edit.at)
    end = _line_of(edit.content, edit.at + edit.length)
    times = "1 place" if edit.places == 1 else f"{edit.places} places"
    said = f"edited {name!r}: {times}, first at line {line}; sha256 {digest(edit.content)}"
    lines = edit.content.decode("utf-8", "replace").removesuffix("\n").split("\n")
    first = max(1, line - _AROUND)
    last = min(len(lines), end + _AROUND, first + _MOST_SHOWN)
    shown = [each.removesuffix("\r") for each in lines[first - 1 : last]]
    return "\n".join([said, *numbered(shown, first, limits.max_line_chars)])
