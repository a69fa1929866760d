"""Which event loop the caller is in."""

import asyncio
import math

import anyio


def asyncio_loop() -> asyncio.AbstractEventLoop | None:
    """Return the asyncio loop that this thread runs, if it runs one."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def in_event_loop() -> bool:
    """Whether this thread runs an event loop, of whichever kind."""
    try:
        anyio.get_current_task()
    except Exception:  # noqa: BLE001 - each backend has its own way to say no
        return asyncio_loop() is not None
    return True


def is_being_cancelled() -> bool:
    """Whether somebody cancels this task, or a scope around it.

    A cancellation error that comes while nobody does was made by something that was awaited: a task
    that somebody else has cancelled, for example.
    """
    if anyio.current_effective_deadline() == -math.inf:
        return True
    task = asyncio.current_task() if asyncio_loop() is not None else None
    return task is not None and task.cancelling() > 0
