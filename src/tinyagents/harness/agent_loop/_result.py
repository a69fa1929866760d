"""What a run leaves behind."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic

from typing_extensions import TypeVar

from ..cost import CostTotals
from ..events import RunStatus
from ..message import AssistantMessage, Message
from ..model import ModelResponse, ResolvedModel
from ..usage import Usage
from ._snapshot import InterruptRequest, RunSnapshot

if TYPE_CHECKING:
    from ..events import AgentEvent, HarnessRunStatus

StateT = TypeVar("StateT", default=Any)
OutputT = TypeVar("OutputT", default=Any)


@dataclass(slots=True, kw_only=True, repr=False)
class AgentRun(Generic[StateT, OutputT]):
    """A run that has ended, or as far as it got; every error of a run carries one as ``run``."""

    state: StateT
    """The application's own object, as it was passed in."""
    status: RunStatus
    reason: str | None
    """Why the run stopped, paused or failed; ``None`` when it completed."""
    messages: list[Message]
    """The transcript, the input included and the system prompt left out.

    Every tool call in it has exactly one result, so it can be used as the input of a next run.
    """
    output: OutputT
    """The typed answer, where one was asked for and given; else ``None``."""
    events: "Sequence[AgentEvent]" = field(repr=False)
    """What happened, in order; ``model.delta`` events are not kept."""
    snapshot: RunSnapshot = field(repr=False)
    """The state of the run as data, to resume it from or to look at."""
    response: ModelResponse | None = field(default=None, repr=False)
    """The last response of a model."""

    def __repr__(self) -> str:
        text = self.text if len(self.text) <= 60 else f"{self.text[:57]}..."
        return (
            f"AgentRun({self.run_id!r}, {self.status}, text={text!r}, "
            f"messages={len(self.messages)}, model_calls={self.model_calls}, "
            f"tool_calls={self.tool_calls}, tokens={self.usage.total_tokens})"
        )

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self.snapshot.config.run_id

    @property
    def text(self) -> str:
        """The final text: of the last answer, or what a hook gave in its place; may be empty."""
        if self.snapshot.final_text is not None:
            return self.snapshot.final_text
        for message in reversed(self.new_messages):
            if isinstance(message, AssistantMessage):
                return message.text
        return ""

    @property
    def new_messages(self) -> list[Message]:
        """The part of the transcript that the run added to its input."""
        return self.messages[self.snapshot.input_length :]

    def status_report(self) -> "HarnessRunStatus":
        """Return how the run stands, as data for a status store."""
        from ..events import EventLog
        from ._report import run_status

        log = self.events
        return run_status(
            self.snapshot, log.first_and_last() if isinstance(log, EventLog) else None
        )

    @property
    def usage(self) -> Usage:
        """The tokens of all model calls of the run."""
        return self.snapshot.usage.usage

    @property
    def cost(self) -> CostTotals:
        """US dollars for all calls of models whose prices are known."""
        return self.snapshot.cost

    @property
    def model_calls(self) -> int:
        """How many model calls were made, retries not counted."""
        return self.snapshot.counters.model_calls

    @property
    def tool_calls(self) -> int:
        """How many tool calls were executed."""
        return self.snapshot.counters.tool_calls

    @property
    def steps(self) -> int:
        """How many model turns ended with an answer."""
        return self.snapshot.counters.steps

    @property
    def cache_hits(self) -> int:
        """How many model calls a stored response answered; they are no part of :attr:`usage`."""
        return self.snapshot.counters.cache_hits

    @property
    def interrupts(self) -> list[InterruptRequest]:
        """What must be answered before the run can go on."""
        return self.snapshot.interrupts

    @property
    def resolved_model(self) -> ResolvedModel | None:
        """The model that answered last."""
        return self.snapshot.resolved_model
