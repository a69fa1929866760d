"""What only asyncio does: native cancellation, and loops that close under a task."""

import asyncio
import signal

import anyio
import anyio.lowlevel
import pytest

from tests.support import PATIENCE
from tinyagents import AgentHarness, CancellationToken
from tinyagents.harness.concurrency import BackgroundTask, run_together, within
from tinyagents.harness.errors import RunCancelledError
from tinyagents.testkit import ScriptedModel, hang, say


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Calls:
    def __init__(self) -> None:
        self.started = 0
        self.cleaned = 0

    async def __call__(self) -> None:
        self.started += 1
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.lowlevel.checkpoint()
            self.cleaned += 1


async def test_a_native_cancellation_cancels_every_call_and_waits() -> None:
    calls = Calls()
    task = asyncio.create_task(run_together([calls] * 3))
    await anyio.wait_all_tasks_blocked()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert calls.started == calls.cleaned == 3
    assert task.cancelled()


async def test_a_second_cancellation_does_not_leave_calls_behind() -> None:
    cleaned: list[int] = []
    release = anyio.Event()

    async def slow() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await release.wait()
            cleaned.append(1)

    task = asyncio.create_task(run_together([slow, slow]))
    await anyio.wait_all_tasks_blocked()
    task.cancel()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.sleep(0)
    release.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert cleaned == [1, 1]


async def test_a_call_that_cancels_itself_cancels_its_siblings() -> None:
    calls = Calls()

    async def itself() -> None:
        await asyncio.sleep(0)
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await run_together([calls.__call__, itself])
    assert calls.cleaned == 1
    current = asyncio.current_task()
    assert current is not None
    assert current.cancelling() == 0


async def test_a_native_cancellation_is_no_expiry() -> None:
    calls = Calls()
    task = asyncio.create_task(within(30, calls))
    await anyio.wait_all_tasks_blocked()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_a_task_that_is_cancelled_before_it_begins_counts_as_ended() -> None:
    async def main() -> bool:
        before = asyncio.all_tasks()
        background = BackgroundTask(Calls().__call__)
        for task in asyncio.all_tasks() - before:
            task.cancel()  # as a loop does that closes
        await background.wait_shielded()
        return background.done

    assert asyncio.run(asyncio.wait_for(main(), PATIENCE))


def test_a_handle_whose_run_never_began_says_so() -> None:
    async def main() -> None:
        before = asyncio.all_tasks()
        handle = AgentHarness(model=ScriptedModel([say("x")])).start(None, "hi")
        for task in asyncio.all_tasks() - before:
            task.cancel()
        with pytest.raises(RunCancelledError, match="before it began"):
            await handle

    asyncio.run(asyncio.wait_for(main(), PATIENCE))


def test_a_stream_whose_run_never_began_says_so() -> None:
    async def main() -> None:
        before = asyncio.all_tasks()
        stream = AgentHarness(model=ScriptedModel([say("x")])).stream(None, "hi")
        reader = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0)
        for task in asyncio.all_tasks() - before:
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reader
        with pytest.raises(RunCancelledError, match="before it began"):
            await stream.result()

    asyncio.run(asyncio.wait_for(main(), PATIENCE))


def test_a_stream_that_a_closing_loop_cuts_at_once_does_not_block_it() -> None:
    async def consume() -> None:
        async for _ in AgentHarness(model=ScriptedModel([say("x")])).stream(None, "hi"):
            pass

    async def main() -> None:
        task = asyncio.create_task(consume())
        await asyncio.sleep(0)
        assert not task.done()

    asyncio.run(asyncio.wait_for(main(), PATIENCE))


def test_a_signal_handler_may_cancel_a_run_that_waits() -> None:
    token = CancellationToken()
    old = signal.signal(signal.SIGALRM, lambda *_: token.cancel("signal"))

    async def main() -> None:
        agent = AgentHarness(model=ScriptedModel([hang()]))
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(Exception, match="signal"):
            await agent.invoke(None, "hi", cancellation=token)

    try:
        asyncio.run(asyncio.wait_for(main(), PATIENCE))
    finally:
        signal.signal(signal.SIGALRM, old)
