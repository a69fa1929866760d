"""What is wrong with a call as the model made it, told to the model and to whoever follows the run."""

from typing import Any

from pydantic import JsonValue

from ..errors import ToolArgumentsError, ToolNotFoundError
from ..text import clean_json, dump_json
from ..tool import BoundCall, Tool, ToolResult, normalize_arguments
from ._run import CallSlot, LoopRun


def take_unknown(run: LoopRun, slot: CallSlot) -> None:
    """Do what the policy says of a call whose tool there is not.

    Raises:
        ToolNotFoundError: The policy is to raise.
    """
    policy, call = run.policy.unknown_tool, slot.call
    known = _names_offered(run)
    names = ", ".join(f"`{name}`" for name in known) or "none"
    message = f"There is no tool `{call.name}`. The tools are: {names}."
    unknown_event(run, slot, "fail" if policy.action == "fail" else "tool_error")
    if policy.action == "fail":
        raise ToolNotFoundError(
            f"the model called the tool `{call.name}`, which does not exist; there are {names}",
            name=call.name,
            available=known,
        )
    sent = "" if not call.arguments else f" It was called with {dump_json(call.arguments)}."
    slot.result = ToolResult.error(message + sent)


def _names_offered(run: LoopRun) -> tuple[str, ...]:
    # Those that are hidden are not for the model to know.
    tools = (name for name in run.tools.names if name not in run.snapshot.hidden_tools)
    if run.output is None or not run.snapshot.structured_by_tool:
        return tuple(tools)
    return (*tools, *run.output.tool_names)


def unknown_event(run: LoopRun, slot: CallSlot, recovery: str) -> None:
    """Record that the model called a tool that does not exist, and what follows from it."""
    call = slot.call
    payload: dict[str, Any] = {"call_id": call.id, "requested_name": call.name}
    if run.policy.capture.tool_io:
        payload["arguments"] = clean_json(call.arguments)
    payload["recovery"] = recovery
    run.ctx.events.emit("tool.unknown", run.ctx.origin, payload)


def normalized(run: LoopRun, slot: CallSlot, tool: Tool) -> BoundCall | None:
    """Return the call with arguments that were put right, where the policy allows and it helps."""
    if run.policy.invalid_args != "normalize_then_return_tool_error":
        return None
    repaired = normalize_arguments(slot.call.arguments, tool)
    if repaired is None:
        return None
    try:
        bound = tool.validate(repaired)
    except ToolArgumentsError:
        return None
    slot.call.arguments = repaired
    return bound


def invalid_event(
    run: LoopRun, slot: CallSlot, arguments: JsonValue, error: str, recovery: str
) -> None:
    """Record that the arguments of a call do not fit, and what follows from it."""
    payload: dict[str, Any] = {
        "call_id": slot.call.id,
        "tool_name": slot.call.name,
        "error": error,
        "recovery": recovery,
    }
    if run.policy.capture.tool_io:
        payload["arguments"] = clean_json(arguments)
    run.ctx.events.emit("tool.invalid_args", run.ctx.origin, payload)
