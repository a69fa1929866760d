"""The call of a tool made again when it has failed."""

from collections.abc import Callable, Collection
from typing import Any

from ...concurrency import DeadlineExpired
from ...context import RunContext
from ...options import check_kind, names_of
from ...retry import RetryPolicy
from ...text import error_text
from ...tool import ToolError, ToolResult, may_pass
from .._base import Middleware, ToolCall, ToolHandler


class ToolRetryMiddleware(Middleware[Any]):
    """Makes a failed call of a tool again, where doing it twice does no harm.

    These are tools whose policy says that they are ``idempotent``, and those that ``tools`` names. A tool
    with retries of its own has them for each attempt. What a tool tells the model with ``ToolError``, and
    its timeout, is no failure to try again.

    Hooks: ``wrap_tool``. It changes nothing. Events: ``retry.scheduled`` before each further attempt. The
    last failure is the call's.

    Args:
        policy: How often, and how long between; ``retry_on`` of it decides which exceptions are worth
            another attempt. By default that is what may pass: lost connections, time-outs, answers of
            servers with status 408, 425, 429 or 5xx, and no errors of the program.
        tools: The tools that are meant, whatever their policy says; those that are idempotent where
            it is ``None``.

    Raises:
        ConfigurationError: Names are given as one text.
    """

    def __init__(
        self, policy: RetryPolicy | None = None, *, tools: Collection[str] | None = None
    ) -> None:
        self._policy = RetryPolicy() if policy is None else policy
        check_kind("policy", self._policy, RetryPolicy, like="RetryPolicy(max_attempts=3)")
        self._retry_on: Callable[[Exception], bool] = self._policy.retry_on or may_pass
        self._tools = names_of("tools", tools)

    async def wrap_tool(
        self, ctx: RunContext[Any], call: ToolCall, call_next: ToolHandler
    ) -> ToolResult:
        """Call until it succeeds or the policy says to stop."""
        if not self._is_meant(call):
            return await call_next(call)
        attempt = 1
        while True:
            try:
                return await call_next(call)
            except (ToolError, DeadlineExpired):
                raise
            except Exception as error:
                if attempt >= self._policy.max_attempts or not self._retry_on(error):
                    raise
                delay = self._policy.delay_after(attempt, error)
                ctx.emit(
                    "retry.scheduled",
                    call_id=call.id,
                    attempt=attempt,
                    delay=delay,
                    error=error_text(error),
                    error_kind=type(error).__name__,
                )
            await ctx.sleep(delay)
            attempt += 1

    def _is_meant(self, call: ToolCall) -> bool:
        if self._tools is not None:
            return call.name in self._tools
        return call.tool is not None and call.tool.policy.runtime.idempotent
