"""A time limit for each model call as a whole."""

from functools import partial
from typing import Any

from ...concurrency import DeadlineExpired, within
from ...context import RunContext
from ...errors import RunTimeoutError
from ...model import ModelRequest, ModelResponse
from ...options import check_above_zero
from .._base import Middleware, ModelHandler


class TimeoutMiddleware(Middleware[Any]):
    """Ends a model call that takes too long, its retries and fallbacks included.

    What is under way is cancelled and awaited. In a stream the time in which nobody reads counts, too;
    ``RunLimits.model_timeout``, which limits a single attempt, leaves that out.

    Hooks: ``wrap_model``. It changes nothing. Raises ``RunTimeoutError``, which is never retried and
    from which no other model takes over.

    Args:
        seconds: How long the call may take.

    Raises:
        ConfigurationError: That is not above 0.
    """

    def __init__(self, seconds: float) -> None:
        check_above_zero(seconds=seconds)
        self._seconds = seconds

    async def wrap_model(
        self, ctx: RunContext[Any], request: ModelRequest, call_next: ModelHandler
    ) -> ModelResponse:
        """Call, and give up when the time is over."""
        try:
            return await within(self._seconds, partial(call_next, request))
        except DeadlineExpired:
            raise RunTimeoutError(
                f"the model call `{ctx.model_call_id}` of the run `{ctx.run_id}` did not end within "
                f"{self._seconds * 1000:g} ms (`{self.name}`)",
                seconds=self._seconds,
            ) from None
