"""How long something may take."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

T = TypeVar("T")

CLEAN_UP_SECONDS = 5.0
"""How long a clean-up that awaits may take, cancelled or not: an error hook, a connection that closes."""


class DeadlineExpired(Exception):
    """A call did not end in its time. A timeout that the call itself raises is never this."""


async def within(seconds: float | None, call: Callable[[], Awaitable[T]]) -> T:
    """Await ``call()`` for at most so many seconds; ``None`` is no limit.

    A call that is cut takes the time that its shielded clean-up needs. What it returns or raises
    all the same is returned or raised.

    Raises:
        DeadlineExpired: The time was up; the call was cancelled and has ended.
    """
    if seconds is None:
        return await call()
    with anyio.move_on_after(seconds):
        return await call()
    raise DeadlineExpired
