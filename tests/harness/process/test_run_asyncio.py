"""Programs under asyncio's own cancellation, which respects no scope."""

import asyncio
import os

import pytest

from tests.harness.process.programs import Programs, wait_until

COMMAND = ("sh", "-c", "trap '' TERM; setsid sleep 600 & touch begun; yes")


@pytest.fixture(params=["asyncio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    backend: str = request.param
    return backend


@pytest.mark.parametrize("delay", [step / 200 for step in range(0, 40, 2)])
async def test_a_cancelled_task_leaves_nothing(programs: Programs, delay: float) -> None:
    handles = len(os.listdir("/proc/self/fd"))
    task = asyncio.create_task(programs.run(*COMMAND))
    await asyncio.sleep(delay)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert programs.left() == []
    assert len(os.listdir("/proc/self/fd")) == handles


async def test_a_second_cancellation_does_not_cut_the_end_short(programs: Programs) -> None:
    task = asyncio.create_task(programs.run(*COMMAND))
    await asyncio.to_thread(wait_until, (programs.root / "begun").exists)
    while not task.done():
        task.cancel()
        await asyncio.sleep(0.01)
    assert task.cancelled()
    assert programs.left() == []
