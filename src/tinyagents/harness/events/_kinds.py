"""The kinds of event and what each carries."""

from collections.abc import Callable
from functools import cache
from typing import Any, Literal

from pydantic import BaseModel, JsonValue

from ..cost import CostTotals
from ..limits import LimitKind
from ..text import map_texts, parse_json
from ..usage import Usage


class AgentEvent(BaseModel, frozen=True, extra="forbid", defer_build=True):
    """What all events carry. ``kind`` is the dotted name, one for each class."""

    kind: str
    id: str
    """``{root run id}-evt-{offset}``."""
    offset: int
    """The place in the sequence that a run shares with the runs inside it, from 0."""
    time_ms: int
    """Milliseconds since the epoch."""
    run_id: str
    root_run_id: str
    parent_run_id: str | None = None
    thread_id: str | None = None
    component: str = "agent"
    depth: int = 0
    tags: tuple[str, ...] = ()
    cause: str | None = None
    schema_version: int = 1


class RunStarted(AgentEvent, frozen=True):
    """A run began, or went on after a pause or an interrupt."""

    kind: Literal["run.started"] = "run.started"
    resumed: bool = False


class RunCompleted(AgentEvent, frozen=True):
    """A run ended with an answer, or was stopped with what there was."""

    kind: Literal["run.completed"] = "run.completed"
    status: Literal["completed", "stopped"] = "completed"
    reason: str | None = None


class RunFailed(AgentEvent, frozen=True):
    """A run ended by raising."""

    kind: Literal["run.failed"] = "run.failed"
    error: str
    error_kind: str
    reason: Literal["error", "cancelled", "timeout"] = "error"


class RunPaused(AgentEvent, frozen=True):
    """A run stopped where it can go on, because it was told to."""

    kind: Literal["run.paused"] = "run.paused"
    reason: str | None = None


class RunInterrupted(AgentEvent, frozen=True):
    """A run stopped because it needs answers to go on."""

    kind: Literal["run.interrupted"] = "run.interrupted"
    interrupts: tuple[str, ...] = ()
    """The ids of what must be answered."""


class ModelStarted(AgentEvent, frozen=True):
    """A model is called; retries and fallbacks of the call are part of it."""

    kind: Literal["model.started"] = "model.started"
    call_id: str
    model: str
    """The registered name."""


class ModelDelta(AgentEvent, frozen=True):
    """A piece of an answer arrived. The text is there only when model payloads are captured."""

    kind: Literal["model.delta"] = "model.delta"
    call_id: str
    characters: int = 0
    text: str | None = None
    reasoning: str | None = None
    tool_call: dict[str, JsonValue] | None = None


class ModelCompleted(AgentEvent, frozen=True):
    """A model has answered."""

    kind: Literal["model.completed"] = "model.completed"
    call_id: str
    model: str = ""
    """The registered name of the model that answered."""
    provider: str = ""
    requested: str | None = None
    """The model that was asked for, when one was."""
    source: str | None = None
    """Why this one: see :data:`tinyagents.harness.model.ModelSource`."""
    started_at_ms: int | None = None
    duration_ms: float | None = None
    finish_reason: str | None = None
    response_id: str | None = None
    attempts: int = 1
    served_from_cache: bool = False
    usage: Usage | None = None
    input: JsonValue = None
    output: JsonValue = None


class ModelFailed(AgentEvent, frozen=True):
    """A model call failed for good."""

    kind: Literal["model.failed"] = "model.failed"
    call_id: str
    model: str
    started_at_ms: int | None = None
    duration_ms: float | None = None
    attempts: int = 1
    error: str
    error_kind: str


class ModelCancelled(AgentEvent, frozen=True):
    """A model call was cancelled with its run."""

    kind: Literal["model.cancelled"] = "model.cancelled"
    call_id: str
    model: str
    started_at_ms: int | None = None
    duration_ms: float | None = None


class ModelOverrideSkipped(AgentEvent, frozen=True):
    """The model that was asked for could not serve, and another one did."""

    kind: Literal["model.override_skipped"] = "model.override_skipped"
    requested: str
    resolved: str
    reason: str | None = None


class ModelAdapted(AgentEvent, frozen=True):
    """The request was changed to suit the model or its provider before it was sent."""

    kind: Literal["model.adapted"] = "model.adapted"
    call_id: str
    model: str
    notices: tuple[str, ...]
    """What was changed or left out, a sentence each."""


class FallbackSelected(AgentEvent, frozen=True):
    """Another model takes over a call that failed."""

    kind: Literal["model.fallback_selected"] = "model.fallback_selected"
    call_id: str | None = None
    from_model: str
    to_model: str


class FallbackSkipped(AgentEvent, frozen=True):
    """A fallback model cannot serve the request."""

    kind: Literal["model.fallback_skipped"] = "model.fallback_skipped"
    model: str
    reason: str | None = None


class RetryScheduled(AgentEvent, frozen=True):
    """A call is made again. Pieces of its answer that were shown are void."""

    kind: Literal["retry.scheduled"] = "retry.scheduled"
    call_id: str
    attempt: int
    """The attempt that failed, from 1."""
    delay: float = 0.0
    """Seconds until the next one."""
    error: str | None = None
    error_kind: str | None = None


class OutputInvalid(AgentEvent, frozen=True):
    """An answer does not fit the type that was asked for, or a validator did not accept it."""

    kind: Literal["output.invalid"] = "output.invalid"
    call_id: str
    """The model call that gave it."""
    schema_name: str
    attempt: int
    """How many answers in a row did not fit, this one included."""
    problems: int
    """How many things are wrong with it."""
    errors: tuple[str, ...] | None = None
    """What is wrong; only when model payloads are captured, for it may quote the answer."""
    asks_again: bool
    """Whether the model is asked again; else the run ends with the error."""


class OutputRecovered(AgentEvent, frozen=True):
    """An answer was used that is no JSON as it stands."""

    kind: Literal["output.recovered"] = "output.recovered"
    call_id: str
    """The model call that gave it."""
    schema_name: str
    step: str
    """How it was read: see :data:`tinyagents.harness.structured.LadderStep`."""


class RateLimitWaited(AgentEvent, frozen=True):
    """A rate limiter held a call back."""

    kind: Literal["rate_limit.waited"] = "rate_limit.waited"
    waited_ms: float


class CacheHit(AgentEvent, frozen=True):
    """A stored response answers a call."""

    kind: Literal["cache.hit"] = "cache.hit"
    call_id: str
    key: str
    shared: bool = False
    """Whether an identical call at the same time has given it, and not the cache."""
    usage: Usage | None = None
    """The tokens that were saved: those that the response took when it was made."""


class CacheMiss(AgentEvent, frozen=True):
    """No stored response answers a call."""

    kind: Literal["cache.miss"] = "cache.miss"
    call_id: str
    key: str


class CacheSkipped(AgentEvent, frozen=True):
    """The response cache was not asked, and does not get the answer."""

    kind: Literal["cache.skipped"] = "cache.skipped"
    call_id: str
    reason: str
    """``no_cache_attached``, ``policy_disabled``, ``multi_turn_transcript``, ``no_model_identity`` or
    ``no_key``."""


class CacheFailed(AgentEvent, frozen=True):
    """The response cache failed; the call goes on without it, unless the policy requires it."""

    kind: Literal["cache.failed"] = "cache.failed"
    call_id: str
    operation: Literal["get", "put"]
    error: str
    error_kind: str


class CacheLayoutPreserved(AgentEvent, frozen=True):
    """A prompt continues the one before: what a provider's prompt cache holds of that one serves."""

    kind: Literal["cache.layout_preserved"] = "cache.layout_preserved"
    before: tuple[str, ...] = ()
    """The ids of the cacheable segments of the prompt before."""
    after: tuple[str, ...] = ()


class CacheLayoutChanged(AgentEvent, frozen=True):
    """A prompt continues the one before, with other cacheable segments."""

    kind: Literal["cache.layout_changed"] = "cache.layout_changed"
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    reason: Literal["segments"] = "segments"


class CachePrefixInvalidated(AgentEvent, frozen=True):
    """A prompt has something else where the one before is, so a provider's prompt cache is lost."""

    kind: Literal["cache.prefix_invalidated"] = "cache.prefix_invalidated"
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    reason: Literal["segments", "tools", "messages"] = "messages"
    """What is another: the cacheable segments, the tools, or a message."""
    segment: str | None = None
    """The id of the first segment that is another."""
    message: int | None = None
    """The place of the first message that is another, from 0."""
    violates_policy: bool = False
    """Whether the run's policy protects the beginning of its prompts."""


class ToolsFiltered(AgentEvent, frozen=True):
    """Tools were hidden from a call."""

    kind: Literal["tool.filtered"] = "tool.filtered"
    by: str
    excluded: tuple[str, ...]
    remaining: int


class ToolSelectionFailed(AgentEvent, frozen=True):
    """What chooses tools by a model has failed, and has hidden none."""

    kind: Literal["tool.selection_failed"] = "tool.selection_failed"
    by: str
    error: str
    error_kind: str = ""


class ToolRefused(AgentEvent, frozen=True):
    """A call was not run, because a middleware does not allow its tool or has hidden it."""

    kind: Literal["tool.refused"] = "tool.refused"
    call_id: str
    tool_name: str
    by: str
    reason: str


class GuardrailTriggered(AgentEvent, frozen=True):
    """A guard did not simply let something pass. What it was is not told."""

    kind: Literal["guardrail.triggered"] = "guardrail.triggered"
    by: str
    """The middleware."""
    guard: str
    stage: Literal["input", "output", "tool_arguments", "tool_results"]
    verdict: Literal["flag", "replace", "block"]
    reason: str | None = None
    call_id: str | None = None
    """The tool call that it is about."""
    error_kind: str | None = None
    """What the guard raised, where it failed to judge."""


class ToolStarted(AgentEvent, frozen=True):
    """A tool call was admitted and begins."""

    kind: Literal["tool.started"] = "tool.started"
    call_id: str
    tool_name: str


class ToolCompleted(AgentEvent, frozen=True):
    """A tool call has a result, which may be an error that the model is told."""

    kind: Literal["tool.completed"] = "tool.completed"
    call_id: str
    tool_name: str
    started_at_ms: int | None = None
    duration_ms: float | None = None
    output_bytes: int | None = None
    error: str | None = None
    input: JsonValue = None
    output: JsonValue = None


class ToolFailed(AgentEvent, frozen=True):
    """A tool raised an unexpected exception, whether the model is told or the run fails."""

    kind: Literal["tool.failed"] = "tool.failed"
    call_id: str
    tool_name: str
    started_at_ms: int | None = None
    duration_ms: float | None = None
    error: str
    error_kind: str = ""


class ToolCancelled(AgentEvent, frozen=True):
    """A tool call was cancelled with its run."""

    kind: Literal["tool.cancelled"] = "tool.cancelled"
    call_id: str
    tool_name: str
    started_at_ms: int | None = None
    duration_ms: float | None = None


class ToolInterrupted(AgentEvent, frozen=True):
    """A tool call waits for an answer from outside."""

    kind: Literal["tool.interrupted"] = "tool.interrupted"
    call_id: str
    tool_name: str
    interrupt_id: str


class ToolApproval(AgentEvent, frozen=True):
    """A call was asked about, or decided: who approved what, and by which way."""

    kind: Literal["tool.approval"] = "tool.approval"
    call_id: str
    tool_name: str
    action: Literal["requested", "approved", "edited", "rejected", "responded", "failed"]
    """``failed``: an approver raised, or gave no decision, and the call was denied."""
    interrupt_id: str
    arguments_hash: str
    """SHA-256 of the arguments that were asked about."""
    source: Literal["answer", "approver", "rule"] | None = None
    """An answer to the interrupted run, an approver in place, or an approval that was remembered."""
    by: str | None = None
    """Who decided, where the decision says so."""
    remember: Literal["call", "same_arguments", "tool"] | None = None
    problem: Literal["expired", "changed", "misfit"] | None = None
    """Why it is asked anew."""
    arguments: JsonValue = None
    """Only when tool payloads are captured; of an edit the new ones."""
    reason: str | None = None
    """Why it was rejected. Only when tool payloads are captured."""


class ToolProgress(AgentEvent, frozen=True):
    """A running tool reports."""

    kind: Literal["tool.progress"] = "tool.progress"
    call_id: str
    tool_name: str | None = None
    characters: int = 0
    message: str | None = None
    """Only when tool payloads are captured."""


class UnknownToolCall(AgentEvent, frozen=True):
    """The model called a tool that does not exist."""

    kind: Literal["tool.unknown"] = "tool.unknown"
    call_id: str
    requested_name: str
    arguments: JsonValue = None
    """Only when tool payloads are captured."""
    recovery: str


class InvalidToolArgs(AgentEvent, frozen=True):
    """The arguments of a call do not fit, or are not JSON."""

    kind: Literal["tool.invalid_args"] = "tool.invalid_args"
    call_id: str
    tool_name: str
    arguments: JsonValue = None
    """Only when tool payloads are captured."""
    error: str
    recovery: str


class InjectedArgsDropped(AgentEvent, frozen=True):
    """The model supplied values for parameters that only the application may fill."""

    kind: Literal["tool.injected_dropped"] = "tool.injected_dropped"
    call_id: str
    tool_name: str
    names: tuple[str, ...]


class ControlApplied(AgentEvent, frozen=True):
    """A request to stop, interrupt, pause or jump took effect."""

    kind: Literal["control.applied"] = "control.applied"
    control: str
    detail: str | None = None


class Steered(AgentEvent, frozen=True):
    """A steering command was accepted or refused."""

    kind: Literal["agent.steered"] = "agent.steered"
    command_kind: str
    accepted: bool


class SubAgentStarted(AgentEvent, frozen=True):
    """A sub-agent begins."""

    kind: Literal["subagent.started"] = "subagent.started"
    name: str


class SubAgentCompleted(AgentEvent, frozen=True):
    """A sub-agent has ended."""

    kind: Literal["subagent.completed"] = "subagent.completed"
    name: str


class SubAgentFailed(AgentEvent, frozen=True):
    """A sub-agent failed."""

    kind: Literal["subagent.failed"] = "subagent.failed"
    name: str
    error: str


class SubAgentReused(AgentEvent, frozen=True):
    """A sub-agent session takes another turn."""

    kind: Literal["subagent.reused"] = "subagent.reused"
    name: str
    turn: int


class MiddlewareStarted(AgentEvent, frozen=True):
    """A hook begins."""

    kind: Literal["middleware.started"] = "middleware.started"
    name: str
    hook: str = ""


class MiddlewareCompleted(AgentEvent, frozen=True):
    """A hook has ended."""

    kind: Literal["middleware.completed"] = "middleware.completed"
    name: str
    hook: str = ""


class MiddlewareFailed(AgentEvent, frozen=True):
    """A hook raised."""

    kind: Literal["middleware.failed"] = "middleware.failed"
    name: str
    hook: str = ""
    error: str


class Compressed(AgentEvent, frozen=True):
    """The context was made smaller."""

    kind: Literal["context.compressed"] = "context.compressed"
    from_tokens: int
    """About what it was before."""
    to_tokens: int
    by: str = ""
    """What made it smaller: a middleware, or one of its steps."""


class ContextPressure(AgentEvent, frozen=True):
    """How full the context is that a model is called with."""

    kind: Literal["context.pressure"] = "context.pressure"
    tokens: int
    """Estimated."""
    limit: int
    """What there is room for, without what is kept for the answer."""
    window: int


class ContextWindowUnknown(AgentEvent, frozen=True):
    """Nobody knows how much a model takes, so nothing is made shorter for it; once in a run."""

    kind: Literal["context.window_unknown"] = "context.window_unknown"
    by: str
    model: str | None = None


class ContextSummarized(AgentEvent, frozen=True):
    """A summary has taken the place of messages."""

    kind: Literal["context.summarized"] = "context.summarized"
    by: str
    record_id: str
    previous: str | None = None
    """The earlier summary that is part of it."""
    messages: int
    """How many it takes the place of."""
    from_tokens: int
    to_tokens: int
    model: str | None = None
    prompt_version: str | None = None


class ContextOverflowed(AgentEvent, frozen=True):
    """A provider has refused a prompt as too long."""

    kind: Literal["context.overflowed"] = "context.overflowed"
    tokens: int
    """Estimated."""
    window: int | None = None
    recovering: bool
    """Whether it is asked again with a shorter one."""


class UsageRecorded(AgentEvent, frozen=True):
    """Tokens were spent: once for each call of a provider."""

    kind: Literal["usage.recorded"] = "usage.recorded"
    call_id: str | None = None
    model: str | None = None
    usage: Usage


class CostRecorded(AgentEvent, frozen=True):
    """Money was spent."""

    kind: Literal["cost.recorded"] = "cost.recorded"
    call_id: str | None = None
    model: str | None = None
    cost: CostTotals


class BudgetReserved(AgentEvent, frozen=True):
    """Room in a budget was set aside for a call."""

    kind: Literal["budget.reserved"] = "budget.reserved"
    estimated_input_tokens: int


class BudgetReconciled(AgentEvent, frozen=True):
    """A reservation was replaced by what was really used."""

    kind: Literal["budget.reconciled"] = "budget.reconciled"
    estimated_input_tokens: int
    actual_input_tokens: int


class BudgetWarning(AgentEvent, frozen=True):
    """A budget is nearly used up."""

    kind: Literal["budget.warning"] = "budget.warning"
    reason: str


class BudgetExceeded(AgentEvent, frozen=True):
    """A budget is used up."""

    kind: Literal["budget.exceeded"] = "budget.exceeded"
    reason: str
    blocked: bool


class LimitReached(AgentEvent, frozen=True):
    """A limit of the run is used up."""

    kind: Literal["limit.reached"] = "limit.reached"
    limit_kind: LimitKind
    maximum: float


class WorkspacePrepared(AgentEvent, frozen=True):
    """A workspace is ready."""

    kind: Literal["workspace.prepared"] = "workspace.prepared"
    policy_id: str
    root: str


class WorkspaceViolation(AgentEvent, frozen=True):
    """A path outside the workspace was refused."""

    kind: Literal["workspace.violation"] = "workspace.violation"
    path: str


class WorkspaceCleanup(AgentEvent, frozen=True):
    """A workspace was cleaned up."""

    kind: Literal["workspace.cleanup"] = "workspace.cleanup"
    policy_id: str
    error: str | None = None


class StateUpdated(AgentEvent, frozen=True):
    """The application's state changed."""

    kind: Literal["state.update"] = "state.update"


class RouteSelected(AgentEvent, frozen=True):
    """A route was taken."""

    kind: Literal["route.selected"] = "route.selected"
    route: str
    model: str | None = None
    """The registered name of the model, where the route is to one."""
    by: str = ""
    """Who chose it."""


class MemoryLoaded(AgentEvent, frozen=True):
    """A thread's history was loaded."""

    kind: Literal["memory.loaded"] = "memory.loaded"


class MemorySaved(AgentEvent, frozen=True):
    """A thread's history was saved."""

    kind: Literal["memory.saved"] = "memory.saved"


class StreamClosed(AgentEvent, frozen=True):
    """The consumer of a stream left before its end."""

    kind: Literal["stream.closed"] = "stream.closed"


class MessagesRepaired(AgentEvent, frozen=True):
    """A history arrived with calls and results that did not pair up, and was mended."""

    kind: Literal["messages.repaired"] = "messages.repaired"
    added: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()


class Custom(AgentEvent, frozen=True):
    """Something of the application's own."""

    kind: Literal["custom"] = "custom"
    name: str
    payload: JsonValue = None


_CLASSES: dict[str, type[AgentEvent]] = {
    cls.model_fields["kind"].default: cls for cls in AgentEvent.__subclasses__()
}


@cache
def _readable(cls: type[AgentEvent]) -> frozenset[str]:
    """Return the fields of a kind that people read: no ids, and no words that stand for something."""
    return frozenset(
        name
        for name, field in cls.model_fields.items()
        if not name.endswith(("_id", "_hash", "_kind")) and "Literal[" not in str(field.annotation)
    )


def redacted_payload(
    cls: type[AgentEvent], payload: dict[str, Any], redact: Callable[[str], str]
) -> dict[str, Any]:
    """Return the fields of an event with the texts in them that people read changed."""
    names = _readable(cls)
    return {
        name: map_texts(value, redact) if name in names else value
        for name, value in payload.items()
    }


def event_class(kind: str) -> type[AgentEvent]:
    """Return the class of a kind.

    Raises:
        LookupError: There is no such kind.
    """
    try:
        return _CLASSES[kind]
    except KeyError:
        raise LookupError(f"there is no event kind `{kind}`") from None


def event_kinds() -> tuple[str, ...]:
    """Return the dotted names of all kinds, in the order of their definition."""
    return tuple(_CLASSES)


def load_event(data: str | bytes | dict[str, Any]) -> AgentEvent:
    """Decode an event from JSON text or its decoded form.

    Raises:
        LookupError: Its kind is not known.
        pydantic.ValidationError: It does not fit its kind.
    """
    record = parse_json(data) if isinstance(data, str | bytes) else data
    kind = record.get("kind") if isinstance(record, dict) else None
    return event_class(str(kind)).model_validate(record)
