"""What the limits of model calls and tool calls share: where they count, and what is too many."""

from typing import TYPE_CHECKING, Any, cast

from typing_extensions import TypedDict

from ...call_counter import CallCounter, InMemoryCallCounter
from ...context import RunContext
from ...errors import ConfigurationError, InvalidRequestError, LimitExceededError
from ...limits import LimitKind
from ...options import check_at_least

if TYPE_CHECKING:
    from ...agent_loop import AgentRun


class _Count(TypedDict):
    """What is noted with a run."""

    used: int
    open: dict[str, bool]
    """The calls that were let pass and have not ended, each with whether it was begun."""


class CallLimit:
    """So many calls for a run, and so many for a thread.

    A call is counted when it is let pass, and given back when it ends without having begun. What a
    run has used is kept in its notes, so that a run that is resumed goes on counting.

    Args:
        name: Whose limit it is.
        kind: What is counted.
        what: What is counted in words, such as ``model calls``.
        run_limit: How many a run may make; ``None`` for any number.
        thread_limit: How many all runs of a thread may.
        counter: Counts those of threads.

    Raises:
        ConfigurationError: There is no limit, or one is negative.
    """

    def __init__(
        self,
        name: str,
        kind: LimitKind,
        what: str,
        run_limit: int | None,
        thread_limit: int | None,
        counter: CallCounter | None,
    ) -> None:
        if run_limit is None and thread_limit is None:
            raise ConfigurationError(f"`{name}` needs a `run_limit` or a `thread_limit`")
        check_at_least(0, run_limit=run_limit, thread_limit=thread_limit)
        self._kind = kind
        self._name = name
        self._what = what
        self._run_limit = run_limit
        self._thread_limit = thread_limit
        self._counter: CallCounter = counter or InMemoryCallCounter()

    def check(self, ctx: RunContext[Any]) -> None:
        """Refuse a run that could not be counted.

        Raises:
            ConfigurationError: Another limit of the harness has the same name.
            InvalidRequestError: The calls of a thread are counted, and the run has none.
        """
        if ctx.scratch.setdefault((CallLimit, self._name), self) is not self:
            raise ConfigurationError(
                f"two limits are named `{self._name}` and would share one count: give each a `name`"
            )
        if self._thread_limit is not None:
            self._thread(ctx)

    async def take(self, ctx: RunContext[Any], call_id: str) -> LimitExceededError | None:
        """Let a call pass and count it, but once; return the error of the limit that it would exceed."""
        count = self._count(ctx)
        if call_id in count["open"]:
            return None
        used = count["used"]
        if self._run_limit is not None and used >= self._run_limit:
            return self._over("run", self._run_limit, used)
        if self._thread_limit is not None:
            allowed = await self._counter.take(self._thread(ctx), 1, self._thread_limit)
            if not allowed:
                return self._over("thread", self._thread_limit, used)
        count["used"] += 1
        count["open"][call_id] = False
        return None

    def begin(self, ctx: RunContext[Any], call_id: str) -> None:
        """Note that a call is made: it is not given back any more."""
        calls = self._count(ctx)["open"]
        if call_id in calls:
            calls[call_id] = True

    async def end(self, ctx: RunContext[Any], call_id: str) -> None:
        """Close the account of a call, and give back one that was not made."""
        count = self._count(ctx)
        if count["open"].pop(call_id, True):
            return
        count["used"] -= 1
        if self._thread_limit is not None:
            await self._counter.give_back(self._thread(ctx), 1)

    async def after_agent(self, ctx: RunContext[Any], run: "AgentRun[Any, Any]") -> None:
        """Close the accounts of a run, unless it waits and may go on."""
        if run.status not in ("interrupted", "paused"):
            await self.end_all(ctx)

    async def end_all(self, ctx: RunContext[Any]) -> None:
        """Close the accounts of all calls of a run that has ended."""
        if self._name in ctx.notes:
            for call_id in tuple(self._count(ctx)["open"]):
                await self.end(ctx, call_id)

    def _count(self, ctx: RunContext[Any]) -> _Count:
        fresh: Any = {"used": 0, "open": {}}
        return cast("_Count", ctx.notes.setdefault(self._name, fresh))

    def _thread(self, ctx: RunContext[Any]) -> str:
        """Return the key of the run's thread."""
        if ctx.thread_id is None:
            raise InvalidRequestError(
                f"`{self._name}` has a `thread_limit`, and the run no thread: pass "
                "`config=RunConfig(thread_id=...)`"
            )
        return f"{self._name}:{ctx.thread_id}"

    def _over(self, whose: str, maximum: int, used: int) -> LimitExceededError:
        return LimitExceededError(
            f"the {whose} has used all of its {maximum} {self._what} (`{self._name}`)",
            limit=f"{whose}_{self._kind}",
            maximum=maximum,
            counters={self._kind: used},
        )


def stop_text(answer: str | None, over: LimitExceededError) -> str:
    """Return what a run says that a limit has ended."""
    return answer if answer is not None else f"Stopped: {over.message}."
