"""The hooks of several middlewares, sorted out once so that a run only walks short tuples."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias, TypeVar

import anyio

from ..context import RunContext
from ..message import Message
from ..text import error_text
from ..tool import InterruptSignal, ToolRegistry
from ._base import DeltaFilter, Middleware, Redaction
from ._check import HOOKS, checked_items, overrides

T = TypeVar("T")
R = TypeVar("R")

Hook: TypeAlias = tuple[str, Callable[..., Awaitable[Any]]]


class MiddlewareStack:
    """Middlewares in the order of registration, and the overridden hooks of each kind."""

    __slots__ = (*HOOKS, "items", "tools")

    before_agent: tuple[Hook, ...]
    after_agent: tuple[Hook, ...]
    compact: tuple[Hook, ...]
    before_model: tuple[Hook, ...]
    filter_deltas: tuple[tuple[str, Callable[[RunContext[Any]], DeltaFilter | None]], ...]
    redaction: tuple[tuple[str, Callable[[RunContext[Any]], Redaction | None]], ...]
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
        self.items: tuple[Middleware[Any], ...] = checked_items(items)
        self.tools: ToolRegistry = ToolRegistry(tool for item in self.items for tool in item.tools)
        """The tools that come with them."""
        for hook in HOOKS:
            found = [
                (item.name, getattr(item, hook)) for item in self.items if overrides(item, hook)
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


async def run_compact_hooks(
    hooks: tuple[Hook, ...], ctx: RunContext[Any], messages: Sequence[Message]
) -> Sequence[Message] | None:
    """Pass the transcript through the hooks, each of which sees what those before it have left.

    Returns:
        The transcript that takes its place; ``None`` where none has changed it.
    """
    changed: Sequence[Message] | None = None
    for name, call in hooks:
        with _Bracket(ctx, name, "compact"):
            shorter = await call(ctx, tuple(messages))
        if shorter is not None:
            messages = changed = shorter
    return changed


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


def around(
    hook: str,
    hooks: tuple[Hook, ...],
    ctx: RunContext[Any],
    innermost: Callable[[T], Awaitable[R]],
) -> Callable[[T], Awaitable[R]]:
    """Nest the wraps around a call, the first registered outermost.

    Args:
        hook: ``wrap_model`` or ``wrap_tool``.
        hooks: The wraps.
        ctx: The run.
        innermost: The call itself, of a request or a tool call.
    """
    handler = innermost
    for name, wrap in reversed(hooks):
        handler = _wrapped(hook, name, wrap, ctx, handler)
    return handler


def _wrapped(
    hook: str,
    name: str,
    wrap: Callable[..., Awaitable[R]],
    ctx: RunContext[Any],
    inner: Callable[[T], Awaitable[R]],
) -> Callable[[T], Awaitable[R]]:
    async def call(value: T) -> R:
        with _Bracket(ctx, name, hook):
            return await wrap(ctx, value, inner)

    return call


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
        why = "cancelled" if cancelled else f"{type(error).__name__}: {error_text(error)}"
        self._ctx.emit("middleware.failed", name=self._name, hook=self._hook, error=why)
