"""Taking up a run from its snapshot."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any, TypeAlias, TypeGuard, get_args

from pydantic import JsonValue, ValidationError

from ..agent_loop import InterruptRequest, PendingCall, Phase, RunSnapshot
from ..context import RunConfig
from ..errors import ApprovalError, InvalidRequestError, ResumeError
from ..message import AssistantMessage, Message, ToolCallBlock, repair_messages
from ..text import clean_json

SnapshotLike: TypeAlias = RunSnapshot | str | bytes | Mapping[str, Any]
"""A snapshot, or what it was stored as: JSON, or what a database has decoded that to."""

_AFTER_CALLS = ("compact", "prepare", "call_model", "structured")
_AT_THE_END = ("completed", "stopped", "interrupted", "paused")


def copied(snapshot: RunSnapshot) -> RunSnapshot:
    """Return a snapshot that can be changed without changing the given one.

    Raises:
        ResumeError: It is of another version, or its parts do not fit together.
    """
    snapshot = _copy(_loaded(snapshot))
    _check(snapshot)
    return snapshot


def copied_end(snapshot: RunSnapshot) -> RunSnapshot:
    """Return a copy of the snapshot of a run that has ended and does not go on."""
    return _copy(snapshot)


def _loaded(stored: SnapshotLike) -> RunSnapshot:
    try:
        if isinstance(stored, str | bytes):
            return RunSnapshot.model_validate_json(stored)
        return RunSnapshot.model_validate(dict(stored) if isinstance(stored, Mapping) else stored)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise ResumeError(
            f"the `{type(stored).__name__}` is no snapshot: {where and f'`{where}`: '}"
            f"{first['msg']}; pass the run's `snapshot`, or what it was stored as"
        ) from error


def _copy(snapshot: RunSnapshot) -> RunSnapshot:
    return replace(
        snapshot,
        messages=list(snapshot.messages),
        pending=[
            replace(call, answers=dict(call.answers), nested=list(call.nested))
            for call in snapshot.pending
        ],
        interrupts=list(snapshot.interrupts),
        answers=dict(snapshot.answers),
        approval_rules=list(snapshot.approval_rules),
        hidden_tools=dict(snapshot.hidden_tools),
        notes=deepcopy(snapshot.notes),
        counters=replace(snapshot.counters),
        repeats=replace(snapshot.repeats),
        usage=replace(snapshot.usage),
    )


def continued(stored: SnapshotLike, answers: Any, messages: list[Message]) -> RunSnapshot:
    """Return the snapshot of a run that goes on, with answers and new messages put in their place.

    Raises:
        ResumeError: It is no snapshot or one that contradicts itself, the run cannot go on, an
            answer belongs to no open question or is no JSON, or there are new messages while calls
            wait.
    """
    snapshot = _copy(_loaded(stored))
    given = _by_id(snapshot, answers)
    waiting = [call for call in snapshot.pending if call.result is None]
    for call in waiting:
        for request in call.requests:
            if request.id in given:
                call.answers[request.id] = given[request.id]
    if snapshot.status == "interrupted":
        _reopen(snapshot, given, waiting)
    elif snapshot.status == "paused" and snapshot.resume_phase is not None:
        snapshot.phase = snapshot.resume_phase
    elif snapshot.phase == "done":
        if not messages and not _can_ask_again(snapshot):
            raise ResumeError(
                f"the run has ended as `{snapshot.status}`: pass `input=` to say something new"
            )
        snapshot.phase = "compact"
    if messages:
        if unanswered := _unanswered(snapshot):
            ids = ", ".join(f"`{call_id}`" for call_id in unanswered)
            raise ResumeError(
                f"tool calls wait for an answer or to be run ({ids}): resume without new input first"
            )
        snapshot.messages = repair_messages([*snapshot.messages, *messages]).messages
        if snapshot.phase != "start":
            snapshot.phase = "compact"
    _check(snapshot)
    if snapshot.phase != "finish":
        _reset(snapshot)
    return snapshot


def _check(snapshot: RunSnapshot) -> None:
    if problem := _contradiction(snapshot):
        raise ResumeError(f"the snapshot contradicts itself: {problem}")


def _contradiction(snapshot: RunSnapshot) -> str | None:
    """Say why the next phase cannot begin with what the snapshot holds; ``None`` if it can."""
    phase, pending = snapshot.phase, snapshot.pending
    if phase not in get_args(Phase) or phase == "done":
        return f"there is no phase `{phase}` to go on with"
    if not snapshot.messages:
        return "there are no messages"
    last, made = snapshot.messages[-1].role, [call.id for call in _last_calls(snapshot)]
    taken = [call.result.tool_call_id if call.result else call.call_id for call in pending]
    if pending and not made == taken == [call.call_id for call in pending]:
        return f"`pending` holds the calls {taken}, the last message makes {made}"
    if phase in ("decide", "structured") and last != "assistant":
        return f"phase `{phase}` needs an answer of the model, the last message is of the {last}"
    if phase == "call_tools" and not made:
        return "phase `call_tools` needs tool calls, the last message makes none"
    if (phase == "start" and pending) or (made and phase in _AFTER_CALLS):
        return f"the calls {made} have no result in phase `{phase}`"
    if phase == "finish" and snapshot.status not in _AT_THE_END:
        return f"phase `finish` cannot end a run that is `{snapshot.status}`"
    return None


def _last_calls(snapshot: RunSnapshot) -> list[ToolCallBlock]:
    """Return the calls of the last message that the application must answer."""
    last = snapshot.messages[-1] if snapshot.messages else None
    return last.open_calls if isinstance(last, AssistantMessage) else []


def _unanswered(snapshot: RunSnapshot) -> list[str]:
    """Return the ids of the calls that have no result yet, those not begun included."""
    if snapshot.phase in ("decide", "call_tools") and not snapshot.pending:
        return [call.id for call in _last_calls(snapshot)]
    return [call.call_id for call in snapshot.pending if call.result is None]


def _by_id(snapshot: RunSnapshot, answers: Any) -> dict[str, JsonValue]:
    if answers is None:
        return {}
    ids = [request.id for request in snapshot.interrupts]
    listed = ", ".join(f"`{name}`" for name in ids) or "none"
    if not _is_mapping(answers):
        if len(ids) == 1:
            return {ids[0]: _as_answer(snapshot.interrupts[0], answers)}
        raise ResumeError(
            f"the one answer could belong to any of {len(ids)} open questions: "
            f"pass a mapping from their ids ({listed})"
        )
    given = {str(name): answer for name, answer in answers.items()}
    if unknown := [name for name in given if name not in ids]:
        names = ", ".join(f"`{name}`" for name in unknown)
        raise ResumeError(f"no question is open under {names}; the open ones are {listed}")
    asked = {request.id: request for request in snapshot.interrupts}
    return {name: _as_answer(asked[name], answer) for name, answer in given.items()}


def _as_answer(request: InterruptRequest, answer: Any) -> JsonValue:
    """Return the answer as JSON, of a call that waits for a decision only as one that it takes."""
    wanted = request.approval or request.external
    if wanted is None:
        return _as_json(request.id, answer)
    from ..approval import check_decision, parse_decision

    try:
        decision = parse_decision(answer)
        check_decision(wanted, decision)
    except ApprovalError as error:
        raise ApprovalError(
            f"the answer to `{request.id}`: {error}", interrupt_id=request.id, errors=error.errors
        ) from error
    return _as_json(request.id, decision.model_dump(mode="json"))


def _as_json(name: object, answer: Any) -> JsonValue:
    try:
        return clean_json(answer)
    except (TypeError, ValueError) as exc:
        raise ResumeError(f"the answer to `{name}` is no JSON: {exc}") from exc


def check_config(config: object) -> None:
    """Refuse what is no configuration of a run."""
    if config is not None and not isinstance(config, RunConfig):
        raise InvalidRequestError(f"`config` is a `{type(config).__name__}`, not a `RunConfig`")


def reconfigured(snapshot: RunSnapshot, config: RunConfig | None) -> RunSnapshot:
    """Return the snapshot with what a call sets anew: limits, tags, metadata, configurable values.

    Raises:
        ResumeError: The call wants to give the run another identity.
        InvalidRequestError: ``config`` is none.
    """
    check_config(config)
    if config is None:
        return snapshot
    own = snapshot.config
    for name in ("run_id", "parent_run_id", "root_run_id", "thread_id"):
        wanted = getattr(config, name)
        if wanted and wanted != getattr(own, name):
            raise ResumeError(
                f"a run that goes on keeps its `{name}` ({getattr(own, name)!r}, not {wanted!r})"
            )
    if config.workspace not in (None, own.workspace):
        raise ResumeError("a run that goes on keeps its workspace: leave out `config.workspace`")
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
    of_calls = {request.id for call in waiting for request in call.requests}
    snapshot.answers.update({name: each for name, each in given.items() if name not in of_calls})
    snapshot.phase = "call_tools" if waiting else snapshot.resume_phase or "prepare"


def _reset(snapshot: RunSnapshot) -> None:
    snapshot.status = "running"
    snapshot.reason = None
    snapshot.interrupts = []
    snapshot.resume_phase = None
    snapshot.final_text = None
    snapshot.tools_off = False
