"""Older turns said in fewer words, by rules and without a model."""

import re
from collections.abc import Sequence
from typing import Any

from ...context import RunContext
from ...memo import MessageCache
from ...message import AssistantMessage, Block, Message, TextBlock, ToolMessage
from ...model import ModelRequest
from ...options import check_above_zero, check_at_least
from ...token_estimation import TokenCounterLike, TokenEstimator
from .._base import Middleware
from ._shortening import put_shorter

_TRAILING = re.compile(r"(?<![ \t])[ \t]+(?=\n|\Z)")
"""Looked for at the start of a run only: a long one inside a line would take quadratic time."""
_BLANK = re.compile(r"\n{3,}")
_RULES = re.compile(r"([-=_*#~.])\1{9,}")


class TranscriptCompressionMiddleware(Middleware[Any]):
    """Sends older messages with less in them: no blank space, no result twice, no old reasoning.

    Of a result that the same tool has returned before, word for word, only the latest is sent whole.
    Reasoning that carries a signature or sealed data stays, as does that of the turn that is going on,
    which some providers want back, and so do trusted results. The transcript keeps all of it.

    The line between older messages and recent ones moves ``step`` messages at a time, so that prompts
    go on from each other in between.

    Hooks: ``before_model``. It changes messages of the request. Events: ``context.compressed``.

    Args:
        keep_recent: How many messages at the end stay as they are, at least.
        step: How many messages the line moves at once.
        whitespace: Drop trailing blanks, blank lines after the first and long rules of one character.
        duplicates: Send a result that comes again once.
        reasoning: Drop what the model thought.
        counter: Counts tokens: see :class:`~tinyagents.harness.token_estimation.TokenEstimator`.

    Raises:
        ConfigurationError: ``keep_recent`` is negative, or ``step`` not above 0.
    """

    def __init__(
        self,
        *,
        keep_recent: int = 10,
        step: int = 10,
        whitespace: bool = True,
        duplicates: bool = True,
        reasoning: bool = True,
        counter: TokenCounterLike | None = None,
    ) -> None:
        check_at_least(0, keep_recent=keep_recent)
        check_above_zero(step=step)
        self._keep_recent = keep_recent
        self._step = step
        self._whitespace = whitespace
        self._duplicates = duplicates
        self._reasoning = reasoning
        self._estimator = TokenEstimator(counter)
        # No message is kept as what was made of itself: it would live as long as the cache.
        self._shorter: MessageCache[bool, Message | None] = MessageCache(self._compressed)
        self._repeated: MessageCache[None, Message] = MessageCache(_said_again)

    async def before_model(self, ctx: RunContext[Any], request: ModelRequest) -> None:
        """Shorten what is old."""
        messages = request.messages
        older = max(0, len(messages) - self._keep_recent) // self._step * self._step
        again = _repeated(messages[:older]) if self._duplicates else frozenset[int]()
        turn = _latest_turn(messages)
        shorter = [
            self._repeated.of(message, None)
            if place in again
            else self._shorter.of(message, self._reasoning and place < turn) or message
            for place, message in enumerate(messages[:older])
        ]
        left = [message for message in shorter if message.content or message.role != "assistant"]
        await put_shorter(ctx, request, [*left, *messages[older:]], self._estimator, self.name)

    def _compressed(self, message: Message, without_reasoning: bool) -> Message | None:
        """Return a shorter form of a message; ``None`` where there is none."""
        if message.role == "system" or (
            isinstance(message, ToolMessage) and message.trusted_verbatim
        ):
            return None
        content = [
            self._block(block)
            for block in message.content
            if not (without_reasoning and _is_open_reasoning(block))
        ]
        unchanged = len(content) == len(message.content) and all(
            one is other for one, other in zip(content, message.content, strict=True)
        )
        return None if unchanged else message.model_copy(update={"content": content})

    def _block(self, block: Block) -> Block:
        if block.type != "text" or block.provider_data is not None or not self._whitespace:
            return block
        text = _RULES.sub(r"\1\1\1", _BLANK.sub("\n\n", _TRAILING.sub("", block.text)))
        # Providers refuse a block without text.
        return block if text in ("", block.text) else TextBlock(text=text)


def _is_open_reasoning(block: Block) -> bool:
    return block.type == "reasoning" and not (block.signature or block.data or block.provider_data)


def _latest_turn(messages: Sequence[Message]) -> int:
    """Return the place of what the user said last; 0 where that is nothing."""
    return next((n for n in range(len(messages) - 1, 0, -1) if messages[n].role == "user"), 0)


def _repeated(messages: Sequence[Message]) -> frozenset[int]:
    """Return the places of results that the same tool returns again later on."""
    latest: dict[tuple[str | None, str], int] = {}
    again: set[int] = set()
    for place, message in enumerate(messages):
        if not isinstance(message, ToolMessage) or message.trusted_verbatim:
            continue
        key = (message.name, message.text)
        if len(message.text) > len(_AGAIN) and all(b.type == "text" for b in message.content):
            if key in latest:
                again.add(latest[key])
            latest[key] = place
    return frozenset(again)


_AGAIN = "[the same result as that of a later call, which is given in full there]"


def _said_again(message: Message, _: None) -> Message:
    assert not isinstance(message, AssistantMessage)
    return message.model_copy(update={"content": [TextBlock(text=_AGAIN)]})
