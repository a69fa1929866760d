"""Where events go: order, listeners that come, go and fail, and logs that are built late."""

import logging

import pytest

from tinyagents import AgentHarness
from tinyagents.harness.clock import SystemClock
from tinyagents.harness.events import AgentEvent, EventLog, EventOrigin, EventSink
from tinyagents.testkit import ScriptedModel, assert_event_grammar, say

ORIGIN = EventOrigin(run_id="r", root_run_id="r")


def emit(sink: EventSink, name: str) -> None:
    sink.emit("custom", ORIGIN, {"name": name})


def name_of(event: AgentEvent) -> str:
    return str(getattr(event, "name", ""))


@pytest.fixture
def sink() -> EventSink:
    return EventSink("r", SystemClock())


class Listener:
    """Keeps names; equal to every other of its kind."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def on_event(self, event: AgentEvent) -> None:
        self.names.append(name_of(event))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Listener)

    __hash__ = None  # type: ignore[assignment]


def test_offsets_rise_by_one_and_make_the_ids(sink: EventSink) -> None:
    for name in "abc":
        emit(sink, name)
    assert [(e.offset, e.id) for e in sink.events()] == [(n, f"r-evt-{n}") for n in range(3)]
    assert (len(sink), sink.next_offset) == (3, 3)


def test_a_sink_goes_on_where_another_one_ended() -> None:
    sink = EventSink("r", SystemClock(), next_offset=7)
    emit(sink, "a")
    assert sink.events()[0].id == "r-evt-7"


def test_listeners_are_told_apart_by_identity(sink: EventSink) -> None:
    one, other = Listener(), Listener()
    sink.add(one)
    sink.add(other)
    emit(sink, "a")
    assert sink.remove(other)
    assert not sink.remove(other)
    emit(sink, "b")
    assert (one.names, other.names) == (["a", "b"], ["a"])


def test_a_bound_method_can_be_removed(sink: EventSink) -> None:
    seen: list[AgentEvent] = []
    sink.add(seen.append)
    assert sink.remove(seen.append)
    assert not sink.listened
    emit(sink, "a")
    assert seen == []


def test_a_listener_that_raises_is_logged_and_the_others_are_told(
    sink: EventSink, caplog: pytest.LogCaptureFixture
) -> None:
    listener = Listener()

    def bad(event: AgentEvent) -> None:
        raise ValueError("mine")

    sink.add(bad)
    sink.add(listener)
    with caplog.at_level(logging.ERROR, "tinyagents.events"):
        emit(sink, "a")
        emit(sink, "b")
    assert listener.names == ["a", "b"]
    assert caplog.text.count("an event listener failed") == 2


def test_what_a_listener_emits_is_delivered_after_the_event_at_hand(sink: EventSink) -> None:
    first, last = Listener(), Listener()

    def echo(event: AgentEvent) -> None:
        if name_of(event) == "a":
            emit(sink, "echo 1")
            emit(sink, "echo 2")

    for listener in (first, echo, last):
        sink.add(listener)
    emit(sink, "a")
    emit(sink, "b")
    assert first.names == last.names == ["a", "echo 1", "echo 2", "b"]
    assert [e.offset for e in sink.events()] == [0, 1, 2, 3]


def test_a_listener_that_is_removed_while_events_are_delivered_sees_no_more(
    sink: EventSink,
) -> None:
    listener = Listener()

    def remover(event: AgentEvent) -> None:
        sink.remove(listener)

    sink.add(remover)
    sink.add(listener)
    emit(sink, "a")
    assert listener.names == []


def test_a_listener_that_is_added_while_events_are_delivered_sees_the_next_ones(
    sink: EventSink,
) -> None:
    late = Listener()

    def adder(event: AgentEvent) -> None:
        if name_of(event) == "a":
            emit(sink, "before")
            sink.add(late)
            emit(sink, "after")

    sink.add(adder)
    emit(sink, "a")
    assert late.names == ["after"]


def test_transient_events_take_an_offset_and_are_not_kept(sink: EventSink) -> None:
    listener = Listener()
    sink.add(listener)
    sink.emit_transient("custom", ORIGIN, {"name": "gone"})
    emit(sink, "kept")
    assert listener.names == ["gone", "kept"]
    assert [(name_of(e), e.offset) for e in sink.events()] == [("kept", 1)]


def test_an_event_that_nobody_reads_is_not_built(sink: EventSink) -> None:
    # A kind that does not exist is noticed only when the event is built.
    sink.emit("no.such", ORIGIN, {})
    log = EventLog(sink)
    assert len(log) == 1
    with pytest.raises(LookupError):
        log[0]


def test_a_log_is_a_sequence_and_builds_each_event_once(sink: EventSink) -> None:
    log = EventLog(sink, run_id="r")
    emit(sink, "a")
    emit(sink, "b")
    assert [name_of(event) for event in log] == ["a", "b"]
    assert log[0] is log[-2] is sink.events()[0]
    assert [name_of(event) for event in log[1:]] == ["b"]
    emit(sink, "c")
    assert len(log) == 3
    assert name_of(log[-1]) == "c"
    assert "custom" in repr(log)
    assert log[0] in log


def test_the_first_and_last_event_of_a_run_are_found(sink: EventSink) -> None:
    assert sink.first_and_last("r") is None
    emit(sink, "a")
    sink.emit("custom", EventOrigin(run_id="child", root_run_id="r"), {"name": "b"})
    found = sink.first_and_last("r")
    assert found is not None
    assert (found[0].id, found[1].id) == ("r-evt-0", "r-evt-0")


async def test_listeners_that_fail_never_break_a_run() -> None:
    def bad(event: AgentEvent) -> None:
        raise RuntimeError("listener")

    agent = AgentHarness(model=ScriptedModel([say("fine")]), listeners=[bad])
    run = await agent.stream(None, "hi").result()
    assert run.text == "fine"
    assert_event_grammar(run.events)
