"""Applying steps to a conversation until it is short enough."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..message import Message
from ._steps import ContextStep, ShorteningTask


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortened:
    """A conversation after the steps."""

    messages: list[Message]
    tokens: int
    """About how many its messages are."""
    steps: tuple[str, ...]
    """Those that have made it shorter; none where it is as it was."""


async def apply_steps(
    steps: Iterable[ContextStep], messages: Sequence[Message], task: ShorteningTask
) -> Shortened:
    """Take one step after the other until the messages are within ``task.target``.

    What a step returns counts only where it is shorter. Each that does emits ``context.compressed``
    with the sizes of the messages.
    """
    estimator = task.estimator
    left, tokens = list(messages), estimator.messages(messages)
    taken: list[str] = []
    for step in steps:
        if tokens <= task.target:
            break
        shorter = list(await step.shorten(left, task))
        size = estimator.messages(shorter)
        if size >= tokens or not shorter:
            continue
        name = type(step).__name__
        task.ctx.emit("context.compressed", by=name, from_tokens=tokens, to_tokens=size)
        left, tokens = shorter, size
        taken.append(name)
    return Shortened(messages=left, tokens=tokens, steps=tuple(taken))
