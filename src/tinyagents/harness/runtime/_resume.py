"""Taking up a run from its snapshot."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeGuard

from ..agent_loop import SNAPSHOT_VERSION, PendingCall, RunSnapshot
from ..context import RunConfig
from ..errors import ResumeError
from ..message import Message


def copied(snapshot: RunSnapshot) -> RunSnapshot:
    """Return a snapshot that can be changed without changing the given one."""
    if snapshot.version != SNAPSHOT_VERSION:
        raise ResumeError(
            f"the snapshot has version {snapshot.version}; this tinyagents reads "
            f"version {SNAPSHOT_VERSION}"
        )
    return replace(
        snapshot,
        messages=list(snapshot.messages),
        pending=[replace(call, answers=dict(call.answers)) for call in snapshot.pending],
        interrupts=list(snapshot.interrupts),
        answers=dict(snapshot.answers),
        counters=replace(snapshot.counters),
        repeats=replace(snapshot.repeats),
        usage=replace(snapshot.usage),
    )


def continued(snapshot: RunSnapshot, answers: Any, messages: list[Message]) -> RunSnapshot:
    """Return the snapshot of a run that goes on, with answers and new messages put in their place.

    Raises:
        ResumeError: The run cannot go on, an answer belongs to no open question, or there are new
            messages while calls wait.
    """
    snapshot = copied(snapshot)
    given = _by_id(snapshot, answers)
    waiting = [call for call in snapshot.pending if call.result is None]
    for call in waiting:
        if call.interrupt is not None and call.interrupt.id in given:
            call.answers[call.interrupt.id] = given[call.interrupt.id]
    if snapshot.status == "interrupted":
        _reopen(snapshot, given, waiting)
    elif snapshot.status == "paused" and snapshot.resume_phase is not None:
        snapshot.phase = snapshot.resume_phase
    elif snapshot.phase == "done":
        if not messages and not _can_ask_again(snapshot):
            raise ResumeError(
                f"the run has ended as `{snapshot.status}`: pass `input=` to say something new"
            )
        snapshot.phase = "prepare"
    if messages:
        if waiting:
            ids = ", ".join(f"`{call.call_id}`" for call in waiting)
            raise ResumeError(
                f"tool calls wait for an answer ({ids}): answer them before new input"
            )
        snapshot.messages.extend(messages)
    _reset(snapshot)
    return snapshot


def _by_id(snapshot: RunSnapshot, answers: Any) -> dict[str, Any]:
    if answers is None:
        return {}
    ids = [request.id for request in snapshot.interrupts]
    listed = ", ".join(f"`{name}`" for name in ids) or "none"
    if not _is_mapping(answers):
        if len(ids) == 1:
            return {ids[0]: answers}
        raise ResumeError(
            f"the one answer could belong to any of {len(ids)} open questions: "
            f"pass a mapping from their ids ({listed})"
        )
    given = {str(name): answer for name, answer in answers.items()}
    if unknown := [name for name in given if name not in ids]:
        names = ", ".join(f"`{name}`" for name in unknown)
        raise ResumeError(f"no question is open under {names}; the open ones are {listed}")
    return given


def reconfigured(snapshot: RunSnapshot, config: RunConfig | None) -> RunSnapshot:
    """Return the snapshot with what a call sets anew: limits, tags, metadata, configurable values.

    Raises:
        ResumeError: The call wants to give the run another identity.
    """
    if config is None:
        return snapshot
    own = snapshot.config
    for name in ("run_id", "parent_run_id", "root_run_id", "thread_id"):
        wanted = getattr(config, name)
        if wanted and wanted != getattr(own, name):
            raise ResumeError(
                f"a run that goes on keeps its `{name}` ({getattr(own, name)!r}, not {wanted!r})"
            )
    changed = own.model_copy(
        update={
            "limits": config.limits or own.limits,
            "tags": tuple(dict.fromkeys((*own.tags, *config.tags))),
            "metadata": {**own.metadata, **config.metadata},
            "configurable": {**own.configurable, **config.configurable},
        }
    )
    return replace(snapshot, config=changed)


def _can_ask_again(snapshot: RunSnapshot) -> bool:
    """Whether a run that broke off can put the same question to the model once more."""
    broken_off = snapshot.status in ("failed", "cancelled")
    return broken_off and bool(snapshot.messages) and snapshot.messages[-1].role != "assistant"


def _is_mapping(answers: Any) -> TypeGuard[Mapping[Any, Any]]:
    return isinstance(answers, Mapping)


def _reopen(snapshot: RunSnapshot, given: Mapping[str, Any], waiting: list[PendingCall]) -> None:
    if not given:
        ids = ", ".join(f"`{request.id}`" for request in snapshot.interrupts)
        raise ResumeError(f"the run waits for answers: pass `answers={{id: …}}` for {ids}")
    if waiting:
        snapshot.phase = "call_tools"
        return
    snapshot.answers.update(given)
    snapshot.phase = snapshot.resume_phase or "prepare"


def _reset(snapshot: RunSnapshot) -> None:
    snapshot.status = "running"
    snapshot.reason = None
    snapshot.interrupts = []
    snapshot.resume_phase = None
    snapshot.final_text = None
    snapshot.tools_off = False
