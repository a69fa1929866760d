"""Putting fewer or shorter messages into a request, and telling of it."""

from collections.abc import Sequence
from typing import Any

from ...context import RunContext
from ...message import Message
from ...model import ModelRequest
from ...prompt import resized
from ...token_estimation import TokenEstimator


def send_instead(request: ModelRequest, messages: list[Message]) -> None:
    """Have a request send other messages than its own."""
    if request.segments:
        request.segments = resized(request.segments, request.messages, messages)
    request.messages = messages


async def put_shorter(
    ctx: RunContext[Any],
    request: ModelRequest,
    messages: Sequence[Message],
    estimator: TokenEstimator,
    by: str,
) -> None:
    """Have a request send ``messages`` in place of its own; nothing happens where they are the same."""
    before = request.messages
    if len(before) == len(messages) and all(
        one is other for one, other in zip(before, messages, strict=True)
    ):
        return
    send_instead(request, list(messages))
    await estimator.prepare([*before, *messages])
    ctx.emit(
        "context.compressed",
        from_tokens=estimator.messages(before),
        to_tokens=estimator.messages(messages),
        by=by,
    )
