"""A tool that does as it is told, and keeps what it was called with."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Self

import anyio

from ..tool import Tool, ToolContext, ToolError, ToolPolicy
from ._step_model import error_of


class FakeTool(Tool):
    """A tool for tests. ``FakeTool("lookup")`` returns an empty text.

    It takes any arguments, unless it is given ``parameters``.

    Args:
        name: The tool's name.
        result: What each call returns: anything that a tool may return.
        description: What it does, for the model; by default a sentence with the name in it.
        parameters: JSON Schema of the arguments.
        policy: What the tool does and needs, its timeout for instance.
    """

    calls: list[dict[str, Any]]
    """The arguments of each call, in the order in which they began."""
    contexts: list[ToolContext[Any]]
    """The context of each call."""
    cancelled: int
    """How many calls were cancelled while they ran."""

    def __init__(
        self,
        name: str = "fake_tool",
        result: Any = "",
        *,
        description: str | None = None,
        parameters: Mapping[str, Any] | None = None,
        policy: ToolPolicy | None = None,
    ) -> None:
        made = Tool.from_schema(
            self._handle,
            name=name,
            description=f"The fake tool `{name}`." if description is None else description,
            parameters=parameters or {"type": "object", "properties": {}},
            policy=policy,
        )
        for field in fields(made):
            setattr(self, field.name, getattr(made, field.name))
        self.calls = []
        self.contexts = []
        self.cancelled = 0
        self._result = result
        self._error: BaseException | type[BaseException] | None = None
        self._hangs = False
        self._started: anyio.Event | None = None

    def __setattr__(self, name: str, value: object) -> None:
        # Other tools are frozen; a fake keeps what happens to it.
        object.__setattr__(self, name, value)

    @classmethod
    def returning(
        cls,
        result: Any,
        *,
        name: str = "fake_tool",
        description: str | None = None,
        parameters: Mapping[str, Any] | None = None,
        policy: ToolPolicy | None = None,
    ) -> Self:
        """Return a tool that returns this from each call."""
        return cls(name, result, description=description, parameters=parameters, policy=policy)

    @classmethod
    def failing(
        cls,
        error: str | BaseException | type[BaseException],
        *,
        name: str = "fake_tool",
        description: str | None = None,
        parameters: Mapping[str, Any] | None = None,
        policy: ToolPolicy | None = None,
    ) -> Self:
        """Return a tool whose calls fail.

        Args:
            error: A text is what the model is told, as a :class:`ToolError`; an exception is
                raised as it is, and a new one of a class for each call.
            name: See :class:`FakeTool`.
            description: See :class:`FakeTool`.
            parameters: See :class:`FakeTool`.
            policy: See :class:`FakeTool`.
        """
        tool = cls(name, description=description, parameters=parameters, policy=policy)
        tool._error = ToolError(error) if isinstance(error, str) else error
        return tool

    @classmethod
    def hanging(
        cls,
        *,
        name: str = "fake_tool",
        description: str | None = None,
        parameters: Mapping[str, Any] | None = None,
        policy: ToolPolicy | None = None,
    ) -> Self:
        """Return a tool whose calls never end; ``await tool.started.wait()`` for the first one."""
        tool = cls(name, description=description, parameters=parameters, policy=policy)
        tool._hangs = True
        return tool

    @property
    def started(self) -> anyio.Event:
        """Set once a call has begun."""
        # Made at first use: a tool is often made where no event loop runs.
        if self._started is None:
            self._started = anyio.Event()
        return self._started

    async def _handle(self, arguments: dict[str, Any], ctx: ToolContext[Any]) -> Any:
        self.calls.append(dict(arguments))
        self.contexts.append(ctx)
        self.started.set()
        if self._error is not None:
            raise error_of(self._error)
        if self._hangs:
            try:
                await anyio.sleep_forever()
            except anyio.get_cancelled_exc_class():
                self.cancelled += 1
                raise
        return self._result
