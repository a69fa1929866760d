"""How many calls may be made in a while, whoever makes them."""

import math
import threading
import time
from collections.abc import Callable
from typing import Protocol

from ..errors import ConfigurationError, LimitExceededError
from ..options import check_above_zero, check_at_least


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
        check_above_zero(capacity=capacity)
        check_at_least(0, refill_per_second=refill_per_second)
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
        _check_amount(tokens)
        with self._lock:
            self._refill()
            seconds = self._seconds_until(tokens)
            if tokens > self.capacity or math.isinf(seconds):
                raise LimitExceededError(
                    f"{tokens:g} token(s) can never be had: the rate limiter holds {self.capacity:g} and "
                    f"gets back {self.refill_per_second:g} a second",
                    limit="rate",
                    maximum=self.capacity,
                    counters={"tokens": tokens, "available": self._level},
                )
            self._level -= tokens
        return seconds

    def give_back(self, tokens: float = 1.0, /) -> None:
        """Return tokens that were reserved and are not used.

        Raises:
            ConfigurationError: The number of tokens is negative or none.
        """
        _check_amount(tokens)
        with self._lock:
            self._refill()
            self._level = min(self._level + tokens, self.capacity)

    def _seconds_until(self, tokens: float) -> float:
        missing = tokens - self._level
        if missing <= 0:
            return 0.0
        return missing / self.refill_per_second if self.refill_per_second else math.inf

    def _refill(self) -> None:
        now = self._clock()
        elapsed = max(0.0, now - self._at)
        self._at = now
        self._level = min(self._level + elapsed * self.refill_per_second, self.capacity)


def _check_amount(tokens: float) -> None:
    if not tokens >= 0:
        raise ConfigurationError(f"{tokens!r} is no number of tokens: pass 0 or more")
