"""Asking a model of one's own for a typed answer, for middlewares that let one decide."""

from typing import Any, TypeVar

from ...context import RunContext
from ...message import SystemMessage, UserMessage
from ...model import ChatModel, ModelRequest, ModelSettings, fit_request, side_call
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
        ModelError: The call failed, or no answer came within so many ``seconds``.
        StructuredOutputError: The answer is of another type.
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
    response = await side_call(model, fitted, ctx=ctx, seconds=seconds)
    for call in response.message.tool_calls:
        if call.invalid is None:
            return spec.check(call.arguments)
    return spec.parse(response.text)[1]
