"""Running calls together: their order, their errors and their cancellation."""

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from functools import partial

import anyio
import anyio.lowlevel
import pytest

from tests.harness.concurrency.calls import Signal, Waiter, give, throw
from tinyagents.harness.concurrency import run_together

PLACE: ContextVar[str] = ContextVar("PLACE", default="outside")


async def together(
    *calls: Callable[[], Awaitable[object]], limit: int | None = None
) -> list[object]:
    return await run_together(calls, limit=limit)


@pytest.mark.parametrize("limit", [None, 1, 2, 5])
async def test_results_come_in_the_order_of_the_calls(limit: int | None) -> None:
    calls = [partial(give, n) for n in range(5)]
    assert await together(*calls, limit=limit) == [0, 1, 2, 3, 4]


async def test_no_calls_give_no_results() -> None:
    assert await together() == []


@pytest.mark.parametrize("limit", [None, 3])
async def test_an_error_cancels_the_others_and_is_raised_as_it_is(limit: int | None) -> None:
    waiter, error = Waiter(), ValueError("no")
    with pytest.raises(ValueError, match="no") as caught:
        await together(waiter, waiter, partial(throw, error), limit=limit)
    assert caught.value is error
    assert waiter.started == waiter.cleaned == 2


async def test_of_several_errors_the_one_of_the_first_call_is_raised() -> None:
    async def fail_late() -> object:
        try:
            await anyio.sleep_forever()
        finally:
            raise KeyError("first")

    with pytest.raises(KeyError, match="first"):
        await together(fail_late, partial(throw, ValueError("second")))


async def test_a_group_that_a_call_raises_is_not_taken_apart() -> None:
    group = ExceptionGroup("mine", [ValueError("a"), KeyError("b")])
    with pytest.raises(ExceptionGroup) as caught:
        await together(partial(give, 1), partial(throw, group))
    assert caught.value is group


async def test_a_signal_passes_like_an_error() -> None:
    waiter = Waiter()
    with pytest.raises(Signal):
        await together(waiter, partial(throw, Signal()))
    assert waiter.cleaned == 1


async def test_groups_nest() -> None:
    waiter = Waiter()

    async def inner() -> object:
        return await together(waiter, partial(throw, ValueError("deep")))

    with pytest.raises(ValueError, match="deep"):
        await together(inner, waiter)
    assert waiter.started == waiter.cleaned == 2


async def test_calls_that_wait_for_their_turn_do_not_begin_after_an_error() -> None:
    begun: list[int] = []

    async def stubborn(n: int) -> None:
        begun.append(n)
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            if n != 0:
                raise
            # Swallows it, which no call should do.

    calls: list[Callable[[], Awaitable[object]]] = [
        partial(stubborn, 0),
        partial(throw, ValueError("no")),
    ]
    with pytest.raises(ValueError, match="no"):
        await together(*calls, *(partial(stubborn, n) for n in range(2, 6)), limit=2)
    assert begun == [0]


async def test_a_cancelled_scope_cancels_every_call_and_waits() -> None:
    waiter = Waiter()
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(together, waiter, waiter, waiter)
            await anyio.wait_all_tasks_blocked()
            scope.cancel()
    assert waiter.started == waiter.cleaned == 3
    assert scope.cancelled_caught


async def test_a_cancellation_does_not_break_into_what_a_call_shields() -> None:
    finished: list[bool] = []
    release = anyio.Event()

    async def commit() -> None:
        with anyio.CancelScope(shield=True):
            await release.wait()
            finished.append(True)

    async with anyio.create_task_group() as tasks:
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as inner:
                inner.start_soon(together, commit, Waiter())
                await anyio.wait_all_tasks_blocked()
                scope.cancel()
                tasks.start_soon(_set_when_idle, release)
    assert finished == [True]


async def _set_when_idle(event: anyio.Event) -> None:
    for _ in range(5):
        await anyio.lowlevel.checkpoint()
    event.set()


async def test_context_variables_reach_the_calls() -> None:
    async def read() -> str:
        return PLACE.get()

    PLACE.set("here")
    assert await together(read, read) == ["here", "here"]
