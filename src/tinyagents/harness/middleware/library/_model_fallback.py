"""Other models asked when one has failed."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...context import RunContext
from ...errors import ConfigurationError
from ...model import ModelRequest, ModelResponse
from ...retry import is_retryable
from .._base import Middleware, ModelHandler


class ModelFallbackMiddleware(Middleware[Any]):
    """Asks other models in turn, as long as the failure is one that may not be theirs as well.

    That is what ``error.retryable`` says; of other errors none takes over, and they are raised at once.
    Each model gets the run's retries first. When all have failed, the last error is raised.

    Hooks: ``before_agent``, ``wrap_model``. It changes the request's ``model``. Events:
    ``model.fallback_selected``.

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
        self._models = tuple(models)

    async def before_agent(self, ctx: RunContext[Any]) -> None:
        """Refuse to start with models that there are not."""
        if unknown := [name for name in self._models if name not in ctx.models]:
            raise ConfigurationError(
                f"`{self.name}` names the model `{unknown[0]}`, which is not registered; there are "
                + ", ".join(f"`{name}`" for name in ctx.models)
            )

    async def wrap_model(
        self, ctx: RunContext[Any], request: ModelRequest, call_next: ModelHandler
    ) -> ModelResponse:
        """Call, and take the next model while it fails."""
        asked = request.model or ""
        following = [name for name in self._models if name != asked]
        given = request
        while True:
            request = replace(given, messages=list(given.messages), model=asked or None)
            try:
                return await call_next(request)
            except Exception as error:
                if not following or not is_retryable(error):
                    raise
            failed, asked = asked, following.pop(0)
            ctx.emit(
                "model.fallback_selected",
                call_id=ctx.model_call_id or "",
                from_model=failed,
                to_model=asked,
            )
