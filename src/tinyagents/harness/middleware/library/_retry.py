"""A model call made again when it has failed."""

from dataclasses import replace
from typing import Any

from ...context import RunContext
from ...errors import ModelError, TinyAgentsError
from ...model import ModelRequest, ModelResponse
from ...options import check_kind
from ...retry import RetryPolicy
from ...text import error_text
from .._base import Middleware, ModelHandler

_ONCE = RetryPolicy(max_attempts=1)


class RetryMiddleware(Middleware[Any]):
    """Makes a failed model call again, with all that is registered after it: limits, timeouts, fallbacks.

    It takes the place of the run's own retries, so that attempts do not multiply: what it surrounds is
    tried once each time. A request with a ``retry`` of its own is retried by that policy.
    ``RunLimits.max_retries_per_call`` holds.

    Hooks: ``wrap_model``. It changes nothing but the request's ``retry``. Events: ``retry.scheduled``
    before each further attempt. The last error is raised.

    Args:
        policy: Which errors, how often, and how long between; ``RetryPolicy()`` by default.

    Raises:
        ConfigurationError: It is no policy.
    """

    def __init__(self, policy: RetryPolicy | None = None) -> None:
        self._policy = RetryPolicy() if policy is None else policy
        check_kind("policy", self._policy, RetryPolicy, like="RetryPolicy(max_attempts=3)")

    async def wrap_model(
        self, ctx: RunContext[Any], request: ModelRequest, call_next: ModelHandler
    ) -> ModelResponse:
        """Call until it succeeds or the policy says to stop."""
        policy = request.retry or self._policy
        most = min(policy.max_attempts, ctx.limits.max_retries_per_call + 1)
        given, attempt, made, waited = request, 1, 0, 0.0
        while True:
            # What is behind may change a request: each attempt begins with the one that was given.
            request = replace(given, messages=list(given.messages), retry=_ONCE)
            try:
                response = await call_next(request)
            except Exception as error:
                # One attempt here is several where models of `RunPolicy.fallback` have taken over.
                made += error.attempts if isinstance(error, ModelError) else 1
                if attempt >= most or not policy.should_retry(error, attempt):
                    if isinstance(error, ModelError):
                        error.attempts = made
                    raise
                delay = policy.delay_after(attempt, error)
                self._announce(ctx, attempt, delay, error)
            else:
                response.attempts += made
                response.timing.waited += waited
                return response
            await ctx.sleep(delay)
            waited += delay
            attempt += 1

    def _announce(self, ctx: RunContext[Any], attempt: int, delay: float, error: Exception) -> None:
        ctx.emit(
            "retry.scheduled",
            call_id=ctx.model_call_id or "",
            attempt=attempt,
            delay=delay,
            error=error_text(error),
            error_kind=error.kind if isinstance(error, TinyAgentsError) else type(error).__name__,
        )
