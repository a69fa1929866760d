"""Tools that come with the library; none is given to a model unless an application says so."""

from typing import TYPE_CHECKING

from .. import _lazy

if TYPE_CHECKING:
    from ._edit_file import edit_file_tool
    from ._file_limits import FileToolLimits
    from ._file_tools import file_tools
    from ._glob_files import glob_files_tool
    from ._grep_files import grep_files_tool
    from ._http_fetch import http_fetch_tool
    from ._list_files import list_files_tool
    from ._read_file import read_file_tool
    from ._shell import shell_tool
    from ._time import time_tools
    from ._todo import InMemoryTodoStore, Todo, TodoStatus, TodoStore, todo_key, todo_tools
    from ._write_file import write_file_tool

__all__ = (
    "FileToolLimits",
    "InMemoryTodoStore",
    "Todo",
    "TodoStatus",
    "TodoStore",
    "edit_file_tool",
    "file_tools",
    "glob_files_tool",
    "grep_files_tool",
    "http_fetch_tool",
    "list_files_tool",
    "read_file_tool",
    "shell_tool",
    "time_tools",
    "todo_key",
    "todo_tools",
    "write_file_tool",
)

if not TYPE_CHECKING:
    _TODO = ("InMemoryTodoStore", "Todo", "TodoStatus", "TodoStore", "todo_key", "todo_tools")
    _HOMES = {
        "_edit_file": ("edit_file_tool",),
        "_file_limits": ("FileToolLimits",),
        "_file_tools": ("file_tools",),
        "_glob_files": ("glob_files_tool",),
        "_grep_files": ("grep_files_tool",),
        "_http_fetch": ("http_fetch_tool",),
        "_list_files": ("list_files_tool",),
        "_read_file": ("read_file_tool",),
        "_shell": ("shell_tool",),
        "_time": ("time_tools",),
        "_todo": _TODO,
        "_write_file": ("write_file_tool",),
    }
    __getattr__, __dir__ = _lazy.names(__name__, _HOMES)
