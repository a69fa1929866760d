"""Tasks that outlive the frame that started them."""

from contextvars import ContextVar

import anyio
import anyio.lowlevel
import pytest

from tests.harness.concurrency.calls import Signal, Waiter
from tinyagents.harness.concurrency import BackgroundTask

PLACE: ContextVar[str] = ContextVar("PLACE", default="outside")


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
