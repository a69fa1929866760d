"""Asking a run to stop, from wherever it is asked."""

import threading
from collections.abc import Callable

import anyio

from .concurrency import thread_safe
from .errors import RunCancelledError

__all__ = ("CancellationToken",)


class CancellationToken:
    """A request to stop that stays set. Shared by whoever may ask and whoever must obey.

    :meth:`cancel` may be called from any thread and any event loop; a run that was given the token
    stops at once, wherever it waits.
    """

    __slots__ = ("_callbacks", "_lock", "_reason", "cancelled")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.cancelled = False
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
            self.cancelled = True
            self._reason = reason
            callbacks = list(self._callbacks.values())
            self._callbacks.clear()
        for callback in callbacks:
            callback()

    def on_cancel(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back once when somebody asks, in the thread of who asks; at once if it is too late.

        Returns:
            A function that takes the callback back.
        """
        key = object()
        with self._lock:
            late = self.cancelled
            if not late:
                self._callbacks[key] = callback
        if late:
            callback()

        def forget() -> None:
            with self._lock:
                self._callbacks.pop(key, None)

        return forget

    def child(self) -> "CancellationToken":
        """Return a token that is cancelled with this one, and can be cancelled alone."""
        child = CancellationToken()
        self.on_cancel(lambda: child.cancel(self._reason))
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
