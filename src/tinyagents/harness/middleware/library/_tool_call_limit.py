"""A limit of tool calls that a middleware holds."""

from typing import TYPE_CHECKING, Any, Literal

from ...call_counter import CallCounter
from ...context import RunContext, StopWithFinal
from ...errors import ConfigurationError
from ...options import check_choice
from ...tool import ToolResult
from .._base import Middleware, ToolCall, ToolHandler
from ._call_limits import CallLimit, stop_text

if TYPE_CHECKING:
    from ...agent_loop import AgentRun


class ToolCallLimitMiddleware(Middleware[Any]):
    """Lets a run, or all runs of a thread, make so many tool calls, or so many of one tool.

    Calls are counted in their order before any of the turn runs, so that a batch never exceeds the limit;
    one that does not run after all, for it is refused or its arguments do not fit, is given back. A call
    over the limit has a result that says so, and does not run; nobody is asked to approve it.

    Hooks: ``before_agent``, ``before_tool``, ``wrap_tool``, ``after_tool``, ``after_agent``, ``on_error``.
    It changes the result of a call over the limit. Events: ``limit.reached`` for each of these, and
    ``control.applied`` where it ends the run.

    Args:
        tool_name: The tool whose calls are counted; all tools by default.
        run_limit: How many calls a run may make.
        thread_limit: How many all runs of a thread may make together; runs then need a thread.
        on_limit: ``continue`` tells the model, which goes on; ``end`` stops the run after the turn;
            ``error`` raises ``LimitExceededError``.
        answer: What the run says when it is stopped; which limit was reached, by default.
        counter: Counts the calls of threads; in this process by default.
        name: Needed where a harness has several of these limits for the same tools, which count under
            their names.

    Raises:
        ConfigurationError: No limit is given, one is negative, or there is no such ``on_limit``; at the
            start of a run, another limit has the same name.
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
        name: str | None = None,
    ) -> None:
        check_choice("on_limit", on_limit, ("continue", "end", "error"))
        _check_single(tool_name)
        self._tool_name = tool_name
        self._name = name or (type(self).__name__ + (f"({tool_name})" if tool_name else ""))
        what = "tool calls" if tool_name is None else f"calls of `{tool_name}`"
        self._limit = CallLimit(self._name, "tool_calls", what, run_limit, thread_limit, counter)
        self._on_limit = on_limit
        self._answer = answer

    @property
    def name(self) -> str:
        """The name of the class and of the tool whose calls it counts, or the one that was given."""
        return self._name

    async def before_agent(self, ctx: RunContext[Any]) -> None:
        """Refuse a run that could not be counted."""
        self._limit.check(ctx)

    async def before_tool(self, ctx: RunContext[Any], call: ToolCall) -> None:
        """Count a call, or give it a result in its tool's place."""
        if self._tool_name not in (None, call.name):
            await self._limit.end(ctx, call.id)  # a hook has given it to another tool
            return
        over = await self._limit.take(ctx, call.id)
        if over is None:
            return
        ctx.emit("limit.reached", limit_kind="tool_calls", maximum=over.maximum)
        if self._on_limit == "error":
            raise over
        if self._on_limit == "end":
            ctx.request_control(StopWithFinal(stop_text(self._answer, over)))
        call.answer(
            ToolResult.error(
                f"`{call.name}` was not run: {over.message}. "
                "Do not call it again; answer with what there is."
            )
        )

    async def wrap_tool(
        self, ctx: RunContext[Any], call: ToolCall, call_next: ToolHandler
    ) -> ToolResult:
        """Note that a call is made."""
        self._limit.begin(ctx, call.id)
        return await call_next(call)

    async def after_tool(self, ctx: RunContext[Any], call: ToolCall, result: ToolResult) -> None:
        """Close the account of a call that has its result."""
        if call.tool is not None and call.tool.is_external:
            self._limit.begin(ctx, call.id)  # it was made, but not here
        await self._limit.end(ctx, call.id)

    async def after_agent(self, ctx: RunContext[Any], run: "AgentRun[Any, Any]") -> None:
        """Give back what a run that has ended did not use."""
        await self._limit.after_agent(ctx, run)

    async def on_error(self, ctx: RunContext[Any], error: BaseException) -> None:
        """Give back what a run that has failed did not use."""
        await self._limit.end_all(ctx)


def _check_single(tool_name: object) -> None:
    if not isinstance(tool_name, str | None):
        raise ConfigurationError(
            f"`tool_name` is {tool_name!r}: it is one name; register a limit for each tool"
        )
