"""Approvers: who decides about a call in place, while the other calls of the turn run."""

import inspect
import logging
from collections.abc import Sequence

import anyio

from ..approval import (
    ApprovalNeed,
    ApprovalRequest,
    Approve,
    Decision,
    Edit,
    Reject,
    Respond,
    arguments_hash,
    check_decision,
    parse_decision,
)
from ..concurrency import is_being_cancelled
from ..errors import ApprovalError, ApproverError
from ..tool import ToolResult
from ._approvals import EXPIRED, Admit, apply, hold, lapsed, record
from ._run import CallSlot, LoopRun

_log = logging.getLogger("tinyagents.agent_loop")


async def consult(run: LoopRun, slot: CallSlot) -> None:
    """Ask the approvers of a held call in turn; what comes of it is put into the slot."""
    assert slot.request is not None
    try:
        slot.decision = await _decided(run, slot.needs, slot.request)
    except Exception as failure:  # noqa: BLE001 - an approver that fails has not approved
        _deny(run, slot, failure)
    except anyio.get_cancelled_exc_class() as made:
        if is_being_cancelled():
            raise
        lost = RuntimeError("something that it waited for was cancelled")
        lost.__cause__ = made
        _deny(run, slot, lost)


async def conclude(run: LoopRun, slot: CallSlot, admit: Admit) -> None:
    """Do what the approvers of a held call have decided; what they leave open is asked outside."""
    request, decision = slot.request, slot.decision
    assert request is not None
    slot.needs = ()
    if slot.result is not None:
        return
    if decision is None:
        hold(run, slot, request)
    elif lapsed(run, request, decision):
        hold(run, slot, request, problem=EXPIRED)
    elif problem := await apply(run, slot, request, decision, "approver", admit):
        _deny(run, slot, ApprovalError(problem))


async def _decided(
    run: LoopRun, needs: Sequence[ApprovalNeed], request: ApprovalRequest
) -> Decision | None:
    """Ask each approver, until one does not approve; an edit is shown to those after it."""
    approved: Decision = Approve()
    for need in needs:
        assert need.approver is not None
        answer: object = need.approver(run.ctx, request)
        answer = await answer if inspect.isawaitable(answer) else answer
        if answer is None:
            return None
        decision = parse_decision(answer)
        check_decision(request, decision)
        if isinstance(decision, Reject | Respond):
            return decision
        if isinstance(decision, Edit):
            shown = {
                "arguments": decision.arguments,
                "arguments_hash": arguments_hash(decision.arguments),
            }
            request = request.model_copy(update=shown)
        if not isinstance(approved, Edit) or isinstance(decision, Edit):
            approved = decision
    return approved


def _deny(run: LoopRun, slot: CallSlot, failure: Exception) -> None:
    """Answer a call that nobody has decided about, because who should have failed to."""
    request, tool = slot.request, slot.tool
    assert request is not None
    assert tool is not None
    _log.warning(
        "the approver of the tool `%s` failed", tool.name, exc_info=run.ctx.loggable(failure)
    )
    text = f"`{tool.name}` was not executed: whether it may run could not be found out"
    error = ApproverError(
        f"{text} ({type(failure).__name__}: {failure})", tool=tool.name, call_id=slot.call.id
    )
    error.__cause__ = failure
    slot.result = ToolResult.error(text)
    slot.outcome = "not_started"
    slot.held = False
    slot.failure = error
    if run.policy.tool_errors == "fail":
        slot.error = error
    record(run, slot, request, "failed", source="approver")
