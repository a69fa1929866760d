"""Time, ids and waits that are the same in each run of a test."""

from itertools import count

import anyio.lowlevel

_NS_PER_MS = 1_000_000
_NS_PER_SECOND = 1_000_000_000


class DeterministicClock:
    """A clock that stands still until :meth:`advance` is called.

    Args:
        start: The wall clock at first, in milliseconds since the epoch. ``monotonic`` starts at 0.
    """

    __slots__ = ("_elapsed", "_start")

    def __init__(self, start: int = 0) -> None:
        self._start = start
        self._elapsed = 0

    def now_ms(self) -> int:
        """Return the wall clock: milliseconds since the epoch."""
        return self._start + self._elapsed // _NS_PER_MS

    def now_millis(self) -> int:
        """Return the same as :meth:`now_ms`."""
        return self.now_ms()

    def monotonic(self) -> float:
        """Return how many seconds the clock was moved on."""
        return self._elapsed / _NS_PER_SECOND

    def advance(self, seconds: float = 0.0, *, ms: int = 0) -> None:
        """Move on by both together; what is less than a nanosecond is rounded.

        Raises:
            ValueError: That would be backwards.
        """
        step = round(seconds * _NS_PER_SECOND) + ms * _NS_PER_MS
        if step < 0:
            raise ValueError(f"a clock does not go backwards: {seconds} s and {ms} ms")
        self._elapsed += step

    def __repr__(self) -> str:
        return f"DeterministicClock(now_ms={self.now_ms()})"


class DeterministicIds:
    """Ids that count up from 0, each kind on its own: ``run-0``, ``run-1``, ``call-0``.

    Args:
        prefix: Comes before the kind: ``test-run-0``.
    """

    __slots__ = ("_counters", "_prefix")

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix
        self._counters: dict[str, count[int]] = {}

    def new(self, kind: str, /) -> str:
        """Return the next id of the kind."""
        return self._numbered(f"{self._prefix}-{kind}" if self._prefix else kind)

    def next_id(self) -> str:
        """Return the next id of no kind: ``{prefix}-0``, ``{prefix}-1``, …; ``id-0`` without one."""
        return self._numbered(self._prefix or "id")

    def _numbered(self, stem: str) -> str:
        # Both steps are atomic, so that threads cannot get the same number.
        return f"{stem}-{next(self._counters.setdefault(stem, count()))}"


class FakeSleep:
    """A sleep that returns at once, after one turn of the event loop, and notes how long it was.

    Args:
        clock: Is moved on by each sleep.
    """

    __slots__ = ("_clock", "delays")

    def __init__(self, clock: DeterministicClock | None = None) -> None:
        self._clock = clock
        self.delays: list[float] = []
        """The seconds of each sleep, in order; those that were cancelled too."""

    async def __call__(self, seconds: float, /) -> None:
        """Sleep for no time."""
        self.delays.append(seconds)
        await anyio.lowlevel.checkpoint()
        if self._clock is not None:
            self._clock.advance(max(0.0, seconds))

    @property
    def total(self) -> float:
        """The seconds of all sleeps together."""
        return sum(self.delays)
