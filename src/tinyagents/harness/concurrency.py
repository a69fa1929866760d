"""The few concurrency primitives that the hot path needs, and the only place that sees asyncio.

anyio is the interface of the whole library. Two things cost several times more through it than on
asyncio itself (running calls together, and a task that outlives its caller's frame), so these two
are written for asyncio directly and go through anyio or trio elsewhere, with the same behaviour.
"""

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Coroutine, Sequence
from contextvars import copy_context
from functools import partial
from typing import Any, Generic, TypeVar

import anyio

__all__ = (
    "BackgroundTask",
    "Channel",
    "ChannelClosed",
    "DeadlineExpired",
    "in_event_loop",
    "in_thread",
    "loop_poster",
    "run_together",
    "thread_safe",
    "within",
)

T = TypeVar("T")

_log = logging.getLogger("tinyagents.concurrency")


class DeadlineExpired(Exception):
    """A call did not end in its time. Never raised by the call itself."""


class ChannelClosed(Exception):
    """The producer is done and everything it sent was received."""


def _asyncio_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def in_event_loop() -> bool:
    """Whether this thread runs an event loop, of whichever kind."""
    try:
        anyio.get_current_task()
    except Exception:  # noqa: BLE001 - each backend has its own way to say no
        return _asyncio_loop() is not None
    return True


async def run_together(
    calls: Sequence[Callable[[], Awaitable[T]]], *, limit: int | None = None
) -> list[T]:
    """Run the calls concurrently and return their results in the order of the calls.

    When one raises, the others are cancelled and awaited, and its error is raised as it is (the
    first one in the order of the calls, if there are several).

    Args:
        calls: What to run.
        limit: How many may run at once; ``None`` for all of them.
    """
    if len(calls) == 1:
        return [await calls[0]()]
    results: dict[int, T] = {}
    queue = iter(enumerate(calls))

    async def work() -> None:
        for position, call in queue:
            results[position] = await call()

    async def one(position: int, call: Callable[[], Awaitable[T]]) -> None:
        results[position] = await call()

    workers: list[Callable[[], Coroutine[Any, Any, None]]]
    if limit is None or limit >= len(calls):
        workers = [
            lambda position=position, call=call: one(position, call)  # type: ignore[misc]
            for position, call in enumerate(calls)
        ]
    else:
        workers = [work] * max(1, limit)
    try:
        if (loop := _asyncio_loop()) is not None:
            del loop
            async with asyncio.TaskGroup() as tasks:
                for worker in workers:
                    tasks.create_task(worker())
        else:
            async with anyio.create_task_group() as group:
                for worker in workers:
                    group.start_soon(worker)
    except BaseExceptionGroup as failed:
        raise _first(failed) from None
    if len(results) < len(calls):
        # A call cancelled itself; to its siblings' caller that is a cancellation as well.
        raise anyio.get_cancelled_exc_class()()
    return [results[position] for position in range(len(calls))]


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return error


async def within(seconds: float | None, call: Callable[[], Awaitable[T]]) -> T:
    """Await ``call()`` for at most so many seconds; ``None`` is no limit.

    Raises:
        DeadlineExpired: The time was up; the call was cancelled and has ended.
    """
    if seconds is None:
        return await call()
    with anyio.move_on_after(seconds):
        return await call()
    raise DeadlineExpired


async def in_thread(call: Callable[[], T]) -> T:
    """Run a blocking call in a worker thread with the caller's context variables.

    When the caller is cancelled it goes on at once; the thread runs on, and what it returns is
    thrown away.
    """
    return await anyio.to_thread.run_sync(call, abandon_on_cancel=True)


def loop_poster() -> Callable[[Callable[[], None]], None]:
    """Return a function that any thread may call to have a callback run in this event loop.

    Called from the loop's own thread the callback runs at once; after the loop was closed it is
    dropped.
    """
    home = threading.get_ident()
    loop = _asyncio_loop()
    if loop is not None:
        post: Callable[[Callable[[], None]], Any] = loop.call_soon_threadsafe
    else:
        import trio

        post = trio.lowlevel.current_trio_token().run_sync_soon

    def run(callback: Callable[[], None]) -> None:
        if threading.get_ident() == home:
            callback()
            return
        try:
            post(callback)
        except RuntimeError:
            return

    return run


def thread_safe(callback: Callable[[], None]) -> Callable[[], None]:
    """Return ``callback`` in a form that any thread may call: see :func:`loop_poster`."""
    return partial(loop_poster(), callback)


class BackgroundTask:
    """A task that outlives the frame that started it: the run behind a stream or a handle.

    It starts with the caller's context variables. The body keeps what it raises for its owner:
    an exception that leaves it is logged and goes no further.
    """

    __slots__ = ("_done", "_task")

    def __init__(self, body: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._done = anyio.Event()
        self._task: asyncio.Task[None] | None = None
        loop = _asyncio_loop()
        if loop is not None:
            self._task = loop.create_task(self._run(body))
        else:
            import trio

            trio.lowlevel.spawn_system_task(self._run, body, context=copy_context())

    @property
    def done(self) -> bool:
        """Whether the body has ended."""
        return self._done.is_set()

    async def wait_quietly(self) -> None:
        """Wait until the body has ended, whatever it raised. Cancelling this stops nothing."""
        await self._done.wait()

    async def wait_shielded(self) -> None:
        """Wait until the body has ended, even where the caller is being cancelled."""
        if not self._done.is_set():
            with anyio.CancelScope(shield=True):
                await self._done.wait()

    async def _run(self, body: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            await body()
        except Exception:  # noqa: BLE001 - there is nobody above to take it
            _log.exception("a background task failed")
        finally:
            self._done.set()


class Channel(Generic[T]):
    """Hands items from one producer to one consumer, in batches where the producer is faster.

    The consumer is woken once for all that waits, so an item costs a fraction of a microsecond.
    A producer that is ``size`` items ahead waits in :meth:`room`.
    """

    __slots__ = ("_closed", "_error", "_items", "_ready", "_room", "_size", "waiting")

    def __init__(self, size: int = 256) -> None:
        self._items: deque[T] = deque()
        self.waiting: Collection[T] = self._items
        """What was put and not yet taken, for a look at whether there is anything."""
        self._size = size
        self._closed = False
        self._error: BaseException | None = None
        self._ready: anyio.Event | None = None
        self._room: anyio.Event | None = None

    def put(self, item: T, /) -> bool:
        """Add an item at once, and tell whether the producer should wait for :meth:`room`.

        A full channel takes it too; a closed one drops it.
        """
        items = self._items
        if self._closed:
            return False
        items.append(item)
        if self._ready is not None:
            self._ready.set()
            self._ready = None
        return len(items) >= self._size

    async def room(self) -> None:
        """Wait until the consumer has caught up, or is gone."""
        while len(self._items) >= self._size and not self._closed:
            if self._room is None:
                self._room = anyio.Event()
            await self._room.wait()

    def close(self, error: BaseException | None = None) -> None:
        """End the channel; the consumer gets what waits, and then ``error`` or the end."""
        if self._closed:
            return
        self._closed = True
        self._error = error
        self._wake()

    def drop(self) -> None:
        """End the channel from the consumer's side: what waits is thrown away."""
        self._closed = True
        self._items.clear()
        self._wake()

    async def get(self) -> T:
        """Return the next item.

        Raises:
            ChannelClosed: There is none any more. An error given to :meth:`close` is raised once,
                before that.
        """
        items = self._items
        while not items:
            if self._closed:
                if self._error is not None:
                    error, self._error = self._error, None
                    raise error
                raise ChannelClosed
            if self._ready is None:
                self._ready = anyio.Event()
            await self._ready.wait()
        return self.take()

    def take(self) -> T:
        """Return the next item at once; there must be one in ``waiting``."""
        item = self._items.popleft()
        if self._room is not None and not self._items:
            self._room.set()
            self._room = None
        return item

    def _wake(self) -> None:
        for event in (self._ready, self._room):
            if event is not None:
                event.set()
        self._ready = self._room = None
