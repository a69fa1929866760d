"""Running calls together, bounding them, and reaching the loop from elsewhere."""

import logging
import threading
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from functools import partial

import anyio
import anyio.lowlevel
import pytest

from tinyagents.harness.concurrency import (
    BackgroundTask,
    Channel,
    ChannelClosed,
    DeadlineExpired,
    in_event_loop,
    in_thread,
    loop_poster,
    run_together,
    thread_safe,
    within,
)

PLACE: ContextVar[str] = ContextVar("PLACE", default="outside")


class Signal(BaseException):
    """What steers a run and is no failure."""


class Waiter:
    """Calls that wait until they are cancelled, and what became of them."""

    def __init__(self) -> None:
        self.started = 0
        self.cleaned = 0

    async def run(self) -> None:
        await self()

    async def __call__(self) -> str:
        self.started += 1
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.lowlevel.checkpoint()
            self.cleaned += 1
        return "never"


async def together(
    *calls: Callable[[], Awaitable[object]], limit: int | None = None
) -> list[object]:
    return await run_together(calls, limit=limit)


async def give(value: object) -> object:
    await anyio.lowlevel.checkpoint()
    return value


async def throw(error: BaseException) -> object:
    await anyio.lowlevel.checkpoint()
    raise error


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


async def test_context_variables_reach_calls_and_threads() -> None:
    async def read() -> str:
        return PLACE.get()

    PLACE.set("here")
    assert await together(read, read) == ["here", "here"]
    assert await in_thread(PLACE.get) == "here"


async def test_a_call_without_a_deadline_just_runs() -> None:
    assert await within(None, partial(give, 1)) == 1
    assert await within(30, partial(give, 1)) == 1


async def test_a_call_that_is_out_of_time_is_cancelled_and_has_ended() -> None:
    waiter = Waiter()
    with pytest.raises(DeadlineExpired):
        await within(0.01, waiter)
    assert waiter.cleaned == 1


async def test_a_timeout_of_the_call_itself_is_no_expiry() -> None:
    with pytest.raises(TimeoutError, match="mine"):
        await within(30, partial(throw, TimeoutError("mine")))


async def test_a_cancellation_from_outside_is_no_expiry() -> None:
    waiter = Waiter()
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(within, 30, waiter)
            await anyio.wait_all_tasks_blocked()
            scope.cancel()
    assert scope.cancelled_caught
    assert waiter.cleaned == 1


async def test_an_expiry_waits_for_a_clean_up_that_is_shielded() -> None:
    steps: list[str] = []

    async def call() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(0.02)
            steps.append("clean")

    with pytest.raises(DeadlineExpired):
        await within(0.01, call)
    assert steps == ["clean"]


async def test_a_cancelled_caller_leaves_its_thread_behind() -> None:
    release = threading.Event()
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(in_thread, release.wait)
            await anyio.wait_all_tasks_blocked()
            scope.cancel()
    release.set()
    assert scope.cancelled_caught


async def test_a_posted_callback_runs_in_the_loop_and_in_order() -> None:
    home, seen = threading.get_ident(), []
    post = loop_poster()

    def work() -> None:
        for n in range(3):
            post(lambda n=n: seen.append((n, threading.get_ident())))  # type: ignore[misc]

    await in_thread(work)
    assert seen == [(0, home), (1, home), (2, home)]
    post(lambda: seen.clear())
    assert seen == []


async def test_a_posted_callback_that_raises_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    post = loop_poster()

    def bad() -> None:
        raise ValueError("posted")

    with caplog.at_level(logging.ERROR, "tinyagents.concurrency"):
        await in_thread(lambda: post(bad))
        await anyio.wait_all_tasks_blocked()
    assert "callback" in caplog.text


def test_a_callback_for_a_loop_that_was_closed_is_dropped(anyio_backend: str) -> None:
    seen: list[int] = []

    async def make() -> object:
        return thread_safe(lambda: seen.append(1))

    call = anyio.run(make, backend=anyio_backend)
    call()  # type: ignore[operator]

    async def in_another_loop() -> None:
        call()  # type: ignore[operator]
        await anyio.lowlevel.checkpoint()

    anyio.run(in_another_loop, backend=anyio_backend)
    thread = threading.Thread(target=call)  # type: ignore[arg-type]
    thread.start()
    thread.join()
    assert seen == []


async def test_a_loop_is_noticed() -> None:
    assert in_event_loop()
    assert not await in_thread(in_event_loop)


def test_no_loop_is_noticed() -> None:
    assert not in_event_loop()


async def test_a_background_task_outlives_its_starter_with_its_context_variables() -> None:
    seen: list[str] = []
    go = anyio.Event()

    async def body() -> None:
        await go.wait()
        seen.append(PLACE.get())

    async def start() -> BackgroundTask:
        PLACE.set("starter")
        with anyio.CancelScope() as scope:
            task = BackgroundTask(body)
            scope.cancel()
            await anyio.lowlevel.checkpoint()
        return task

    task = await start()
    assert not task.done
    go.set()
    await task.wait_quietly()
    assert seen == ["starter"]
    assert task.done


@pytest.mark.parametrize("error", [ValueError("lost"), Signal("lost")])
async def test_what_a_background_task_raises_harms_nobody(error: BaseException) -> None:
    async def body() -> None:
        raise error

    task = BackgroundTask(body)
    await task.wait_quietly()
    await task.wait_shielded()
    assert task.done


def test_a_loop_that_closes_cancels_its_background_tasks(anyio_backend: str) -> None:
    waiter = Waiter()

    async def main() -> None:
        BackgroundTask(waiter.run)
        await anyio.wait_all_tasks_blocked()

    anyio.run(main, backend=anyio_backend)
    assert waiter.started == waiter.cleaned == 1


async def test_a_channel_hands_on_what_was_put_and_then_ends() -> None:
    channel: Channel[int] = Channel()
    for n in range(3):
        channel.put(n)
    channel.close()
    assert not channel.put(9)
    assert [await channel.get() for _ in range(3)] == [0, 1, 2]
    for _ in range(2):
        with pytest.raises(ChannelClosed):
            await channel.get()


async def test_a_channel_raises_its_error_once_after_what_waits() -> None:
    channel: Channel[int] = Channel()
    channel.put(1)
    channel.close(ValueError("broken"))
    assert await channel.get() == 1
    with pytest.raises(ValueError, match="broken"):
        await channel.get()
    with pytest.raises(ChannelClosed):
        await channel.get()


async def test_a_full_channel_holds_its_producer_until_it_is_drained() -> None:
    channel: Channel[int] = Channel(size=2)
    sent: list[int] = []

    async def produce() -> None:
        for n in range(5):
            if channel.put(n):
                await channel.room()
            sent.append(n)
        channel.close()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(produce)
        await anyio.wait_all_tasks_blocked()
        assert sent == [0]
        assert await channel.get() == 0
        await anyio.wait_all_tasks_blocked()
        assert sent == [0]
        assert await channel.get() == 1
        await anyio.wait_all_tasks_blocked()
        assert sent == [0, 1, 2]
        assert [await channel.get() for _ in range(3)] == [2, 3, 4]


async def test_a_consumer_that_drops_the_channel_lets_its_producer_go() -> None:
    channel: Channel[int] = Channel(size=1)
    channel.put(1)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(channel.room)
        await anyio.wait_all_tasks_blocked()
        channel.drop()
    assert not channel.waiting
    with pytest.raises(ChannelClosed):
        await channel.get()


async def test_a_consumer_that_is_cancelled_while_it_waits_loses_nothing() -> None:
    channel: Channel[int] = Channel()
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(channel.get)
            await anyio.wait_all_tasks_blocked()
            channel.put(1)  # wakes it
            scope.cancel()  # and is too late for it
    if channel.waiting:
        assert await channel.get() == 1
    channel.put(2)
    assert await channel.get() == 2
