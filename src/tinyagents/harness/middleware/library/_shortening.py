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


def tokens_saved(
    before: Sequence[Message], after: Sequence[Message], estimator: TokenEstimator
) -> int:
    """Return how many tokens fewer messages are after some were put in the places of others."""
    count = estimator.message
    return sum(
        count(one) - count(other)
        for one, other in zip(before, after, strict=True)
        if one is not other
    )


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
    whole = estimator.messages(before)
    if len(before) == len(messages):
        left = whole - tokens_saved(before, messages, estimator)
    else:
        left = estimator.messages(messages)
    ctx.emit("context.compressed", from_tokens=whole, to_tokens=left, by=by)
