"""A run while it lives: its snapshot, its context, and what was worked out for it once."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from pydantic import JsonValue

from ..clock import Clock, Sleep
from ..context import RunContext
from ..errors import InvalidRequestError
from ..events import EventLog, ListenerLike
from ..ids import IdGenerator
from ..limits import RunLimits
from ..message import (
    Message,
    SystemMessage,
    ToolCallBlock,
    ToolMessage,
    ToolOutcome,
    repair_messages,
)
from ..middleware import MiddlewareStack, ToolCall
from ..model import (
    ModelRegistry,
    ModelResponse,
    ModelSettings,
    PieceKind,
    StreamMerger,
    ToolSchema,
)
from ..policy import RunPolicy
from ..structured import OutputSpec, OutputValidator, restored_output
from ..text import map_texts
from ..tool import BoundCall, Tool, ToolRegistry, ToolResult
from ..workspace import WorkspaceDescriptor, WorkspaceIsolation
from ._result import AgentRun
from ._snapshot import InterruptRequest, PendingCall, RunSnapshot

if TYPE_CHECKING:
    from ..approval import ApprovalNeed, ApprovalRequest, Decision
    from ..cache import AttachedCache
    from ..events import HarnessRunStatus
    from ..stream import StreamMode
    from ._feed import Feed, Outlet
    from ._redaction import RunRedaction

SystemFunction: TypeAlias = Callable[[RunContext[Any]], "str | None | Awaitable[str | None]"]
"""Gives the instructions for one model call; ``None`` for none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSpec:
    """An agent as a harness defines it: shared by all its runs and never changed by one."""

    name: str
    models: ModelRegistry
    tools: ToolRegistry
    middleware: MiddlewareStack
    system: SystemMessage | SystemFunction | None
    settings: ModelSettings
    policy: RunPolicy
    clock: Clock
    ids: IdGenerator
    sleep: Sleep
    listeners: tuple[ListenerLike, ...]
    output: OutputSpec[Any] | None = None
    """What runs answer with that are not asked for anything else."""
    output_validators: tuple[OutputValidator, ...] = ()
    """Look at the typed answers of all runs."""
    workspace: WorkspaceDescriptor | None = None
    """The files that runs may touch."""
    isolation: WorkspaceIsolation | None = None
    """Gives each run files of its own, instead."""
    cache: "AttachedCache | None" = None
    """Keeps responses of its models."""


class CallSlot:
    """A tool call of the turn at hand, on its way from the model's request to its result."""

    # Defaults stand on the class: a call sets few of them, and there may be very many calls.
    tool: Tool | None = None
    bound: BoundCall | None = None
    deadline: float | None = None
    result: ToolResult | None = None
    failure: Exception | None = None
    """What the tool raised unexpectedly."""
    error: Exception | None = None
    """What the run raises because of the call."""
    outcome: ToolOutcome = "done"
    checked: JsonValue = None
    """A copy of the arguments that were checked, where a hook may change them afterwards."""
    begun = False
    """Whether ``tool.started`` was emitted and no event has ended it yet."""
    held = False
    """Whether it waits for somebody to decide about it, or for its result from outside."""
    cleared = False
    """Whether it needs no approval any more."""
    needs: "Sequence[ApprovalNeed]" = ()
    """Whose approvers are to be asked."""
    request: "ApprovalRequest | None" = None
    """What they are asked."""
    decision: "Decision | None" = None
    """What they said."""
    note: str | None = None
    """What the model is told before the result."""
    started = 0.0
    ended = 0.0
    started_ms = 0

    def __init__(self, pending: PendingCall, block: ToolCallBlock) -> None:
        self.pending = pending
        self.block = block
        """The call as the model made it."""
        self.call = ToolCall(block.id, block.name, block.arguments)
        """The call as hooks left it."""


class OpenCall:
    """A model call under way."""

    __slots__ = (
        "began",
        "given_up",
        "hook_error",
        "id",
        "inner",
        "merger",
        "model",
        "response",
        "shown",
        "started_ms",
    )

    def __init__(self, id: str, model: str, started_ms: int, began: float) -> None:
        self.id: str = id
        self.model: str = model
        """The registered name of the model that is asked, and charged, at the moment."""
        self.started_ms: int = started_ms
        self.began: float = began
        """When it began, on the context's monotonic clock."""
        self.merger: StreamMerger | None = None
        """The pieces of a streamed answer that is not complete yet."""
        self.response: ModelResponse | None = None
        """An answer that has arrived and is not in the transcript yet."""
        self.inner: ModelResponse | None = None
        """The provider's own answer, where hooks stand around the call."""
        self.given_up: tuple[ModelResponse, ...] = ()
        """Answers that were paid for and that a hook asked for again."""
        self.hook_error: BaseException | None = None
        """An error of a hook that saw the pieces, where it could be taken for one of the model."""
        self.shown: Collection[PieceKind] = ()
        """The kinds of pieces of the answer that somebody may have seen already."""

    def unpaid(self, response: ModelResponse) -> ModelResponse | None:
        """Return the answer that is still to be accounted for, when ``response`` is the last."""
        paid = self.inner or response
        if paid.served_from_cache or any(paid is each for each in self.given_up):
            return None
        return paid


class LoopRun:
    """One run in this process. What must outlive the process is in ``snapshot``."""

    __slots__ = (
        "call_ids",
        "calls",
        "ctx",
        "deadline",
        "feed",
        "guarded",
        "limits",
        "open_call",
        "output",
        "output_value",
        "override",
        "policy",
        "redaction",
        "response",
        "settings",
        "single_call",
        "slots",
        "snapshot",
        "spec",
        "tool_schemas",
        "tools",
    )

    def __init__(
        self,
        spec: AgentSpec,
        snapshot: RunSnapshot,
        ctx: RunContext[Any],
        *,
        tools: ToolRegistry,
        output: OutputSpec[Any] | None = None,
        guarded: bool = False,
        override: str | None = None,
    ) -> None:
        self.spec: AgentSpec = spec
        self.snapshot: RunSnapshot = snapshot
        self.ctx: RunContext[Any] = ctx
        self.policy: RunPolicy = spec.policy
        self.limits: RunLimits = ctx.limits
        self.settings: ModelSettings = spec.settings.capped(ctx.limits.max_output_tokens)
        self.redaction: RunRedaction | None = None
        """What hides something in all that leaves the run."""
        if spec.middleware.redaction:
            self._begin_redaction()
        self.tools: ToolRegistry = tools
        self.tool_schemas: Sequence[ToolSchema] = tools.schemas
        self.guarded: bool = guarded
        """Whether somebody outside may cancel the run through its token."""
        self.override: str | None = override
        """The registered name of the model that was chosen for this run."""
        ctx.model_override = override
        self.output: OutputSpec[Any] | None = output
        self.output_value: Any = None
        self.feed: Feed | None = None
        """What shows the run to whoever follows it."""
        self.single_call: bool = False
        """End after the first answer, with its tool calls left to the caller."""
        self.deadline: float | None = None
        """When the wall clock runs out, on the context's monotonic clock."""
        self.response: ModelResponse | None = None
        self.open_call: OpenCall | None = None
        """The model call under way."""
        self.calls: list[ToolCallBlock] = []
        """The tool calls of the last answer that the run must see to."""
        self.slots: list[CallSlot] = []
        self.call_ids: dict[str, int] = {}
        """The ids of tool calls that are taken, each with how many numbers were tried on it."""

    def hide(self, value: Any) -> Any:
        """Return a text, or a JSON value, without what must not be seen of it."""
        return value if self.redaction is None else map_texts(value, self.redaction.text)

    def _begin_redaction(self) -> None:
        from ._redaction import RunRedaction, hidden_by

        made = [make(self.ctx) for _, make in self.spec.middleware.redaction]
        items = [each for each in made if each is not None]
        if items:
            self.redaction = RunRedaction(items)
            origin, parent = self.ctx.origin, self.ctx.parent
            outer = parent.origin.redact if parent is not None else None
            origin.redact = hidden_by(outer, self.redaction)

    @property
    def has_plain_output(self) -> bool:
        """Whether an answer that fits is the output, with no function to call and no validator."""
        return self.output is not None and self.output.is_plain and not self.spec.output_validators

    @property
    def model_call_id(self) -> str:
        """The id of the latest model call."""
        return f"{self.ctx.origin.run_id}-model-{self.snapshot.counters.model_calls}"

    @property
    def messages(self) -> list[Message]:
        """The transcript with exactly one result for every call, whatever the run's state."""
        snapshot = self.snapshot
        if snapshot.pending:
            return [*snapshot.messages, *self.pending_results()]
        if self.calls:
            # A hook has interrupted the run before it took up the calls of the last answer.
            missing = [_missing_result(PendingCall(call.id)) for call in self.calls]
            return [*snapshot.messages, *missing]
        return snapshot.messages

    def pending_results(self) -> list[ToolMessage]:
        """Return one result for each call of the turn at hand, in call order."""
        return [pending.result or _missing_result(pending) for pending in self.snapshot.pending]

    def follow(self, outlet: "Outlet", modes: "Collection[StreamMode]") -> "Feed":
        """Show the run to ``outlet`` from now on, the pieces of the model's answers too."""
        from ._feed import Feed

        self.ctx.streaming = True
        self.feed = Feed(outlet, self.ctx.origin, modes)
        if "events" in modes:
            self.ctx.events.add(self.feed)
        return self.feed

    def status(self) -> "HarnessRunStatus":
        """Return what the run is doing."""
        from ._report import run_status

        self.snapshot.cost = self.ctx.cost
        return run_status(
            self.snapshot,
            self.ctx.events.first_and_last(self.ctx.run_id),
            model_call=self.open_call.id if self.open_call is not None else None,
            tool_calls=tuple(slot.call.id for slot in self.slots if slot.begun),
        )

    def result(self) -> AgentRun[Any, Any]:
        """Return the run as far as it got."""
        snapshot = self.snapshot
        snapshot.next_event = self.ctx.events.next_offset
        snapshot.cost = self.ctx.cost
        messages = self.messages
        return AgentRun(
            state=self.ctx.state,
            status=snapshot.status,
            reason=snapshot.reason,
            messages=messages,
            output=self.output_value,
            events=EventLog(
                self.ctx.events,
                run_id=self.ctx.run_id,
                messages=messages,
                nested=self.ctx.parent is not None,
            ),
            snapshot=snapshot,
            response=self.response,
        )

    def repair_input(self) -> None:
        """Mend a history that arrived broken, and remember the call ids that are taken."""
        snapshot = self.snapshot
        waiting = [call.call_id for call in snapshot.pending]
        repair = repair_messages(snapshot.messages, waiting=waiting)
        if repair.changed:
            snapshot.messages = repair.messages
            snapshot.input_length = len(repair.messages)
            self.ctx.emit(
                "messages.repaired",
                added=tuple(repair.added),
                dropped=tuple(repair.dropped),
                moved=tuple(repair.moved),
            )
        self.remember_call_ids()

    def replace_messages(self, messages: Sequence[Message]) -> None:
        """Go on with another transcript than the one so far.

        Raises:
            InvalidRequestError: Nothing is left of it.
        """
        snapshot = self.snapshot
        own = {id(message) for message in snapshot.messages[snapshot.input_length :]}
        left = repair_messages(list(messages)).messages
        if not left:
            raise InvalidRequestError("a `compact` hook has left no message of the transcript")
        snapshot.messages = left
        given = (n for n, message in enumerate(snapshot.messages) if id(message) in own)
        snapshot.input_length = next(given, len(snapshot.messages))

    def continue_from_snapshot(self, *, announce: bool) -> None:
        """Take up a run that was begun before, in whichever process."""
        snapshot = self.snapshot
        if self.redaction is not None:
            snapshot.messages = self.redaction.messages(snapshot.messages)
            for pending in snapshot.pending:
                if pending.result is not None:
                    pending.result = self.redaction.message(pending.result)
        self.remember_call_ids()
        if snapshot.has_structured and self.output is not None:
            self._restore_output(self.output)
        if announce:
            self.ctx.emit("run.started", resumed=True)

    def _restore_output(self, output: OutputSpec[Any]) -> None:
        snapshot = self.snapshot
        if self.has_plain_output:
            self.output_value = output.check(snapshot.structured)
        elif snapshot.structured_done:
            self.output_value = restored_output(output, snapshot.structured, snapshot.structured_as)

    def remember_call_ids(self) -> None:
        """Take note of the ids of the transcript's tool calls."""
        messages = self.snapshot.messages
        for message in messages:
            if message.role == "assistant":
                self.call_ids.update((call.id, 1) for call in message.tool_calls)
        if messages and messages[-1].role == "assistant":
            self.calls = messages[-1].open_calls


def waiting_requests(pending: Sequence[PendingCall]) -> list[InterruptRequest]:
    """Return what the calls of a turn wait for."""
    return [request for call in pending for request in call.requests]


def unfinished_result(
    call_id: str, name: str | None, pending: PendingCall, why: str
) -> ToolMessage:
    """Return the result of a call that has none: what happened to it, in words for the model."""
    outcome: ToolOutcome
    match pending.state:
        case "running":
            outcome, text = "interrupted", f"interrupted: {why}; the call may have had effects"
        case "waiting":
            outcome, text = "not_started", f"not executed: {why}; it waits for an answer"
        case _:
            outcome, text = "not_started", f"not executed: {why}"
    return ToolMessage(
        tool_call_id=call_id, name=name, content=text, is_error=True, outcome=outcome
    )


def _missing_result(pending: PendingCall) -> ToolMessage:
    return unfinished_result(pending.call_id, None, pending, "the run has stopped here")
