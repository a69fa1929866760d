"""Identifiers of runs, calls and messages, and where new ones come from."""

import os
import time
from typing import Protocol, TypeAlias

__all__ = ("CallId", "IdGenerator", "RandomIds", "RunId", "ThreadId")

RunId: TypeAlias = str
"""Names one run of a harness, a sub-agent or a graph."""

ThreadId: TypeAlias = str
"""Names a conversation that several runs continue."""

CallId: TypeAlias = str
"""Names one model or tool call within a run."""


class IdGenerator(Protocol):
    """Makes identifiers. A run takes every id from its context's generator."""

    def new(self, kind: str, /) -> str:
        """Return an id that was not returned before; ``kind`` is a word such as ``"run"``."""
        ...


class RandomIds:
    """Ids that sort by the millisecond in which they were made: ``run_<time><64 random bits>``."""

    __slots__ = ()

    def new(self, kind: str, /) -> str:
        """Return ``<kind>_`` followed by 28 hexadecimal digits."""
        # The system's entropy and not the `random` module: a forked worker repeats the latter.
        return f"{kind}_{time.time_ns() // 1_000_000:012x}{os.urandom(8).hex()}"
