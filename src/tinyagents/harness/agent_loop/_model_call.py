"""One model call of a run: asked for, made, and put into the transcript."""

from collections.abc import Awaitable
from functools import partial

from ..context import Jump
from ..middleware import around, run_hooks
from ..model import ModelBinding, ModelRequest, ModelResponse
from ._account import account
from ._attempts import call_with_retries, charge, checked_response, discard, give_up_answer
from ._layout import lay_out, repair_request
from ._request import build_request, choose_model, system_messages
from ._run import LoopRun, OpenCall
from ._snapshot import Phase

_TO_MODEL = Jump("model")


async def call_model(run: LoopRun) -> Phase:
    """Get the next answer of the model into the transcript.

    Returns:
        What follows; the phase itself where a hook wants the run to go elsewhere before the call.

    Raises:
        ModelError: The call failed, its retries and fallbacks too.
        ModelNotFoundError: No model can serve.
    """
    ctx, hooks = run.ctx, run.spec.middleware
    request = build_request(run)
    run.snapshot.hidden_tools.clear()
    if callable(run.spec.system):
        request.messages[:0] = await system_messages(run, run.spec.system)
    if run.policy.cache.protect_prompt_prefix:
        lay_out(run, request)
    if hooks.before_model:
        own = request.segments, request.prompt_fingerprint
        await run_hooks(hooks.before_model, "before_model", ctx, request)
        if ctx.control == _TO_MODEL:
            # The run is on its way there: to begin anew would ask the hooks again, without an end.
            ctx.take_control()
            ctx.emit("control.applied", control=_TO_MODEL.label, detail=_TO_MODEL.to)
        if ctx.control is not None or ctx.cancellation.cancelled:
            return "call_model"
        repair_request(run, request, own)
    if run.redaction is not None:
        request.messages = run.redaction.messages(request.messages)
        run.redaction.check()
        if ctx.control is not None:
            return "call_model"
    binding = choose_model(run, request)
    call = _open_call(run, binding)
    if hooks.wrap_model:
        innermost = partial(_call_as_changed, run, call, binding)
        chain = around("wrap_model", hooks.wrap_model, ctx, innermost)
        response = checked_response(await chain(request), "wrap_model")
        if call.merger is not None:
            discard(run, call, "a hook has answered in the place of a failed call")
    else:
        response = await _ask(run, call, binding, request)
    run.response = call.response = response
    if hooks.after_model:
        await run_hooks(hooks.after_model, "after_model", ctx, response)
    account(run, call, request, response)
    return "decide"


def _open_call(run: LoopRun, binding: ModelBinding) -> OpenCall:
    """Announce a call and count it."""
    ctx, name = run.ctx, binding.resolved.name
    run.snapshot.counters.model_calls += 1
    call_id = ctx.model_call_id = run.model_call_id
    began = ctx.clock.monotonic()
    started_ms = ctx.events.emit("model.started", ctx.origin, {"call_id": call_id, "model": name})
    call = run.open_call = OpenCall(call_id, name, started_ms, began)
    return call


async def _call_as_changed(
    run: LoopRun, call: OpenCall, binding: ModelBinding, request: ModelRequest
) -> ModelResponse:
    """Make the call for the hooks around it, which may have chosen another model.

    They may call more than once; only the last answer is the call's, but each was paid for.
    """
    give_up_answer(run, call)
    if request.model is not None and request.model != binding.resolved.name:
        binding = choose_model(run, request)
        charge(call, binding)
    call.response = call.inner = await _ask(run, call, binding, request)
    return call.inner


def _ask(
    run: LoopRun, call: OpenCall, binding: ModelBinding, request: ModelRequest
) -> Awaitable[ModelResponse]:
    """Get an answer: a stored one, or the model's own after retries and fallbacks."""
    if run.spec.cache is None and not request.cache:
        return call_with_retries(run, call, binding, request)
    from ._cached import call_through_cache

    return call_through_cache(run, call, binding, request)
