"""Other models asked when one has failed."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...context import RunContext
from ...errors import CapabilityError, ConfigurationError
from ...model import ModelRequest, ModelResponse
from ...retry import is_retryable
from .._base import Middleware, ModelHandler
from ._model_names import check_model_names


class ModelFallbackMiddleware(Middleware[Any]):
    """Asks other models in turn, as long as the failure is one that may not be theirs as well.

    That is what ``error.retryable`` says; of other errors none takes over, and they are raised at once.
    Each model gets the run's retries first. One that cannot take the request is passed over, and the
    one that has failed first is not asked again. When all have failed, the last error is raised.

    Hooks: ``before_agent``, ``wrap_model``. It changes the request's ``model``. Events:
    ``model.fallback_selected``, ``model.fallback_skipped``.

    Args:
        models: The names of registered models, in the order in which they are asked.

    Raises:
        ConfigurationError: There are none, or one text is given for them; at the first call, one is not
            registered.
    """

    def __init__(self, models: Sequence[str]) -> None:
        if isinstance(models, str) or not models:
            raise ConfigurationError(
                f"`models` is a list of names of registered models, not {models!r}"
            )
        self._models = tuple(dict.fromkeys(models))

    async def before_agent(self, ctx: RunContext[Any]) -> None:
        """Refuse to start with models that there are not."""
        check_model_names(ctx, self._models, self.name)

    async def wrap_model(
        self, ctx: RunContext[Any], request: ModelRequest, call_next: ModelHandler
    ) -> ModelResponse:
        """Call, and take the next model while it fails."""
        failed = request.model or ""
        try:
            return await call_next(_asked_of(request, request.model))
        except Exception as error:
            if not is_retryable(error):
                raise
            last = error
        first = ctx.models.resolve(request).resolved.name
        for name in self._models:
            if name == first:
                continue
            bound = ctx.models.bind_fallback(name, request.required_capabilities)
            if isinstance(bound, str):
                ctx.emit("model.fallback_skipped", model=name, reason=bound)
                continue
            ctx.emit(
                "model.fallback_selected",
                call_id=ctx.model_call_id or "",
                from_model=failed,
                to_model=name,
            )
            try:
                return await call_next(_asked_of(request, name))
            except CapabilityError as refusal:
                ctx.emit("model.fallback_skipped", model=name, reason=refusal.message)
            except Exception as error:
                if not is_retryable(error):
                    raise
                failed, last = name, error
        raise last


def _asked_of(request: ModelRequest, model: str | None) -> ModelRequest:
    # What is behind may change it: each model begins with the request that was given.
    return replace(request, messages=list(request.messages), model=model)
