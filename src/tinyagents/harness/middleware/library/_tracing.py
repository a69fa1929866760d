"""When each part of a run began and ended, as plain records."""

import logging
from collections import Counter, deque
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import anyio
from pydantic import JsonValue

from ...context import RunContext
from ...errors import ConfigurationError, RunCancelledError, TinyAgentsError
from ...model import ModelRequest, ModelResponse
from ...tool import InterruptSignal, ToolResult
from .._base import Middleware, ModelDelta, ModelHandler, ToolCall, ToolDelta, ToolHandler

if TYPE_CHECKING:
    from ...agent_loop import AgentRun

_log = logging.getLogger("tinyagents.middleware")

SpanKind: TypeAlias = Literal["agent", "model", "tool"]
SpanStatus: TypeAlias = Literal[
    "completed", "stopped", "interrupted", "paused", "failed", "cancelled"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceRecord:
    """The beginning or the end of a span: a run, a model call in it, or a tool call."""

    phase: Literal["begin", "end"]
    kind: SpanKind
    span_id: str
    """The same at the beginning and at the end."""
    parent_id: str | None
    """The span that it is part of: of a call its run; of a run inside a tool that tool's call."""
    name: str
    """Of the agent, of the model that the request names or the default, or of the tool."""
    run_id: str
    root_run_id: str
    thread_id: str | None
    time_ms: int
    """Milliseconds since 1970-01-01T00:00:00Z."""
    duration: float | None = None
    """Seconds from the beginning, in the record of an end."""
    status: SpanStatus | None = None
    """How it ended, in the record of an end."""
    error: str | None = None
    """The kind or the class of the error with which it failed; not its message."""
    attributes: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """More facts, without content: tokens, sizes, ids."""


@dataclass(slots=True, kw_only=True)
class _Span:
    """A span that has begun."""

    kind: SpanKind
    id: str
    parent_id: str | None
    name: str
    began: float


_around: ContextVar[Mapping[int, str]] = ContextVar("tinyagents_tracing_around")
"""The tool call that the code runs in, by the tracer that has seen it: children begin there."""


class TracingMiddleware(Middleware[Any]):
    """Records when runs, their model calls and their tool calls begin and end.

    Register it first, so that it stands around the other wraps: then a model call with all its attempts
    is one span. A call that never runs, such as a refused one, is none. Runs at the same time do not
    mix, and a run inside a tool is part of that tool's span where both agents have the same tracer.

    Hooks: ``before_agent``, ``after_agent``, ``on_error``, ``on_model_delta``, ``on_tool_delta``,
    ``wrap_model`` and ``wrap_tool``. It changes nothing and emits nothing.

    Args:
        max_records: How many are kept, the latest; 0 keeps none.
        on_record: Called with each record as it is made, in the run's event loop: hand it to a queue or
            an exporter, and do not block. What it raises is logged, and the run goes on.

    Raises:
        ConfigurationError: ``max_records`` is negative.
    """

    def __init__(
        self,
        *,
        max_records: int = 1024,
        on_record: Callable[[TraceRecord], None] | None = None,
    ) -> None:
        if max_records < 0:
            raise ConfigurationError("`max_records` is 0 or more")
        self._on_record = on_record
        self._lock = Lock()
        self._records: deque[TraceRecord] = deque(maxlen=max_records)
        self._counters: Counter[str] = Counter(agent=0, model=0, tool=0, delta=0, error=0)

    @property
    def records(self) -> tuple[TraceRecord, ...]:
        """The latest records, of all runs, in the order in which they were made."""
        with self._lock:
            return tuple(self._records)

    @property
    def counters(self) -> Mapping[str, int]:
        """How many of each there were: ``agent``, ``model``, ``tool``, ``delta`` and ``error``."""
        with self._lock:
            return dict(self._counters)

    async def before_agent(self, ctx: RunContext[Any]) -> None:
        """Begin the span of the run."""
        self._begin_run(ctx)

    async def after_agent(self, ctx: RunContext[Any], run: "AgentRun[Any, Any]") -> None:
        """End the span of the run."""
        span = self._span_of(ctx)
        self._forget(ctx)
        status: SpanStatus = "completed" if run.status == "running" else run.status
        usage = run.usage
        self._end(
            ctx,
            span,
            status,
            {
                "model_calls": run.model_calls,
                "tool_calls": run.tool_calls,
                "input_tokens": usage.input_tokens,
                "output_tokens": usage.output_tokens,
            },
        )

    async def on_error(self, ctx: RunContext[Any], error: BaseException) -> None:
        """Count the error, and end the span of the run where it has not ended."""
        self._count("error")
        span = self._known(ctx)
        if span is not None:
            self._forget(ctx)
            self._end(ctx, span, _status_of(error), error=error)

    async def on_model_delta(self, ctx: RunContext[Any], delta: ModelDelta) -> None:
        """Count a piece of an answer."""
        self._count("delta")

    def on_tool_delta(self, ctx: RunContext[Any], delta: ToolDelta) -> None:
        """Count a report of a tool."""
        self._count("delta")

    async def wrap_model(
        self, ctx: RunContext[Any], request: ModelRequest, call_next: ModelHandler
    ) -> ModelResponse:
        """Record a model call."""
        span = self._begin(
            ctx,
            "model",
            request.model or ctx.models.default or "",
            self._span_of(ctx).id,
            call_id=ctx.model_call_id,
            messages=len(request.messages),
            tools=len(request.tools),
        )
        try:
            response = await call_next(request)
        except BaseException as error:
            self._end(ctx, span, _status_of(error), error=error)
            raise
        self._end(ctx, span, "completed", _facts(response))
        return response

    async def wrap_tool(
        self, ctx: RunContext[Any], call: ToolCall, call_next: ToolHandler
    ) -> ToolResult:
        """Record a tool call."""
        span = self._begin(ctx, "tool", call.name, self._span_of(ctx).id, call_id=call.id)
        inside = _around.set({**_around.get({}), id(self): span.id})
        try:
            result = await call_next(call)
        except BaseException as error:
            self._end(ctx, span, _status_of(error), error=error)
            raise
        finally:
            _around.reset(inside)
        self._end(ctx, span, "failed" if result.is_error else "completed")
        return result

    def _span_of(self, ctx: RunContext[Any]) -> _Span:
        """Return the span of the run, which begins here where the run was resumed."""
        return self._known(ctx) or self._begin_run(ctx)

    def _begin_run(self, ctx: RunContext[Any]) -> _Span:
        parent = _around.get({}).get(id(self)) if ctx.parent is not None else None
        span = self._begin(ctx, "agent", ctx.origin.component, parent, depth=ctx.depth)
        ctx.scratch[self] = span
        # For a run that is stepped through: each of its phases has a context of its own.
        ctx.notes[self.name] = [span.id, parent, ctx.clock.now_ms()]
        return span

    def _known(self, ctx: RunContext[Any]) -> _Span | None:
        """Return the span of a run that has one already."""
        span: _Span | None = ctx.scratch.get(self)
        if span is None and self.name in ctx.notes:
            noted: Any = ctx.notes[self.name]
            id, parent, began_ms = noted
            span = ctx.scratch[self] = _Span(
                kind="agent",
                id=id,
                parent_id=parent,
                name=ctx.origin.component,
                began=ctx.clock.monotonic() - (ctx.clock.now_ms() - began_ms) / 1000,
            )
        return span

    def _forget(self, ctx: RunContext[Any]) -> None:
        ctx.scratch.pop(self, None)
        ctx.notes.pop(self.name, None)

    def _begin(
        self,
        ctx: RunContext[Any],
        kind: SpanKind,
        name: str,
        parent: str | None,
        **attributes: JsonValue,
    ) -> _Span:
        span = _Span(
            kind=kind,
            id=ctx.ids.new("span"),
            parent_id=parent,
            name=name,
            began=ctx.clock.monotonic(),
        )
        self._count(kind)
        self._record(ctx, span, "begin", attributes)
        return span

    def _end(
        self,
        ctx: RunContext[Any],
        span: _Span,
        status: SpanStatus,
        attributes: Mapping[str, JsonValue] | None = None,
        *,
        error: BaseException | None = None,
    ) -> None:
        self._record(ctx, span, "end", attributes or {}, status, error)

    def _record(
        self,
        ctx: RunContext[Any],
        span: _Span,
        phase: Literal["begin", "end"],
        attributes: Mapping[str, JsonValue],
        status: SpanStatus | None = None,
        error: BaseException | None = None,
    ) -> None:
        record = TraceRecord(
            phase=phase,
            kind=span.kind,
            span_id=span.id,
            parent_id=span.parent_id,
            name=span.name,
            run_id=ctx.run_id,
            root_run_id=ctx.root_run_id,
            thread_id=ctx.thread_id,
            time_ms=ctx.clock.now_ms(),
            duration=ctx.clock.monotonic() - span.began if phase == "end" else None,
            status=status,
            error=_kind_of(error) if status == "failed" and error is not None else None,
            attributes=attributes,
        )
        with self._lock:
            self._records.append(record)
        if self._on_record is None:
            return
        try:
            self._on_record(record)
        except Exception as failure:  # noqa: BLE001 - whoever watches a run is no reason for it to fail
            _log.warning("`on_record` of `%s` has failed", self.name, exc_info=failure)

    def _count(self, what: str) -> None:
        with self._lock:
            self._counters[what] += 1


def _status_of(error: BaseException) -> SpanStatus:
    if isinstance(error, InterruptSignal):
        return "interrupted"
    if isinstance(error, RunCancelledError | anyio.get_cancelled_exc_class()):
        return "cancelled"
    return "failed"


def _kind_of(error: BaseException) -> str:
    return error.kind if isinstance(error, TinyAgentsError) else type(error).__name__


def _facts(response: ModelResponse) -> dict[str, JsonValue]:
    resolved, usage = response.resolved_model, response.usage
    facts: dict[str, JsonValue] = {
        "model": resolved.name if resolved is not None else None,
        "finish_reason": response.finish_reason,
        "attempts": response.attempts,
        "served_from_cache": response.served_from_cache,
        "first_token": response.timing.first_token,
    }
    if usage is not None:
        facts["input_tokens"] = usage.input_tokens
        facts["output_tokens"] = usage.output_tokens
    return facts
