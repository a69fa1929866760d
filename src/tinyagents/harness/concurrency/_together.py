"""Running calls together: all succeed, or the first error stops the others."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

import anyio

from ._loop import asyncio_loop

T = TypeVar("T")


async def run_together(
    calls: Sequence[Callable[[], Awaitable[T]]], *, limit: int | None = None
) -> list[T]:
    """Run the calls concurrently and return their results in the order of the calls.

    When one raises, a cancellation of its own included, the others are cancelled and awaited, calls
    that wait for their turn never begin, and the error is raised as it is; of several errors the
    one of the first call. A cancellation respects the shields of anyio's scopes inside the calls.

    Args:
        calls: What to run.
        limit: How many may run at once; ``None`` for all of them.
    """
    if len(calls) == 1:
        return [await calls[0]()]
    together = _Together(calls, len(calls) if limit is None else max(1, limit))
    if asyncio_loop() is not None:
        await together.run_on_asyncio()
    else:
        await together.run_on_anyio()
    return together.results()


class _Together(Generic[T]):
    """Calls that run at once, and what came of each."""

    __slots__ = ("_cancelled", "_errors", "_queue", "_results", "_scopes", "_size", "_workers")

    def __init__(self, calls: Sequence[Callable[[], Awaitable[T]]], limit: int) -> None:
        self._size = len(calls)
        self._queue = iter(enumerate(calls))
        self._workers = min(limit, len(calls))
        self._results: dict[int, T] = {}
        self._errors: dict[int, BaseException] = {}
        self._scopes: list[anyio.CancelScope] = []
        self._cancelled = False

    def results(self) -> list[T]:
        """Return the results, or raise the first error."""
        if self._errors:
            errors, self._errors = self._errors, {}
            try:
                raise errors[min(errors)]
            finally:
                del errors  # the error's traceback holds this frame
        if len(self._results) < self._size:
            # A worker was cancelled from outside before it began, as loops do when they close.
            raise anyio.get_cancelled_exc_class()()
        return [self._results[position] for position in range(self._size)]

    async def run_on_asyncio(self) -> None:
        # Tasks of a scope each cost a fifth of those of anyio's task group, and unlike those of
        # asyncio's own a cancellation does not break into a clean-up that shields itself.
        loop = asyncio.get_running_loop()
        ended = loop.create_future()
        tasks = {loop.create_task(self._work_in_scope()) for _ in range(self._workers)}

        def note(task: "asyncio.Task[None]") -> None:
            tasks.discard(task)
            if not tasks and not ended.done():
                ended.set_result(None)

        for task in tuple(tasks):
            task.add_done_callback(note)
        if not tasks:
            return
        try:
            await ended
        except asyncio.CancelledError:
            self._cancel()
            with anyio.CancelScope(shield=True):
                while tasks:
                    ended = loop.create_future()
                    try:
                        await ended
                    except asyncio.CancelledError:
                        continue  # asked again: the first time is enough
            if self._errors:
                return  # what a clean-up raised takes the place of the cancellation
            raise

    async def run_on_anyio(self) -> None:
        try:
            async with anyio.create_task_group() as group:
                self._scopes.append(group.cancel_scope)
                for _ in range(self._workers):
                    group.start_soon(self._work)
        except BaseExceptionGroup as failed:
            if self._errors:
                return
            raise _first(failed) from None

    def _cancel(self) -> None:
        self._cancelled = True
        for scope in self._scopes:
            scope.cancel()

    async def _work_in_scope(self) -> None:
        with anyio.CancelScope() as scope:
            self._scopes.append(scope)
            if self._cancelled:
                return
            await self._work()

    async def _work(self) -> None:
        for position, call in self._queue:
            try:
                self._results[position] = await call()
            except GeneratorExit:
                raise
            except BaseException as error:
                if isinstance(error, anyio.get_cancelled_exc_class()) and self._is_told(error):
                    raise
                self._errors[position] = error
                self._cancel()
            if self._cancelled:
                return

    def _is_told(self, error: BaseException) -> bool:
        """Whether a cancellation comes from outside the call."""
        # On trio no call can make one up.
        return self._cancelled or not isinstance(error, asyncio.CancelledError)


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    error = group.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error  # pyright: ignore[reportUnknownArgumentType]
