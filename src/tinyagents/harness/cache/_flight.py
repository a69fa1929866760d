"""Identical calls at the same time, made once."""

import math
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

import anyio
from anyio.lowlevel import current_token

T = TypeVar("T")
S = TypeVar("S")

_leading: ContextVar[bool] = ContextVar("leading", default=False)
"""Whether this code runs inside a call that others may be waiting for."""


@dataclass(frozen=True, slots=True)
class Shared(Generic[S]):
    """What another one's call has given."""

    value: S


class _Flight:
    """A call under way; the event is made by the first one that waits."""

    __slots__ = ("landed", "state", "value")

    def __init__(self) -> None:
        self.landed: anyio.Event | None = None
        self.state: Literal["under_way", "shared", "failed", "abandoned"] = "under_way"
        self.value: Any = None

    async def wait(self, patience: float) -> None:
        if self.landed is None:
            self.landed = anyio.Event()
        if patience == math.inf:
            await self.landed.wait()
            return
        with anyio.move_on_after(patience):
            await self.landed.wait()

    def land(self) -> None:
        if self.landed is not None:
            self.landed.set()


class SingleFlight:
    """Lets the first of several identical calls go ahead, and the others wait for what it gives.

    Only calls of one event loop wait for each other. What is called from within such a call never
    waits, so that calls cannot wait for each other in a circle.
    """

    __slots__ = ("_flights",)

    def __init__(self) -> None:
        self._flights: dict[tuple[object, str], _Flight] = {}

    def __len__(self) -> int:
        """How many calls are under way."""
        return len(self._flights)

    async def run(
        self,
        key: str,
        call: Callable[[], Awaitable[T]],
        share: Callable[[T], S | None],
        *,
        patience: float = math.inf,
    ) -> T | Shared[S]:
        """Return what ``call`` gives, or what an identical call gives that is under way.

        Where that one fails or has nothing to share, each of those that waited makes its own call.
        Where it was cancelled, the first of them goes ahead, and the others wait for it.

        Args:
            key: What identical calls have in common.
            call: Makes the call.
            share: Returns what others get of it; ``None`` for nothing. Called only when some wait.
            patience: Seconds to wait for another one's call before making one's own.
        """
        place = (current_token(), key)
        if _leading.get():
            return await call()
        while (flight := self._flights.get(place)) is not None:
            await flight.wait(patience)
            if flight.state == "shared":
                return Shared(flight.value)
            if flight.state != "abandoned":
                return await call()
        return await self._lead(place, call, share)

    async def _lead(
        self,
        place: tuple[object, str],
        call: Callable[[], Awaitable[T]],
        share: Callable[[T], S | None],
    ) -> T:
        flight = self._flights[place] = _Flight()
        mark = _leading.set(True)
        flight_state: Literal["shared", "failed", "abandoned"] = "abandoned"
        try:
            answer = await call()
            flight_state = "failed"
            if flight.landed is not None:
                flight.value = share(answer)
                flight_state = "failed" if flight.value is None else "shared"
            return answer
        except Exception:
            flight_state = "failed"
            raise
        finally:
            _leading.reset(mark)
            flight.state = flight_state
            del self._flights[place]
            flight.land()
