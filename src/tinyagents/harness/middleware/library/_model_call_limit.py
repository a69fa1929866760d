"""A limit of model calls that a middleware holds."""

from typing import TYPE_CHECKING, Any, Literal

from ...call_counter import CallCounter
from ...context import RunContext, StopWithFinal
from ...model import ModelRequest, ModelResponse
from ...options import check_choice
from .._base import Middleware, ModelHandler
from ._call_limits import CallLimit, stop_text

if TYPE_CHECKING:
    from ...agent_loop import AgentRun

_NEXT = "next"
"""The account of the model call that comes: there is one at a time."""


class ModelCallLimitMiddleware(Middleware[Any]):
    """Lets a run, or all runs of a thread, make so many model calls.

    ``RunLimits.max_model_calls`` is the limit that every run has; this one counts threads as well, and
    may end the run with an answer. A call is counted once, with all its attempts; one that a later hook
    keeps from being made is given back.

    Hooks: ``before_agent``, ``before_model``, ``wrap_model``, ``after_agent``, ``on_error``. It changes
    nothing. Events: ``limit.reached`` and, where it ends the run, ``control.applied``.

    Args:
        run_limit: How many calls a run may make.
        thread_limit: How many all runs of a thread may make together; runs then need a thread.
        on_limit: ``error`` raises ``LimitExceededError``; ``end`` stops the run with ``answer``.
        answer: What the run says when it is stopped; which limit was reached, by default.
        counter: Counts the calls of threads; in this process by default.
        name: Needed where a harness has several of these limits, which count under their names.

    Raises:
        ConfigurationError: No limit is given, one is negative, or there is no such ``on_limit``; at the
            start of a run, another limit has the same name.
    """

    def __init__(
        self,
        *,
        run_limit: int | None = None,
        thread_limit: int | None = None,
        on_limit: Literal["error", "end"] = "error",
        answer: str | None = None,
        counter: CallCounter | None = None,
        name: str | None = None,
    ) -> None:
        check_choice("on_limit", on_limit, ("error", "end"))
        self._name = name or type(self).__name__
        self._limit = CallLimit(
            self._name, "model_calls", "model calls", run_limit, thread_limit, counter
        )
        self._ends = on_limit == "end"
        self._answer = answer

    @property
    def name(self) -> str:
        """The name of the class, or the one that was given."""
        return self._name

    async def before_agent(self, ctx: RunContext[Any]) -> None:
        """Refuse a run that could not be counted."""
        self._limit.check(ctx)

    async def before_model(self, ctx: RunContext[Any], request: ModelRequest) -> None:
        """Count the call that comes."""
        over = await self._limit.take(ctx, _NEXT)
        if over is None:
            return
        ctx.emit("limit.reached", limit_kind="model_calls", maximum=over.maximum)
        if not self._ends:
            raise over
        ctx.request_control(StopWithFinal(stop_text(self._answer, over)))

    async def wrap_model(
        self, ctx: RunContext[Any], request: ModelRequest, call_next: ModelHandler
    ) -> ModelResponse:
        """Note that the call is made."""
        self._limit.begin(ctx, _NEXT)
        await self._limit.end(ctx, _NEXT)
        return await call_next(request)

    async def after_agent(self, ctx: RunContext[Any], run: "AgentRun[Any, Any]") -> None:
        """Give back what a run that has ended did not use."""
        await self._limit.after_agent(ctx, run)

    async def on_error(self, ctx: RunContext[Any], error: BaseException) -> None:
        """Give back what a run that has failed did not use."""
        await self._limit.end_all(ctx)
