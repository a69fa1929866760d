"""A list of what is to do, which a model keeps for itself and people watch."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Annotated, Any, ClassVar, Literal, Protocol, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, field_validator

from ..context import RunContext
from ..errors import ConfigurationError
from ..text import JsonObject
from ..tool import Tool, ToolContext, ToolError, ToolPolicy, ToolResult, tool

_MOST_LISTS = 1_000
_MOST_ITEMS = 50
_SIGNS = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]", "cancelled": "[-]"}

# None of these says that somebody has agreed: a model cannot approve its own plan.
TodoStatus: TypeAlias = Literal["pending", "in_progress", "completed", "cancelled"]


class Todo(BaseModel):
    """One thing to do."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    content: Annotated[str, Field(min_length=1, max_length=500, description="What is to do.")]
    status: Annotated[
        TodoStatus, Field(description="Keep exactly one in_progress while you work.")
    ] = "pending"

    @field_validator("content")
    @classmethod
    def _on_one_line(cls, content: str) -> str:
        line = " ".join(content.split())
        if not line:
            raise ValueError("it is empty")
        return line


Todos = Annotated[
    list[Todo], Field(max_length=_MOST_ITEMS, description="The whole list, which replaces the old.")
]


class TodoStore(Protocol):
    """Keeps the list of each conversation."""

    async def load(self, key: str) -> Sequence[Todo]:
        """Return the list of a key; an empty one where there is none."""
        ...

    async def save(self, key: str, todos: Sequence[Todo]) -> None:
        """Keep a list in the place of the one that was there."""
        ...


class InMemoryTodoStore:
    """Keeps lists in this process, those that were used last.

    Args:
        max_lists: How many; the one that was used longest ago goes first.
    """

    def __init__(self, max_lists: int = _MOST_LISTS) -> None:
        if max_lists < 1:
            raise ConfigurationError("`max_lists` must be above 0")
        self._max_lists = max_lists
        self._lists: OrderedDict[str, tuple[Todo, ...]] = OrderedDict()

    async def load(self, key: str) -> Sequence[Todo]:
        """Return the list of a key; an empty one where there is none."""
        if key not in self._lists:
            return ()
        self._lists.move_to_end(key)
        return self._lists[key]

    async def save(self, key: str, todos: Sequence[Todo]) -> None:
        """Keep a list in the place of the one that was there."""
        self._lists[key] = tuple(todos)
        self._lists.move_to_end(key)
        while len(self._lists) > self._max_lists:
            self._lists.popitem(last=False)


def todo_key(run: RunContext[Any]) -> str:
    """Return under which key the list of a run is kept: its thread, or else the run itself."""
    return f"run:{run.run_id}" if run.thread_id is None else f"thread:{run.thread_id}"


def todo_tools(
    *, store: TodoStore | Callable[[RunContext[Any]], TodoStore] | None = None
) -> tuple[Tool, Tool]:
    """Return the tools ``write_todos`` and ``read_todos``.

    The list belongs to the run's thread, and without a thread to the run. A write replaces all of it,
    and its message in the transcript has the list as ``artifact``, for people to watch.

    Args:
        store: Where the lists are kept, or a function that gives the store for a run; by default in
            memory, for these two tools.
    """
    lists = store if store is not None else InMemoryTodoStore()

    def store_of(run: RunContext[Any]) -> TodoStore:
        return lists(run) if callable(lists) else lists

    @tool(exclusive=True)
    async def write_todos(todos: Todos, *, ctx: ToolContext) -> ToolResult:
        """Write down the steps of a longer task, and where you are with them.

        Write the whole list each time: before you begin, and whenever a step is done or changes.
        """
        _check(todos)
        await store_of(ctx.run).save(todo_key(ctx.run), todos)
        return _told(todos)

    @tool(policy=ToolPolicy.read_only())
    async def read_todos(*, ctx: ToolContext) -> ToolResult:
        """Read the list of steps as it was written last."""
        return _told(await store_of(ctx.run).load(todo_key(ctx.run)))

    return write_todos, read_todos


def _check(todos: Sequence[Todo]) -> None:
    under_way = [todo.content for todo in todos if todo.status == "in_progress"]
    if len(under_way) > 1:
        raise ToolError(f"Only one step can be in_progress, and {len(under_way)} are: {under_way}.")
    seen: set[str] = set()
    for todo in todos:
        if todo.content in seen:
            raise ToolError(f"The step {todo.content!r} is there twice.")
        seen.add(todo.content)


def _told(todos: Sequence[Todo]) -> ToolResult:
    value: list[JsonObject] = [todo.model_dump() for todo in todos]
    if not todos:
        return ToolResult("The list is empty.", value=value)
    lines = [f"{n}. {_SIGNS[todo.status]} {todo.content}" for n, todo in enumerate(todos, 1)]
    done = sum(todo.status in ("completed", "cancelled") for todo in todos)
    summary = f"{done} of {len(todos)} done"
    return ToolResult("\n".join((f"{summary}:", *lines)), value=value, summary=summary)
