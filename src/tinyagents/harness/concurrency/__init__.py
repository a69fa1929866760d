"""The few concurrency primitives that the hot path needs, and the only place that sees asyncio.

anyio is the interface of the whole library. Two things cost several times more through it than on
asyncio itself (running calls together, and a task that outlives its caller's frame), so these two
are written for asyncio directly and go through anyio or trio elsewhere, with the same behaviour.
"""

from ._background import BackgroundTask
from ._bounds import CLEAN_UP_SECONDS, DeadlineExpired, within
from ._channel import Channel, ChannelClosed
from ._loop import asyncio_loop, in_event_loop, is_being_cancelled
from ._threads import in_thread, loop_poster, thread_safe
from ._together import run_together

__all__ = (
    "CLEAN_UP_SECONDS",
    "BackgroundTask",
    "Channel",
    "ChannelClosed",
    "DeadlineExpired",
    "asyncio_loop",
    "in_event_loop",
    "in_thread",
    "is_being_cancelled",
    "loop_poster",
    "run_together",
    "thread_safe",
    "within",
)
