"""Giving a call no more than its time."""

from functools import partial

import anyio
import pytest

from tests.harness.concurrency.calls import Waiter, give, throw
from tinyagents.harness.concurrency import DeadlineExpired, within


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
