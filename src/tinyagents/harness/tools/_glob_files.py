"""``glob_files``: files by a pattern of their paths."""

from contextlib import closing
from typing import Any

from ..tool import Tool, ToolContext, tool
from ._file_access import target, told_to_model
from ._file_limits import READS, FileToolLimits
from ._glob import Glob
from ._search import Search


def glob_files_tool(limits: FileToolLimits | None = None) -> Tool:
    """Return the tool ``glob_files``, which finds files of the workspace by their paths."""
    bounds = limits or FileToolLimits()

    @tool(policy=READS)
    def glob_files(ctx: ToolContext[Any], pattern: str, path: str = ".") -> str:
        """Find files of the workspace by a pattern of their paths, such as **/*.py; sorted.

        Args:
            pattern: Relative to `path`: * and ? within a name, [abc], {a,b}, ** for any folders.
            path: The folder to search in, relative to the root of the workspace.
        """
        wanted = Glob(pattern)
        search = Search.begin(ctx, bounds)
        names: list[str] = []
        with told_to_model(ctx, path):
            place = target(ctx, path)
            with closing(search.files(place, wanted)) as found:
                for entry in found:
                    if len(names) == bounds.max_entries:
                        search.stop(f"only the first {bounds.max_entries}")
                        break
                    names.append(place.below(entry.path))
        return "\n".join([*(names or ["[no files]"]), *search.footer()])

    return glob_files
