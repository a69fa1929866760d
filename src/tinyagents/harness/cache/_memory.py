"""Responses kept in memory."""

import math
from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock

from ..clock import Clock, SystemClock
from ..errors import ConfigurationError
from ..model import ModelResponse
from ._flight import SingleFlight
from ._stored import KeptResponse
from ._types import CacheStats

_MIB = 1024 * 1024


@dataclass(slots=True)
class _Entry:
    kept: KeptResponse
    expires: float
    """On the monotonic clock."""


class InMemoryResponseCache:
    """Keeps the responses that were used last, in this process.

    Nobody who is given an entry can change it; those that expire go when they are asked for. It
    may be used from several event loops and threads at once.

    Args:
        max_entries: How many responses it keeps.
        max_bytes: How much they may take in their stored form. A larger response is kept alone.
        clock: Tells how old an entry is.

    Raises:
        ConfigurationError: A limit is less than 1.
    """

    def __init__(
        self, *, max_entries: int = 1024, max_bytes: int = 64 * _MIB, clock: Clock | None = None
    ) -> None:
        for name, limit in (("max_entries", max_entries), ("max_bytes", max_bytes)):
            if limit < 1:
                raise ConfigurationError(f"`{name}` is {limit}; a cache needs at least 1")
        self.flights: SingleFlight = SingleFlight()
        """The calls under way, of all harnesses that share this cache."""
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._clock: Clock = clock or SystemClock()
        self._lock = Lock()
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._bytes = self._hits = self._misses = 0
        self._writes = self._evictions = self._expirations = 0

    def __repr__(self) -> str:
        return f"InMemoryResponseCache({len(self._entries)} entries, {self._bytes:,} bytes)"

    async def get(self, key: str) -> ModelResponse | None:
        """Return what is kept under a key."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None or self._has_expired(key, entry):
                self._misses += 1
                return None
            self._entries.move_to_end(key)
            self._hits += 1
        return entry.kept.response()

    async def put(self, key: str, response: ModelResponse, *, ttl: float | None = None) -> None:
        """Keep a response; the ones that were not used for longest make room for it.

        Raises:
            ValueError: Something in the response has no form in JSON.
        """
        kept = KeptResponse(response)
        expires = math.inf if ttl is None else self._clock.monotonic() + ttl
        with self._lock:
            self._drop(key)
            self._entries[key] = _Entry(kept, expires)
            self._bytes += len(kept.data)
            self._writes += 1
            while len(self._entries) > 1 and (
                len(self._entries) > self._max_entries or self._bytes > self._max_bytes
            ):
                self._drop(next(iter(self._entries)))
                self._evictions += 1

    async def clear(self) -> None:
        """Forget all entries; what was counted stays."""
        with self._lock:
            self._entries.clear()
            self._bytes = 0

    async def stats(self) -> CacheStats:
        """Return what it has done and what it holds."""
        with self._lock:
            return CacheStats(
                hits=self._hits,
                misses=self._misses,
                writes=self._writes,
                evictions=self._evictions,
                expirations=self._expirations,
                entries=len(self._entries),
                bytes=self._bytes,
            )

    def _has_expired(self, key: str, entry: _Entry) -> bool:
        # Most entries never expire: do not look at the clock for them.
        if entry.expires == math.inf or self._clock.monotonic() < entry.expires:
            return False
        self._drop(key)
        self._expirations += 1
        return True

    def _drop(self, key: str) -> None:
        gone = self._entries.pop(key, None)
        if gone is not None:
            self._bytes -= len(gone.kept.data)
