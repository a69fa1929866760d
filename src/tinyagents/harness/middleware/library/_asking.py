"""Asking a model of one's own for a typed answer, for middlewares that let one decide."""

from functools import partial
from typing import Any, TypeVar

import anyio

from ...concurrency import DeadlineExpired, within
from ...context import RunContext
from ...cost import CostTotals, estimate_cost
from ...message import SystemMessage, UserMessage
from ...model import ChatModel, ModelRequest, ModelResponse, ModelSettings, fit_request
from ...structured import OutputSpec

AnswerT = TypeVar("AnswerT")


async def ask_model(
    ctx: RunContext[Any],
    model: ChatModel,
    spec: OutputSpec[AnswerT],
    question: str,
    *,
    instructions: str,
    settings: ModelSettings,
    seconds: float | None,
) -> AnswerT:
    """Return a model's typed answer to a question, and count what it took for the run.

    Raises:
        ModelError: The call failed.
        StructuredOutputError: The answer is of another type.
        DeadlineExpired: No answer came within so many ``seconds``.
    """
    request = ModelRequest(
        [SystemMessage(content=instructions), UserMessage(content=question)],
        settings=settings,
    )
    if spec.strategy_for(model.profile) == "native":
        request.response_format = spec.response_format()
    else:
        request.tools, request.tool_choice = (spec.tool_schema(),), "required"
    fitted = fit_request(request, model.profile, "degrade").request
    try:
        response = await within(seconds, partial(model.invoke, fitted, ctx=ctx))
    except (DeadlineExpired, anyio.get_cancelled_exc_class()):
        # A provider that was asked and cut off may bill it all the same: that is not nothing.
        ctx.add_usage(None)
        raise
    _account(ctx, model, response)
    for call in response.message.tool_calls:
        if call.invalid is None:
            return spec.check(call.arguments)
    return spec.parse(response.text)[1]


def _account(ctx: RunContext[Any], asked: ChatModel, response: ModelResponse) -> None:
    """Count what an answer took for the run."""
    usage, profile = response.usage, asked.profile
    model = profile.model or type(asked).__name__
    ctx.add_usage(usage)
    if usage is None:
        return
    ctx.emit("usage.recorded", model=model, usage=usage)
    if profile.pricing is None:
        return
    cost = estimate_cost(profile.pricing, usage)
    ctx.add_cost(cost)
    if cost != CostTotals.ZERO:
        ctx.emit("cost.recorded", model=model, cost=cost)
