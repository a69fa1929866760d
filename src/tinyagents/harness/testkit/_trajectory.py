"""Assertions on what a run did, in the order in which it did it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self, TypeAlias

from pydantic import JsonValue
from pydantic_core import PydanticSerializationError, to_jsonable_python

from ..agent_loop import AgentRun
from ..events import (
    AgentEvent,
    EventLog,
    ModelStarted,
    RouteSelected,
    RunCompleted,
    RunFailed,
    RunInterrupted,
    RunPaused,
    ToolCompleted,
    ToolFailed,
    ToolStarted,
)
from ..message import Message
from ._recorder import EventRecorder

_ENDS = (RunCompleted, RunFailed, RunPaused, RunInterrupted)
_STEPS = (ModelStarted, ToolStarted, *_ENDS)
_Arguments: TypeAlias = dict[tuple[str, str], Mapping[str, JsonValue]]
"""The arguments of tool calls, by run and call id."""


def assert_trajectory(
    source: "AgentRun[Any, Any] | EventRecorder | Iterable[AgentEvent]",
    *,
    exact: bool = False,
    run_id: str | None = None,
    nested: bool = False,
) -> "Trajectory":
    """Begin a chain of assertions on a run; see :class:`Trajectory`.

    Args:
        source: A run, its events, or a recorder.
        exact: Let the chain leave out no model call, no tool call and no end of the run.
        run_id: Which run, where there are several; by default the outermost one.
        nested: Take the runs inside it as part of it.
    """
    return Trajectory.from_events(source, exact=exact, run_id=run_id, nested=nested)


class Trajectory:
    """What a run did, and a place in it that the assertions of a chain move forward.

    Each of ``model_called``, ``tool_called``, ``completed`` and so on looks for its step after the
    one before and moves there; what lies between may be left out, unless the trajectory is
    ``exact``. The assertions named ``assert_…`` look at the whole run and move nothing. All of
    them raise ``AssertionError`` with the list of events.

    Arguments of tool calls come from events that captured them, or else from the run's transcript,
    which a run and its ``run.events`` bring along.
    """

    def __init__(
        self,
        events: Sequence[AgentEvent],
        arguments: _Arguments | None = None,
        *,
        exact: bool = False,
    ) -> None:
        self.events: tuple[AgentEvent, ...] = tuple(events)
        """The events of the run, in order."""
        self._exact = exact
        self._position = -1
        self._arguments = arguments or {}

    @classmethod
    def from_events(
        cls,
        source: "AgentRun[Any, Any] | EventRecorder | Iterable[AgentEvent]",
        *,
        exact: bool = False,
        run_id: str | None = None,
        nested: bool = False,
    ) -> Self:
        """Return the trajectory of a run; the arguments are those of :func:`assert_trajectory`."""
        own = ""
        messages: Sequence[Message] = ()
        events: Sequence[AgentEvent]
        match source:
            case AgentRun():
                events, own, messages = source.events, source.run_id, source.messages
            case EventLog():
                events, own, messages = source, source.run_id, source.messages
            case EventRecorder():
                events = source.events
            case _:
                events = tuple(source)
        chosen = _of_run(events, run_id or own, nested)
        return cls(chosen, _arguments(chosen, own, messages), exact=exact)

    # Questions.

    def tool_was_called(self, name: str) -> bool:
        """Whether the tool was called at all."""
        return self.tool_call_count(name) > 0

    def tool_call_count(self, name: str | None = None) -> int:
        """Return how many calls of the tool, or of all tools, began."""
        started = [event for event in self.events if isinstance(event, ToolStarted)]
        return sum(1 for event in started if name in (None, event.tool_name))

    def model_call_count(self, name: str | None = None) -> int:
        """Return how often the model of that registered name, or any model, was called."""
        started = [event for event in self.events if isinstance(event, ModelStarted)]
        return sum(1 for event in started if name in (None, event.model))

    # Steps of a chain.

    def model_called(self, name: str | None = None) -> Self:
        """Assert that a model call follows, of the model registered under ``name`` if given."""

        def fits(event: AgentEvent) -> bool:
            return isinstance(event, ModelStarted) and name in (None, event.model)

        return self._step(fits, f"a call of the model `{name}`" if name else "a model call")

    def tool_called(
        self, name: str, expected: Mapping[str, Any] | None = None, /, **arguments: Any
    ) -> Self:
        """Assert that a call of the tool follows, with these among its arguments.

        Args:
            name: The tool's name.
            expected: Arguments whose names are no Python names, or are ``self``.
            arguments: Arguments by name, compared as JSON; ``unittest.mock.ANY`` equals anything.
        """
        wanted = {**(expected or {}), **arguments}

        def fits(event: AgentEvent) -> bool:
            if not isinstance(event, ToolStarted) or event.tool_name != name:
                return False
            return not wanted or self._has_arguments(event, wanted)

        return self._step(fits, _described_call(name, wanted))

    def tool_failed(self, name: str, error: str | None = None) -> Self:
        """Assert that a call of the tool has failed, or told the model of an error.

        That is the call that the chain stands on if it is one of this tool, else the next one that
        has failed.

        Args:
            name: The tool's name.
            error: A part of what the event says about the failure.
        """

        def fits(event: AgentEvent) -> bool:
            if not isinstance(event, ToolStarted) or event.tool_name != name:
                return False
            found = self._failure(event)
            return found is not None and (error is None or error in found)

        current = self.events[self._position] if self._position >= 0 else None
        what = f"a failed call of the tool `{name}`"
        if error is not None:
            what += f" with {error!r} in its error"
        if isinstance(current, ToolStarted) and current.tool_name == name:
            if not fits(current):
                found = self._failure(current)
                raise self._error(
                    f"expected {what} in event {current.offset}, "
                    + ("which did not fail" if found is None else f"which failed with {found!r}")
                )
            return self
        return self._step(fits, what)

    def completed(self) -> Self:
        """Assert that the run then completed."""
        return self._end("the run to complete", RunCompleted, lambda e: e.status == "completed")

    def stopped(self, reason: str | None = None) -> Self:
        """Assert that the run was then stopped with what there was, for this reason if given."""
        return self._end(
            f"the run to be stopped{f' because of `{reason}`' if reason else ''}",
            RunCompleted,
            lambda e: e.status == "stopped" and reason in (None, e.reason),
        )

    def failed(self, kind: str | type[BaseException] | None = None) -> Self:
        """Assert that the run then failed.

        Args:
            kind: The ``kind`` of a library error such as ``limit_exceeded``, the name of another
                exception's class, or the class itself.
        """
        if isinstance(kind, type):
            kind = str(getattr(kind, "kind", kind.__name__))
        return self._end(
            f"the run to fail{f' with `{kind}`' if kind else ''}",
            RunFailed,
            lambda e: kind in (None, e.error_kind),
        )

    def cancelled(self) -> Self:
        """Assert that the run was then cancelled."""
        return self._end("the run to be cancelled", RunFailed, lambda e: e.reason == "cancelled")

    def interrupted(self) -> Self:
        """Assert that the run was then interrupted, to wait for answers."""
        return self._end("the run to be interrupted", RunInterrupted, lambda _: True)

    def paused(self) -> Self:
        """Assert that the run was then paused."""
        return self._end("the run to be paused", RunPaused, lambda _: True)

    # Assertions on the whole run.

    def assert_order(self, labels: Iterable[str]) -> Self:
        """Assert that the labels appear in this order; anything may lie between.

        A label is the kind of an event, the tool of a ``tool.started`` or ``tool.completed``, or
        the route of a ``route.selected``.
        """
        events = iter(self.events)
        for label in labels:
            if not any(label in _labels(event) for event in events):
                raise self._error(f"expected `{label}` at its place in the order, found it not")
        return self

    def assert_tool_called(
        self, name: str, expected: Mapping[str, Any] | None = None, /, **arguments: Any
    ) -> Self:
        """Assert that the tool was called, with these among its arguments."""
        wanted = {**(expected or {}), **arguments}
        for event in self.events:
            if not isinstance(event, ToolStarted) or event.tool_name != name:
                continue
            if not wanted or self._has_arguments(event, wanted):
                return self
        raise self._error(f"expected {_described_call(name, wanted)}, but there is none")

    def assert_tool_not_called(self, name: str) -> Self:
        """Assert that the tool was never called."""
        if count := self.tool_call_count(name):
            raise self._error(f"expected no call of the tool `{name}`, but there are {count}")
        return self

    def assert_tool_called_times(self, name: str, times: int) -> Self:
        """Assert how often the tool was called."""
        if (count := self.tool_call_count(name)) != times:
            raise self._error(f"expected {times} call(s) of the tool `{name}`, there are {count}")
        return self

    def assert_model_called_times(self, times: int, name: str | None = None) -> Self:
        """Assert how often models were called, or the one registered under ``name``."""
        if (count := self.model_call_count(name)) != times:
            whom = f"the model `{name}`" if name else "models"
            raise self._error(f"expected {times} call(s) of {whom}, there are {count}")
        return self

    def assert_completed(self) -> Self:
        """Assert that the run ended as completed."""
        last = self._last_end()
        if not isinstance(last, RunCompleted) or last.status != "completed":
            raise self._error(f"expected the run to complete, but {_ending(last)}")
        return self

    def assert_failed(self) -> Self:
        """Assert that the run ended by raising."""
        last = self._last_end()
        if not isinstance(last, RunFailed):
            raise self._error(f"expected the run to fail, but {_ending(last)}")
        return self

    def _last_end(self) -> AgentEvent | None:
        return next((e for e in reversed(self.events) if isinstance(e, _ENDS)), None)

    def _step(self, fits: Callable[[AgentEvent], bool], what: str) -> Self:
        for position in range(self._position + 1, len(self.events)):
            event = self.events[position]
            if fits(event):
                self._position = position
                return self
            if self._exact and isinstance(event, _STEPS):
                raise self._error(f"expected {what} next, but found `{self._shown(event)}`")
        after = "" if self._position < 0 else f" after event {self.events[self._position].offset}"
        raise self._error(f"expected {what}{after}, but there is none")

    def _end(self, what: str, kind: type[Any], fits: Callable[[Any], bool]) -> Self:
        for position in range(self._position + 1, len(self.events)):
            event = self.events[position]
            if isinstance(event, kind) and fits(event):
                self._position = position
                return self
            if self._exact and isinstance(event, _STEPS):
                raise self._error(f"expected {what} next, but found `{self._shown(event)}`")
        raise self._error(f"expected {what}, but {_ending(self._last_end())}")

    def _has_arguments(self, event: ToolStarted, wanted: Mapping[str, Any]) -> bool:
        found = self._arguments.get((event.run_id, event.call_id))
        if found is None:
            raise self._error(
                f"the arguments of the call of `{event.tool_name}` in event {event.offset} are not "
                "known: assert on the run or its `run.events`, or let the policy capture tool_io"
            )
        return all(name in found and _equal(value, found[name]) for name, value in wanted.items())

    def _failure(self, started: ToolStarted) -> str | None:
        """Return what the call failed with; ``None`` when it did not."""
        for event in self.events:
            if not isinstance(event, ToolFailed | ToolCompleted) or event.error is None:
                continue
            if (event.run_id, event.call_id) == (started.run_id, started.call_id):
                return event.error
        return None

    def _error(self, problem: str) -> AssertionError:
        lines = [problem, ""]
        for position, event in enumerate(self.events):
            marker = ">" if position == self._position else " "
            lines.append(f"  {marker} {event.offset:>4} {self._shown(event)}")
        if not self.events:
            lines.append("    (no events)")
        return AssertionError("\n".join(lines))

    def _shown(self, event: AgentEvent) -> str:
        match event:
            case ModelStarted():
                return f"{event.kind} {event.model}"
            case ToolStarted():
                found = self._arguments.get((event.run_id, event.call_id))
                if found is None:
                    return f"{event.kind} {event.tool_name}(…)"
                listed = ", ".join(f"{name}={value!r}" for name, value in found.items())
                return f"{event.kind} {event.tool_name}({listed})"
            case ToolCompleted() | ToolFailed():
                problem = f": {event.error}" if event.error is not None else ""
                return f"{event.kind} {event.tool_name}{problem}"
            case RunCompleted() if event.status == "stopped":
                return f"{event.kind} stopped: {event.reason}"
            case RunFailed():
                return f"{event.kind} {event.error_kind}: {event.error}"
            case _:
                return event.kind


def _of_run(events: Sequence[AgentEvent], run_id: str, nested: bool) -> Sequence[AgentEvent]:
    if not run_id:
        known = {event.run_id for event in events}
        outermost = dict.fromkeys(
            event.run_id for event in events if event.parent_run_id not in known
        )
        if len(outermost) > 1:
            listed = ", ".join(f"`{name}`" for name in outermost)
            raise AssertionError(f"the events are of several runs: pass run_id=, one of {listed}")
        if not outermost:
            return events
        (run_id,) = outermost
    inside = {run_id}
    chosen: list[AgentEvent] = []
    for event in events:
        if nested and event.parent_run_id in inside:
            inside.add(event.run_id)
        if event.run_id in inside:
            chosen.append(event)
    return chosen


def _arguments(
    events: Iterable[AgentEvent], run_id: str, messages: Iterable[Message]
) -> _Arguments:
    """Return what is known of the arguments of tool calls.

    Args:
        events: May have captured what a tool was given, after every hook.
        run_id: The run that the messages are of.
        messages: Have what the model wrote.
    """
    found: _Arguments = {
        (run_id, call.id): call.arguments
        for message in messages
        if message.role == "assistant"
        for call in message.tool_calls
    }
    for event in events:
        if isinstance(event, ToolCompleted) and isinstance(event.input, dict):
            found[event.run_id, event.call_id] = event.input
    return found


def _equal(expected: Any, found: JsonValue) -> bool:
    if expected == found:
        # Python holds 1 for True; JSON does not.
        return isinstance(expected, bool) == isinstance(found, bool) or not (
            isinstance(expected, int | float) and isinstance(found, int | float)
        )
    try:
        as_json: object = to_jsonable_python(expected)
    except PydanticSerializationError:
        return False
    return as_json == found


def _labels(event: AgentEvent) -> tuple[str, ...]:
    match event:
        case ToolStarted() | ToolCompleted():
            return event.kind, event.tool_name
        case RouteSelected():
            return event.kind, event.route
        case _:
            return (event.kind,)


def _described_call(name: str, wanted: Mapping[str, Any]) -> str:
    if not wanted:
        return f"a call of the tool `{name}`"
    listed = ", ".join(f"{key}={value!r}" for key, value in wanted.items())
    return f"a call of the tool `{name}` with {listed}"


def _ending(event: AgentEvent | None) -> str:
    match event:
        case None:
            return "it has not ended"
        case RunCompleted() if event.status == "stopped":
            return f"it was stopped: {event.reason}"
        case RunCompleted():
            return "it completed"
        case RunFailed():
            return f"it failed with {event.error_kind}: {event.error}"
        case RunPaused():
            return "it was paused"
        case RunInterrupted():
            return "it was interrupted"
        case _:
            return f"it ended with {event.kind}"
