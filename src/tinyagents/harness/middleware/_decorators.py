"""Functions as middleware, for a hook that needs no class."""

import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from ..context import RunContext
from ..message import Message
from ..model import ModelRequest, ModelResponse
from ..tool import ToolResult
from ._base import (
    DeltaFilter,
    Middleware,
    ModelDelta,
    ModelHandler,
    ToolCall,
    ToolDelta,
    ToolHandler,
)
from ._check import PLAIN_HOOKS, check_function

if TYPE_CHECKING:
    from ..agent_loop import AgentRun

_Maybe: TypeAlias = Awaitable[None] | None


def _middleware(hook: str, function: Callable[..., Any]) -> Middleware[Any]:
    check_function(hook, function)
    name = getattr(function, "__name__", hook)

    def plain(self: object, *args: Any) -> Any:
        return function(*args)

    async def awaited(self: object, *args: Any) -> Any:
        result = function(*args)
        return await result if inspect.isawaitable(result) else result

    call = plain if hook in PLAIN_HOOKS else awaited
    members = {hook: call, "name": name, "__doc__": function.__doc__}
    made: Middleware[Any] = type(f"{name}_middleware", (Middleware,), members)()
    return made


def before_agent(function: Callable[[RunContext[Any]], _Maybe]) -> Middleware[Any]:
    """Make a middleware of a function ``(ctx)``: see :meth:`Middleware.before_agent`."""
    return _middleware("before_agent", function)


def after_agent(
    function: "Callable[[RunContext[Any], AgentRun[Any, Any]], _Maybe]",
) -> Middleware[Any]:
    """Make a middleware of a function ``(ctx, run)``: see :meth:`Middleware.after_agent`."""
    return _middleware("after_agent", function)


def before_model(function: Callable[[RunContext[Any], ModelRequest], _Maybe]) -> Middleware[Any]:
    """Make a middleware of a function ``(ctx, request)``: see :meth:`Middleware.before_model`."""
    return _middleware("before_model", function)


def compact(
    function: Callable[
        [RunContext[Any], Sequence[Message]],
        Sequence[Message] | None | Awaitable[Sequence[Message] | None],
    ],
) -> Middleware[Any]:
    """Make a middleware of a function ``(ctx, messages)``: see :meth:`Middleware.compact`."""
    return _middleware("compact", function)


def filter_deltas(function: Callable[[RunContext[Any]], DeltaFilter | None]) -> Middleware[Any]:
    """Make a middleware of a function ``(ctx)``: see :meth:`Middleware.filter_deltas`."""
    return _middleware("filter_deltas", function)


def on_model_delta(function: Callable[[RunContext[Any], ModelDelta], _Maybe]) -> Middleware[Any]:
    """Make a middleware of a function ``(ctx, delta)``: see :meth:`Middleware.on_model_delta`."""
    return _middleware("on_model_delta", function)


def after_model(function: Callable[[RunContext[Any], ModelResponse], _Maybe]) -> Middleware[Any]:
    """Make a middleware of a function ``(ctx, response)``: see :meth:`Middleware.after_model`."""
    return _middleware("after_model", function)


def before_tool(function: Callable[[RunContext[Any], ToolCall], _Maybe]) -> Middleware[Any]:
    """Make a middleware of a function ``(ctx, call)``: see :meth:`Middleware.before_tool`."""
    return _middleware("before_tool", function)


def on_tool_delta(function: Callable[[RunContext[Any], ToolDelta], None]) -> Middleware[Any]:
    """Make a middleware of a function ``(ctx, delta)``: see :meth:`Middleware.on_tool_delta`."""
    return _middleware("on_tool_delta", function)


def after_tool(
    function: Callable[[RunContext[Any], ToolCall, ToolResult], _Maybe],
) -> Middleware[Any]:
    """Make a middleware of a function ``(ctx, call, result)``: see :meth:`Middleware.after_tool`."""
    return _middleware("after_tool", function)


def on_error(function: Callable[[RunContext[Any], BaseException], _Maybe]) -> Middleware[Any]:
    """Make a middleware of a function ``(ctx, error)``: see :meth:`Middleware.on_error`."""
    return _middleware("on_error", function)


def wrap_model(
    function: Callable[[RunContext[Any], ModelRequest, ModelHandler], Awaitable[ModelResponse]],
) -> Middleware[Any]:
    """Make a middleware of ``(ctx, request, call_next)``: see :meth:`Middleware.wrap_model`."""
    return _middleware("wrap_model", function)


def wrap_tool(
    function: Callable[[RunContext[Any], ToolCall, ToolHandler], Awaitable[ToolResult]],
) -> Middleware[Any]:
    """Make a middleware of ``(ctx, call, call_next)``: see :meth:`Middleware.wrap_tool`."""
    return _middleware("wrap_tool", function)
