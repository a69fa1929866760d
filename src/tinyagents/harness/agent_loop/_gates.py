"""What a call must pass before it is checked: hooks that look at the tool that will really run."""

from typing import TYPE_CHECKING

from ..errors import MiddlewareError, ToolRefusedError
from ..middleware import run_hooks
from ..tool import ToolResult
from ._call_faults import unknown_event
from ._run import CallSlot, LoopRun

if TYPE_CHECKING:
    from ..approval import ApprovalNeed

_MOST_REDIRECTS = 10
"""Hooks that give a call to one tool after another so often do not agree."""


def find_tool(run: LoopRun, slot: CallSlot) -> None:
    """Look up the tool of a call, or the one that the policy puts in the place of an unknown one."""
    policy, call = run.policy.unknown_tool, slot.call
    slot.tool = call.tool = run.tools.find(call.name)
    if slot.tool is not None or policy.action != "rewrite" or policy.tool_name is None:
        return
    slot.tool = call.tool = run.tools.find(policy.tool_name)
    if slot.tool is not None:
        unknown_event(run, slot, f"rewrite:{slot.tool.name}")
        call.name = slot.tool.name


async def ask_hooks(run: LoopRun, slot: CallSlot) -> None:
    """Let the hooks before a tool look at the call, until each has seen the tool that will run.

    Raises:
        MiddlewareError: They give the call to one tool after another without an end.
        ToolRefusedError: One refuses it, and the policy is to raise.
    """
    hooks, call = run.spec.middleware.before_tool, slot.call
    seen: list[str | None] = [None] * len(hooks)
    needs: list[list[ApprovalNeed]] = [[] for _ in hooks]
    redirects = index = 0
    while index < len(hooks):
        if seen[index] == call.name:
            index += 1
            continue
        name, call.approvals = call.name, []
        await run_hooks(hooks[index : index + 1], "before_tool", run.ctx, call)
        if call.refusal is not None:
            _refuse(run, slot, hooks[index][0], call.refusal)
            return
        if call.answered is not None:
            slot.result = call.answered
            slot.outcome = "not_started" if call.answered.is_error else "done"
            return
        call.tool = slot.tool  # what a hook puts there would not run
        seen[index], needs[index] = call.name, call.approvals
        if call.name == name:
            index += 1
            continue
        redirects, index = redirects + 1, 0
        if redirects > _MOST_REDIRECTS:
            raise MiddlewareError(
                f"the `before_tool` hooks do not agree which tool the call `{call.id}` is for: "
                f"they gave it to another one {redirects} times, at last to `{call.name}`"
            )
        find_tool(run, slot)
    # What a hook said of the call as it was before does not count any more.
    call.approvals = [need for asked in needs for need in asked] or None


def refuse_hidden(run: LoopRun, slot: CallSlot) -> None:
    """Refuse a call whose tool was hidden from the model.

    Raises:
        ToolRefusedError: It was, and the policy is to raise.
    """
    hidden = run.snapshot.hidden_tools
    if slot.tool is not None and slot.tool.name in hidden:
        _refuse(run, slot, hidden[slot.tool.name], "it is not one of the tools of this turn")


def _refuse(run: LoopRun, slot: CallSlot, by: str, reason: str) -> None:
    call = slot.call
    run.ctx.emit("tool.refused", call_id=call.id, tool_name=call.name, by=by, reason=reason)
    if run.policy.refused_tools == "fail":
        raise ToolRefusedError(
            f"`{by}` does not allow the call of `{call.name}`: {reason}",
            tool=call.name,
            call_id=call.id,
            by=by,
        )
    slot.result = ToolResult.error(f"The call of `{call.name}` was not executed: {reason}.")
