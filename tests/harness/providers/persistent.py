"""Calling again as a run does."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from tinyagents.harness.errors import ModelError
from tinyagents.harness.retry import RetryPolicy

T = TypeVar("T")

POLICY = RetryPolicy(initial_backoff=0.15)


async def persistent(call: Callable[[], Awaitable[T]]) -> tuple[T, list[ModelError]]:
    """Call until there is an answer, and return it with the errors before it.

    Raises:
        ModelError: An error that no further call helps, or the fourth one that one might.
    """
    errors: list[ModelError] = []
    while True:
        try:
            return await call(), errors
        except ModelError as error:
            errors.append(error)
            if not POLICY.should_retry(error, len(errors)):
                raise
            await anyio.sleep(POLICY.delay_after(len(errors), error))
