"""What a run shows to whoever follows it. Loaded only when somebody does."""

from collections.abc import Collection
from typing import Any, Protocol

from ..cost import CostTotals
from ..events import AgentEvent, EventOrigin
from ..message import AssistantMessage, ToolMessage
from ..middleware import ToolCall
from ..model import MessageDelta, ToolCallDelta as ModelToolCallDelta
from ..stream import (
    CostUpdate,
    EventChunk,
    Final,
    MessageCompleted,
    MessageDiscarded,
    PartialOutput,
    ReasoningDelta,
    RefusalDelta,
    StreamChunk,
    StreamMode,
    TextDelta,
    ToolCallDelta,
    ToolCompleted,
    ToolProgress,
    ToolStarted,
    UsageUpdate,
)
from ..structured import PartialAnswer
from ..usage import Usage
from ._result import AgentRun


class Outlet(Protocol):
    """Where a run hands the chunks that somebody reads."""

    def put(self, chunk: StreamChunk[Any, Any], /) -> bool:
        """Hand on a chunk, at once, and tell whether whoever reads is far behind."""
        ...

    async def room(self) -> None:
        """Wait until whoever reads has caught up."""
        ...


class Feed:
    """Turns what happens in a run into the chunks of the wanted modes, numbered in order."""

    __slots__ = (
        "_offset",
        "_origin",
        "_outlet",
        "_put",
        "_tools",
        "_updates",
        "shows_messages",
        "shows_output",
    )

    def __init__(self, outlet: Outlet, origin: EventOrigin, modes: Collection[StreamMode]) -> None:
        self._outlet = outlet
        self._put = outlet.put
        self._origin = origin
        self._offset = 0
        self.shows_messages: bool = "messages" in modes
        """Whether pieces of answers are wanted: :meth:`delta` and :meth:`text` do not ask again."""
        self.shows_output: bool = "output" in modes
        """Whether the typed answer is wanted while it is written."""
        self._tools = "tools" in modes
        self._updates = "updates" in modes

    def delta(self, call_id: str, item: MessageDelta | ModelToolCallDelta) -> bool:
        """Show a piece of an answer, and tell whether to wait for :meth:`room`."""
        origin, offset = self._origin, self._offset
        if isinstance(item, ModelToolCallDelta):
            self._offset = offset + 1
            return self._put(
                ToolCallDelta(origin, offset, call_id, item.call_id, item.name, item.arguments)
            )
        behind = False
        if item.reasoning:
            behind = self._put(ReasoningDelta(origin, offset, item.reasoning, call_id))
            offset += 1
        if item.text:
            behind = self._put(TextDelta(origin, offset, item.text, call_id))
            offset += 1
        if item.refusal:
            behind = self._put(RefusalDelta(origin, offset, item.refusal, call_id))
            offset += 1
        self._offset = offset
        return behind

    def text(self, call_id: str, text: str) -> bool:
        """Show a piece of text: :meth:`delta` for the most frequent kind of piece."""
        offset = self._offset
        self._offset = offset + 1
        return self._put(TextDelta(self._origin, offset, text, call_id))

    def partial_output(self, call_id: str, answer: PartialAnswer) -> bool:
        """Show the typed answer so far, and tell whether to wait for :meth:`room`."""
        number = self._number()
        chunk = PartialOutput(self._origin, number, call_id, answer.name, answer.json, answer.value)
        return self._put(chunk)

    async def room(self) -> None:
        """Wait until whoever reads has caught up."""
        await self._outlet.room()

    def message_discarded(self, call_id: str, reason: str) -> None:
        """Say that the pieces of a call that were shown are void."""
        if self.shows_messages:
            self._put(MessageDiscarded(self._origin, self._number(), call_id, reason))

    def message_completed(self, call_id: str, message: AssistantMessage) -> None:
        """Show a whole answer."""
        if self.shows_messages:
            self._put(MessageCompleted(self._origin, self._number(), message, call_id))

    def tool_started(self, call: ToolCall) -> None:
        """Show that a tool begins."""
        if self._tools:
            number = self._number()
            self._put(ToolStarted(self._origin, number, call.id, call.name, call.arguments))

    def tool_progress(self, call: ToolCall, content: str) -> None:
        """Show what a running tool reports."""
        if self._tools:
            self._put(ToolProgress(self._origin, self._number(), call.id, call.name, content))

    def tool_completed(self, call: ToolCall, message: ToolMessage, summary: str | None) -> None:
        """Show a tool's result."""
        if self._tools:
            number = self._number()
            self._put(ToolCompleted(self._origin, number, call.id, call.name, message, summary))

    def usage(self, usage: Usage, total: Usage) -> None:
        """Show the tokens of one more call."""
        if self._updates:
            self._put(UsageUpdate(self._origin, self._number(), usage, total))

    def cost(self, cost: CostTotals, total: CostTotals) -> None:
        """Show the cost of one more call."""
        if self._updates:
            self._put(CostUpdate(self._origin, self._number(), cost, total))

    def on_event(self, event: AgentEvent) -> None:
        """Show an event: a feed is a listener where the mode asks for it."""
        self._put(EventChunk(self._origin, self._number(), event))

    def final(self, run: AgentRun[Any, Any]) -> None:
        """Show the end of the run."""
        self._put(Final(self._origin, self._number(), run))

    def _number(self) -> int:
        offset = self._offset
        self._offset = offset + 1
        return offset
