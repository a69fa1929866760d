"""Between an event loop and other threads."""

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import anyio

from ._loop import asyncio_loop

T = TypeVar("T")

_log = logging.getLogger("tinyagents.concurrency")


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
    loop = asyncio_loop()
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
