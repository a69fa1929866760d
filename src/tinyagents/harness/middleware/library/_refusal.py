"""What becomes of an answer that a model declines to give."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ...context import RunContext
from ...errors import ConfigurationError, ContentFilterError, ModelRefusedError
from ...message import AssistantMessage, TextBlock
from ...model import ModelRequest, ModelResponse
from .._base import Middleware, ModelHandler
from ._model_names import check_model_names


class RefusalMiddleware(Middleware[Any]):
    """Does not let a refusal pass as an answer: asks another model, says something else, or raises.

    A refusal is an answer in which the model declines, one that a content filter has cut, and a
    ``ContentFilterError``. First the fallback is asked, once, where there is one. What then is still a
    refusal is replaced where there is a replacement, and raised otherwise.

    Hooks: ``wrap_model``. It changes the request's ``model``, and the answer's content and finish reason;
    calls in a refused answer are dropped. Events: ``model.fallback_selected``. Raises
    ``ModelRefusedError``, or the ``ContentFilterError`` as it came; neither is retried.

    Args:
        fallback: The name of a registered model that is asked when another one has refused.
        replacement: What the answer says instead.

    Raises:
        ConfigurationError: ``replacement`` is blank; at the first call, ``fallback`` is not registered.
    """

    def __init__(self, *, fallback: str | None = None, replacement: str | None = None) -> None:
        if replacement is not None and not replacement.strip():
            raise ConfigurationError("`replacement` is blank: leave it out to have an error raised")
        self._fallback = fallback
        self._replacement = replacement

    async def wrap_model(
        self, ctx: RunContext[Any], request: ModelRequest, call_next: ModelHandler
    ) -> ModelResponse:
        """Call, and see to a refusal."""
        if self._fallback is None:
            return self._settled(await _answer(call_next, request))
        check_model_names(ctx, (self._fallback,), self.name)
        # What is behind may change a request: the other model gets the one that was given.
        answer = await _answer(call_next, replace(request, messages=list(request.messages)))
        asked = _asked(ctx, request, answer)
        if _is_refusal(answer) and asked != self._fallback:
            ctx.emit(
                "model.fallback_selected",
                call_id=ctx.model_call_id,
                from_model=asked,
                to_model=self._fallback,
            )
            answer = await _answer(call_next, replace(request, model=self._fallback))
        return self._settled(answer)

    def _settled(self, answer: ModelResponse | ContentFilterError) -> ModelResponse:
        """Return what the run goes on with.

        Raises:
            ModelRefusedError: It is a refusal, and there is nothing to say instead.
        """
        if isinstance(answer, ContentFilterError):
            if self._replacement is None:
                raise answer
            answer = ModelResponse(AssistantMessage(content=()))
        elif not _is_refusal(answer):
            return answer
        elif self._replacement is None:
            raise _refused(answer)
        told = [TextBlock(text=self._replacement)]
        answer.message = answer.message.model_copy(update={"content": told})
        answer.finish_reason, answer.continue_turn = "stop", None
        return answer


async def _answer(
    call: Callable[[ModelRequest], Any], request: ModelRequest
) -> ModelResponse | ContentFilterError:
    try:
        answer: ModelResponse = await call(request)
    except ContentFilterError as error:
        return error
    return answer


def _is_refusal(answer: ModelResponse | ContentFilterError) -> bool:
    return (
        isinstance(answer, ContentFilterError)
        or answer.refusal is not None
        or answer.finish_reason in ("refusal", "content_filter")
    )


def _asked(
    ctx: RunContext[Any], request: ModelRequest, answer: ModelResponse | ContentFilterError
) -> str:
    """Return the registered name of the model that was asked."""
    if isinstance(answer, ModelResponse) and answer.resolved_model is not None:
        return answer.resolved_model.name
    return request.model or ctx.models.default or ""


def _refused(answer: ModelResponse) -> ModelRefusedError:
    resolved = answer.resolved_model
    filtered = answer.finish_reason == "content_filter"
    return ModelRefusedError(
        "a content filter has cut the answer" if filtered else "the model declined to answer",
        text=answer.refusal or answer.text,
        reason="content_filter" if filtered else "refusal",
        provider=(resolved.provider or None) if resolved is not None else None,
        model=resolved.name if resolved is not None else None,
        request_id=answer.request_id,
    )
