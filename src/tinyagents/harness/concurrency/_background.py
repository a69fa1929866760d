"""A task that outlives the frame that started it."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextvars import copy_context
from typing import Any

import anyio

from ._loop import asyncio_loop

_log = logging.getLogger("tinyagents.concurrency")

_running: "set[BackgroundTask]" = set()
"""Keeps tasks alive that nobody else refers to: event loops hold theirs weakly."""


class BackgroundTask:
    """A task that outlives the frame that started it: the run behind a stream or a handle.

    It starts with the caller's context variables and outside the caller's cancel scopes; a loop
    that closes cancels it. The body keeps what it raises for its owner: an exception that leaves
    it is logged and goes no further.
    """

    __slots__ = ("__weakref__", "_done")

    def __init__(self, body: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._done = anyio.Event()
        loop = asyncio_loop()
        if loop is not None:
            task = loop.create_task(self._run(body))
            _running.add(self)
            # Not at the end of `_run`: a task that is cancelled before it begins never runs that.
            task.add_done_callback(self._ended)
        else:
            import trio

            _running.add(self)
            trio.lowlevel.spawn_system_task(self._run_on_trio, body, context=copy_context())

    @property
    def done(self) -> bool:
        """Whether the body has ended."""
        return self._done.is_set()

    async def wait_quietly(self) -> None:
        """Wait until the body has ended, whatever it raised. Cancelling this stops nothing."""
        await self._done.wait()

    async def wait_shielded(self) -> None:
        """Wait until the body has ended, even where the caller is being cancelled."""
        if not self._done.is_set():
            with anyio.CancelScope(shield=True):
                await self._done.wait()

    async def _run(self, body: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            await body()
        except Exception:  # noqa: BLE001 - there is nobody above to take it
            _log.exception("a background task failed")

    async def _run_on_trio(self, body: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            await self._run(body)
        except anyio.get_cancelled_exc_class():
            raise
        except BaseException:  # noqa: BLE001 - from a system task it would take trio itself down
            _log.exception("a background task failed")
        finally:
            self._ended()

    def _ended(self, task: "asyncio.Task[None] | None" = None) -> None:
        _running.discard(self)
        self._done.set()
        if task is not None and not task.cancelled():
            # Looked at, so that asyncio does not report what the owner has been told already.
            task.exception()
