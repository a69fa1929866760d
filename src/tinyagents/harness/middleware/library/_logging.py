"""What runs do, as lines of Python's own logging."""

import logging
import re
from collections import Counter
from collections.abc import Mapping
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ...context import RunContext
from ...errors import ConfigurationError, TinyAgentsError
from ...model import MessageDelta, ModelRequest, ModelResponse
from ...options import check_above_zero
from ...text import dump_json, error_text
from ...tool import ToolResult
from .._base import Middleware, ModelDelta, ToolCall, ToolDelta

if TYPE_CHECKING:
    from ...agent_loop import AgentRun

_Facts: TypeAlias = dict[str, str | int | bool | None]

_LEVELS: Final[Mapping[str, int]] = {
    "before_agent": logging.INFO,
    "after_agent": logging.INFO,
    "before_model": logging.INFO,
    "on_model_delta": logging.DEBUG,
    "after_model": logging.INFO,
    "before_tool": logging.INFO,
    "on_tool_delta": logging.DEBUG,
    "after_tool": logging.INFO,
    "on_error": logging.ERROR,
}
_PLAIN = re.compile(r"[\w.:/@+-]+", re.ASCII)


class LoggingMiddleware(Middleware[Any]):
    """Writes a line for each step of a run, with names and sizes and without content.

    Hooks: ``before_agent``, ``after_agent``, ``before_model``, ``on_model_delta``, ``after_model``,
    ``before_tool``, ``on_tool_delta``, ``after_tool`` and ``on_error``. It changes nothing and emits
    nothing. A line names the label, the hook, the run and facts, such as ``agent after_tool
    run=run_01 tool=search call_id=c1 is_error=False``; the same are the record's attribute
    ``tinyagents``, a dictionary, for formatters that write JSON. Text that a model, a tool or an error
    has written never spans lines.

    Args:
        logger: Where to; by default the logger ``tinyagents.runs``.
        label: What lines begin with.
        levels: Levels for hooks by name, in place of the usual ones: ``DEBUG`` for the delta hooks,
            ``ERROR`` for ``on_error``, and ``INFO`` for the others.
        include_content: Add what was said: the last message of each prompt, answers, arguments,
            results, and the messages of errors. It may hold what your users want kept from logs; what a
            ``RedactionMiddleware`` finds in it is taken out, wherever that is registered.
        max_characters: How much of each content.

    Raises:
        ConfigurationError: A level is for no hook that is logged, or no number; or
            ``max_characters`` is not above 0.
    """

    def __init__(
        self,
        *,
        logger: logging.Logger | None = None,
        label: str = "agent",
        levels: Mapping[str, int] | None = None,
        include_content: bool = False,
        max_characters: int = 500,
    ) -> None:
        for hook, level in (levels or {}).items():
            _check_level(hook, level)
        check_above_zero(max_characters=max_characters)
        self._logger = logger or logging.getLogger("tinyagents.runs")
        self._label = label
        self._levels = {**_LEVELS, **(levels or {})}
        self._include_content = include_content
        self._most = max_characters
        self._lock = Lock()
        self._counts: Counter[str] = Counter()

    @property
    def counts(self) -> Mapping[str, int]:
        """How often each hook was called, whether or not its level is logged."""
        with self._lock:
            return dict(self._counts)

    async def before_agent(self, ctx: RunContext[Any]) -> None:
        """Tell that a run begins."""
        if self._wanted("before_agent"):
            self._write(ctx, "before_agent", {"name": ctx.origin.component, "depth": ctx.depth})

    async def after_agent(self, ctx: RunContext[Any], run: "AgentRun[Any, Any]") -> None:
        """Tell how it ended."""
        if self._wanted("after_agent"):
            facts: _Facts = {
                "status": run.status,
                "messages": len(run.messages),
                "input_tokens": run.usage.input_tokens,
                "output_tokens": run.usage.output_tokens,
            }
            self._write(ctx, "after_agent", facts, run.text)

    async def before_model(self, ctx: RunContext[Any], request: ModelRequest) -> None:
        """Tell what is sent."""
        if self._wanted("before_model"):
            messages = request.messages
            facts: _Facts = {"messages": len(messages), "tools": len(request.tools)}
            if request.model is not None:
                facts["model"] = request.model
            self._write(ctx, "before_model", facts, messages[-1].text if messages else "")

    async def on_model_delta(self, ctx: RunContext[Any], delta: ModelDelta) -> None:
        """Tell of a piece of an answer."""
        if self._wanted("on_model_delta"):
            if isinstance(delta, MessageDelta):
                text = delta.text + delta.reasoning + delta.refusal
            else:
                text = delta.arguments
            self._write(ctx, "on_model_delta", {"characters": len(text)}, text)

    async def after_model(self, ctx: RunContext[Any], response: ModelResponse) -> None:
        """Tell what was answered."""
        if self._wanted("after_model"):
            resolved, usage = response.resolved_model, response.usage
            facts: _Facts = {
                "model": resolved.name if resolved is not None else None,
                "finish_reason": response.finish_reason,
                "tool_calls": len(response.message.tool_calls),
            }
            if usage is not None:
                facts["input_tokens"] = usage.input_tokens
                facts["output_tokens"] = usage.output_tokens
            self._write(ctx, "after_model", facts, response.text)

    async def before_tool(self, ctx: RunContext[Any], call: ToolCall) -> None:
        """Tell what is called."""
        if self._wanted("before_tool"):
            content = dump_json(call.arguments) if self._include_content else ""
            self._write(ctx, "before_tool", {"tool": call.name, "call_id": call.id}, content)

    def on_tool_delta(self, ctx: RunContext[Any], delta: ToolDelta) -> None:
        """Tell of a report of a tool."""
        if self._wanted("on_tool_delta"):
            facts: _Facts = {
                "tool": delta.tool_name,
                "call_id": delta.call_id,
                "characters": len(delta.content),
            }
            self._write(ctx, "on_tool_delta", facts, delta.content)

    async def after_tool(self, ctx: RunContext[Any], call: ToolCall, result: ToolResult) -> None:
        """Tell what became of a call."""
        if self._wanted("after_tool"):
            facts: _Facts = {"tool": call.name, "call_id": call.id, "is_error": result.is_error}
            content = result.joined_text() if self._include_content else ""
            self._write(ctx, "after_tool", facts, content)

    async def on_error(self, ctx: RunContext[Any], error: BaseException) -> None:
        """Tell what a run failed with."""
        if self._wanted("on_error"):
            facts: _Facts = {"error": type(error).__name__}
            if isinstance(error, TinyAgentsError):
                facts["error_kind"] = error.kind
            self._write(ctx, "on_error", facts, error_text(error))

    def _wanted(self, hook: str) -> bool:
        with self._lock:
            self._counts[hook] += 1
        return self._logger.isEnabledFor(self._levels[hook])

    def _write(self, ctx: RunContext[Any], hook: str, facts: _Facts, content: str = "") -> None:
        facts = {"run": ctx.run_id, **facts}
        if self._include_content and content:
            if ctx.origin.redact is not None:
                # Before it is cut: half of a secret would not be found.
                content = ctx.origin.redact(content)
            cut = f"{content[: self._most]}…" if len(content) > self._most else content
            facts["content"] = cut
        told = " ".join(f"{name}={_shown(value)}" for name, value in facts.items())
        extra = {"tinyagents": {"label": self._label, "hook": hook, **facts}}
        self._logger.log(
            self._levels[hook], "%s %s %s", self._label, hook, told, extra=extra, stacklevel=3
        )


def _check_level(hook: str, level: object) -> None:
    if hook not in _LEVELS:
        raise ConfigurationError(
            f"`levels` has `{hook}`, which is not logged; there are {', '.join(_LEVELS)}"
        )
    if not isinstance(level, int):
        raise ConfigurationError(
            f"the level of `{hook}` is {level!r}: pass a number, such as `logging.INFO`"
        )


def _shown(value: str | int | bool | None) -> str:
    """Return a value on one line, in quotes where it is not one word."""
    if not isinstance(value, str):
        return str(value)
    return value if _PLAIN.fullmatch(value) else _quoted(value)


def _quoted(text: str) -> str:
    """Return a text in quotes, with what is no printable character as its escape."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in dump_json(text))
