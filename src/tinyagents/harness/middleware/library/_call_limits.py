"""What the limits of model calls and tool calls share: where they count, and what is too many."""

from typing import Any

from ...call_counter import CallCounter, InMemoryCallCounter
from ...context import RunContext
from ...errors import ConfigurationError, InvalidRequestError, LimitExceededError

_USED = "used"


class CallLimit:
    """So many calls for a run, and so many for a thread.

    What a run has used is kept in its notes, so that a run that is resumed goes on counting.

    Args:
        name: Whose limit it is.
        what: What is counted, such as ``model calls``.
        run_limit: How many a run may make; ``None`` for any number.
        thread_limit: How many all runs of a thread may.
        counter: Counts those of threads.

    Raises:
        ConfigurationError: There is no limit, or one is negative.
    """

    def __init__(
        self,
        name: str,
        what: str,
        run_limit: int | None,
        thread_limit: int | None,
        counter: CallCounter | None,
    ) -> None:
        if run_limit is None and thread_limit is None:
            raise ConfigurationError(f"`{name}` needs a `run_limit` or a `thread_limit`")
        for option, limit in (("run_limit", run_limit), ("thread_limit", thread_limit)):
            if limit is not None and limit < 0:
                raise ConfigurationError(f"`{option}` is {limit!r}: it is a number of 0 or more")
        self.name = name
        self.what = what
        self._run_limit = run_limit
        self._thread_limit = thread_limit
        self._counter: CallCounter = counter or InMemoryCallCounter()

    def check(self, ctx: RunContext[Any]) -> None:
        """Refuse a run that has no thread, where those of a thread are counted.

        Raises:
            InvalidRequestError: So it is.
        """
        if self._thread_limit is not None and ctx.thread_id is None:
            raise InvalidRequestError(
                f"`{self.name}` has a `thread_limit`, and the run no thread: pass "
                "`config=RunConfig(thread_id=...)`"
            )

    async def take(self, ctx: RunContext[Any]) -> LimitExceededError | None:
        """Count one more call; return the error of the limit that it would exceed, if one does."""
        self.check(ctx)
        used = self.used(ctx)
        if self._run_limit is not None and used >= self._run_limit:
            return self._over("run", self._run_limit, used)
        if self._thread_limit is not None and ctx.thread_id is not None:
            key = f"{self.name}:{ctx.thread_id}"
            if not await self._counter.take(key, 1, self._thread_limit):
                return self._over("thread", self._thread_limit, used)
        ctx.notes[self.name] = {_USED: used + 1}
        return None

    def used(self, ctx: RunContext[Any]) -> int:
        """Return how many calls the run has made."""
        noted = ctx.notes.get(self.name)
        used = noted.get(_USED) if isinstance(noted, dict) else 0
        return used if isinstance(used, int) else 0

    def _over(self, whose: str, maximum: int, used: int) -> LimitExceededError:
        return LimitExceededError(
            f"the {whose} has used all of its {maximum} {self.what} (`{self.name}`)",
            limit=f"{whose}_{self.what.replace(' ', '_')}",
            maximum=maximum,
            counters={self.what.replace(" ", "_"): used},
        )
