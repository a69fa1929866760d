"""Counting calls across runs, such as those of one thread."""

import threading
from collections import OrderedDict
from typing import Protocol

from .options import check_above_zero

__all__ = ("CallCounter", "InMemoryCallCounter")


class CallCounter(Protocol):
    """Counts calls under a key, and lets no more than so many be taken."""

    async def take(self, key: str, wanted: int, maximum: int, /) -> int:
        """Count up to ``wanted`` more calls under the key, in one step; return how many were allowed."""
        ...

    async def give_back(self, key: str, count: int, /) -> None:
        """Take calls off the count that were counted and not made; it never falls below 0."""
        ...


class InMemoryCallCounter:
    """Counts as long as the process lives, for the keys that were used last. Safe in threads.

    Args:
        max_keys: How many keys are remembered; the one that was used longest ago is forgotten, and
            counts from 0 when it is used again.

    Raises:
        ConfigurationError: No key would be remembered.
    """

    __slots__ = ("_lock", "_max_keys", "_used")

    def __init__(self, *, max_keys: int = 10_000) -> None:
        check_above_zero(max_keys=max_keys)
        self._max_keys = max_keys
        self._used: OrderedDict[str, int] = OrderedDict()
        self._lock = threading.Lock()

    async def take(self, key: str, wanted: int, maximum: int, /) -> int:
        """Count up to ``wanted`` more calls under the key, in one step; return how many were allowed."""
        with self._lock:
            used = self._used.pop(key, 0)
            allowed = max(0, min(wanted, maximum - used))
            self._used[key] = used + allowed
            if len(self._used) > self._max_keys:
                self._used.popitem(last=False)
            return allowed

    async def give_back(self, key: str, count: int, /) -> None:
        """Take calls off the count that were counted and not made; it never falls below 0."""
        with self._lock:
            if key in self._used:
                self._used[key] = max(0, self._used[key] - count)
