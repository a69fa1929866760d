"""A list of steps that a model keeps while it works."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, get_args

from pydantic import JsonValue, TypeAdapter

from ...context import RunContext
from ...errors import ConfigurationError
from ...model import ModelRequest
from ...tool import Tool
from ...tools import Todo, TodoStatus, TodoStore, todo_tools
from .._base import Middleware
from ._placing import put_instructions

_INSTRUCTIONS = (
    "For work of several steps, write a list of the steps with `write_todos` before you begin, and "
    "write it anew whenever one is done or something changes, so that it is always true. Keep one step "
    "in progress at a time. Leave the list out where the work takes a step or two."
)


class TodoListMiddleware(Middleware[Any]):
    """Gives an agent the tools ``write_todos`` and ``read_todos``, and tells the model to use them.

    The list is part of the run, and a run that is resumed still has it. A run inside another one has a
    list of its own.

    Hooks: ``before_model``. It adds two tools to the agent, and a system message to requests that offer
    them. Events: the custom event ``todos.updated`` with how many steps are in which status, at each
    change.

    Args:
        instructions: What the model is told, in place of the words here; an empty text for nothing.
        store: Keeps the lists by thread, or where there is none by run, in place of the run's own
            snapshot; for a list that goes on from one run of a conversation to the next.
    """

    def __init__(self, *, instructions: str | None = None, store: TodoStore | None = None) -> None:
        self._instructions = _INSTRUCTIONS if instructions is None else instructions
        self._store = store
        self._tools = todo_tools(store=self._lists)

    @property
    def tools(self) -> Sequence[Tool]:
        """The two tools."""
        return self._tools

    async def before_model(self, ctx: RunContext[Any], request: ModelRequest) -> None:
        """Tell the model how to use the list."""
        offered = any(tool.name == self._tools[0].name for tool in request.tools)
        if offered and self._instructions:
            put_instructions(request, self._instructions)

    def todos(self, run: "_HasNotes") -> Sequence[Todo]:
        """Return the list that a run keeps: of a context, or of a run's ``snapshot``.

        Raises:
            ConfigurationError: The lists are in a store: load it from there.
        """
        if self._store is not None:
            raise ConfigurationError(
                "the lists are in the store that was given: load it from there"
            )
        return _read(run.notes.get(self.name))

    def _lists(self, run: RunContext[Any]) -> TodoStore:
        return _RunTodos(run, self.name, self._store)


class _HasNotes(Protocol):
    """A context or a snapshot."""

    @property
    def notes(self) -> Mapping[str, JsonValue]:
        """What middlewares keep with the run."""
        ...


class _RunTodos:
    """The list of one run, and whoever is told of it."""

    def __init__(self, run: RunContext[Any], key: str, store: TodoStore | None) -> None:
        self._run = run
        self._key = key
        self._store = store

    async def load(self, key: str) -> Sequence[Todo]:
        """Return the list."""
        if self._store is not None:
            return await self._store.load(key)
        return _read(self._run.notes.get(self._key))

    async def save(self, key: str, todos: Sequence[Todo]) -> None:
        """Keep a list in the place of the one that was there."""
        if self._store is not None:
            await self._store.save(key, todos)
        else:
            self._run.notes[self._key] = [todo.model_dump() for todo in todos]
        counts = Counter(todo.status for todo in todos)
        told: dict[str, JsonValue] = {status: counts[status] for status in get_args(TodoStatus)}
        self._run.emit_custom("todos.updated", {"total": len(todos), **told})


def _read(noted: JsonValue) -> Sequence[Todo]:
    return _adapter.validate_python(noted or ())


_adapter = TypeAdapter(tuple[Todo, ...])
