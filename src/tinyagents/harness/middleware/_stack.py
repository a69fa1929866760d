"""The hooks of several middlewares, sorted out once so that a run only walks short tuples."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

import anyio

from ..context import RunContext
from ..model import ModelRequest, ModelResponse
from ..tool import InterruptSignal, ToolResult
from ._base import Middleware, ModelHandler, ToolCall, ToolHandler

Hook: TypeAlias = tuple[str, Callable[..., Awaitable[Any]]]

HOOKS = (
    "before_agent",
    "after_agent",
    "before_model",
    "on_model_delta",
    "after_model",
    "before_tool",
    "on_tool_delta",
    "after_tool",
    "before_steering",
    "after_steering",
    "on_error",
    "wrap_model",
    "wrap_tool",
)


class MiddlewareStack:
    """Middlewares in the order of registration, and the overridden hooks of each kind."""

    __slots__ = (*HOOKS, "items")

    before_agent: tuple[Hook, ...]
    after_agent: tuple[Hook, ...]
    before_model: tuple[Hook, ...]
    on_model_delta: tuple[Hook, ...]
    after_model: tuple[Hook, ...]
    before_tool: tuple[Hook, ...]
    on_tool_delta: tuple[tuple[str, Callable[..., None]], ...]
    after_tool: tuple[Hook, ...]
    before_steering: tuple[Hook, ...]
    after_steering: tuple[Hook, ...]
    on_error: tuple[Hook, ...]
    wrap_model: tuple[Hook, ...]
    wrap_tool: tuple[Hook, ...]

    def __init__(self, items: Sequence[Middleware[Any]] = ()) -> None:
        self.items = tuple(items)
        for hook in HOOKS:
            found = [
                (item.name, getattr(item, hook))
                for item in self.items
                if getattr(type(item), hook) is not getattr(Middleware, hook)
            ]
            if hook.startswith("after_"):
                found.reverse()
            setattr(self, hook, tuple(found))


async def run_hooks(
    hooks: tuple[Hook, ...], hook: str, ctx: RunContext[Any], *args: object
) -> None:
    """Call hooks one after the other, each between its events; the first failure ends it."""
    for name, call in hooks:
        with _Bracket(ctx, name, hook):
            await call(ctx, *args)


async def run_error_hooks(
    hooks: tuple[Hook, ...], ctx: RunContext[Any], error: BaseException
) -> None:
    """Tell every middleware of a failure; what one of them raises is in its events only."""
    for name, call in hooks:
        try:
            with _Bracket(ctx, name, "on_error"):
                await call(ctx, error)
        except Exception:  # noqa: BLE001 - the run fails with its own error
            continue


def around_model(
    hooks: tuple[Hook, ...], ctx: RunContext[Any], innermost: ModelHandler
) -> ModelHandler:
    """Nest the wraps around the call of the model, the first registered outermost."""
    handler = innermost
    for name, wrap in reversed(hooks):

        async def wrapped(
            request: ModelRequest,
            name: str = name,
            wrap: Callable[..., Awaitable[Any]] = wrap,
            inner: ModelHandler = handler,
        ) -> ModelResponse:
            with _Bracket(ctx, name, "wrap_model"):
                response: ModelResponse = await wrap(ctx, request, inner)
            return response

        handler = wrapped
    return handler


def around_tool(
    hooks: tuple[Hook, ...], ctx: RunContext[Any], innermost: ToolHandler
) -> ToolHandler:
    """Nest the wraps around the call of a tool, the first registered outermost."""
    handler = innermost
    for name, wrap in reversed(hooks):

        async def wrapped(
            call: ToolCall,
            name: str = name,
            wrap: Callable[..., Awaitable[Any]] = wrap,
            inner: ToolHandler = handler,
        ) -> ToolResult:
            with _Bracket(ctx, name, "wrap_tool"):
                result: ToolResult = await wrap(ctx, call, inner)
            return result

        handler = wrapped
    return handler


class _Bracket:
    """The events around one hook: started, and then completed or failed.

    A wrap that lets an error or a cancellation of what it wraps pass has failed with it; one that
    lets a tool's question pass has not.
    """

    __slots__ = ("_ctx", "_hook", "_name")

    def __init__(self, ctx: RunContext[Any], name: str, hook: str) -> None:
        self._ctx = ctx
        self._name = name
        self._hook = hook

    def __enter__(self) -> None:
        self._ctx.emit("middleware.started", name=self._name, hook=self._hook)

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if error is None or isinstance(error, InterruptSignal):
            self._ctx.emit("middleware.completed", name=self._name, hook=self._hook)
            return
        cancelled = isinstance(error, anyio.get_cancelled_exc_class())
        why = "cancelled" if cancelled else f"{type(error).__name__}: {error}"
        self._ctx.emit("middleware.failed", name=self._name, hook=self._hook, error=why)
