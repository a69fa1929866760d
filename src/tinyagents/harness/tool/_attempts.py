"""Making the failed call of a tool again."""

from collections.abc import Awaitable, Callable
from typing import Any, cast

from ..errors import TinyAgentsError
from ..retry import RetryPolicy
from ..text import error_text
from ._context import ToolContext, ToolError

_BACKOFF = RetryPolicy()
_FINAL = (
    ToolError, ArithmeticError, AssertionError, AttributeError, ImportError, LookupError, NameError,
    NotImplementedError, TypeError, ValueError,
    FileExistsError, FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError,
)  # fmt: skip
"""What the same call would only raise again."""
_PASSING_STATUS = (408, 425, 429)


def may_pass(error: Exception) -> bool:
    """Whether the same call may succeed when it is made again.

    An error of the library says so itself; the answer of an HTTP server is judged by its status;
    of all others the errors of Python itself, and a missing or forbidden file, do not pass.
    """
    if isinstance(error, TinyAgentsError):
        return error.retryable
    if isinstance(error, ExceptionGroup):
        return all(may_pass(inner) for inner in cast("ExceptionGroup[Exception]", error).exceptions)
    # httpx, requests and others keep the answer in the error that they raise for it.
    status = getattr(getattr(error, "response", None), "status_code", None)
    if isinstance(status, int):
        return status >= 500 or status in _PASSING_STATUS
    return not isinstance(error, _FINAL)


async def run_attempts(
    call: Callable[[], Awaitable[Any]], ctx: ToolContext[Any], *, retries: int
) -> Any:
    """Await ``call()`` until it returns, raises what does not pass, or is used up."""
    attempt = 1
    while True:
        try:
            return await call()
        except Exception as exc:
            if attempt > retries or not may_pass(exc):
                raise
            delay = _BACKOFF.delay_after(attempt, exc)
            ctx.run.emit(
                "retry.scheduled",
                call_id=ctx.call_id,
                attempt=attempt,
                delay=delay,
                error=error_text(exc),
                error_kind=type(exc).__name__,
            )
        # Outside of the handler, so that a later failure does not show this one as its context.
        await ctx.run.sleep(delay)
        attempt += 1
        ctx.restarted(attempt)
