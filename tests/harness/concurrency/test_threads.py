"""Reaching threads from the loop, and the loop from elsewhere."""

import logging
import threading
from contextvars import ContextVar

import anyio
import anyio.lowlevel
import pytest

from tinyagents.harness.concurrency import in_event_loop, in_thread, loop_poster, thread_safe

PLACE: ContextVar[str] = ContextVar("PLACE", default="outside")


async def test_context_variables_reach_a_thread() -> None:
    PLACE.set("here")
    assert await in_thread(PLACE.get) == "here"


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
