"""Cancels a scenario, or makes it fail, at each of the points where it waits.

A clean-up that is wrong in one place only is found by being interrupted in every place::

    async def scenario() -> None:
        await AgentHarness(model=model(), tools=[lookup]).invoke(None, "hi")

    points = await for_every_checkpoint(scenario)

The points are the suspensions of all tasks of the scenario, counted from 1 in the order in which
they happen: those of its tool calls and of its background tasks too. A coroutine that is awaited
and never waits itself is no point.
"""

import inspect
import sys
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeVar

import anyio
import anyio.lowlevel

T = TypeVar("T")

__all__ = ("CheckpointOutcome", "cancel_at_checkpoint", "for_every_checkpoint")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointOutcome(Generic[T]):
    """How a scenario ended that was interrupted at one point."""

    number: int
    """The point, from 1."""
    reached: bool
    """Whether the scenario came to it; if not, it ran to its end undisturbed."""
    result: T | None = None
    """What it returned, where it did: it may have been cancelled too late, or have gone on."""
    error: BaseException | None = None
    """What it raised. A cancellation that went through is one."""
    cancelled: bool = False
    """Whether ``error`` is the cancellation."""
    tasks_left: tuple[str, ...] = ()
    """The names of tasks that the scenario began and left running."""


async def cancel_at_checkpoint(
    number: int,
    scenario: Callable[[], Awaitable[T]],
    *,
    error: BaseException | type[BaseException] | None = None,
    seconds: float = 10.0,
) -> CheckpointOutcome[T]:
    """Run a scenario and cancel it when it waits for the ``number``-th time.

    On asyncio the scenario runs in a task of its own, which is cancelled natively and once; on trio
    in a cancel scope.

    Args:
        number: The point, from 1.
        scenario: Called once for a fresh run.
        error: Raised instead, in the task that waits there, once its wait is over. On trio only the
            scenario's own task can be made to fail, and only its points are counted.
        seconds: How long the scenario may take after that.

    Raises:
        AssertionError: The scenario does not end.
    """
    if number < 1:
        raise ValueError(f"checkpoints are counted from 1: {number}")
    if _on_asyncio():
        return await _on_asyncio_at(number, scenario, error, seconds)
    return await _on_trio_at(number, scenario, error, seconds)


async def for_every_checkpoint(
    make_run: Callable[[], Awaitable[T]],
    *,
    check: Callable[[CheckpointOutcome[T]], Awaitable[None] | None] | None = None,
    error: BaseException | type[BaseException] | None = None,
    seconds: float = 10.0,
    most: int = 10_000,
) -> int:
    """Run a scenario again and again, interrupted at its first point, its second, and so on.

    It ends with the run that is not interrupted any more, because it has no more points. That each
    run leaves no task behind is checked here; everything else is for ``check``.

    Args:
        make_run: Called for each run; should make everything anew.
        check: Called with the outcome of each run, the undisturbed last one included.
        error: See :func:`cancel_at_checkpoint`.
        seconds: See :func:`cancel_at_checkpoint`.
        most: The most runs, against a scenario that never ends.

    Returns:
        How many points there were.

    Raises:
        AssertionError: A run left a task behind, did not end, or what ``check`` raised: all with
            the number of the point as a note.
    """
    for number in range(1, most + 1):
        try:
            outcome = await cancel_at_checkpoint(number, make_run, error=error, seconds=seconds)
            if outcome.tasks_left:
                raise AssertionError(f"tasks were left running: {', '.join(outcome.tasks_left)}")
            if check is not None:
                checked = check(outcome)
                if inspect.isawaitable(checked):
                    await checked
        except AssertionError as exc:
            exc.add_note(f"at checkpoint {number}")
            raise
        if not outcome.reached:
            if outcome.error is not None:
                raise outcome.error
            return number - 1
    raise AssertionError(f"the scenario still waits after {most} checkpoints")


def _on_asyncio() -> bool:
    # Asked of what is loaded: a trio program need not have asyncio, nor the other way round.
    return "asyncio" in sys.modules and _running_loop() is not None


def _running_loop() -> Any:
    import asyncio  # noqa: TID251 - cancelling a task natively is what is tested

    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class _Points:
    """Counts the points, and acts at one of them."""

    __slots__ = ("_error", "_interrupt", "_number", "count")

    def __init__(
        self,
        number: int,
        interrupt: Callable[[], object],
        error: BaseException | type[BaseException] | None,
    ) -> None:
        self._number = number
        self._interrupt = interrupt
        self._error = error
        self.count = 0

    @property
    def reached(self) -> bool:
        return self.count >= self._number

    def reach(self) -> BaseException | type[BaseException] | None:
        """Take note of a task that waits; return what is to be raised in it afterwards."""
        self.count += 1
        if self.count != self._number:
            return None
        if self._error is None:
            self._interrupt()
        return self._error


class _Counted(Coroutine[Any, Any, T]):
    """A coroutine that counts how often it waits. Whoever looks at it sees the one inside."""

    __slots__ = ("_coroutine", "_pending", "_points")

    def __init__(self, coroutine: Coroutine[Any, Any, T], points: _Points) -> None:
        self._coroutine = coroutine
        self._points = points
        self._pending: BaseException | type[BaseException] | None = None
        """What is raised when the wait is over."""

    def send(self, value: Any, /) -> Any:
        error, self._pending = self._pending, None
        if error is not None:
            return self.throw(error)
        waited_for = self._coroutine.send(value)
        self._pending = self._points.reach()
        return waited_for

    def throw(self, error: Any, /, *more: Any) -> Any:
        self._pending = None
        waited_for = self._coroutine.throw(error, *more)
        self._pending = self._points.reach()
        return waited_for

    def close(self) -> None:
        self._coroutine.close()

    def __await__(self) -> Any:
        return self  # it has all that `await` asks of a generator

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        return self.send(None)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._coroutine, name)


async def _called(scenario: Callable[[], Awaitable[T]]) -> T:
    return await scenario()


def _unending(number: int, seconds: float) -> AssertionError:
    return AssertionError(
        f"the scenario did not end within {seconds:g} s after it was interrupted at checkpoint "
        f"{number}"
    )


async def _settled(done: Callable[[], bool]) -> None:
    """Give what was told to end the turns that it needs for it."""
    for _ in range(_TURNS):
        if done():
            return
        await anyio.lowlevel.checkpoint()


_TURNS = 50


async def _on_asyncio_at(
    number: int,
    scenario: Callable[[], Awaitable[T]],
    error: BaseException | type[BaseException] | None,
    seconds: float,
) -> CheckpointOutcome[T]:
    import asyncio  # noqa: TID251 - see above

    loop = asyncio.get_running_loop()
    points = _Points(number, lambda: task.cancel(), error)
    begun: set[asyncio.Task[Any]] = set()
    factory: Any = loop.get_task_factory()

    def make_task(
        loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any
    ) -> asyncio.Task[Any]:
        ours = asyncio.current_task() in begun
        if ours:
            coroutine = _Counted(coroutine, points)
        if factory is not None:
            made: asyncio.Task[Any] = factory(loop, coroutine, **options)
        else:
            made = asyncio.Task(coroutine, loop=loop, **options)
        if ours:
            begun.add(made)
        return made

    task: asyncio.Task[T] = asyncio.Task(_Counted(_called(scenario), points), name="scenario")
    begun.add(task)
    loop.set_task_factory(make_task)
    try:
        await asyncio.wait({task}, timeout=seconds)
        reached = points.reached
        if not task.done():
            raise _unending(number, seconds)
        await _settled(lambda: all(other.done() for other in begun))
        left = tuple(sorted(other.get_name() for other in begun if not other.done()))
    finally:
        loop.set_task_factory(factory)
        for other in begun:
            other.cancel()
        await asyncio.wait(begun, timeout=seconds)
    raised = asyncio.CancelledError() if task.cancelled() else task.exception()
    return CheckpointOutcome(
        number=number,
        reached=reached,
        result=task.result() if raised is None else None,
        error=raised,
        cancelled=isinstance(raised, asyncio.CancelledError),
        tasks_left=left,
    )


async def _on_trio_at(
    number: int,
    scenario: Callable[[], Awaitable[T]],
    error: BaseException | type[BaseException] | None,
    seconds: float,
) -> CheckpointOutcome[T]:
    import trio  # noqa: TID251 - its instruments are what counts

    scope = anyio.CancelScope()
    points = _Points(number, scope.cancel, error)
    watch: Any = _Watch(trio.lowlevel.current_task(), None if error is not None else points)
    result: T | None = None
    raised: BaseException | None = None
    trio.lowlevel.add_instrument(watch)
    try:
        with anyio.move_on_after(seconds) as limit, scope:
            try:
                if error is None:
                    result = await _called(scenario)
                else:
                    result = await _Counted(_called(scenario), points)
            except trio.Cancelled as exc:
                raised = exc
                raise
            except BaseException as exc:  # noqa: BLE001 - it is the outcome
                raised = exc
        reached, watch.points = points.reached, None
        if limit.cancelled_caught:
            raise _unending(number, seconds)
        await _settled(lambda: not watch.tasks)
    finally:
        trio.lowlevel.remove_instrument(watch)
    return CheckpointOutcome(
        number=number,
        reached=reached,
        result=result,
        error=raised,
        cancelled=isinstance(raised, trio.Cancelled),
        tasks_left=tuple(sorted(task.name for task in watch.tasks)),
    )


class _Watch:
    """An instrument of trio that counts the steps of a scenario's tasks, each of which is a wait."""

    def __init__(self, scenario: Any, points: _Points | None) -> None:
        self.points = points
        self.tasks: set[Any] = set()
        """The tasks that were begun and go on."""
        self._scenario = scenario

    def task_spawned(self, task: Any) -> None:
        self.tasks.add(task)

    def task_exited(self, task: Any) -> None:
        self.tasks.discard(task)

    def after_task_step(self, task: Any) -> None:
        if self.points is not None and (task is self._scenario or task in self.tasks):
            self.points.reach()
