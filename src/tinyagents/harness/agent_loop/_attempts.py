"""Making a model call: its attempts, the models that take over, and the pieces of a stream."""

import math
from collections.abc import Awaitable
from typing import TYPE_CHECKING

import anyio

from ..errors import CapabilityError, ModelError, ProviderTimeoutError
from ..model import (
    FittedRequest,
    MessageDelta,
    ModelBinding,
    ModelRequest,
    ModelResponse,
    StreamMerger,
    ToolCallDelta,
    closing_stream,
)
from ..retry import RetryPolicy
from ..text import error_text
from ._account import partial_usage, record_usage
from ._request import fit_to_model, suited_copy
from ._run import LoopRun, OpenCall
from ._shown import ShownPieces

if TYPE_CHECKING:
    from ._feed import Feed


async def call_with_retries(
    run: LoopRun,
    call: OpenCall,
    binding: ModelBinding,
    request: ModelRequest,
    fitted: FittedRequest | None = None,
) -> ModelResponse:
    """Call the model; again while the policy says so, and then the fallback models in turn.

    Args:
        run: The run.
        call: The call under way.
        binding: The model.
        request: What is asked of it.
        fitted: The request as it suits the model, where that is known.

    Raises:
        CapabilityError: The model cannot take part of the request; nothing was sent.
        ModelError: The call failed, its retries and fallbacks too.
    """
    if fitted is None:
        fitted = fit_to_model(run, request, binding)
    try:
        answer = await ask_once(run, call, binding, fitted.request)
    except ModelError as error:
        return await _try_again(run, call, binding, request, fitted, error)
    return answered(answer, binding, fitted)


def answered(answer: ModelResponse, binding: ModelBinding, fitted: FittedRequest) -> ModelResponse:
    """Put down who answered, and to what."""
    response = checked_response(answer, binding.resolved.name)
    response.resolved_model = binding.resolved
    if fitted.notices:
        response.notices = (*fitted.notices, *response.notices)
    return response


async def _try_again(
    run: LoopRun,
    call: OpenCall,
    binding: ModelBinding,
    request: ModelRequest,
    fitted: FittedRequest,
    error: ModelError,
) -> ModelResponse:
    """Go on after a first failure: wait and repeat, or take the next model, or raise."""
    policy = request.retry or run.policy.retry
    most = min(policy.max_attempts, run.limits.max_retries_per_call + 1)
    tried = {binding.resolved.name}
    attempts, attempt, waited = 1, 1, 0.0
    while True:
        if error is call.hook_error:
            raise error
        error.attempts = attempts
        if attempt < most and policy.should_retry(error, attempt):
            waited += await _wait(run, call, policy, attempt, error)
            attempt += 1
        else:
            binding, fitted = _fall_back(run, call, binding, tried, request, error)
            attempt = 1
        attempts += 1
        try:
            answer = await ask_once(run, call, binding, fitted.request)
        except ModelError as failure:
            error = failure
            continue
        response = answered(answer, binding, fitted)
        response.attempts = attempts
        response.timing.waited = waited
        return response


async def _wait(
    run: LoopRun, call: OpenCall, policy: RetryPolicy, attempt: int, error: ModelError
) -> float:
    """Announce the next attempt and wait for it; return the seconds."""
    delay = policy.delay_after(attempt, error)
    discard(run, call, error_text(error))
    run.ctx.emit(
        "retry.scheduled",
        call_id=call.id,
        attempt=attempt,
        delay=delay,
        error=error_text(error),
        error_kind=error.kind,
    )
    await run.ctx.sleep(delay)
    return delay


def _fall_back(
    run: LoopRun,
    call: OpenCall,
    failed: ModelBinding,
    tried: set[str],
    request: ModelRequest,
    error: ModelError,
) -> tuple[ModelBinding, FittedRequest]:
    """Return the model that takes over and what it is asked, and announce it.

    A model that cannot take the request is passed over. Raises ``error`` where none takes over.
    """
    chain, name = run.policy.fallback, failed.resolved.name
    following = chain.successor(name)
    while following is not None and following not in tried:
        tried.add(following)
        found = run.spec.models.bind_fallback(
            following, request.required_capabilities, requested=name
        )
        if isinstance(found, ModelBinding):
            suiting, found = suited_copy(run, request, found)
            try:
                fitted = fit_to_model(run, suiting, found)
            except CapabilityError as refusal:
                found = refusal.message
            else:
                discard(run, call, error_text(error))
                run.ctx.emit(
                    "model.fallback_selected", call_id=call.id, from_model=name, to_model=following
                )
                charge(call, found)
                return found, fitted
        run.ctx.emit("model.fallback_skipped", model=following, reason=found)
        following = chain.next_after(following)
    raise error


def charge(call: OpenCall, binding: ModelBinding) -> None:
    """Put what the call costs from now on down to another model."""
    call.model = binding.resolved.name


def give_up_answer(run: LoopRun, call: OpenCall) -> None:
    """Put down what an answer took that a hook does not leave it at, or a failed attempt at one."""
    why = "a hook had the model asked again"
    discard(run, call, why)
    response, call.inner, call.response, call.shown = call.inner, None, None, ()
    if response is None:
        return
    call.given_up += (response,)
    if not response.served_from_cache:
        record_usage(run, call, response.message.usage)
    if run.feed is not None:
        run.feed.message_discarded(call.id, why)


def discard(run: LoopRun, call: OpenCall, why: str) -> None:
    """Give up what a failed attempt has streamed; it was paid for all the same."""
    merger, call.merger, call.shown = call.merger, None, ()
    if merger is None or merger.empty:
        return
    record_usage(run, call, partial_usage(merger))
    if run.feed is not None:
        run.feed.message_discarded(call.id, run.hide(why))


def ask_once(
    run: LoopRun, call: OpenCall, binding: ModelBinding, request: ModelRequest
) -> Awaitable[ModelResponse]:
    """Make one attempt, within the time that the run allows for one."""
    seconds = run.limits.model_timeout
    if seconds is not None:
        return _ask_within(seconds, run, call, binding, request)
    if run.ctx.streaming:
        return _read_stream(run, call, binding, request, None)
    return binding.model.invoke(request, ctx=run.ctx)


async def _ask_within(
    seconds: float, run: LoopRun, call: OpenCall, binding: ModelBinding, request: ModelRequest
) -> ModelResponse:
    with anyio.move_on_after(seconds) as scope:
        if run.ctx.streaming:
            return await _read_stream(run, call, binding, request, scope)
        return await binding.model.invoke(request, ctx=run.ctx)
    profile = binding.model.profile
    raise ProviderTimeoutError(
        f"no complete answer within the run's limit of {seconds:g} s for a model call",
        provider=profile.provider or None,
        model=profile.model or binding.resolved.name,
    )


def checked_response(response: object, who: str) -> ModelResponse:
    """Return what a model or a hook gave as the answer, if it is one."""
    if not isinstance(response, ModelResponse):
        raise TypeError(f"`{who}` returned a `{type(response).__name__}`, and no `ModelResponse`")
    return response


async def _read_stream(
    run: LoopRun,
    call: OpenCall,
    binding: ModelBinding,
    request: ModelRequest,
    scope: anyio.CancelScope | None,
) -> ModelResponse:
    """Read the model's stream to its end, and show each piece to whoever follows."""
    merger = call.merger = StreamMerger()
    ctx, call_id = run.ctx, call.id
    feed = run.feed if run.feed is not None and run.feed.shows_messages else None
    hooks, shown = run.spec.middleware, None
    output = run.output if run.feed is not None and run.feed.shows_output else None
    if output or hooks.filter_deltas or hooks.on_model_delta or ctx.events.listened:
        shown = ShownPieces(run, call_id, output)
    began, first = ctx.clock.monotonic(), None
    pieces: list[str] | None = None
    async with closing_stream(binding.model.stream(request, ctx=ctx)) as stream:
        async for item in stream:
            # Nearly every piece is text alone; it takes the short way.
            if type(item) is MessageDelta and not (item.reasoning or item.refusal):
                text = item.text
                if text:
                    if pieces is None:
                        pieces = merger.pieces_of("text")
                    pieces.append(text)
            else:
                text, pieces = "", None
                merger.add(item)
                if not isinstance(item, MessageDelta | ToolCallDelta):
                    if merger.completed is not None:
                        break
                    continue
            if first is None:
                first = ctx.clock.monotonic() - began
            if shown is not None:
                behind = await shown.push(item)
            elif feed is None:
                continue
            else:
                behind = feed.text(call_id, text) if text else feed.delta(call_id, item)
            if behind and run.feed is not None:
                await _room(run.feed, scope)
    call.shown = merger.kinds
    if shown is not None:
        if await shown.end() and run.feed is not None:
            await _room(run.feed, scope)
        if shown.filtered:
            call.shown = shown.kinds
    response = merger.response()
    response.timing.first_token = first
    call.merger = None
    return response


async def _room(feed: "Feed", scope: anyio.CancelScope | None) -> None:
    """Wait until the reader of the run has kept up; that time is not the model's."""
    if scope is None:
        await feed.room()
        return
    left = scope.deadline - anyio.current_time()
    scope.deadline = math.inf
    try:
        await feed.room()
    finally:
        scope.deadline = anyio.current_time() + left
