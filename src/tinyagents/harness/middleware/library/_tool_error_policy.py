"""What the model is told of a tool that fails."""

import logging
from collections.abc import Callable, Collection
from typing import Any, Literal, TypeAlias

from ...concurrency import DeadlineExpired
from ...context import RunContext
from ...errors import ConfigurationError, ToolFailedError
from ...options import check_choice, names_of
from ...text import error_text
from ...tool import InterruptSignal, ToolError, ToolResult
from .._base import Middleware, ToolCall, ToolHandler

_log = logging.getLogger("tinyagents.middleware")

ToolErrorText: TypeAlias = str | Callable[[ToolCall, Exception], str]
"""What the model is told: a text, or a function that makes it."""


class ToolErrorPolicyMiddleware(Middleware[Any]):
    """Decides for chosen tools and exceptions whether the model is told, and what, or the run ends.

    ``RunPolicy.tool_errors`` is the rule for all other failures, and ``RunPolicy.tool_timeouts`` for a
    tool that does not end in its time. What a tool tells the model with ``ToolError`` stays as it is.
    The model never sees a traceback; the log does.

    Hooks: ``wrap_tool``. It changes the result of a call that failed. Events: none of its own.

    Args:
        action: ``tell`` makes a failure an error result; ``raise`` ends the run with ``ToolFailedError``.
        exceptions: The classes of exceptions that are meant; all by default.
        tools: The names of the tools that are meant; all by default.
        message: What the model is told; by default the tool's name, and the exception's class and text.

    Raises:
        ConfigurationError: There is no such action, what is given are no classes of exceptions, or names
            are given as one text.
    """

    def __init__(
        self,
        action: Literal["tell", "raise"] = "tell",
        *,
        exceptions: type[Exception] | tuple[type[Exception], ...] = Exception,
        tools: Collection[str] | None = None,
        message: ToolErrorText | None = None,
    ) -> None:
        check_choice("action", action, ("tell", "raise"))
        classes = exceptions if isinstance(exceptions, tuple) else (exceptions,)
        for each in classes:
            _check_class(each)
        self._raises = action == "raise"
        self._classes = classes
        self._tools = names_of("tools", tools)
        self._message = message

    async def wrap_tool(
        self, ctx: RunContext[Any], call: ToolCall, call_next: ToolHandler
    ) -> ToolResult:
        """Call, and see to what fails."""
        if self._tools is not None and call.name not in self._tools:
            return await call_next(call)
        try:
            return await call_next(call)
        except (ToolError, DeadlineExpired, InterruptSignal):
            raise
        except self._classes as error:
            text = self._text(call, error)
            if not self._raises:
                _log.warning("the tool `%s` failed", call.name, exc_info=ctx.loggable(error))
                return ToolResult.error(text)
            raise ToolFailedError(text, tool=call.name, call_id=call.id) from error

    def _text(self, call: ToolCall, error: Exception) -> str:
        if callable(self._message):
            return self._message(call, error)
        if self._message is not None:
            return self._message
        said = error_text(error)
        kind = type(error).__name__
        return f"`{call.name}` failed: {kind}: {said}" if said else f"`{call.name}` failed: {kind}"


def _check_class(given: object) -> None:
    if not (isinstance(given, type) and issubclass(given, Exception)):
        raise ConfigurationError(f"{given!r} is no class of exceptions")
