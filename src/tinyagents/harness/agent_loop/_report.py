"""Telling what a run is doing, from what it keeps anyway."""

from ..events import EventStamp, HarnessRunStatus
from ._snapshot import Phase, RunSnapshot


def run_status(
    snapshot: RunSnapshot,
    stamps: tuple[EventStamp, EventStamp] | None,
    *,
    model_call: str | None = None,
    tool_calls: tuple[str, ...] = (),
) -> HarnessRunStatus:
    """Return the status of a run.

    Args:
        snapshot: The run's state.
        stamps: Its first and last event; ``None`` before there is one.
        model_call: The id of the model call under way.
        tool_calls: The ids of the tool calls under way.
    """
    config, counters, status = snapshot.config, snapshot.counters, snapshot.status
    resolved = snapshot.resolved_model
    first, last = stamps if stamps is not None else (None, None)
    ended = status in ("completed", "stopped", "failed", "cancelled") and snapshot.phase == "done"
    return HarnessRunStatus(
        run_id=config.run_id,
        root_run_id=config.root_run_id or config.run_id,
        parent_run_id=config.parent_run_id,
        thread_id=config.thread_id,
        component=first.component if first is not None else "agent",
        status="pending" if first is None and status == "running" else status,
        phase=_next_phase(snapshot),
        model_calls=counters.model_calls,
        tool_calls=counters.tool_calls,
        active_model_call=model_call,
        active_tool_calls=tool_calls,
        resolved_model=None if resolved is None else resolved.model_dump(),
        last_event_id=last.id if last is not None else None,
        usage=snapshot.usage.usage,
        cost=snapshot.cost,
        started_at_ms=first.time_ms if first is not None else None,
        updated_at_ms=last.time_ms if last is not None else None,
        ended_at_ms=last.time_ms if ended and last is not None else None,
        error=snapshot.reason if status in ("failed", "cancelled") else None,
        metadata=config.metadata,
    )


def _next_phase(snapshot: RunSnapshot) -> Phase:
    if snapshot.status not in ("interrupted", "paused"):
        return snapshot.phase
    if any(call.result is None for call in snapshot.pending):
        return "call_tools"
    return snapshot.resume_phase or snapshot.phase
