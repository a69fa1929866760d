"""One model call of a run: the request, retries, fallbacks, streaming, and the account of it."""

import inspect
from functools import partial
from typing import Any

from pydantic import JsonValue

from ..clock import milliseconds
from ..concurrency import DeadlineExpired, within
from ..context import RunContext
from ..cost import CostTotals, estimate_cost
from ..errors import InvalidRequestError, ModelError, ProviderTimeoutError
from ..message import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolCallBlock,
    dump_messages,
    repair_messages,
)
from ..middleware import around, run_hooks
from ..model import (
    MessageDelta,
    ModelBinding,
    ModelRequest,
    ModelResponse,
    StreamMerger,
    ToolCallDelta as ModelToolCallDelta,
)
from ..retry import RetryPolicy
from ..structured import OutputSpec
from ..text import error_text
from ..usage import Usage
from ._run import LoopRun, SystemFunction

_CHARACTERS_PER_TOKEN = 4
"""A rough figure for what a provider did not count, as tokenizers average on English."""


async def answer(run: LoopRun) -> bool:
    """Ask the model for the next answer and put it into the transcript.

    Returns:
        Whether the model was asked; not when a hook wants the run to go elsewhere instead.

    Raises:
        ModelError: The call failed, its retries and fallbacks too.
        ModelNotFoundError: No model can serve.
    """
    snapshot, ctx, hooks = run.snapshot, run.ctx, run.spec.middleware
    request = build_request(run)
    if callable(run.spec.system):
        request.messages[:0] = await _dynamic_system(run, run.spec.system)
    if hooks.before_model:
        await run_hooks(hooks.before_model, "before_model", ctx, request)
        if ctx.control is not None or ctx.cancellation.cancelled:
            return False
        request.messages = repair_messages(request.messages).messages
    binding = choose_model(run, request)
    if run.output is not None:
        plan_output(run, run.output, request, binding)
    snapshot.counters.model_calls += 1
    call_id = f"{ctx.origin.run_id}-model-{snapshot.counters.model_calls}"
    name = binding.resolved.name
    began = ctx.clock.monotonic()
    started_ms = ctx.events.emit("model.started", ctx.origin, {"call_id": call_id, "model": name})
    run.model_call = (call_id, name, started_ms, began)
    if hooks.wrap_model:
        chain = around(
            "wrap_model",
            hooks.wrap_model,
            ctx,
            partial(_call_as_changed, run, binding, call_id),
        )
        response = await chain(request)
    else:
        response = await call_with_retries(run, binding, request, call_id)
    run.response = run.unaccounted = response
    if hooks.after_model:
        await run_hooks(hooks.after_model, "after_model", ctx, response)
    _account(run, request, response, call_id)
    return True


def build_request(run: LoopRun) -> ModelRequest:
    """Make the request of the next call from the transcript and the agent's settings."""
    snapshot, system, settings = run.snapshot, run.spec.system, run.settings
    messages, raised = snapshot.messages, snapshot.repeats.max_tokens
    if raised is not None:
        settings = settings.model_copy(update={"max_tokens": raised})
    return ModelRequest(
        [system, *messages] if isinstance(system, SystemMessage) else messages.copy(),
        () if snapshot.tools_off else run.tool_schemas,
        settings=settings,
    )


async def _dynamic_system(run: LoopRun, system: SystemFunction) -> list[Message]:
    text = system(run.ctx)
    if inspect.isawaitable(text):
        text = await text
    return [SystemMessage(content=text)] if text else []


def choose_model(run: LoopRun, request: ModelRequest) -> ModelBinding:
    """Resolve the request's model, and refuse what that model is known not to do."""
    snapshot = run.snapshot
    previous = snapshot.resolved_model.name if snapshot.resolved_model is not None else None
    binding = run.spec.models.resolve(request, previous=previous)
    if binding.skipped:
        run.ctx.emit(
            "model.override_skipped",
            requested=binding.resolved.requested or "",
            resolved=binding.resolved.name,
            reason="; ".join(binding.skipped),
        )
    if request.tools and binding.model.profile.tool_calling is False:
        raise InvalidRequestError(
            f"the model `{binding.resolved.name}` cannot call tools, and "
            f"{len(request.tools)} are offered: choose another model or pass tools=()"
        )
    return binding


def plan_output(
    run: LoopRun, output: OutputSpec[Any], request: ModelRequest, binding: ModelBinding
) -> None:
    """Add the output type to the request in the way that suits the model."""
    run.snapshot.structured_by_tool = False
    if request.response_format is not None or run.snapshot.tools_off:
        return
    profile = binding.model.profile
    if output.strategy_for(profile) == "native":
        request.response_format = output.response_format()
        return
    run.snapshot.structured_by_tool = True
    if not request.tools and profile.forced_tool_choice is not False:
        request.tool_choice = "required"
    request.tools = (*request.tools, output.tool_schema())


async def _call_as_changed(
    run: LoopRun, binding: ModelBinding, call_id: str, request: ModelRequest
) -> ModelResponse:
    if request.model is not None and request.model != binding.resolved.name:
        binding = choose_model(run, request)
        _charge(run, binding)
    return await call_with_retries(run, binding, request, call_id)


async def call_with_retries(
    run: LoopRun, binding: ModelBinding, request: ModelRequest, call_id: str
) -> ModelResponse:
    """Call the model; again while the policy says so, and then the fallback models in turn."""
    try:
        response = await _ask(run, binding, request, call_id)
    except ModelError as error:
        return await _try_again(run, binding, request, call_id, error)
    response.resolved_model = binding.resolved
    return response


async def _try_again(
    run: LoopRun, binding: ModelBinding, request: ModelRequest, call_id: str, error: ModelError
) -> ModelResponse:
    """Go on after a first failure: wait and repeat, or take the next model, or raise."""
    policy, ctx = request.retry or run.policy.retry, run.ctx
    most = min(policy.max_attempts, run.limits.max_retries_per_call + 1)
    tried = {binding.resolved.name}
    attempts, attempt, waited = 1, 1, 0.0
    while True:
        error.attempts = attempts
        if attempt < most and policy.should_retry(error, attempt):
            waited += await _wait(run, policy, call_id, attempt, error)
            attempt += 1
        else:
            following = _next_fallback(run, binding.resolved.name, tried, request)
            if following is None:
                raise error
            _discard(run, call_id, error)
            ctx.emit(
                "model.fallback_selected",
                call_id=call_id,
                from_model=binding.resolved.name,
                to_model=following.resolved.name,
            )
            binding, attempt = following, 1
            _charge(run, binding)
        attempts += 1
        try:
            response = await _ask(run, binding, request, call_id)
        except ModelError as failure:
            error = failure
            continue
        response.resolved_model = binding.resolved
        response.attempts = attempts
        response.timing.waited = waited
        return response


async def _wait(
    run: LoopRun, policy: RetryPolicy, call_id: str, attempt: int, error: ModelError
) -> float:
    """Announce the next attempt and wait for it; return the seconds."""
    delay = policy.delay_after(attempt, error)
    _discard(run, call_id, error)
    run.ctx.emit(
        "retry.scheduled",
        call_id=call_id,
        attempt=attempt,
        delay=delay,
        error=error_text(error),
        error_kind=error.kind,
    )
    await run.ctx.sleep(delay)
    return delay


def _charge(run: LoopRun, binding: ModelBinding) -> None:
    """Put what the call costs from now on down to another model."""
    if run.model_call is not None:
        call_id, _, started_ms, began = run.model_call
        run.model_call = (call_id, binding.resolved.name, started_ms, began)


def _next_fallback(
    run: LoopRun, failed: str, tried: set[str], request: ModelRequest
) -> ModelBinding | None:
    chain = run.policy.fallback
    name = chain.successor(failed)
    while name is not None and name not in tried:
        tried.add(name)
        found = run.spec.models.bind_fallback(name, request.required_capabilities, requested=failed)
        if isinstance(found, ModelBinding):
            return found
        run.ctx.emit("model.fallback_skipped", model=name, reason=found)
        name = chain.next_after(name)
    return None


def _discard(run: LoopRun, call_id: str, error: ModelError) -> None:
    merger, run.merger = run.merger, None
    if merger is None or merger.empty:
        return
    # What a failed attempt has streamed was paid for all the same.
    usage = _partial_usage(merger)
    name = run.model_call[1] if run.model_call is not None else ""
    _record_usage(run, call_id, name, usage)
    if run.feed is not None:
        run.feed.message_discarded(call_id, error_text(error))


async def _ask(
    run: LoopRun, binding: ModelBinding, request: ModelRequest, call_id: str
) -> ModelResponse:
    """Make one attempt: in one piece, or piece by piece where somebody follows the run."""
    if run.limits.model_timeout is not None:
        return await _ask_in_time(run, binding, request, call_id, run.limits.model_timeout)
    if run.ctx.streaming:
        return await _ask_streaming(run, binding, request, call_id)
    return await binding.model.invoke(request, ctx=run.ctx)


async def _ask_in_time(
    run: LoopRun, binding: ModelBinding, request: ModelRequest, call_id: str, seconds: float
) -> ModelResponse:
    async def ask() -> ModelResponse:
        if run.ctx.streaming:
            return await _ask_streaming(run, binding, request, call_id)
        return await binding.model.invoke(request, ctx=run.ctx)

    try:
        return await within(seconds, ask)
    except DeadlineExpired:
        profile = binding.model.profile
        raise ProviderTimeoutError(
            f"no complete answer within the run's limit of {seconds:g} s for a model call",
            provider=profile.provider or None,
            model=profile.model or binding.resolved.name,
        ) from None


async def _ask_streaming(
    run: LoopRun, binding: ModelBinding, request: ModelRequest, call_id: str
) -> ModelResponse:
    """Read the model's stream to its end, and show each piece to whoever follows."""
    merger = run.merger = StreamMerger()
    ctx, hooks = run.ctx, run.spec.middleware.on_model_delta
    observed = bool(hooks) or ctx.events.listened
    feed = run.feed
    began, first = ctx.clock.monotonic(), None
    stream: Any = binding.model.stream(request, ctx=ctx)
    try:
        async for item in stream:
            kind = item.__class__
            # Nearly every piece is text alone; it takes the short way.
            text = ""
            if kind is MessageDelta and not item.reasoning and not item.refusal:
                text = item.text
            if text:
                merger.add_piece("text", text)
            else:
                merger.add(item)
                if kind is not MessageDelta and kind is not ModelToolCallDelta:
                    continue
            if first is None:
                first = ctx.clock.monotonic() - began
            if observed:
                await _show_observers(run, call_id, item)
                text = ""  # a hook may have changed the piece
            if feed is not None and (
                feed.text(call_id, text) if text else feed.delta(call_id, item)
            ):
                await feed.room()
    finally:
        if (close := getattr(stream, "aclose", None)) is not None:
            await close()
    response = merger.response()
    response.timing.first_token = first
    run.merger = None
    return response


async def _show_observers(
    run: LoopRun, call_id: str, item: MessageDelta | ModelToolCallDelta
) -> None:
    for _, hook in run.spec.middleware.on_model_delta:
        await hook(run.ctx, item)
    if run.ctx.events.listened:
        _emit_delta(run, call_id, item)


def _emit_delta(run: LoopRun, call_id: str, item: Any) -> None:
    capture = run.policy.capture.model_io
    payload: dict[str, Any] = {"call_id": call_id}
    if isinstance(item, MessageDelta):
        payload["characters"] = len(item.text) + len(item.reasoning) + len(item.refusal)
        if capture:
            payload["text"] = item.text or None
            payload["reasoning"] = item.reasoning or None
    else:
        payload["characters"] = len(item.arguments)
        if capture:
            payload["tool_call"] = {
                "call_id": item.call_id,
                "name": item.name,
                "content": item.arguments,
            }
    run.ctx.events.emit_transient("model.delta", run.ctx.origin, payload)


def _account(run: LoopRun, request: ModelRequest, response: ModelResponse, call_id: str) -> None:
    snapshot, ctx = run.snapshot, run.ctx
    snapshot.counters.steps += 1
    run.unaccounted = None
    message = response.message = _take_calls(run, response.message)
    resolved = response.resolved_model
    usage = message.usage
    snapshot.resolved_model = resolved
    snapshot.finish_reason = response.finish_reason
    snapshot.continue_turn = response.continue_turn
    if not response.served_from_cache:
        if usage is None:
            snapshot.usage.add(None)
        else:
            _record_usage(run, call_id, resolved.name if resolved else "", usage)
    started, run.model_call = run.model_call, None
    assert started is not None
    _, _, started_ms, began = started
    seconds = response.timing.total = ctx.clock.monotonic() - began
    payload: dict[str, Any] = {
        "call_id": call_id,
        "model": resolved.name if resolved is not None else "",
        "provider": resolved.provider if resolved is not None else "",
        "started_at_ms": started_ms,
        "duration_ms": milliseconds(seconds),
        "finish_reason": response.finish_reason,
        "response_id": response.response_id,
        "attempts": response.attempts,
        "served_from_cache": response.served_from_cache,
        "usage": usage,
    }
    if run.policy.capture.model_io:
        payload["input"] = _captured(request.messages)
        payload["output"] = _captured([message])
    ctx.events.emit("model.completed", ctx.origin, payload)
    snapshot.messages.append(message)
    if run.feed is not None:
        run.feed.message_completed(call_id, message)


def _record_usage(run: LoopRun, call_id: str, model: str, usage: Usage) -> None:
    ctx = run.ctx
    context: RunContext[Any] | None = ctx
    while context is not None:
        context.usage.add(usage)
        context = context.parent
    ctx.events.emit(
        "usage.recorded", ctx.origin, {"call_id": call_id, "model": model, "usage": usage}
    )
    if run.feed is not None:
        run.feed.usage(usage, ctx.usage.usage)
    models = run.spec.models
    pricing = models[model].profile.pricing if model in models else None
    if pricing is None:
        return
    cost = estimate_cost(pricing, usage)
    context = ctx
    while context is not None:
        context.cost = context.cost + cost
        context = context.parent
    if cost != CostTotals.ZERO:
        ctx.emit("cost.recorded", call_id=call_id, model=model, cost=cost)
    if run.feed is not None:
        run.feed.cost(cost, ctx.cost)


def _captured(messages: list[Message]) -> JsonValue:
    from ..text import parse_json

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
            seen.add(name)
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


def _fresh_id(stem: str, seen: set[str]) -> str:
    count = 2
    while f"{stem}_{count}" in seen:
        count += 1
    return f"{stem}_{count}"


def end_open_call(run: LoopRun, error: BaseException | None) -> None:
    """Close the account of a model call that did not come to its end, and keep what it gave.

    Args:
        run: The run; nothing happens when no call is under way.
        error: What the call failed with; ``None`` when it was cancelled.
    """
    merger, run.merger = run.merger, None
    answered, run.unaccounted = run.unaccounted, None
    usage = None
    if answered is not None:
        # A hook failed over an answer that was paid for.
        message = _take_calls(run, answered.message)
        usage = message.usage
        run.snapshot.messages.append(message)
    elif merger is not None and not merger.empty:
        usage = _partial_usage(merger)
        message = merger.message(partial=True).model_copy(update={"usage": usage})
        if message.content:
            run.snapshot.messages.append(message)
    elif merger is not None:
        usage = merger.usage
    if run.model_call is None:
        return
    call_id, model, started_ms, started = run.model_call
    run.model_call = None
    if usage is not None:
        _record_usage(run, call_id, model, usage)
    elif error is None:
        # The provider was asked and may bill it: what it spent is not known, and no reported zero.
        context: RunContext[Any] | None = run.ctx
        while context is not None:
            context.usage.add(Usage(source="estimated"))
            context = context.parent
    payload: dict[str, Any] = {
        "call_id": call_id,
        "model": model,
        "started_at_ms": started_ms,
        "duration_ms": milliseconds(run.ctx.clock.monotonic() - started),
    }
    if error is None:
        run.ctx.events.emit("model.cancelled", run.ctx.origin, payload)
        return
    payload["error"] = f"{type(error).__name__}: {error_text(error)}"
    payload["error_kind"] = getattr(error, "kind", type(error).__name__)
    payload["attempts"] = getattr(error, "attempts", 1)
    run.ctx.events.emit("model.failed", run.ctx.origin, payload)


def _partial_usage(merger: StreamMerger) -> Usage:
    """Return the usage of a cut stream: the answer is estimated unless the provider counted it."""
    known = merger.usage or Usage()
    estimate = max(1, merger.characters // _CHARACTERS_PER_TOKEN)
    if known.output_tokens >= estimate:
        return known
    return known.model_copy(update={"output_tokens": estimate, "source": "estimated"})
