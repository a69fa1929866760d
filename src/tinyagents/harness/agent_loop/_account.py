"""The account of a model call: its answer in the transcript, its tokens, its cost, its events."""

from typing import Any

from pydantic import JsonValue

from ..clock import milliseconds
from ..cost import CostTotals, estimate_cost
from ..message import AssistantMessage, Message, ToolCallBlock, dump_messages
from ..model import ModelRequest, ModelResponse, StreamMerger
from ..text import error_text, parse_json
from ..usage import CHARACTERS_PER_TOKEN, Usage
from ._run import LoopRun, OpenCall
from ._shown import show_rest


def account(run: LoopRun, call: OpenCall, request: ModelRequest, response: ModelResponse) -> None:
    """Put an answer into the transcript, and what it took into the sums and events."""
    snapshot, ctx = run.snapshot, run.ctx
    run.open_call = None
    message = response.message = _take_calls(run, response.message)
    response.timing.total = ctx.clock.monotonic() - call.began
    snapshot.counters.steps += 1
    snapshot.resolved_model = response.resolved_model
    snapshot.finish_reason = response.finish_reason
    snapshot.continue_turn = response.continue_turn
    if (unpaid := call.unpaid(response)) is not None:
        record_usage(run, call, unpaid.message.usage)
    if response.notices:
        ctx.emit("model.adapted", call_id=call.id, model=call.model, notices=response.notices)
    if run.feed is not None:
        show_rest(run, call.id, message, call.shown)
    payload = _completed_payload(call, response)
    if run.policy.capture.model_io:
        payload["input"] = _captured(request.messages)
        payload["output"] = _captured([message])
    ctx.events.emit("model.completed", ctx.origin, payload)
    snapshot.messages.append(message)
    if run.feed is not None:
        run.feed.message_completed(call.id, message)


def _completed_payload(call: OpenCall, response: ModelResponse) -> dict[str, Any]:
    resolved = response.resolved_model
    return {
        "call_id": call.id,
        "model": resolved.name if resolved is not None else "",
        "provider": resolved.provider if resolved is not None else "",
        "requested": resolved.requested if resolved is not None else None,
        "source": resolved.source if resolved is not None else None,
        "started_at_ms": call.started_ms,
        "duration_ms": milliseconds(response.timing.total),
        "finish_reason": response.finish_reason,
        "response_id": response.response_id,
        "attempts": response.attempts,
        "served_from_cache": response.served_from_cache,
        "usage": response.message.usage,
    }


def record_usage(run: LoopRun, call: OpenCall, usage: Usage | None) -> None:
    """Count the tokens of a call, and its cost where the model's prices are known."""
    ctx, models = run.ctx, run.spec.models
    ctx.add_usage(usage)
    if usage is None:
        return
    ctx.events.emit(
        "usage.recorded", ctx.origin, {"call_id": call.id, "model": call.model, "usage": usage}
    )
    if run.feed is not None:
        run.feed.usage(usage, ctx.usage.usage)
    pricing = models[call.model].profile.pricing if call.model in models else None
    if pricing is None:
        return
    cost = estimate_cost(pricing, usage)
    ctx.add_cost(cost)
    if cost != CostTotals.ZERO:
        ctx.emit("cost.recorded", call_id=call.id, model=call.model, cost=cost)
    if run.feed is not None:
        run.feed.cost(cost, ctx.cost)


def partial_usage(merger: StreamMerger) -> Usage:
    """Return the usage of a cut stream: the answer is estimated unless the provider counted it."""
    known = merger.usage or Usage()
    estimate = max(1, merger.characters // CHARACTERS_PER_TOKEN)
    if known.output_tokens >= estimate:
        return known
    return known.model_copy(update={"output_tokens": estimate, "source": "estimated"})


def end_open_call(run: LoopRun, error: BaseException | None) -> None:
    """Close the account of a model call that did not come to its end, and keep what it gave.

    Args:
        run: The run; nothing happens when no call is under way.
        error: What the call failed with; ``None`` when it was cancelled.
    """
    call, run.open_call = run.open_call, None
    if call is None:
        return
    _keep_what_came(run, call, cancelled=error is None)
    ctx = run.ctx
    payload: dict[str, Any] = {
        "call_id": call.id,
        "model": call.model,
        "started_at_ms": call.started_ms,
        "duration_ms": milliseconds(ctx.clock.monotonic() - call.began),
    }
    if error is None:
        ctx.events.emit("model.cancelled", ctx.origin, payload)
        return
    payload["error"] = f"{type(error).__name__}: {error_text(error)}"
    payload["error_kind"] = getattr(error, "kind", type(error).__name__)
    payload["attempts"] = getattr(error, "attempts", 1)
    ctx.events.emit("model.failed", ctx.origin, payload)


def _keep_what_came(run: LoopRun, call: OpenCall, *, cancelled: bool) -> None:
    """Put what a broken-off call gave into the transcript, and account for it."""
    response, merger = call.response, call.merger
    if response is not None:
        # A hook failed over an answer that was paid for: not all hooks have seen it.
        if run.redaction is not None:
            kept = run.redaction.partial(response.message)
            if kept is not response.message:
                # The same words may be there in the provider's own form.
                response.message, response.raw, response.structured = kept, {}, None
            response.raw, response.safety = run.hide(response.raw), run.hide(response.safety)
        run.snapshot.messages.append(_take_calls(run, response.message))
        if (unpaid := call.unpaid(response)) is not None:
            record_usage(run, call, unpaid.message.usage)
        return
    usage = merger.usage if merger is not None else None
    if merger is not None and not merger.empty:
        usage = partial_usage(merger)
        message = merger.message(partial=True).model_copy(update={"usage": usage})
        if run.redaction is not None:
            message = run.redaction.partial(message)
        if message.content:
            run.snapshot.messages.append(message)
    if usage is not None or cancelled:
        # A provider that was asked and cut off may bill it all the same: that is not nothing.
        record_usage(run, call, usage)


def _captured(messages: list[Message]) -> JsonValue:
    return parse_json(dump_messages(messages))


def _take_calls(run: LoopRun, message: AssistantMessage) -> AssistantMessage:
    """Note the calls of an answer that the run must see to.

    Returns:
        The message, in which every call has an id that is its own within the run.
    """
    seen = run.call_ids
    calls: list[ToolCallBlock] = []
    changed = answered = False
    for block in message.content:
        if block.type == "tool_call":
            name = block.id
            if not name or name in seen:
                name = _fresh_id(block.id or "call", seen)
                block = block.model_copy(update={"id": name, "provider_id": block.id or None})
                changed = True
            seen[name] = 1
            calls.append(block)
        elif block.type == "tool_result":
            answered = True
    if changed:
        fresh = iter(calls)
        content = [next(fresh) if b.type == "tool_call" else b for b in message.content]
        message = message.model_copy(update={"content": content})
    # Calls of tools that the provider ran itself have their result beside them.
    run.calls = message.open_calls if answered else calls
    return message


def _fresh_id(stem: str, seen: dict[str, int]) -> str:
    """Return ``stem`` with the next number that is free; ``seen`` remembers how far it got."""
    count = seen.get(stem, 1) + 1
    while f"{stem}_{count}" in seen:
        count += 1
    seen[stem] = count
    return f"{stem}_{count}"
