"""Model calls held back to a rate."""

import math
from collections.abc import Callable
from typing import Any, Literal

from ...context import RunContext
from ...errors import ConfigurationError, LimitExceededError
from ...model import ModelRequest, ModelResponse
from ...options import check_at_least, check_choice
from ...retry import RateLimiter
from .._base import Middleware, ModelHandler


class RateLimitMiddleware(Middleware[Any]):
    """Holds model calls back until a limiter has room for them, or refuses them.

    Calls wait in the order in which they come, those of other runs and harnesses with the same limiter
    too. A call that is cancelled while it waits gives its place back.

    Hooks: ``wrap_model``. It changes nothing. Events: ``rate_limit.waited`` once a call has waited.
    Raises ``LimitExceededError`` where a call may not wait, or would for ever.

    Args:
        limiter: Such as :class:`~tinyagents.harness.retry.TokenBucketRateLimiter`.
        tokens: What a call takes; or a function of the request that says so.
        mode: ``wait``, or ``error`` to refuse a call that would have to.
        max_wait: Seconds; a call that would have to wait longer is refused.

    Raises:
        ConfigurationError: There is no such mode, the longest wait or the tokens are negative, or there is
            a longest wait where none may wait.
    """

    def __init__(
        self,
        limiter: RateLimiter,
        *,
        tokens: float | Callable[[ModelRequest], float] = 1.0,
        mode: Literal["wait", "error"] = "wait",
        max_wait: float | None = None,
    ) -> None:
        check_choice("mode", mode, ("wait", "error"))
        check_at_least(0, max_wait=max_wait)
        if max_wait is not None and mode == "error":
            raise ConfigurationError("with `mode='error'` no call waits: leave `max_wait` out")
        if not callable(tokens):
            check_at_least(0, tokens=tokens)
        self._limiter = limiter
        self._tokens = tokens
        self._longest = 0.0 if mode == "error" else math.inf if max_wait is None else max_wait

    async def wrap_model(
        self, ctx: RunContext[Any], request: ModelRequest, call_next: ModelHandler
    ) -> ModelResponse:
        """Call once there is room."""
        tokens = self._tokens(request) if callable(self._tokens) else self._tokens
        seconds = self._limiter.reserve(tokens)
        if seconds > self._longest:
            self._limiter.give_back(tokens)
            raise LimitExceededError(
                f"the rate limit is reached: there is room in {seconds:.3g} s, and `{self.name}` "
                f"waits {self._longest:g} s",
                limit="rate",
                maximum=self._longest,
                counters={"tokens": tokens, "seconds": seconds},
            )
        if seconds > 0:
            await self._wait(ctx, seconds, tokens)
        return await call_next(request)

    async def _wait(self, ctx: RunContext[Any], seconds: float, tokens: float) -> None:
        try:
            await ctx.sleep(seconds)
        except BaseException:
            self._limiter.give_back(tokens)
            raise
        ctx.emit("rate_limit.waited", waited_ms=seconds * 1000)
