"""Time as a run sees it, so that a test can hold it still."""

import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Protocol, TypeAlias

__all__ = ("Clock", "Sleep", "SystemClock", "milliseconds")

Sleep: TypeAlias = Callable[[float], Awaitable[None]]
"""Waits for a number of seconds; ``anyio.sleep`` unless a test injects its own."""


def milliseconds(seconds: float) -> float:
    """Return a duration in milliseconds, to the microsecond."""
    return int(seconds * 1_000_000) / 1000


class Clock(Protocol):
    """Tells the time. Nothing in a run reads the system's clock but through its context's clock."""

    def now_ms(self) -> int:
        """Return the wall clock: milliseconds since 1970-01-01T00:00:00Z."""
        ...

    def monotonic(self) -> float:
        """Return seconds from some fixed point, never running backwards."""
        ...


class SystemClock:
    """The machine's own clocks."""

    __slots__ = ()

    def now_ms(self) -> int:
        """Return milliseconds since the epoch."""
        return time.time_ns() // 1_000_000

    if TYPE_CHECKING:

        def monotonic(self) -> float:
            """Return ``time.monotonic()``."""
            ...

    else:
        # Without a frame of its own: it is read several times a turn.
        monotonic = staticmethod(time.monotonic)
