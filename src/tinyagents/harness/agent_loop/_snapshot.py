"""The state of a run as plain data: what is stored when a run waits, and read when it goes on."""

from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, JsonValue, TypeAdapter

from ..context import RunConfig
from ..cost import CostTotals
from ..errors import ResumeError
from ..events import RunStatus
from ..message import Message, ToolMessage
from ..model import FinishReason, ResolvedModel
from ..usage import UsageTotals

if TYPE_CHECKING:
    from ..approval import ApprovalRequest, ExternalCallRequest

SNAPSHOT_VERSION = 2
"""Version 1, which knew neither approvals nor runs inside a call that waits, is read as well."""

Phase: TypeAlias = Literal[
    "start",
    "compact",
    "prepare",
    "call_model",
    "decide",
    "call_tools",
    "structured",
    "finish",
    "done",
]
"""What a run does next."""


@dataclass(slots=True)
class Counters:
    """What a run has used of its limits."""

    model_calls: int = 0
    tool_calls: int = 0
    """Calls that were executed or answered in a tool's place; not those that a limit held back."""
    steps: int = 0
    """Model turns that ended with an answer."""
    cache_hits: int = 0
    """Model calls that a stored response answered, at no cost."""


@dataclass(slots=True)
class Repeats:
    """How often in a row something was tried again; each count starts anew once it worked."""

    truncated_empty: int = 0
    truncated_calls: int = 0
    structured: int = 0
    max_tokens: int | None = None
    """The raised output limit while a cut answer is asked for again."""


@dataclass(slots=True)
class InterruptRequest:
    """A question that somebody outside the run must answer before it can go on."""

    id: str
    """What the answer is given under; the same after the snapshot was stored and loaded."""
    payload: JsonValue
    call_id: str | None = None
    """The tool call that asks; ``None`` when a hook does."""
    tool_name: str | None = None
    kind: Literal["question", "approval", "external"] = "question"
    """Who asks: the tool or a hook itself, or the loop for a call that needs an approval or a result."""

    @property
    def approval(self) -> "ApprovalRequest | None":
        """What needs to be approved, where that is what it asks for."""
        return self._parsed() if self.kind == "approval" else None

    @property
    def external(self) -> "ExternalCallRequest | None":
        """The call to be made outside the run, where that is what it asks for."""
        return self._parsed() if self.kind == "external" else None

    def _parsed(self) -> Any:
        from ..approval import parse_request

        return parse_request(self.payload)


CallState: TypeAlias = Literal["not_started", "running", "waiting", "done"]


@dataclass(slots=True)
class Clearance:
    """That a call was approved, so that it is not asked for again when it goes on."""

    tool_name: str
    arguments_hash: str
    """Of the arguments as they were when it was asked."""
    arguments: dict[str, JsonValue] | None = None
    """What somebody has put in their place."""


@dataclass(slots=True)
class ApprovalRule:
    """Calls that somebody has approved for the rest of the run."""

    tool_name: str
    arguments_hash: str | None = None
    """Only calls with these arguments; ``None`` for all calls of the tool."""
    by: str | None = None
    """Who said so."""


@dataclass(slots=True)
class NestedRun:
    """A run inside a tool call, kept as long as the call waits."""

    name: str
    """The agent's name."""
    input_hash: str
    snapshot: "RunSnapshot"
    requests: list[InterruptRequest] = field(default_factory=list[InterruptRequest])
    """What it waits for, by the ids of the run around it; none where it has ended."""


@dataclass(slots=True)
class PendingCall:
    """A tool call of the turn at hand."""

    call_id: str
    state: CallState = "not_started"
    result: ToolMessage | None = None
    interrupt: InterruptRequest | None = None
    """What the call waits for."""
    answers: dict[str, JsonValue] = field(default_factory=lambda: {})
    """Answers that the call was given, by interrupt id."""
    clearance: Clearance | None = None
    nested: list[NestedRun] = field(default_factory=list[NestedRun])
    """The runs inside the call, in the order in which they ended."""

    @property
    def requests(self) -> list[InterruptRequest]:
        """What the call waits for: its own, or what the runs inside it do."""
        own = [] if self.interrupt is None else [self.interrupt]
        return own + [request for run in self.nested for request in run.requests]


@dataclass(slots=True, kw_only=True)
class RunSnapshot:
    """Everything that a run needs to go on, as data: :meth:`model_dump_json` and back.

    The application's state and dependencies are not part of it; they are passed in again.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    version: int = SNAPSHOT_VERSION
    config: RunConfig
    phase: Phase = "start"
    status: RunStatus = "running"
    reason: str | None = None
    """Why the run stopped, paused or failed."""
    messages: list[Message]
    """The transcript, without results that ``pending`` still holds."""
    input_length: int = 0
    """How many of the messages were given to the run; the rest is its own."""
    pending: list[PendingCall] = field(default_factory=lambda: [])
    interrupts: list[InterruptRequest] = field(default_factory=lambda: [])
    """What must be answered before the run can go on."""
    answers: dict[str, JsonValue] = field(default_factory=lambda: {})
    """Answers to interrupts of hooks."""
    approval_rules: list[ApprovalRule] = field(default_factory=list[ApprovalRule])
    """What needs no approval any more in this run."""
    resume_phase: Phase | None = None
    """Where a run that a hook interrupted goes on."""
    counters: Counters = field(default_factory=Counters)
    repeats: Repeats = field(default_factory=Repeats)
    usage: UsageTotals = field(default_factory=UsageTotals)
    cost: CostTotals = CostTotals.ZERO
    resolved_model: ResolvedModel | None = None
    """The model that answered last."""
    finish_reason: FinishReason | None = None
    """Why its answer ended."""
    continue_turn: str | None = None
    hidden_tools: dict[str, str] = field(default_factory=lambda: {})
    """Tools that hooks have hidden from the last call, each with who did: calls of them are refused."""
    notes: dict[str, JsonValue] = field(default_factory=lambda: {})
    """What middlewares keep with the run, each under a key of its own."""
    tools_off: bool = False
    """The next call is the last one and gets no tools."""
    structured_by_tool: bool = False
    """Whether the last call offered the output schema as a tool."""
    structured: JsonValue = None
    """The structured answer as JSON; once it is done, the output that it became."""
    has_structured: bool = False
    structured_as: str = ""
    """Which of several output types it is of."""
    structured_done: bool = False
    """Whether its function was called and the validators have seen it, where there are any."""
    final_text: str | None = None
    """An answer that a hook gave in the model's place."""
    next_event: int = 0
    """The offset of the next event, so that a resumed run goes on counting."""

    def model_dump_json(self) -> str:
        """Encode the snapshot as JSON."""
        return _adapter().dump_json(self).decode()

    @classmethod
    def model_validate_json(cls, data: str | bytes) -> "RunSnapshot":
        """Decode what :meth:`model_dump_json` wrote.

        Raises:
            ResumeError: Another version of the format is needed to read it.
            pydantic.ValidationError: It is no snapshot; the error says where.
        """
        _check_version(_Header.model_validate_json(data))
        return _current(_adapter().validate_json(data))

    @classmethod
    def model_validate(cls, obj: Any) -> "RunSnapshot":
        """Read the decoded form of what :meth:`model_dump_json` wrote; a snapshot stays itself.

        Raises:
            ResumeError: Another version of the format is needed to read it.
            pydantic.ValidationError: It is no snapshot; the error says where.
        """
        _check_version(_Header.model_validate(obj))
        return _current(_adapter().validate_python(obj))


class _Header(BaseModel):
    """What is read of a snapshot before anything that another version may have changed."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        title="RunSnapshot", from_attributes=True, defer_build=True
    )

    version: int = SNAPSHOT_VERSION


def _check_version(header: _Header) -> None:
    if header.version not in (1, SNAPSHOT_VERSION):
        raise ResumeError(
            f"the snapshot has version {header.version}; this tinyagents reads "
            f"version {SNAPSHOT_VERSION}"
        )


def _current(snapshot: RunSnapshot) -> RunSnapshot:
    """Return the snapshot as one of the current version, which adds to the older one only."""
    if snapshot.version == SNAPSHOT_VERSION:
        return snapshot
    return replace(snapshot, version=SNAPSHOT_VERSION)


@cache
def _adapter() -> TypeAdapter[RunSnapshot]:
    # A dataclass and not a model, because the loop reads and sets its fields all the time; built at
    # first use, because an import should not wait for it.
    return TypeAdapter(RunSnapshot)
