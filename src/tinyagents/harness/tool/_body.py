"""How the function of a tool is run, whatever kind of function it is."""

import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import aclosing
from functools import partial
from typing import Any, TypeAlias, cast

from ..concurrency import in_thread, loop_poster
from ._context import ToolContext
from ._inject import Resolver
from ._result import as_result
from ._signature import is_kind

Body: TypeAlias = Callable[[dict[str, Any], ToolContext[Any]], Awaitable[Any]]
"""Runs the function with the values of one call and gives what it returns."""

Bind: TypeAlias = Callable[[dict[str, Any], ToolContext[Any]], Callable[[], Any]]
"""Puts all arguments of one call in their places."""


def make_body(function: Callable[..., Any], bind: Bind | None, *, thread: bool) -> Body:
    """Return how to run a function.

    Args:
        function: An async function is awaited where it is called; an async generator reports
            what it yields; any other runs in a worker thread.
        bind: How arguments are passed; ``None`` passes all of them by name.
        thread: Whether a function that is not async gets a worker thread.
    """
    bound: Bind = bind or (lambda arguments, ctx: partial(function, **arguments))
    if is_kind(inspect.isasyncgenfunction, function):
        return lambda arguments, ctx: _drained(bound(arguments, ctx)(), ctx)
    if is_kind(inspect.iscoroutinefunction, function):
        if bind is None:
            return lambda arguments, ctx: function(**arguments)
        return lambda arguments, ctx: bind(arguments, ctx)()
    generator = is_kind(inspect.isgeneratorfunction, function)

    async def run_here(arguments: dict[str, Any], ctx: ToolContext[Any]) -> Any:
        call = bound(arguments, ctx)
        return await _settled(_exhausted(call, ctx) if generator else call(), ctx)

    async def run_in_thread(arguments: dict[str, Any], ctx: ToolContext[Any]) -> Any:
        call = bound(arguments, ctx)
        ctx.enter_thread(loop_poster())
        # In a tuple, as trio refuses to hand over a coroutine.
        (value,) = await in_thread(lambda: (_exhausted(call, ctx) if generator else call(),))
        return await _settled(value, ctx)

    return run_in_thread if thread else run_here


def bind_names(
    function: Callable[..., Any],
    *,
    positional: tuple[str, ...] = (),
    injected: Mapping[str, Resolver] | None = None,
) -> Bind | None:
    """Return how to pass arguments by name, the positional ones apart."""
    resolvers = tuple((injected or {}).items())
    if not positional and not resolvers:
        return None

    def bind(arguments: dict[str, Any], ctx: ToolContext[Any]) -> Callable[[], Any]:
        named = dict(arguments)
        for name, resolve in resolvers:
            named[name] = resolve(ctx)
        values = [named.pop(name) for name in positional]
        return partial(function, *values, **named)

    return bind


def bind_whole(
    function: Callable[..., Any],
    *,
    injected: Mapping[str, Resolver],
    filled: Mapping[str, Resolver],
) -> Bind:
    """Return how to pass all arguments as one ``dict``.

    Args:
        function: Takes the ``dict`` first.
        injected: Further parameters of the function.
        filled: Keys of the ``dict`` that the application fills.
    """

    def bind(arguments: dict[str, Any], ctx: ToolContext[Any]) -> Callable[[], Any]:
        whole = {**arguments, **{name: resolve(ctx) for name, resolve in filled.items()}}
        return partial(function, whole, **{name: get(ctx) for name, get in injected.items()})

    return bind


class _Yields:
    """What a generator has yielded: a text is progress, anything else is the result so far."""

    __slots__ = ("_ctx", "_result", "_said")

    def __init__(self, ctx: ToolContext[Any]) -> None:
        self._ctx = ctx
        self._said: str | None = None
        self._result: Any = None

    def take(self, item: Any) -> None:
        if isinstance(item, str):
            self._said = item
            self._ctx.progress(item)
        else:
            self._result = as_result(item)

    @property
    def result(self) -> Any:
        return self._said if self._result is None else self._result


async def _settled(value: Any, ctx: ToolContext[Any]) -> Any:
    """Return what a plain function gave; around an async one it gives what is to be awaited."""
    if inspect.isasyncgen(value):
        return await _drained(cast("AsyncGenerator[Any, None]", value), ctx)
    return await value if inspect.isawaitable(value) else value


async def _drained(items: AsyncGenerator[Any, None], ctx: ToolContext[Any]) -> Any:
    yields = _Yields(ctx)
    async with aclosing(items):
        async for item in items:
            yields.take(item)
    return yields.result


def _exhausted(call: Callable[[], Generator[Any, Any, Any]], ctx: ToolContext[Any]) -> Any:
    yields = _Yields(ctx)
    items = call()
    while True:
        try:
            yields.take(next(items))
        except StopIteration as end:
            # Unlike an async one it can also return a value.
            return yields.result if end.value is None else end.value
