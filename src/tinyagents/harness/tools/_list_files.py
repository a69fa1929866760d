"""``list_files``: what a folder holds."""

from itertools import islice
from typing import Any

from ..safe_open import Entry, list_inside
from ..tool import Tool, ToolContext, tool
from ._file_access import printable, target, told_to_model
from ._file_limits import READS, FileToolLimits


def list_files_tool(limits: FileToolLimits | None = None) -> Tool:
    """Return the tool ``list_files``, which lists a folder of the workspace."""
    bounds = limits or FileToolLimits()

    @tool(policy=READS)
    def list_files(ctx: ToolContext[Any], path: str = ".") -> str:
        """List what a folder of the workspace holds, sorted: folders end with /, files have a size.

        Args:
            path: The folder, relative to the root of the workspace.
        """
        with told_to_model(ctx, path):
            place = target(ctx, path)
            found = list_inside(place.root, place.path, within=place.within)
            lines = [_line(entry) for entry in islice(found, bounds.max_entries)]
            left = sum(1 for _ in found)
        if not lines:
            return "[empty folder]"
        if left:
            lines.append(f"[{left} more: search with glob_files]")
        return "\n".join(lines)

    return list_files


def _line(entry: Entry) -> str:
    name = printable(entry.path)
    match entry.kind:
        case "folder":
            return f"{name}/"
        case "file":
            return f"{name}  {_size(entry)}"
        case "link":
            return f"{name}  link"
        case "other":
            return f"{name}  no file"


def _size(entry: Entry) -> str:
    try:
        return f"{entry.status().st_size} bytes"
    except OSError:
        return "gone"
