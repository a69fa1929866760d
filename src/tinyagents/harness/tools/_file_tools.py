"""The file tools as a set."""

from ..tool import Tool
from ._edit_file import edit_file_tool
from ._file_limits import FileToolLimits
from ._glob_files import glob_files_tool
from ._grep_files import grep_files_tool
from ._list_files import list_files_tool
from ._read_file import read_file_tool
from ._write_file import write_file_tool


def file_tools(*, read_only: bool = False, limits: FileToolLimits | None = None) -> list[Tool]:
    """Return the tools that work on the files of a run's workspace.

    ``read_file``, ``list_files``, ``glob_files`` and ``grep_files``; and ``write_file`` and
    ``edit_file``. The run needs a workspace: see :class:`AgentHarness`.

    Args:
        read_only: Leave out the two that change files.
        limits: How much they read, write, search and show.
    """
    reading = [read_file_tool, list_files_tool, glob_files_tool, grep_files_tool]
    writing = [] if read_only else [write_file_tool, edit_file_tool]
    return [make(limits) for make in (*reading, *writing)]
