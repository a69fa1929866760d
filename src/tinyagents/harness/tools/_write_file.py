"""``write_file``: a whole file, new or in place of the old one."""

from typing import Any

from ..safe_open import change_inside, write_inside
from ..tool import Tool, ToolContext, ToolError, ToolResult, tool
from ._file_access import Target, digest, printable, target, told_to_model
from ._file_limits import WRITES, FileToolLimits


def write_file_tool(limits: FileToolLimits | None = None) -> Tool:
    """Return the tool ``write_file``, which creates or overwrites a file of the workspace."""
    bounds = limits or FileToolLimits()

    @tool(policy=WRITES)
    def write_file(
        ctx: ToolContext[Any],
        path: str,
        content: str,
        overwrite: bool = False,
        expected_sha256: str | None = None,
    ) -> ToolResult:
        """Write a text file of the workspace, all of it. Missing folders are made.

        Args:
            path: The file, relative to the root of the workspace.
            content: The whole text.
            overwrite: Whether to replace a file that is there already.
            expected_sha256: Replace the file only if it still has these digits, which read_file
                showed.
        """
        data = content.encode()
        if len(data) > bounds.max_file_bytes:
            raise ToolError(
                f"the text has {len(data)} bytes; a file may have {bounds.max_file_bytes}"
            )
        with told_to_model(ctx, path):
            place = target(ctx, path)
            if expected_sha256 is not None:
                _replace(place, data, expected_sha256, bounds.max_file_bytes)
                created = False
            else:
                created = _write(place, data, overwrite=overwrite)
        done = "created" if created else "overwrote"
        name = printable(place.shown)
        said = f"{done} {name!r}: {len(data)} bytes; sha256 {digest(data)}"
        return ToolResult(said, artifacts=[name], summary=f"{done} {name}")

    return write_file


def _write(place: Target, data: bytes, *, overwrite: bool) -> bool:
    try:
        return write_inside(place.root, place.path, data, overwrite=overwrite, within=place.within)
    except FileExistsError as error:
        raise ToolError(
            "the file exists already: change it with edit_file, or set overwrite=true"
        ) from error


def _replace(place: Target, data: bytes, expected: str, max_bytes: int) -> None:
    def change(content: bytes) -> bytes:
        found = digest(content)
        if expected.strip().lower()[: len(found)] != found:
            raise ToolError(f"the file has changed (sha256 {found}): read it again first")
        return data

    change_inside(place.root, place.path, change, max_bytes=max_bytes, within=place.within)
