"""A limit of tool calls that a middleware holds."""

from typing import Any, Literal, cast

from ...call_counter import CallCounter
from ...context import RunContext, StopWithFinal
from ...errors import ConfigurationError, LimitExceededError
from ...tool import ToolResult
from .._base import Middleware, ToolCall, ToolHandler
from ._call_limits import CallLimit


class ToolCallLimitMiddleware(Middleware[Any]):
    """Lets a run, or all runs of a thread, make so many tool calls, or so many of one tool.

    Calls are counted in their order before any of the turn runs, so that a batch never exceeds the limit.
    One that is over it has a result that says so, and does not run.

    Hooks: ``before_agent``, ``before_tool``, ``wrap_tool``, ``after_tool``. It changes nothing. Events:
    ``limit.reached`` for each call over the limit, and ``control.applied`` where it ends the run.

    Args:
        tool_name: The tool whose calls are counted; all tools by default.
        run_limit: How many calls a run may make.
        thread_limit: How many all runs of a thread may make together; runs then need a thread.
        on_limit: ``continue`` tells the model, which goes on; ``end`` stops the run after the turn;
            ``error`` raises ``LimitExceededError``.
        answer: What the run says when it is stopped; which limit was reached, by default.
        counter: Counts the calls of threads; in this process by default.

    Raises:
        ConfigurationError: No limit is given, one is negative, or there is no such ``on_limit``.
    """

    def __init__(
        self,
        tool_name: str | None = None,
        *,
        run_limit: int | None = None,
        thread_limit: int | None = None,
        on_limit: Literal["continue", "end", "error"] = "continue",
        answer: str | None = None,
        counter: CallCounter | None = None,
    ) -> None:
        if on_limit not in ("continue", "end", "error"):
            raise ConfigurationError(
                f"`on_limit` is {on_limit!r}; it may be 'continue', 'end' or 'error'"
            )
        self._tool_name = tool_name
        what = "tool calls" if tool_name is None else f"calls of {tool_name}"
        self._limit = CallLimit(self.name, what, run_limit, thread_limit, counter)
        self._on_limit = on_limit
        self._answer = answer

    @property
    def name(self) -> str:
        """The name of the class, and of the tool whose calls it counts."""
        own = type(self).__name__
        return own if self._tool_name is None else f"{own}({self._tool_name})"

    async def before_agent(self, ctx: RunContext[Any]) -> None:
        """Refuse a run that has no thread, where those of a thread are counted."""
        self._limit.check(ctx)

    async def before_tool(self, ctx: RunContext[Any], call: ToolCall) -> None:
        """Count a call, or note that it may not run."""
        counted = self._counted(ctx)
        if call.id in counted or self._tool_name not in (None, call.name):
            return
        over = await self._limit.take(ctx)
        if over is None:
            counted.append(call.id)
            return
        ctx.emit("limit.reached", limit_kind="tool_calls", maximum=over.maximum)
        if self._on_limit == "error":
            raise over
        self._held(ctx)[call.id] = over
        if self._on_limit == "end":
            said = self._answer if self._answer is not None else f"Stopped: {over.message}."
            ctx.request_control(StopWithFinal(said))

    async def wrap_tool(
        self, ctx: RunContext[Any], call: ToolCall, call_next: ToolHandler
    ) -> ToolResult:
        """Give a call over the limit its result."""
        over = self._held(ctx).get(call.id)
        if over is None:
            return await call_next(call)
        return ToolResult.error(
            f"`{call.name}` was not run: {over.message}. Do not call it again; answer with what there is."
        )

    async def after_tool(self, ctx: RunContext[Any], call: ToolCall, result: ToolResult) -> None:
        """Forget a call that has its result."""
        self._held(ctx).pop(call.id, None)
        counted = self._counted(ctx)
        if call.id in counted:
            counted.remove(call.id)
        if not counted:
            ctx.notes.pop(self._open_calls, None)

    @property
    def _open_calls(self) -> str:
        return f"{self.name}.open"

    def _counted(self, ctx: RunContext[Any]) -> list[str]:
        """The calls that were counted and have no result: one that waits is admitted again later."""
        return cast("list[str]", ctx.notes.setdefault(self._open_calls, []))

    def _held(self, ctx: RunContext[Any]) -> dict[str, LimitExceededError]:
        held: dict[str, LimitExceededError] = ctx.scratch.setdefault(self, {})
        return held
