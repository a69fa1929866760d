"""What the consumer of a run sees of it: one small object for each piece.

Which chunks a stream holds is chosen by mode:

    messages   TextDelta, ReasoningDelta, RefusalDelta, ToolCallDelta, MessageDiscarded,
               MessageCompleted
    tools      ToolStarted, ToolProgress, ToolCompleted
    output     PartialOutput
    updates    StateUpdate, UsageUpdate, CostUpdate
    events     EventChunk
    final      Final
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeAlias, TypeVar, get_args

from pydantic import JsonValue

from .cost import CostTotals
from .message import AssistantMessage, ToolMessage
from .text import JsonObject
from .usage import Usage

if TYPE_CHECKING:
    from .agent_loop import AgentRun
    from .events import AgentEvent, EventOrigin

__all__ = (
    "ALL_MODES",
    "CostUpdate",
    "EventChunk",
    "Final",
    "MessageCompleted",
    "MessageDiscarded",
    "PartialOutput",
    "ReasoningDelta",
    "RefusalDelta",
    "StateUpdate",
    "StreamChunk",
    "StreamMode",
    "TextDelta",
    "ToolCallDelta",
    "ToolCompleted",
    "ToolProgress",
    "ToolStarted",
    "UsageUpdate",
)

StreamMode: TypeAlias = Literal["messages", "tools", "output", "updates", "events", "final"]

ALL_MODES: frozenset[StreamMode] = frozenset(get_args(StreamMode))
"""Every mode, for a stream that holds all there is."""

StateT = TypeVar("StateT")
OutputT = TypeVar("OutputT")


@dataclass(slots=True)
class _Chunk:
    """What all chunks have: whose they are, and their place in the stream."""

    type: ClassVar[str]
    mode: ClassVar[StreamMode]
    """The mode that a stream must ask for to get it."""

    origin: "EventOrigin"
    offset: int
    """The place among the chunks of the run, from 0."""

    @property
    def run_id(self) -> str:
        """The run that the chunk belongs to."""
        return self.origin.run_id

    @property
    def root_run_id(self) -> str:
        """The outermost run around it."""
        return self.origin.root_run_id

    @property
    def parent_run_id(self) -> str | None:
        """The run that started it, if one did."""
        return self.origin.parent_run_id

    @property
    def thread_id(self) -> str | None:
        """The conversation that the run is part of."""
        return self.origin.thread_id


@dataclass(slots=True)
class TextDelta(_Chunk):
    """A piece of the answer's text."""

    type: ClassVar[str] = "text_delta"
    mode: ClassVar[StreamMode] = "messages"

    text: str
    call_id: str
    """The model call that it belongs to."""


@dataclass(slots=True)
class ReasoningDelta(_Chunk):
    """A piece of what the model thinks."""

    type: ClassVar[str] = "reasoning_delta"
    mode: ClassVar[StreamMode] = "messages"

    text: str
    call_id: str


@dataclass(slots=True)
class RefusalDelta(_Chunk):
    """A piece of the words in which the model declines to answer."""

    type: ClassVar[str] = "refusal_delta"
    mode: ClassVar[StreamMode] = "messages"

    text: str
    call_id: str


@dataclass(slots=True)
class ToolCallDelta(_Chunk):
    """A piece of a tool call as the model writes it."""

    type: ClassVar[str] = "tool_call_delta"
    mode: ClassVar[StreamMode] = "messages"

    call_id: str
    tool_call_id: str
    """The id of the tool call as far as it is known."""
    name: str
    """The tool's name, with the first piece."""
    arguments: str
    """A piece of the arguments' JSON text."""


@dataclass(slots=True)
class MessageDiscarded(_Chunk):
    """The pieces of this model call that were shown are void: the call is made again."""

    type: ClassVar[str] = "message_discarded"
    mode: ClassVar[StreamMode] = "messages"

    call_id: str
    reason: str


@dataclass(slots=True)
class MessageCompleted(_Chunk):
    """A whole answer of the model."""

    type: ClassVar[str] = "message_completed"
    mode: ClassVar[StreamMode] = "messages"

    message: AssistantMessage
    call_id: str


@dataclass(slots=True)
class PartialOutput(_Chunk, Generic[OutputT]):
    """The typed answer as far as the model has written it, in a run that was given an ``output``.

    The answer is read again whenever it has grown by an eighth, and at its end, so that the work
    stays in proportion to its length. Another model call begins it anew. What is final is the
    run's own output: a function or a validator has not seen this one.
    """

    type: ClassVar[str] = "partial_output"
    mode: ClassVar[StreamMode] = "output"

    call_id: str
    """The model call that writes it."""
    name: str
    """Which type it is of, where the output is one of several."""
    json: JsonValue
    """What there is, as JSON; its last text may be cut."""
    value: OutputT | None
    """The typed value where what there is suffices for one: where no field is missing any more,
    or may be missing. ``None`` until then, and always where a function or a JSON schema is the
    output."""


@dataclass(slots=True)
class ToolStarted(_Chunk):
    """A tool begins."""

    type: ClassVar[str] = "tool_started"
    mode: ClassVar[StreamMode] = "tools"

    tool_call_id: str
    name: str
    arguments: JsonObject


@dataclass(slots=True)
class ToolProgress(_Chunk):
    """A running tool reports."""

    type: ClassVar[str] = "tool_progress"
    mode: ClassVar[StreamMode] = "tools"

    tool_call_id: str
    name: str
    content: str


@dataclass(slots=True)
class ToolCompleted(_Chunk):
    """A tool call has its result."""

    type: ClassVar[str] = "tool_completed"
    mode: ClassVar[StreamMode] = "tools"

    tool_call_id: str
    name: str
    message: ToolMessage
    """The result as the model gets it."""
    summary: str | None = None
    """What the tool wants a user to see of it."""

    @property
    def is_error(self) -> bool:
        """Whether the model is told of a failure."""
        return self.message.is_error


@dataclass(slots=True)
class StateUpdate(_Chunk):
    """Something that the application or a memory changed."""

    type: ClassVar[str] = "state_update"
    mode: ClassVar[StreamMode] = "updates"

    name: str
    value: Any


@dataclass(slots=True)
class UsageUpdate(_Chunk):
    """The tokens of one more model call."""

    type: ClassVar[str] = "usage_update"
    mode: ClassVar[StreamMode] = "updates"

    usage: Usage
    total: Usage


@dataclass(slots=True)
class CostUpdate(_Chunk):
    """The cost of one more model call."""

    type: ClassVar[str] = "cost_update"
    mode: ClassVar[StreamMode] = "updates"

    cost: CostTotals
    total: CostTotals


@dataclass(slots=True)
class EventChunk(_Chunk):
    """An event of the run or of a run inside it."""

    type: ClassVar[str] = "event"
    mode: ClassVar[StreamMode] = "events"

    event: "AgentEvent"


@dataclass(slots=True)
class Final(_Chunk, Generic[StateT, OutputT]):
    """The end of a run that did not raise. Nothing follows it."""

    type: ClassVar[str] = "final"
    mode: ClassVar[StreamMode] = "final"

    run: "AgentRun[StateT, OutputT]"


StreamChunk: TypeAlias = (
    TextDelta
    | ReasoningDelta
    | RefusalDelta
    | ToolCallDelta
    | MessageDiscarded
    | MessageCompleted
    | ToolStarted
    | ToolProgress
    | ToolCompleted
    | StateUpdate
    | UsageUpdate
    | CostUpdate
    | EventChunk
    | Final[StateT, OutputT]
    | PartialOutput[OutputT]
)
"""Any chunk, told apart by class or by ``type``."""
