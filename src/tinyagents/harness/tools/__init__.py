"""Tools that come with the library; none is given to a model unless an application says so."""

from typing import TYPE_CHECKING

from .. import _lazy

if TYPE_CHECKING:
    from ._http_fetch import http_fetch_tool
    from ._time import time_tools
    from ._todo import InMemoryTodoStore, Todo, TodoStatus, TodoStore, todo_key, todo_tools

__all__ = (
    "InMemoryTodoStore",
    "Todo",
    "TodoStatus",
    "TodoStore",
    "http_fetch_tool",
    "time_tools",
    "todo_key",
    "todo_tools",
)

if not TYPE_CHECKING:
    _TODO = ("InMemoryTodoStore", "Todo", "TodoStatus", "TodoStore", "todo_key", "todo_tools")
    _HOMES = {
        "_http_fetch": ("http_fetch_tool",),
        "_time": ("time_tools",),
        "_todo": _TODO,
    }
    __getattr__, __dir__ = _lazy.names(__name__, _HOMES)
