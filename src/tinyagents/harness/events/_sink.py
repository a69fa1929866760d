"""Where a run's events go: kept in order, shown to listeners, built only when somebody looks."""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, overload

from ..clock import Clock
from ..text import clean_text

if TYPE_CHECKING:
    from ..message import Message
    from ._kinds import AgentEvent

_log = logging.getLogger("tinyagents.events")


class EventListener(Protocol):
    """Sees every event of a run, in order, in the task that emits it. Keep it quick.

    What it raises is logged and goes no further.
    """

    def on_event(self, event: "AgentEvent", /) -> None:
        """Take one event."""
        ...


ListenerLike: TypeAlias = "EventListener | Callable[[AgentEvent], None]"
"""A listener, or a function that serves as one."""


@dataclass(slots=True, kw_only=True)
class EventOrigin:
    """What all events and chunks of one run have in common. Never changed once it is made."""

    run_id: str
    root_run_id: str
    parent_run_id: str | None = None
    thread_id: str | None = None
    component: str = "agent"
    depth: int = 0
    tags: tuple[str, ...] = ()
    cause: str | None = None
    """The id of the event that led to this run, as a tool call does for a sub-agent."""
    redact: Callable[[str], str] | None = field(default=None, repr=False, compare=False)
    """Hides what must not be seen in the texts of the run's events."""

    def __getstate__(self) -> dict[str, Any]:
        # A chunk can be sent to another process; what hides its run's events cannot, nor need it.
        return {each.name: getattr(self, each.name) for each in fields(self) if each.compare}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.redact = None
        for name, value in state.items():
            setattr(self, name, value)


_Record: TypeAlias = tuple[int, int, str, EventOrigin, dict[str, Any]]
_Listeners: TypeAlias = "tuple[tuple[ListenerLike, Callable[[AgentEvent], None]], ...]"


class EventStamp(NamedTuple):
    """Which event, and when, without building it."""

    id: str
    kind: str
    time_ms: int
    component: str


class EventSink:
    """Numbers, keeps and hands on the events of a run and of the runs inside it.

    An event is kept as the bare facts and becomes an object when it is read, or at once while there
    are listeners. ``model.delta`` events go to listeners only and are not kept.

    Used in one thread, that of the run's event loop: what other threads emit is posted there.
    """

    __slots__ = (
        "_built",
        "_clock",
        "_delivering",
        "_id",
        "_listeners",
        "_next",
        "_queue",
        "_records",
    )

    def __init__(
        self,
        run_id: str,
        clock: Clock,
        listeners: Sequence[ListenerLike] = (),
        *,
        next_offset: int = 0,
    ) -> None:
        self._id = run_id
        self._clock = clock
        # Replaced and never changed, so that an event goes to those that were there when it happened.
        self._listeners: _Listeners = ()
        self._records: list[_Record] = []
        self._built: list[AgentEvent] = []
        self._queue: list[tuple[AgentEvent, _Listeners]] = []
        self._delivering = False
        self._next = next_offset
        for listener in listeners:
            self.add(listener)

    @property
    def listened(self) -> bool:
        """Whether anybody sees the events as they happen."""
        return bool(self._listeners)

    @property
    def next_offset(self) -> int:
        """The offset that the next event will have."""
        return self._next

    def __len__(self) -> int:
        return len(self._records)

    def add(self, listener: ListenerLike) -> None:
        """Show the listener every event from now on."""
        call: Any = getattr(listener, "on_event", listener)
        self._listeners = (*self._listeners, (listener, call))

    def remove(self, listener: ListenerLike) -> bool:
        """Show the listener nothing more; tell whether it was one."""
        call: Any = getattr(listener, "on_event", listener)
        for position, (known, known_call) in enumerate(self._listeners):
            # A bound method is another object each time that it is looked up.
            if known is listener or known_call == call:
                self._listeners = self._listeners[:position] + self._listeners[position + 1 :]
                return True
        return False

    def emit(self, kind: str, origin: EventOrigin, payload: dict[str, Any]) -> int:
        """Record one event and return its time in milliseconds since the epoch.

        ``payload`` holds the fields of its kind and is not copied.
        """
        offset = self._next
        now = self._clock.now_ms()
        record = (offset, now, kind, origin, payload)
        self._next = offset + 1
        self._records.append(record)
        if self._listeners:
            self._deliver(self._build(record))
        return now

    def emit_transient(self, kind: str, origin: EventOrigin, payload: dict[str, Any]) -> None:
        """Show an event to the listeners without keeping it; call it only while ``listened``."""
        record = (self._next, self._clock.now_ms(), kind, origin, payload)
        self._next += 1
        self._deliver(self._build(record))

    def first_and_last(self, run_id: str) -> tuple[EventStamp, EventStamp] | None:
        """Return a run's first and last event of those that were kept; ``None`` for none."""
        first = next((record for record in self._records if record[3].run_id == run_id), None)
        if first is None:
            return None
        last = next(record for record in reversed(self._records) if record[3].run_id == run_id)
        return self._stamp(first), self._stamp(last)

    def _stamp(self, record: _Record) -> EventStamp:
        offset, time_ms, kind, origin, _ = record
        return EventStamp(f"{self._id}-evt-{offset}", kind, time_ms, origin.component)

    def events(self) -> "list[AgentEvent]":
        """Return the events that were kept, in order."""
        for record in self._records[len(self._built) :]:
            self._built.append(self._build(record))
        return list(self._built)

    def _build(self, record: _Record) -> "AgentEvent":
        from ._kinds import event_class, redacted_payload

        offset, time_ms, kind, origin, payload = record
        # Errors quote what files and servers say, which need not be text that can be stored.
        fields: dict[str, Any] = {
            name: clean_text(value) if value.__class__ is str else value
            for name, value in payload.items()
        }
        made = event_class(kind)
        if origin.redact is not None:
            fields = redacted_payload(made, fields, origin.redact)
        return made(
            id=f"{self._id}-evt-{offset}",
            offset=offset,
            time_ms=time_ms,
            run_id=origin.run_id,
            root_run_id=origin.root_run_id,
            parent_run_id=origin.parent_run_id,
            thread_id=origin.thread_id,
            component=origin.component,
            depth=origin.depth,
            tags=origin.tags,
            cause=origin.cause,
            **fields,
        )

    def _deliver(self, event: "AgentEvent") -> None:
        # A listener may cause further events; they wait their turn, so that all see one order.
        self._queue.append((event, self._listeners))
        if self._delivering:
            return
        self._delivering = True
        try:
            while self._queue:
                current, listeners = self._queue.pop(0)
                for entry in listeners:
                    if self._listeners is not listeners and entry not in self._listeners:
                        continue  # removed in the meantime
                    try:
                        entry[1](current)
                    except Exception:  # noqa: BLE001 - a listener never breaks a run
                        _log.exception("an event listener failed on `%s`", current.kind)
        finally:
            self._delivering = False


class EventLog(Sequence["AgentEvent"]):
    """The events of a run and of the runs inside it, built when they are first read.

    A run inside another one shares that one's sink; its log leaves out what is not its own.
    """

    __slots__ = ("_events", "_nested", "_read_to", "_sink", "messages", "run_id")

    def __init__(
        self,
        sink: EventSink,
        *,
        run_id: str = "",
        messages: "Sequence[Message]" = (),
        nested: bool = False,
    ) -> None:
        self.run_id: str = run_id
        """The run that the log was made for."""
        self.messages: Sequence[Message] = messages
        """That run's transcript, which has what payload-free events leave out."""
        self._sink = sink
        self._nested = nested
        self._events: list[AgentEvent] = []
        self._read_to = 0

    def first_and_last(self) -> tuple[EventStamp, EventStamp] | None:
        """Return the first and the last event of the run itself; ``None`` for none."""
        return self._sink.first_and_last(self.run_id)

    def _read(self) -> "list[AgentEvent]":
        if self._read_to != len(self._sink):
            events = self._sink.events()
            self._read_to = len(events)
            self._events = self._own(events) if self._nested else events
        return self._events

    def _own(self, events: "list[AgentEvent]") -> "list[AgentEvent]":
        family = {self.run_id}
        own: list[AgentEvent] = []
        for event in events:
            if event.parent_run_id in family:
                family.add(event.run_id)
            if event.run_id in family:
                own.append(event)
        return own

    @overload
    def __getitem__(self, index: int) -> "AgentEvent": ...
    @overload
    def __getitem__(self, index: slice) -> "Sequence[AgentEvent]": ...
    def __getitem__(self, index: int | slice) -> "AgentEvent | Sequence[AgentEvent]":
        return self._read()[index]

    def __iter__(self) -> "Iterator[AgentEvent]":
        return iter(self._read())

    def __len__(self) -> int:
        return len(self._read()) if self._nested else len(self._sink)

    def __repr__(self) -> str:
        return f"EventLog({[event.kind for event in self._read()]})"
