"""A model call that a run makes beside its own: for a choice, a summary, an extract."""

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio

from ..concurrency import DeadlineExpired, within
from ..cost import CostTotals, estimate_cost
from ..errors import ProviderTimeoutError
from ..usage import Usage
from ._chat_model import ChatModel
from ._request import ModelRequest
from ._response import ModelResponse

if TYPE_CHECKING:
    from ..context import RunContext


async def side_call(
    model: ChatModel,
    request: ModelRequest,
    *,
    ctx: "RunContext[Any] | None" = None,
    seconds: float | None = None,
) -> ModelResponse:
    """Ask a model once, without retries, and count what it took to the run.

    The call is no turn of the run: ``RunLimits`` do not count it, but the run's
    ``model_timeout`` and ``max_output_tokens`` hold for it too.

    Args:
        model: Who is asked.
        request: What it is asked, in a form that it takes.
        ctx: The run; ``None`` outside one.
        seconds: How long it has; ``None`` leaves it to the run's limits.

    Raises:
        ProviderTimeoutError: The time was up.
        ModelError: The call failed otherwise.
    """
    seconds = _allowed(seconds, None if ctx is None else ctx.limits.model_timeout)
    if ctx is not None:
        request = replace(request, settings=request.settings.capped(ctx.limits.max_output_tokens))
    try:
        response = await within(seconds, partial(model.invoke, request, ctx=ctx))
    except (DeadlineExpired, anyio.get_cancelled_exc_class()) as cut:
        if ctx is not None:
            # A provider that was asked and cut off may bill it all the same: that is not nothing.
            ctx.add_usage(None)
        if not isinstance(cut, DeadlineExpired):
            raise
        profile = model.profile
        raise ProviderTimeoutError(
            f"no answer in time ({seconds:g} s)",
            provider=profile.provider or None,
            model=profile.model or None,
        ) from None
    if ctx is not None:
        _account(ctx, model, response.usage)
    return response


def _allowed(*seconds: float | None) -> float | None:
    return min((each for each in seconds if each is not None), default=None)


def _account(ctx: "RunContext[Any]", model: ChatModel, usage: Usage | None) -> None:
    profile = model.profile
    name = profile.model or type(model).__name__
    ctx.add_usage(usage)
    if usage is None:
        return
    ctx.emit("usage.recorded", model=name, usage=usage)
    if profile.pricing is None:
        return
    cost = estimate_cost(profile.pricing, usage)
    ctx.add_cost(cost)
    if cost != CostTotals.ZERO:
        ctx.emit("cost.recorded", model=name, cost=cost)
