"""Identical calls at the same time, made once."""

import anyio
import anyio.lowlevel
import pytest

from tests.support import PATIENCE
from tinyagents.harness.cache import Shared, SingleFlight

Outcome = str | Shared[str]


class Caller:
    """Counts its calls, each of which waits to be let go."""

    def __init__(self) -> None:
        self.calls = 0
        self.go = anyio.Event()

    async def __call__(self) -> str:
        self.calls += 1
        number = self.calls
        await self.go.wait()
        return f"answer {number}"


async def settle() -> None:
    for _ in range(5):
        await anyio.lowlevel.checkpoint()


async def test_the_first_goes_ahead_and_the_others_share_what_it_gets() -> None:
    flights, call = SingleFlight(), Caller()
    got: list[Outcome] = []

    async def run() -> None:
        got.append(await flights.run("k", call, str))

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(run)
            await settle()
            assert (call.calls, len(flights)) == (1, 1)
            call.go.set()
    assert call.calls == 1
    assert sorted(map(str, got)) == ["Shared(value='answer 1')"] * 2 + ["answer 1"]
    assert len(flights) == 0


async def test_other_keys_do_not_wait() -> None:
    flights, held, free = SingleFlight(), Caller(), Caller()
    free.go.set()
    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as group:
            group.start_soon(flights.run, "a", held, str)
            await settle()
            assert await flights.run("b", free, str) == "answer 1"
            held.go.set()


async def test_after_a_failure_each_makes_its_own_call() -> None:
    flights, calls = SingleFlight(), 0
    go = anyio.Event()

    async def fail() -> str:
        nonlocal calls
        calls += 1
        await go.wait()
        raise ValueError("no")

    async def run() -> None:
        with pytest.raises(ValueError, match="no"):
            await flights.run("k", fail, str)

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(run)
            await settle()
            go.set()
    assert calls == 3
    assert len(flights) == 0


async def test_an_answer_that_is_not_for_others_is_not_shared() -> None:
    flights, call = SingleFlight(), Caller()
    got: list[object] = []

    async def run() -> None:
        got.append(await flights.run("k", call, lambda _: None))

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            group.start_soon(run)
            await settle()
            call.go.set()
    assert sorted(map(str, got)) == ["answer 1", "answer 2"]


async def test_when_the_first_is_cancelled_the_next_goes_ahead_for_the_rest() -> None:
    flights, call = SingleFlight(), Caller()
    got: list[Outcome] = []
    first = anyio.CancelScope()

    async def lead() -> None:
        with first:
            await flights.run("k", call, str)

    async def run() -> None:
        got.append(await flights.run("k", call, str))

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as group:
            group.start_soon(lead)
            await settle()
            for _ in range(3):
                group.start_soon(run)
            await settle()
            first.cancel()
            await settle()
            assert call.calls == 2
            call.go.set()
    assert sorted(map(str, got)) == ["Shared(value='answer 2')"] * 2 + ["answer 2"]


async def test_who_waits_may_be_cancelled_and_nobody_else_is() -> None:
    flights, call = SingleFlight(), Caller()
    waiting = anyio.CancelScope()

    async def follow() -> None:
        with waiting:
            await flights.run("k", call, str)

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as group:
            group.start_soon(flights.run, "k", call, str)
            await settle()
            group.start_soon(follow)
            await settle()
            waiting.cancel()
            await settle()
            call.go.set()
    assert (waiting.cancelled_caught, call.calls) == (True, 1)


async def test_a_call_within_the_call_does_not_wait_for_itself() -> None:
    flights = SingleFlight()

    async def inner() -> str:
        return "inner"

    async def outer() -> str:
        return f"outer {await flights.run('k', inner, str)}"

    with anyio.fail_after(PATIENCE):
        assert await flights.run("k", outer, str) == "outer inner"


async def test_patience_runs_out() -> None:
    flights, held, own = SingleFlight(), Caller(), Caller()
    own.go.set()
    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as group:
            group.start_soon(flights.run, "k", held, str)
            await settle()
            assert await flights.run("k", own, str, patience=0) == "answer 1"
            assert held.calls == 1
            held.go.set()
