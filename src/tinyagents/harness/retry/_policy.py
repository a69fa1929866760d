"""When a failed call is made again, how long before that, and which model takes over."""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass

from ..errors import ConfigurationError, ModelError, TinyAgentsError


def is_retryable(error: BaseException) -> bool:
    """Whether the same call may succeed when made again: the error's own ``retryable``."""
    return isinstance(error, TinyAgentsError) and error.retryable


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often a failed model call is made again, and how long before that."""

    max_attempts: int = 4
    """Calls in all, the first one included."""
    initial_backoff: float = 0.2
    """Seconds before the second call."""
    multiplier: float = 2.0
    """Each wait is so many times the one before."""
    max_backoff: float = 30.0
    """Seconds, the longest wait that the policy itself chooses."""
    jitter: float = 0.0
    """Varies each wait at random by up to this part of it: 0.25 is a quarter up or down."""
    max_retry_after: float = 120.0
    """Seconds, the longest wait that a provider's ``Retry-After`` can ask for."""

    retry_on: Callable[[BaseException], bool] | None = None
    """Decides in place of :func:`is_retryable` which errors are worth another call."""

    def should_retry(self, error: BaseException, attempt: int) -> bool:
        """Whether to call again after attempt number ``attempt`` (the first is 1) failed."""
        return attempt < self.max_attempts and (self.retry_on or is_retryable)(error)

    def delay_after(
        self,
        attempt: int,
        error: BaseException | None = None,
        *,
        uniform: Callable[[float, float], float] = random.uniform,
    ) -> float:
        """Return the seconds to wait after failed attempt number ``attempt``.

        A provider's ``Retry-After`` (``error.retry_after``) can only make the wait longer.

        Args:
            attempt: The first is 1.
            error: How it failed.
            uniform: Draws the jitter between two bounds.
        """
        delay = self.initial_backoff * self._growth(attempt)
        if self.jitter:
            delay *= 1 + uniform(-self.jitter, self.jitter)
        asked = error.retry_after if isinstance(error, ModelError) else None
        return max(0.0, min(delay, self.max_backoff), min(asked or 0.0, self.max_retry_after))

    def _growth(self, attempt: int) -> float:
        try:
            return float(self.multiplier) ** (attempt - 1)
        except OverflowError:  # some thousand attempts
            return math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class FallbackPolicy:
    """Models to ask instead when one has failed for good, by their registered names."""

    models: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        given: object = self.models
        if isinstance(given, str):
            raise ConfigurationError(
                f"`models` is a sequence of names: write models=({self.models!r},)"
            )
        object.__setattr__(self, "models", tuple(self.models))

    def next_after(self, current: str) -> str | None:
        """Return the entry after the first ``current``; ``None`` where it is last or not listed."""
        if current not in self.models:
            return None
        following = self.models.index(current) + 1
        return self.models[following] if following < len(self.models) else None

    def successor(self, failed: str) -> str | None:
        """Return the model that takes over from ``failed``, ``None`` where there is none left.

        It is the entry after it, or the first one where ``failed`` is not of the chain, as the
        model that a run begins with need not be.
        """
        if failed in self.models:
            return self.next_after(failed)
        return self.models[0] if self.models else None
