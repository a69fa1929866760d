"""The tool calls of one turn: admitted in order, run together, and folded back in order."""

import logging
from functools import partial
from typing import Any

import anyio

from ..clock import milliseconds
from ..concurrency import DeadlineExpired, is_being_cancelled, run_together
from ..errors import (
    ToolArgumentsError,
    ToolFailedError,
    ToolTimeoutError,
)
from ..message import AssistantMessage, TextBlock, ToolMessage, plain_tool_message
from ..middleware import ToolCall, ToolDelta, around, run_hooks
from ..text import clean_json, copied_json, error_text
from ..tool import (
    InterruptSignal,
    Tool,
    ToolContext,
    ToolError,
    ToolResult,
)
from ._call_faults import invalid_event, normalized, take_unknown
from ._gates import ask_hooks, find_tool, refuse_hidden
from ._run import CallSlot, LoopRun, unfinished_result
from ._snapshot import InterruptRequest, PendingCall

_log = logging.getLogger("tinyagents.agent_loop")


def open_turn(run: LoopRun) -> None:
    """Take up the calls of the last answer that have no result yet."""
    run.snapshot.pending = [PendingCall(call.id) for call in run.calls]


def last_answer(run: LoopRun) -> AssistantMessage:
    """Return the assistant message that the turn is about."""
    message = run.snapshot.messages[-1]
    assert message.role == "assistant"
    return message


async def run_calls(run: LoopRun) -> None:
    """Run the turn's calls that have not run, and put every result into its pending call.

    Raises:
        TinyAgentsError: What the policy raises for; the other calls' results are kept all the same.
    """
    slots = run.slots = []
    ready: list[CallSlot] = []
    held: list[CallSlot] = []
    for pending, block in zip(run.snapshot.pending, run.calls, strict=True):
        if pending.result is not None or _still_waits(pending):
            continue
        slot = CallSlot(pending, block)
        slots.append(slot)
        await _admit(run, slot)
        if slot.held:
            held.append(slot)
        elif slot.result is None:
            ready.append(slot)
    if held:
        await _run_beside_approvers(run, ready, held)
    else:
        await _run_groups(run, ready)
    await _fold(run)


def hold_back(run: LoopRun, admitted: int, why: str) -> None:
    """Answer the calls beyond the first ``admitted`` that have no result: they are not executed."""
    names = {call.id: call.name for call in run.calls}
    for pending in fresh_calls(run)[admitted:]:
        pending.result = unfinished_result(pending.call_id, names[pending.call_id], pending, why)
        pending.state = "done"


def fresh_calls(run: LoopRun) -> list[PendingCall]:
    """Return the turn's calls that have neither run nor begun to."""
    pending = run.snapshot.pending
    return [call for call in pending if call.result is None and call.state == "not_started"]


def close_turn(run: LoopRun) -> None:
    """Move the results of the turn's calls into the transcript, in call order."""
    snapshot = run.snapshot
    snapshot.messages.extend(run.pending_results())
    snapshot.pending = []
    run.slots = []
    run.calls = []


def settle(run: LoopRun, why: str) -> None:
    """End a turn that was broken off: every call gets a result that says what happened to it.

    Results that were there already are kept; nothing is awaited.
    """
    snapshot, ctx = run.snapshot, run.ctx
    if not snapshot.pending:
        if not run.calls:
            return
        open_turn(run)
    slots = {slot.pending.call_id: slot for slot in run.slots}
    names = {call.id: call.name for call in run.calls}
    for pending in snapshot.pending:
        slot = slots.get(pending.call_id)
        if pending.result is None and slot is not None and slot.result is not None:
            pending.result = _message_of(run, slot, slot.result)
            pending.state = "done"
            _end_event(run, slot, slot.result)
        if pending.result is None:
            pending.result = unfinished_result(
                pending.call_id, names.get(pending.call_id), pending, why
            )
            if slot is not None and slot.begun:
                slot.begun = False
                ctx.events.emit("tool.cancelled", ctx.origin, _span(run, slot))
            pending.state = "done"
    close_turn(run)


def _still_waits(pending: PendingCall) -> bool:
    if pending.interrupt is None and not pending.nested:
        return False
    return not any(request.id in pending.answers for request in pending.requests)


async def _admit(run: LoopRun, slot: CallSlot) -> None:
    """Find and check what the call needs; where something is wrong it gets its result at once."""
    ctx, hooks, call, block = run.ctx, run.spec.middleware, slot.call, slot.block
    if ctx.cancellation.cancelled:
        ctx.cancellation.raise_if_cancelled()
    find_tool(run, slot)
    if hooks.before_tool or hooks.wrap_tool:
        # What hooks change is theirs; the transcript keeps what the model said.
        call.arguments = copied_json(call.arguments)
    if hooks.before_tool:
        await ask_hooks(run, slot)
    if run.snapshot.hidden_tools and slot.result is None:
        refuse_hidden(run, slot)
    if slot.result is not None:
        return
    if slot.tool is None:
        take_unknown(run, slot)
        return
    if block.invalid is not None and call.arguments == block.arguments:
        reason = block.invalid.reason
        invalid_event(run, slot, block.invalid.raw, reason, "tool_error")
        slot.result = ToolResult.error(
            f"The call of `{slot.tool.name}` was not executed: {reason}. "
            "Call it again with a JSON object of its arguments."
        )
        return
    _bind(run, slot, slot.tool)
    settings, timeout = run.policy.tool_timeout_settings, slot.tool.policy.runtime.timeout
    slot.deadline = settings.inherited if timeout == "inherit" else settings.resolve(timeout)
    waited = slot.pending.state == "waiting"
    if call.approvals is not None or waited or slot.tool.is_gated:
        from ._approvals import judge

        if slot.result is None:
            await judge(run, slot, _admit)


def _bind(run: LoopRun, slot: CallSlot, tool: Tool) -> None:
    """Check the call's arguments, as the policy says; what does not fit is told to the model."""
    call = slot.call
    given = call.arguments
    try:
        bound = tool.validate(given)
    except ToolArgumentsError as error:
        found = normalized(run, slot, tool)
        recovery = "normalized" if found is not None else "tool_error"
        if found is None and run.policy.invalid_args == "fail":
            recovery = "fail"
        invalid_event(run, slot, given, "; ".join(error.errors), recovery)
        if found is None:
            if recovery == "fail":
                raise
            slot.result = ToolResult.error(error.message)
            return
        bound = found
    slot.bound = bound
    if run.spec.middleware.wrap_tool:
        slot.checked = copied_json(call.arguments)
    if bound.dropped:
        run.ctx.emit(
            "tool.injected_dropped", call_id=call.id, tool_name=tool.name, names=bound.dropped
        )


def _groups(slots: list[CallSlot]) -> list[list[CallSlot]]:
    """Split the calls so that a tool which asks to run alone does, in call order."""
    if len(slots) == 1:
        return [slots]
    groups: list[list[CallSlot]] = []
    shared = False
    for slot in slots:
        alone = slot.tool is not None and slot.tool.exclusive
        if alone or not shared:
            groups.append([])
        groups[-1].append(slot)
        shared = not alone
    return groups


async def _run_groups(run: LoopRun, slots: list[CallSlot]) -> None:
    for group in _groups(slots):
        await _run_group(run, group)


async def _run_beside_approvers(run: LoopRun, ready: list[CallSlot], held: list[CallSlot]) -> None:
    """Run calls while others are decided about, and then those that were approved."""
    from ._approvers import conclude, consult

    undecided = [slot for slot in held if slot.needs]
    asking = [partial(consult, run, slot) for slot in undecided]
    await run_together([partial(_run_groups, run, ready), *asking])
    for slot in undecided:
        await conclude(run, slot, _admit)
    approved = [slot for slot in undecided if slot.result is None and not slot.held]
    await _run_groups(run, approved)


async def _run_group(run: LoopRun, group: list[CallSlot]) -> None:
    limit = run.limits.max_concurrency
    together = limit is None or limit >= len(group)
    if together:
        # All begin at once: the order of these events is then the order of the calls on any loop.
        for slot in group:
            _begin(run, slot)
    if len(group) == 1:
        await _run_one(run, group[0])
    else:
        await run_together([partial(_run_one, run, slot) for slot in group], limit=limit)


def _begin(run: LoopRun, slot: CallSlot) -> None:
    ctx, call = run.ctx, slot.call
    slot.begun = True
    if slot.pending.interrupt is None and not slot.pending.nested:
        run.snapshot.counters.tool_calls += 1
    slot.pending.interrupt = None
    slot.pending.state = "running"
    slot.started = ctx.clock.monotonic()
    slot.started_ms = ctx.events.emit(
        "tool.started", ctx.origin, {"call_id": call.id, "tool_name": call.name}
    )
    if run.feed is not None:
        run.feed.tool_started(call)


async def _run_one(run: LoopRun, slot: CallSlot) -> None:
    """Run one call; whatever comes of it is put into the slot, only a cancellation passes."""
    if not slot.begun:
        _begin(run, slot)
    call, tool, policy = slot.call, slot.tool, run.policy
    assert tool is not None
    context = ToolContext(
        run.ctx,
        call_id=call.id,
        tool_name=tool.name,
        answers=slot.pending.answers,
        report=partial(_progress, run, slot),
        nested=slot.pending.nested,
    )
    hooks = run.spec.middleware.wrap_tool
    try:
        if hooks:
            innermost = partial(_call_tool, slot, context, call.name)
            chain = around("wrap_tool", hooks, run.ctx, innermost)
            slot.result = _checked_result(await chain(call))
            slot.failure = None
        else:
            assert slot.bound is not None
            slot.result = await tool.execute(slot.bound, context, timeout=slot.deadline)
    except InterruptSignal as signal:
        if signal.interrupt_id:
            slot.pending.interrupt = InterruptRequest(
                signal.interrupt_id, run.hide(signal.payload), call_id=call.id, tool_name=tool.name
            )
        slot.pending.state = "waiting"
    except ToolError as told:
        slot.failure = None
        slot.result = ToolResult.error(error_text(told) or f"`{tool.name}` failed")
    except DeadlineExpired:
        slot.failure = None
        seconds = slot.deadline or 0.0
        slot.outcome = "interrupted"
        text = (
            f"`{tool.name}` did not end within {seconds * 1000:.0f} ms and was given up; "
            "it may have had effects"
        )
        slot.result = ToolResult.error(text)
        if policy.tool_timeouts == "fail":
            slot.error = ToolTimeoutError(text, tool=tool.name, call_id=call.id, seconds=seconds)
    except Exception as failure:  # noqa: BLE001 - one call never takes its siblings with it
        _take_failure(run, slot, tool, failure)
    except anyio.get_cancelled_exc_class() as made:
        if is_being_cancelled():
            raise
        lost = RuntimeError("something that it waited for was cancelled")
        lost.__cause__ = made
        slot.failure = lost
        _take_failure(run, slot, tool, lost)
    slot.ended = run.ctx.clock.monotonic()


async def _call_tool(
    slot: CallSlot, context: ToolContext[Any], name: str, call: ToolCall
) -> ToolResult:
    """Call the tool for the hooks around it, which may have changed the call."""
    tool, bound = slot.tool, slot.bound
    assert tool is not None
    assert bound is not None
    if call.name != name:
        changed, call.name = call.name, name
        raise TypeError(
            f"a `wrap_tool` hook changed the tool of a call, `{name}`, to `{changed}`: "
            "that is for `before_tool`"
        )
    try:
        if call.arguments != slot.checked:
            bound = tool.validate(call.arguments)
        return await tool.execute(bound, context, timeout=slot.deadline)
    except Exception as failure:
        slot.failure = failure
        raise


def _checked_result(result: object) -> ToolResult:
    if not isinstance(result, ToolResult):
        raise TypeError(
            f"a `wrap_tool` hook returned a `{type(result).__name__}`, and not a `ToolResult`"
        )
    return result


def _take_failure(run: LoopRun, slot: CallSlot, tool: Tool, failure: Exception) -> None:
    """Make a result of an unexpected exception, and an error of the run where one is due."""
    shown = failure if run.redaction is None else run.redaction.error(failure)
    _log.warning("the tool `%s` failed", tool.name, exc_info=shown)
    text = f"`{tool.name}` failed: {describe(shown)}"
    slot.result = ToolResult.error(text)
    if run.spec.middleware.wrap_tool and slot.failure is not failure:
        # It came out of a hook: no policy for tools covers that.
        slot.error = failure
        return
    slot.failure = failure
    if run.policy.tool_errors == "fail":
        slot.error = ToolFailedError(text, tool=tool.name, call_id=slot.call.id)
        slot.error.__cause__ = shown


def describe(error: BaseException) -> str:
    """Return the exception's type and message in one line, without its traceback."""
    said = error_text(error)
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def _progress(run: LoopRun, slot: CallSlot, message: str) -> None:
    # A thread that was abandoned at its deadline may still report; nobody is told.
    if not slot.begun or slot.result is not None:
        return
    call = slot.call
    hooks = run.spec.middleware.on_tool_delta
    if hooks:
        delta = ToolDelta(call.id, call.name, message)
        try:
            for _, hook in hooks:
                hook(run.ctx, delta)
        except Exception as failure:  # noqa: BLE001 - it is the run's, not the tool's
            slot.error = slot.error or failure
        message = delta.content
    shown = message if run.policy.capture.tool_io else None
    run.ctx.emit(
        "tool.progress",
        call_id=call.id,
        tool_name=call.name,
        characters=len(message),
        message=shown,
    )
    if run.feed is not None:
        run.feed.tool_progress(call, message)


async def _fold(run: LoopRun) -> None:
    """Take the results in call order: hooks, events, and what the model is told."""
    ctx, hooks = run.ctx, run.spec.middleware.after_tool
    first_error: Exception | None = None
    for slot in run.slots:
        pending, result = slot.pending, slot.result
        if result is None:
            # A call that is held has not begun; that it waits was said when it was asked for.
            if slot.begun:
                slot.begun = False
                ctx.emit(
                    "tool.interrupted",
                    call_id=slot.call.id,
                    tool_name=slot.call.name,
                    interrupt_id=pending.requests[0].id,
                )
            continue
        if not slot.begun:
            # A call that was answered in its tool's place goes through the same stages.
            _begin(run, slot)
        if hooks:
            await run_hooks(hooks, "after_tool", ctx, slot.call, result)
        pending.result = message = _message_of(run, slot, result)
        pending.state = "done"
        if pending.nested:
            pending.nested = []
        _end_event(run, slot, result)
        if run.feed is not None:
            run.feed.tool_completed(slot.call, message, result.summary)
        first_error = first_error or slot.error
    if first_error is not None:
        raise first_error


def _message_of(run: LoopRun, slot: CallSlot, result: ToolResult) -> ToolMessage:
    message = _made_message(slot, result)
    return message if run.redaction is None else run.redaction.message(message)


def _made_message(slot: CallSlot, result: ToolResult) -> ToolMessage:
    call_id, name, content = slot.pending.call_id, slot.call.name, result.content
    if slot.note is not None:
        content = [TextBlock(text=slot.note), *content]
    if result.value is None and not result.is_error and not result.trusted_verbatim:
        return plain_tool_message(call_id, name, content)
    return ToolMessage(
        tool_call_id=call_id,
        name=name,
        content=content,
        is_error=result.is_error,
        outcome=slot.outcome,
        trusted_verbatim=result.trusted_verbatim,
        artifact=result.value,
    )


def _span(run: LoopRun, slot: CallSlot) -> dict[str, Any]:
    elapsed = (slot.ended or run.ctx.clock.monotonic()) - slot.started
    return {
        "call_id": slot.call.id,
        "tool_name": slot.call.name,
        "started_at_ms": slot.started_ms,
        "duration_ms": milliseconds(elapsed),
    }


def _end_event(run: LoopRun, slot: CallSlot, result: ToolResult) -> None:
    if not slot.begun:
        return
    slot.begun = False
    ctx, payload = run.ctx, _span(run, slot)
    if slot.failure is not None:
        payload["error"] = error_text(slot.failure)
        payload["error_kind"] = type(slot.failure).__name__
        ctx.events.emit("tool.failed", ctx.origin, payload)
        return
    text = result.joined_text()
    payload["output_bytes"] = len(text) if text.isascii() else len(text.encode())
    if result.is_error:
        payload["error"] = text if run.policy.capture.tool_io else "the tool reported an error"
    if run.policy.capture.tool_io:
        payload["input"] = clean_json(slot.call.arguments)
        payload["output"] = text
    ctx.events.emit("tool.completed", ctx.origin, payload)
