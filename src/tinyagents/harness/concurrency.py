"""The few concurrency primitives that the hot path needs, and the only place that sees asyncio.

anyio is the interface of the whole library. Two things cost several times more through it than on
asyncio itself (running calls together, and a task that outlives its caller's frame), so these two
are written for asyncio directly and go through anyio or trio elsewhere, with the same behaviour.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
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
    """A call did not end in its time. A timeout that the call itself raises is never this."""


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
    if _asyncio_loop() is not None:
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


async def within(seconds: float | None, call: Callable[[], Awaitable[T]]) -> T:
    """Await ``call()`` for at most so many seconds; ``None`` is no limit.

    A call that is cut takes the time that its shielded clean-up needs. What it returns or raises
    all the same is returned or raised.

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

    Called from a task of the loop, the callback runs at once; from elsewhere, a signal handler for
    example, as soon as the loop gets to it and in the order of the calls, and what it raises then
    is logged. After the loop was closed it is dropped.
    """
    loop = _asyncio_loop()
    if loop is not None:
        here, post = partial(_in_task_of, loop), loop.call_soon_threadsafe
        return partial(_run_in_loop, here, post)
    import trio

    token = trio.lowlevel.current_trio_token()

    def here_on_trio() -> bool:
        # The first raises where trio runs no task, as in a signal handler while it waits.
        trio.lowlevel.current_task()
        return trio.lowlevel.current_trio_token() is token

    return partial(_run_in_loop, here_on_trio, token.run_sync_soon)


def _in_task_of(loop: asyncio.AbstractEventLoop) -> bool:
    task = asyncio.current_task()
    return task is not None and task.get_loop() is loop


def _run_in_loop(
    here: Callable[[], bool],
    post: Callable[[Callable[[], None]], Any],
    callback: Callable[[], None],
) -> None:
    try:
        at_once = here()
    except RuntimeError:  # no event loop in this thread
        at_once = False
    if at_once:
        callback()
        return
    try:
        post(partial(_logged, callback))
    except RuntimeError:  # the loop was closed
        return


def _logged(callback: Callable[[], None]) -> None:
    # Trio would end the whole program with what a posted callback raises.
    try:
        callback()
    except Exception:  # noqa: BLE001 - there is nobody above to take it
        _log.exception("a callback from another thread failed")


def thread_safe(callback: Callable[[], None]) -> Callable[[], None]:
    """Return ``callback`` in a form that any thread may call: see :func:`loop_poster`."""
    return partial(loop_poster(), callback)


_running: "set[BackgroundTask]" = set()
"""Keeps tasks alive that nobody else refers to: event loops hold theirs weakly."""


class BackgroundTask:
    """A task that outlives the frame that started it: the run behind a stream or a handle.

    It starts with the caller's context variables and outside the caller's cancel scopes; a loop
    that closes cancels it. The body keeps what it raises for its owner: an exception that leaves
    it is logged and goes no further.
    """

    __slots__ = ("__weakref__", "_done")

    def __init__(self, body: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._done = anyio.Event()
        loop = _asyncio_loop()
        if loop is not None:
            task = loop.create_task(self._run(body))
            _running.add(self)
            # Not at the end of `_run`: a task that is cancelled before it begins never runs that.
            task.add_done_callback(self._ended)
        else:
            import trio

            _running.add(self)
            trio.lowlevel.spawn_system_task(self._run_on_trio, body, context=copy_context())

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

    async def _run_on_trio(self, body: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            await self._run(body)
        except anyio.get_cancelled_exc_class():
            raise
        except BaseException:  # noqa: BLE001 - from a system task it would take trio itself down
            _log.exception("a background task failed")
        finally:
            self._ended()

    def _ended(self, task: "asyncio.Task[None] | None" = None) -> None:
        _running.discard(self)
        self._done.set()
        if task is not None and not task.cancelled():
            # Looked at, so that asyncio does not report what the owner has been told already.
            task.exception()


class Channel(Generic[T]):
    """Hands items from one producer to one consumer, in batches where the producer is faster.

    Both are tasks of one event loop. The consumer is woken once for all that waits, so an item
    costs a fraction of a microsecond; one that is cancelled while it waits loses nothing. A producer
    that is ``size`` items ahead waits in :meth:`room` until all of them were taken.
    """

    __slots__ = ("_closed", "_error", "_items", "_ready", "_room", "_size", "waiting")

    def __init__(self, size: int = 256) -> None:
        self._items: deque[T] = deque()
        self.waiting: deque[T] = self._items
        """What was put and not yet taken. Whoever pops the last item calls :meth:`caught_up`."""
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
        self._error = None
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
        item = items.popleft()
        if not items:
            self.caught_up()
        return item

    def caught_up(self) -> None:
        """Let the producer go on, if it waits for room."""
        if self._room is not None:
            self._room.set()
            self._room = None

    def _wake(self) -> None:
        for event in (self._ready, self._room):
            if event is not None:
                event.set()
        self._ready = self._room = None
