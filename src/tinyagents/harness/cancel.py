"""Asking a run to stop, from wherever it is asked."""

import logging
import threading
import weakref
from collections.abc import Callable
from functools import partial

import anyio

from .concurrency import thread_safe
from .errors import RunCancelledError

__all__ = ("CancellationToken",)

_log = logging.getLogger("tinyagents.cancel")


class CancellationToken:
    """A request to stop that stays set. Shared by whoever may ask and whoever must obey.

    :meth:`cancel` may be called from any thread, any event loop and a signal handler; a run that was
    given the token stops at once, wherever it waits.
    """

    __slots__ = ("__weakref__", "_callbacks", "_lock", "_parents", "_reason", "cancelled")

    def __init__(self) -> None:
        # Reentrant, because a signal handler or the garbage collector may come in between.
        self._lock = threading.RLock()
        self._parents: tuple[CancellationToken, ...] = ()
        self.cancelled: bool = False
        """Whether somebody asked. Read it; :meth:`cancel` sets it."""
        self._reason: str | None = None
        self._callbacks: dict[object, Callable[[], None]] = {}

    @property
    def reason(self) -> str | None:
        """What the first one who asked gave as reason."""
        return self._reason

    def cancel(self, reason: str | None = None) -> None:
        """Ask to stop. Asking again changes nothing."""
        with self._lock:
            if self.cancelled:
                return
            # First the reason: whoever sees `cancelled` reads it without the lock.
            self._reason = reason
            self.cancelled = True
            callbacks = list(self._callbacks.values())
            self._callbacks.clear()
        for callback in callbacks:
            try:
                callback()
            except Exception:  # noqa: BLE001 - the others must be told too
                _log.exception("a callback of a cancellation failed")

    def on_cancel(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back once when somebody asks, in the thread of who asks; at once if it is too late.

        What the callback raises is logged, except where it is called at once.

        Returns:
            A function that takes the callback back.
        """
        key = object()
        if self._add(key, callback):
            callback()
        return partial(self._forget, key)

    def child(self, *also: "CancellationToken") -> "CancellationToken":
        """Return a token that is cancelled with this one, and can be cancelled alone.

        A child that nobody refers to any more is forgotten.

        Args:
            also: Further tokens that it is cancelled with.
        """
        child = CancellationToken()
        child._parents = (self, *also)  # keeps a token in the middle of a chain
        for parent in child._parents:
            parent._pass_on_to(child)
        return child

    async def wait(self) -> None:
        """Wait until somebody asks; return at once if somebody has."""
        event = anyio.Event()
        forget = self.on_cancel(thread_safe(event.set))
        try:
            await event.wait()
        finally:
            forget()

    def raise_if_cancelled(self) -> None:
        """Raise if somebody asked.

        Raises:
            RunCancelledError: With the reason.
        """
        if self.cancelled:
            because = f": {self._reason}" if self._reason else ""
            raise RunCancelledError(f"the run was cancelled{because}", reason=self._reason)

    def _pass_on_to(self, child: "CancellationToken") -> None:
        key = object()
        found = weakref.ref(child, lambda _: self._forget(key))

        def pass_on() -> None:
            if (known := found()) is not None:
                known.cancel(self._reason)

        if self._add(key, pass_on):
            pass_on()

    def _add(self, key: object, callback: Callable[[], None]) -> bool:
        """Keep the callback, or tell that it is too late for it."""
        with self._lock:
            self._callbacks[key] = callback
            # Looked at last: a signal handler that asks in between has called it already.
            return self.cancelled and self._callbacks.pop(key, None) is not None

    def _forget(self, key: object) -> None:
        with self._lock:
            self._callbacks.pop(key, None)
