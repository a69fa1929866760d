"""The grammar of events, as a check."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from ..agent_loop import AgentRun
from ..events import (
    AgentEvent,
    MiddlewareCompleted,
    MiddlewareFailed,
    MiddlewareStarted,
    ModelCancelled,
    ModelCompleted,
    ModelDelta,
    ModelFailed,
    ModelStarted,
    OutputInvalid,
    OutputRecovered,
    RetryScheduled,
    RunCompleted,
    RunFailed,
    RunInterrupted,
    RunPaused,
    RunStarted,
    SubAgentCompleted,
    SubAgentFailed,
    SubAgentStarted,
    ToolApproval,
    ToolCancelled,
    ToolCompleted,
    ToolFailed,
    ToolInterrupted,
    ToolProgress,
    ToolStarted,
)
from ._recorder import EventRecorder

_CONCURRENT_HOOKS = frozenset({"wrap_tool"})
"""Hooks that run for several calls at once, so that their events may cross."""


@dataclass(slots=True)
class _Run:
    """What is open in one run."""

    first: AgentEvent
    ended: AgentEvent | None = None
    resumable: bool = False
    models: dict[str, AgentEvent] = field(default_factory=dict[str, AgentEvent])
    """Open model calls by id."""
    known_models: set[str] = field(default_factory=set[str])
    last_answered: str | None = None
    """The model call that was completed last, until another one begins."""
    tools: dict[str, AgentEvent] = field(default_factory=dict[str, AgentEvent])
    """Open tool calls by id."""
    ended_tools: dict[str, AgentEvent] = field(default_factory=dict[str, AgentEvent])
    hooks: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Open hooks, the innermost last."""
    concurrent_hooks: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    subagents: Counter[str] = field(default_factory=Counter[str])

    def left_open(self) -> str | None:
        """Return in words what has begun and not ended."""
        for call_id, event in (*self.models.items(), *self.tools.items()):
            return f"`{event.kind}` of the call `{call_id}` (offset {event.offset})"
        for name, hook in (*self.hooks, *+self.concurrent_hooks):
            return f"`middleware.started` of `{name}`, {hook or 'no hook'}"
        for name in +self.subagents:
            return f"`subagent.started` of `{name}`"
        return None


def assert_event_grammar(
    events: "AgentRun[Any, Any] | EventRecorder | Iterable[AgentEvent]", *, complete: bool = True
) -> None:
    """Assert that events come in the order that the documentation promises.

    For each root run, whose events may be mixed with those of others:

    - Offsets rise by one. Where no ``model.delta`` events were kept they may skip, but only while a
      model call is open. Ids are ``{root run id}-evt-{offset}``.
    - Each run begins with one ``run.started`` and ends with one of ``run.completed``,
      ``run.failed``, ``run.paused`` and ``run.interrupted``. After the latter two it may be started
      again as ``resumed``; else nothing follows. A log may begin with a run that is resumed.
    - Each ``model.started`` has one ``model.completed``, ``model.failed`` or ``model.cancelled``,
      each ``tool.started`` one ``tool.completed``, ``tool.failed``, ``tool.cancelled`` or
      ``tool.interrupted``, and each ``subagent.started`` one end. A call begins once, but again
      after it was interrupted.
    - ``middleware.started`` and its end are nested like brackets, those of hooks around tools that
      run at once excepted.
    - ``tool.approval`` lies before its tool call begins, or begins again.
    - ``model.delta`` lies within its model call, ``tool.progress`` within its tool call.
    - ``retry.scheduled`` lies within its tool or model call, or after the answer of the latter and
      before the next call.
    - ``output.invalid`` and ``output.recovered`` come after the answer that they are about.
    - A run inside another one lies within that one's life and is one deeper.

    Args:
        events: A run, its events, or a recorder.
        complete: Demand that there are events and every run has ended. ``False`` is for a log that
            goes on.

    Raises:
        AssertionError: The first violation, with the event and the rule.
    """
    found = events.events if isinstance(events, AgentRun | EventRecorder) else events
    logs: dict[str, _Log] = {}
    for event in found:
        log = logs.get(event.root_run_id)
        if log is None:
            log = logs[event.root_run_id] = _Log()
        log.take(event)
    if complete:
        if not logs:
            raise AssertionError("there are no events: was the recorder given as a listener?")
        for log in logs.values():
            log.close()


class _Log:
    """The events of one root run so far."""

    def __init__(self) -> None:
        self._runs: dict[str, _Run] = {}
        self._last: AgentEvent | None = None
        self._has_deltas = False
        self._gap: tuple[AgentEvent, int] | None = None
        """The first event behind a gap, and the offset before that."""

    def take(self, event: AgentEvent) -> None:
        """Check the next event."""
        self._check_place(event)
        run = self._run_of(event)
        check = _CHECKS.get(type(event))
        if check is not None:
            check(self, run, event)
        self._last = event

    def close(self) -> None:
        """Check that nothing is left open."""
        for run_id, run in self._runs.items():
            if run.ended is None:
                raise _violation(run.first, f"the run `{run_id}` that it began has no end")

    def _check_place(self, event: AgentEvent) -> None:
        if event.id != f"{event.root_run_id}-evt-{event.offset}":
            raise _violation(event, f"its id is `{event.id}`, not the root run's id and its offset")
        last = self._last
        if last is None or event.offset == last.offset + 1:
            return
        if event.offset <= last.offset:
            raise _violation(event, f"offsets rise, and the one before is {last.offset}")
        # Only a log without the deltas may have gaps, and only where deltas can have been.
        if not any(run.models for run in self._runs.values()):
            raise _violation(
                event,
                f"events after offset {last.offset} are missing, while no model call was open",
            )
        self._gap = self._gap or (event, last.offset)
        self._check_gap()

    def _check_gap(self) -> None:
        if self._has_deltas and self._gap is not None:
            event, before = self._gap
            raise _violation(event, f"events after offset {before} are missing, and not all deltas")

    def _run_of(self, event: AgentEvent) -> _Run:
        run = self._runs.get(event.run_id)
        if isinstance(event, RunStarted):
            return self._begin(event, run)
        if run is None:
            raise _violation(event, f"the run `{event.run_id}` has not been started")
        if run.ended is not None:
            raise _violation(
                event,
                f"the run has ended with `{run.ended.kind}` at offset {run.ended.offset}, and "
                "nothing follows an end",
            )
        for name in ("parent_run_id", "depth", "thread_id", "component", "tags"):
            if getattr(event, name) != getattr(run.first, name):
                raise _violation(event, f"its `{name}` differs from that of its `run.started`")
        return run

    def _begin(self, event: RunStarted, known: _Run | None) -> _Run:
        if known is not None:
            if known.ended is None:
                raise _violation(event, "the run was started before, and has not ended")
            if not event.resumed:
                raise _violation(event, "the run was started before, and this does not resume it")
            if not known.resumable:
                raise _violation(
                    event, f"a run that ended with `{known.ended.kind}` is not resumed"
                )
            known.ended, known.resumable = None, False
            return known
        self._check_parent(event)
        run = self._runs[event.run_id] = _Run(event)
        return run

    def _check_parent(self, event: RunStarted) -> None:
        if not self._runs:
            # The first one may be inside a run that other events tell of.
            return
        if event.parent_run_id is None:
            raise _violation(event, "a run beside the root run has a parent")
        parent = self._runs.get(event.parent_run_id)
        if parent is None:
            raise _violation(event, f"its parent `{event.parent_run_id}` has not been started")
        if parent.ended is not None:
            raise _violation(event, f"its parent `{event.parent_run_id}` has ended before")
        if event.depth != parent.first.depth + 1:
            raise _violation(
                event, f"its depth is {event.depth}, inside a run of depth {parent.first.depth}"
            )

    def model_started(self, run: _Run, event: ModelStarted) -> None:
        if event.call_id in run.known_models:
            raise _violation(event, f"the model call `{event.call_id}` was started before")
        run.known_models.add(event.call_id)
        run.models[event.call_id] = event
        run.last_answered = None

    def model_ended(self, run: _Run, event: ModelCompleted | ModelFailed | ModelCancelled) -> None:
        if run.models.pop(event.call_id, None) is None:
            raise _violation(event, f"the model call `{event.call_id}` is not open")
        if isinstance(event, ModelCompleted):
            run.last_answered = event.call_id

    def model_delta(self, run: _Run, event: ModelDelta) -> None:
        self._has_deltas = True
        self._check_gap()
        if event.call_id not in run.models:
            raise _violation(event, f"the model call `{event.call_id}` is not open")

    def retry(self, run: _Run, event: RetryScheduled) -> None:
        if event.call_id in run.models or event.call_id in run.tools:
            return
        if event.call_id != run.last_answered:
            raise _violation(
                event,
                f"the model call `{event.call_id}` is neither open nor the one answered last",
            )

    def output(self, run: _Run, event: OutputInvalid | OutputRecovered) -> None:
        if event.call_id in run.models:
            raise _violation(event, f"the model call `{event.call_id}` has not ended yet")

    def tool_started(self, run: _Run, event: ToolStarted) -> None:
        if event.call_id in run.tools:
            raise _violation(event, f"the tool call `{event.call_id}` is open already")
        _check_not_over(run, event)
        run.tools[event.call_id] = event

    def tool_ended(
        self, run: _Run, event: ToolCompleted | ToolFailed | ToolCancelled | ToolInterrupted
    ) -> None:
        started = run.tools.pop(event.call_id, None)
        if not isinstance(started, ToolStarted):
            raise _violation(event, f"the tool call `{event.call_id}` is not open")
        if started.tool_name != event.tool_name:
            raise _violation(
                event, f"the call `{event.call_id}` was started as one of `{started.tool_name}`"
            )
        run.ended_tools[event.call_id] = event

    def tool_approval(self, run: _Run, event: ToolApproval) -> None:
        if event.call_id in run.tools:
            raise _violation(event, f"the tool call `{event.call_id}` has begun already")
        _check_not_over(run, event)

    def tool_progress(self, run: _Run, event: ToolProgress) -> None:
        if event.call_id not in run.tools:
            raise _violation(event, f"the tool call `{event.call_id}` is not open")

    def hook_started(self, run: _Run, event: MiddlewareStarted) -> None:
        key = (event.name, event.hook)
        if event.hook in _CONCURRENT_HOOKS:
            run.concurrent_hooks[key] += 1
        else:
            run.hooks.append(key)

    def hook_ended(self, run: _Run, event: MiddlewareCompleted | MiddlewareFailed) -> None:
        key = (event.name, event.hook)
        if event.hook in _CONCURRENT_HOOKS:
            if not run.concurrent_hooks[key]:
                raise _violation(event, f"no hook of `{event.name}` is open there")
            run.concurrent_hooks[key] -= 1
            return
        if not run.hooks or run.hooks[-1] != key:
            inner = f"`{run.hooks[-1][0]}`, {run.hooks[-1][1]}" if run.hooks else "none"
            raise _violation(event, f"hooks end innermost first, and the innermost is {inner}")
        run.hooks.pop()

    def subagent_started(self, run: _Run, event: SubAgentStarted) -> None:
        run.subagents[event.name] += 1

    def subagent_ended(self, run: _Run, event: SubAgentCompleted | SubAgentFailed) -> None:
        if not run.subagents[event.name]:
            raise _violation(event, f"no sub-agent `{event.name}` has begun")
        run.subagents[event.name] -= 1

    def run_ended(self, run: _Run, event: AgentEvent) -> None:
        if (left := run.left_open()) is not None:
            raise _violation(event, f"the run ends while there is no end to {left}")
        for run_id, other in self._runs.items():
            if other.ended is None and other.first.parent_run_id == event.run_id:
                raise _violation(event, f"the run ends while the run `{run_id}` inside it goes on")
        run.ended = event
        run.resumable = isinstance(event, RunPaused | RunInterrupted)


def _check_not_over(run: _Run, event: ToolStarted | ToolApproval) -> None:
    before = run.ended_tools.get(event.call_id)
    if before is not None and not isinstance(before, ToolInterrupted):
        raise _violation(
            event,
            f"the tool call `{event.call_id}` has ended with `{before.kind}` at offset "
            f"{before.offset}",
        )


def _violation(event: AgentEvent, problem: str) -> AssertionError:
    return AssertionError(
        f"event {event.offset}, `{event.kind}` of the run `{event.run_id}`, breaks the grammar: "
        f"{problem}"
    )


_CHECKS: dict[type[AgentEvent], Callable[[_Log, _Run, Any], None]] = {
    ModelStarted: _Log.model_started,
    ModelCompleted: _Log.model_ended,
    ModelFailed: _Log.model_ended,
    ModelCancelled: _Log.model_ended,
    ModelDelta: _Log.model_delta,
    OutputInvalid: _Log.output,
    OutputRecovered: _Log.output,
    RetryScheduled: _Log.retry,
    ToolStarted: _Log.tool_started,
    ToolCompleted: _Log.tool_ended,
    ToolFailed: _Log.tool_ended,
    ToolCancelled: _Log.tool_ended,
    ToolInterrupted: _Log.tool_ended,
    ToolApproval: _Log.tool_approval,
    ToolProgress: _Log.tool_progress,
    MiddlewareStarted: _Log.hook_started,
    MiddlewareCompleted: _Log.hook_ended,
    MiddlewareFailed: _Log.hook_ended,
    SubAgentStarted: _Log.subagent_started,
    SubAgentCompleted: _Log.subagent_ended,
    SubAgentFailed: _Log.subagent_ended,
    RunCompleted: _Log.run_ended,
    RunFailed: _Log.run_ended,
    RunPaused: _Log.run_ended,
    RunInterrupted: _Log.run_ended,
}
