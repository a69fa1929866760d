"""Calls that need consent, and calls that are made outside: asked for, held, and decided.

Loaded by the first call of a process that needs it.
"""

import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal, TypeAlias, TypeVar

from pydantic import JsonValue

from ..approval import (
    ALL_DECISIONS,
    ApprovalNeed,
    ApprovalRequest,
    Approve,
    Decision,
    Edit,
    ExternalCallRequest,
    Reject,
    Request,
    Respond,
    arguments_hash,
    check_decision,
    parse_decision,
)
from ..errors import ApprovalError, ToolArgumentsError
from ..text import clean_json, clean_text, copied_json, dump_json
from ..tool import Tool, ToolResult
from ._run import CallSlot, LoopRun
from ._snapshot import ApprovalRule, Clearance, InterruptRequest, PendingCall

Admit: TypeAlias = Callable[[LoopRun, CallSlot], Awaitable[None]]
"""Passes a call through the hooks and checks once more, for arguments that took its own's place."""

RequestT = TypeVar("RequestT", ApprovalRequest, ExternalCallRequest)

Source: TypeAlias = Literal["answer", "approver", "rule"]

EXPIRED = "the request had lapsed when it was answered"
_CHANGED = "the call has changed since it was asked"
_PROBLEMS = {EXPIRED: "expired", _CHANGED: "changed"}
"""What events call them, which hold no text that may come from the arguments."""


async def judge(run: LoopRun, slot: CallSlot, admit: Admit) -> None:
    """Let a checked call pass, answer it in its tool's place, or hold it until it is decided."""
    assert slot.tool is not None
    if not slot.cleared and (needs := await _needs(slot, slot.tool)):
        await _approve(run, slot, needs, admit)
    else:
        _call_outside(run, slot, slot.tool)


def check_answers(run: LoopRun) -> None:
    """Check the answers that calls were given against the tools they are for.

    Raises:
        ApprovalError: One does not fit; nothing has run.
    """
    for pending in run.snapshot.pending:
        asked = pending.interrupt
        if asked is None or asked.kind == "question" or asked.id not in pending.answers:
            continue
        tool = run.tools.find(asked.tool_name or "")
        if tool is None:
            continue
        decision = parse_decision(pending.answers[asked.id])
        if problem := _misfit(tool, decision):
            raise ApprovalError(
                f"the answer to `{asked.id}`: {problem}", interrupt_id=asked.id, errors=(problem,)
            )


async def _needs(slot: CallSlot, tool: Tool) -> list[ApprovalNeed]:
    """Return what makes the call need approval; nothing where it needs none."""
    found: list[ApprovalNeed] = []
    for need in slot.call.approvals or ():
        holds = True if need.when is None else need.when()
        if await holds if inspect.isawaitable(holds) else holds:
            found.append(need)
    if not found and (tool.policy.access.approval_required or _was_asked(slot.pending)):
        found.append(ApprovalNeed())
    return found


def _was_asked(pending: PendingCall) -> bool:
    """Whether somebody was asked: what they say holds, be the reason gone in the meantime or not."""
    asked = pending.interrupt is not None and pending.interrupt.kind == "approval"
    return asked or pending.clearance is not None


async def _approve(
    run: LoopRun, slot: CallSlot, needs: Sequence[ApprovalNeed], admit: Admit
) -> None:
    """Find out whether the call is approved already, was answered, or is to be asked for."""
    pending = slot.pending
    request = _request(run, slot, needs)
    asked = pending.interrupt.approval if pending.interrupt is not None else None
    if _is_cleared(pending.clearance, request):
        assert pending.clearance is not None
        if problem := await _run_on(run, slot, pending.clearance.arguments, admit):
            # The answer that it was cleared by does not count again.
            hold(run, slot, _again(request, request), problem=problem)
    elif (rule := _rule_for(run, request)) is not None:
        record(run, slot, request, "approved", source="rule", by=rule.by)
        await _run_on(run, slot, None, admit)
    elif asked is not None and asked.id in pending.answers:
        # Whatever comes of it, an answer is for one time.
        decision = parse_decision(pending.answers.pop(asked.id))
        problem = _stale(run, asked, request, decision)
        problem = problem or await apply(run, slot, asked, decision, "answer", admit)
        if problem:
            hold(run, slot, _again(request, asked), problem=problem)
    elif all(need.approver for need in needs):
        slot.needs, slot.request, slot.held = needs, request, True
    else:
        hold(run, slot, request)


def _request(run: LoopRun, slot: CallSlot, needs: Sequence[ApprovalNeed]) -> ApprovalRequest:
    tool, arguments = slot.tool, _shown(slot)
    assert tool is not None
    seconds = min((need.expires_in for need in needs if need.expires_in), default=None)
    return ApprovalRequest(
        call_id=slot.call.id,
        tool_name=tool.name,
        arguments=arguments,
        arguments_hash=arguments_hash(arguments),
        label=tool.policy.display.label,
        detail=tool.policy.display.detail,
        reason="; ".join(need.reason for need in needs if need.reason) or None,
        allowed=tuple(
            kind
            for kind in ALL_DECISIONS
            if kind == "reject" or all(kind in need.allow for need in needs)
        ),
        may_remember=all(need.may_remember for need in needs),
        expires_at_ms=None if seconds is None else run.ctx.clock.now_ms() + int(seconds * 1000),
    )


def _shown(slot: CallSlot) -> dict[str, JsonValue]:
    """Return the arguments that the tool takes from the model, as JSON."""
    assert slot.tool is not None
    hidden = slot.tool.injected
    arguments = {
        name: clean_json(x) for name, x in slot.call.arguments.items() if name not in hidden
    }
    return {clean_text(name): value for name, value in arguments.items()}


def _is_cleared(clearance: Clearance | None, request: ApprovalRequest) -> bool:
    return clearance is not None and (clearance.tool_name, clearance.arguments_hash) == (
        request.tool_name,
        request.arguments_hash,
    )


def _rule_for(run: LoopRun, request: ApprovalRequest) -> ApprovalRule | None:
    if not request.may_remember:
        return None
    for rule in run.snapshot.approval_rules:
        same = rule.arguments_hash in (None, request.arguments_hash)
        if rule.tool_name == request.tool_name and same:
            return rule
    return None


def _stale(
    run: LoopRun, asked: ApprovalRequest, now: ApprovalRequest, decision: Decision
) -> str | None:
    """Say why an answer is not one to the call as it is now; ``None`` if it is."""
    if _differs(asked, now):
        return _CHANGED
    try:
        check_decision(now, decision)
    except ApprovalError as error:
        return error.message
    return EXPIRED if lapsed(run, asked, decision) else None


def _differs(asked: Request, now: Request) -> bool:
    # What was shown counts, and not only the hash that stood beside it.
    return (asked.tool_name, asked.arguments, asked.arguments_hash) != (
        now.tool_name,
        now.arguments,
        now.arguments_hash,
    )


def _again(request: RequestT, asked: Request) -> RequestT:
    return request.model_copy(update={"round": asked.round + 1})


def lapsed(run: LoopRun, request: ApprovalRequest, decision: Decision) -> bool:
    """Whether a decision comes too late; a rejection never does."""
    end = request.expires_at_ms
    return end is not None and decision.kind != "reject" and run.ctx.clock.now_ms() >= end


async def apply(
    run: LoopRun,
    slot: CallSlot,
    request: ApprovalRequest,
    decision: Decision,
    source: Source,
    admit: Admit,
) -> str | None:
    """Do what was decided, and return why it cannot be done where it cannot."""
    tool, pending = slot.tool, slot.pending
    assert tool is not None
    if problem := _misfit(tool, decision):
        return problem
    if isinstance(decision, Reject | Respond):
        _answer(run, slot, request, decision, source)
        return None
    edited = decision.arguments if isinstance(decision, Edit) else None
    pending.clearance = Clearance(request.tool_name, request.arguments_hash, edited)
    if isinstance(decision, Approve):
        _remember(run, request, decision)
        remembered = decision.remember
        record(run, slot, request, "approved", source=source, by=decision.by, remember=remembered)
    else:
        record(run, slot, request, "edited", source=source, by=decision.by)
    return await _run_on(run, slot, edited, admit)


def _remember(run: LoopRun, request: ApprovalRequest, decision: Approve) -> None:
    if decision.remember != "call":
        only = request.arguments_hash if decision.remember == "same_arguments" else None
        run.snapshot.approval_rules.append(ApprovalRule(request.tool_name, only, decision.by))


async def _run_on(
    run: LoopRun, slot: CallSlot, edited: dict[str, JsonValue] | None, admit: Admit
) -> str | None:
    """Let an approved call go on, with the arguments that were put in its own's place.

    Returns:
        Why it cannot, where a hook gives it to another tool for those.
    """
    pending, tool = slot.pending, slot.tool
    assert tool is not None
    if pending.interrupt is not None and pending.interrupt.kind == "approval":
        pending.interrupt = None
    slot.cleared, slot.held = True, False
    if edited is None:
        _call_outside(run, slot, tool)
        return None
    kept = {name: value for name, value in edited.items() if name not in tool.injected}
    slot.call.arguments = copied_json(kept)
    slot.note = (
        "A person changed the arguments of this call before it ran. "
        f"It ran with {dump_json(kept)}.\n"
    )
    # Hooks judge what will really run, whoever wrote it.
    await admit(run, slot)
    if slot.tool is tool:
        return None
    pending.clearance = None
    slot.result, slot.cleared = None, False
    return _CHANGED


def _call_outside(run: LoopRun, slot: CallSlot, tool: Tool) -> None:
    """Take the result of a call that is made outside, or ask for it; leave alone any other."""
    pending = slot.pending
    asked = pending.interrupt.external if pending.interrupt is not None else None
    if asked is None and not tool.is_external:
        return
    arguments = _shown(slot)
    request = ExternalCallRequest(
        call_id=slot.call.id,
        tool_name=tool.name,
        arguments=arguments,
        arguments_hash=arguments_hash(arguments),
        label=tool.policy.display.label,
        detail=tool.policy.display.detail,
        output_schema=tool.output_schema,
    )
    if asked is None or asked.id not in pending.answers:
        hold(run, slot, request)
        return
    decision = parse_decision(pending.answers.pop(asked.id))
    problem = _CHANGED if _differs(asked, request) else _misfit(tool, decision)
    if problem is None and isinstance(decision, Reject | Respond):
        _answer(run, slot, asked, decision, "answer")
        return
    problem = problem or f"`{decision.kind}` is no result"
    hold(run, slot, _again(request, asked), problem=problem)


def _misfit(tool: Tool, decision: Decision) -> str | None:
    """Say why what was decided does not fit the tool; ``None`` if it does."""
    try:
        match decision:
            case Edit(arguments=arguments):
                tool.validate(arguments)
            case Respond(is_error=False) if tool.is_external:
                value = decision.value
                if value is None and isinstance(decision.content, str):
                    value = decision.content
                tool.validate_output(value)
            case _:
                pass
    except ToolArgumentsError as error:
        return error.message
    return None


def _answer(
    run: LoopRun,
    slot: CallSlot,
    request: Request,
    decision: Reject | Respond,
    source: Source,
) -> None:
    """Give the call a result in its tool's place."""
    action, why = "rejected", None
    match decision:
        case Reject(reason=reason):
            why = reason.strip()
            slot.outcome = "not_started"
            text = f"The call of `{request.tool_name}` was not executed: a person rejected it."
            slot.result = ToolResult.error(f"{text} Their reason: {why}" if why else text)
        case Respond(content=content, value=value, is_error=is_error):
            action = "responded"
            given = content if content is None or isinstance(content, str) else list(content)
            slot.result = ToolResult(given, value=value, is_error=is_error)
    slot.pending.interrupt = None
    slot.held = False
    record(run, slot, request, action, source=source, by=decision.by, reason=why)


def hold(
    run: LoopRun,
    slot: CallSlot,
    request: Request,
    *,
    problem: str | None = None,
) -> None:
    """Let the call wait for somebody outside."""
    if problem is not None:
        request = request.model_copy(update={"problem": problem})
    pending = slot.pending
    pending.interrupt = InterruptRequest(
        request.id,
        request.model_dump(mode="json"),
        call_id=request.call_id,
        tool_name=request.tool_name,
        kind=request.kind,
    )
    pending.state = "waiting"
    slot.held = True
    record(run, slot, request, "requested", problem=problem)


def record(
    run: LoopRun,
    slot: CallSlot,
    request: Request,
    action: str,
    *,
    source: Source | None = None,
    by: str | None = None,
    remember: str | None = None,
    problem: str | None = None,
    reason: str | None = None,
) -> None:
    payload: dict[str, Any] = {
        "call_id": request.call_id,
        "tool_name": request.tool_name,
        "action": action,
        "interrupt_id": request.id,
        "arguments_hash": request.arguments_hash,
        "source": source,
        "by": by,
        "remember": remember,
        "problem": problem and _PROBLEMS.get(problem, "misfit"),
    }
    if run.policy.capture.tool_io:
        payload["arguments"] = _shown(slot)
        payload["reason"] = reason or None
    run.ctx.events.emit("tool.approval", run.ctx.origin, payload)
