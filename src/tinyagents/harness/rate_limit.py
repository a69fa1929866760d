"""How many calls may be made in a while, whoever makes them."""

import math
import threading
import time
from collections.abc import Callable
from typing import Protocol

from .errors import ConfigurationError, LimitExceededError

__all__ = ("RateLimiter", "TokenBucketRateLimiter")


class RateLimiter(Protocol):
    """Says when a call may be made. It may be asked from any thread and event loop."""

    def reserve(self, tokens: float = 1.0, /) -> float:
        """Take tokens, in advance where they are not there yet, and return the seconds until they are.

        Who reserves first is served first.

        Raises:
            LimitExceededError: They never will be; nothing was taken.
        """
        ...

    def give_back(self, tokens: float = 1.0, /) -> None:
        """Return tokens that were reserved and are not used."""
        ...


class TokenBucketRateLimiter:
    """A bucket that fills at a steady rate, and from which each call takes.

    A full bucket allows a burst of ``capacity`` tokens at once. One limiter may be shared by several
    harnesses, which it then holds back together.

    Args:
        capacity: How many tokens the bucket holds; it is full at first.
        refill_per_second: How many come back in a second; with 0 there are no more than ``capacity``.
        clock: Tells the seconds on a clock that only goes forward.

    Raises:
        ConfigurationError: The capacity is not above 0, or the rate negative.
    """

    __slots__ = ("_at", "_clock", "_level", "_lock", "capacity", "refill_per_second")

    def __init__(
        self,
        capacity: float,
        refill_per_second: float,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not (math.isfinite(capacity) and capacity > 0):
            raise ConfigurationError(f"`capacity` is {capacity!r}: it is a number above 0")
        if not (math.isfinite(refill_per_second) and refill_per_second >= 0):
            raise ConfigurationError(
                f"`refill_per_second` is {refill_per_second!r}: it is a number of 0 or more"
            )
        self.capacity: float = capacity
        self.refill_per_second: float = refill_per_second
        self._clock = clock
        self._lock = threading.Lock()
        self._level = float(capacity)
        """Below 0 is what was taken in advance."""
        self._at = clock()

    @property
    def available(self) -> float:
        """How many tokens there are now; below 0 as many as are taken in advance."""
        with self._lock:
            self._refill()
            return self._level

    def reserve(self, tokens: float = 1.0, /) -> float:
        """Take tokens, in advance where they are not there yet, and return the seconds until they are.

        Raises:
            ConfigurationError: The number of tokens is negative or none.
            LimitExceededError: They are more than the bucket holds, or none comes back.
        """
        if not tokens >= 0:
            raise ConfigurationError(f"{tokens!r} tokens cannot be taken: pass 0 or more")
        with self._lock:
            self._refill()
            missing = tokens - self._level
            if tokens > self.capacity or (missing > 0 and not self.refill_per_second):
                raise LimitExceededError(
                    f"{tokens:g} token(s) can never be had: the rate limiter holds {self.capacity:g} and "
                    f"gets back {self.refill_per_second:g} a second",
                    limit="rate",
                    maximum=self.capacity,
                    counters={"tokens": tokens, "available": self._level},
                )
            self._level -= tokens
        return missing / self.refill_per_second if missing > 0 else 0.0

    def give_back(self, tokens: float = 1.0, /) -> None:
        """Return tokens that were reserved and are not used."""
        with self._lock:
            self._refill()
            self._level = min(self._level + tokens, self.capacity)

    def _refill(self) -> None:
        now = self._clock()
        elapsed = max(0.0, now - self._at)
        self._at = now
        self._level = min(self._level + elapsed * self.refill_per_second, self.capacity)
