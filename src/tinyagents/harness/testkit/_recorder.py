"""A listener that keeps what it sees."""

from collections.abc import Iterable, Sequence
from typing import TypeVar, overload

from ..events import AgentEvent
from ..text import dump_json

EventT = TypeVar("EventT", bound=AgentEvent)


class EventRecorder:
    """Keeps all events that it is shown, ``model.delta`` too: ``AgentHarness(listeners=[recorder])``.

    One recorder may listen to several runs, and to runs in several threads.

    Args:
        events: Events to begin with, such as ``run.events``.
    """

    __slots__ = ("events",)

    def __init__(self, events: Iterable[AgentEvent] = ()) -> None:
        self.events: list[AgentEvent] = list(events)
        """What was seen, in order."""

    def on_event(self, event: AgentEvent, /) -> None:
        """Keep the event."""
        self.events.append(event)

    @property
    def kinds(self) -> list[str]:
        """The dotted kinds of the events, in order."""
        return [event.kind for event in self.events]

    @overload
    def of(self, kind: type[EventT], /) -> list[EventT]: ...
    @overload
    def of(self, kind: str, /) -> list[AgentEvent]: ...
    def of(self, kind: str | type[AgentEvent], /) -> Sequence[AgentEvent]:
        """Return the events of a kind, given as its dotted name or its class."""
        if isinstance(kind, str):
            return [event for event in self.events if event.kind == kind]
        return [event for event in self.events if isinstance(event, kind)]

    def clear(self) -> None:
        """Forget what was seen."""
        self.events.clear()

    def to_jsonl(self) -> str:
        """Return the events as JSON, one a line. The same events give the same text."""
        lines = [dump_json(event.model_dump(mode="json")) for event in self.events]
        return "".join(f"{line}\n" for line in lines)

    def __len__(self) -> int:
        return len(self.events)

    def __repr__(self) -> str:
        return f"EventRecorder({self.kinds})"
