"""What a cache of responses is."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from ..model import ModelResponse


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheStats:
    """What a cache has done since it was made, and what it holds now."""

    hits: int = 0
    misses: int = 0
    """Keys that were asked for in vain, the expired and unreadable ones too."""
    writes: int = 0
    evictions: int = 0
    """Entries that had to go: for want of room, or because they could not be read."""
    expirations: int = 0
    """Entries that were too old when they were asked for."""
    entries: int = 0
    """How many there are now; those that have expired and were not asked for since are among them."""
    bytes: int = 0
    """What those take in their stored form."""


@runtime_checkable
class ResponseCache(Protocol):
    """Keeps responses of models under keys. A plain class with these methods is enough.

    A cache is shared by any number of runs at once. Its errors do not fail a run, unless the run's
    policy says so. One that also has a :class:`SingleFlight` as ``flights`` lets identical calls of
    all harnesses that share it wait for one; without it those of a harness and its copies do.
    """

    async def get(self, key: str) -> ModelResponse | None:
        """Return what is kept under a key, as an object of the caller's own; ``None`` where nothing is.

        An entry that has expired or cannot be read is nothing.
        """
        ...

    async def put(self, key: str, response: ModelResponse, *, ttl: float | None = None) -> None:
        """Keep a response, in place of what was kept under the key.

        Args:
            key: The key.
            response: The response; it may be changed by others afterwards.
            ttl: Seconds until it expires; ``None`` keeps it for as long as there is room.
        """
        ...

    async def clear(self) -> None:
        """Forget all entries; what was counted stays."""
        ...

    async def stats(self) -> CacheStats:
        """Return what it has done and what it holds."""
        ...
