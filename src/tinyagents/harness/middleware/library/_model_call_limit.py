"""A limit of model calls that a middleware holds."""

from typing import Any, Literal

from ...call_counter import CallCounter
from ...context import RunContext, StopWithFinal
from ...errors import ConfigurationError
from ...model import ModelRequest
from .._base import Middleware
from ._call_limits import CallLimit


class ModelCallLimitMiddleware(Middleware[Any]):
    """Lets a run, or all runs of a thread, make so many model calls.

    ``RunLimits.max_model_calls`` is the limit that every run has; this one counts threads as well, and
    may end the run with an answer.

    Hooks: ``before_agent``, ``before_model``. It changes nothing. Events: ``limit.reached`` and, where it
    ends the run, ``control.applied``.

    Args:
        run_limit: How many calls a run may make.
        thread_limit: How many all runs of a thread may make together; runs then need a thread.
        on_limit: ``error`` raises ``LimitExceededError``; ``end`` stops the run with ``answer``.
        answer: What the run says when it is stopped; which limit was reached, by default.
        counter: Counts the calls of threads; in this process by default.

    Raises:
        ConfigurationError: No limit is given, one is negative, or there is no such ``on_limit``.
    """

    def __init__(
        self,
        *,
        run_limit: int | None = None,
        thread_limit: int | None = None,
        on_limit: Literal["error", "end"] = "error",
        answer: str | None = None,
        counter: CallCounter | None = None,
    ) -> None:
        if on_limit not in ("error", "end"):
            raise ConfigurationError(f"`on_limit` is {on_limit!r}; it may be 'error' or 'end'")
        self._limit = CallLimit(self.name, "model calls", run_limit, thread_limit, counter)
        self._ends = on_limit == "end"
        self._answer = answer

    async def before_agent(self, ctx: RunContext[Any]) -> None:
        """Refuse a run that has no thread, where those of a thread are counted."""
        self._limit.check(ctx)

    async def before_model(self, ctx: RunContext[Any], request: ModelRequest) -> None:
        """Count the call that comes."""
        over = await self._limit.take(ctx)
        if over is None:
            return
        ctx.emit("limit.reached", limit_kind="model_calls", maximum=over.maximum)
        if not self._ends:
            raise over
        said = self._answer if self._answer is not None else f"Stopped: {over.message}."
        ctx.request_control(StopWithFinal(said))
