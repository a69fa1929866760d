"""Looked-up passages dropped where they are no longer needed, or too many."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ...context import RunContext
from ...memo import MessageCache
from ...message import Message, ToolMessage, retrieval_of
from ...model import ModelRequest
from ...options import check_at_least
from ...summarization import start_of_turns, without_blocks
from ...token_estimation import TokenCounterLike, TokenEstimator
from .._base import Middleware
from ._shortening import put_shorter


@dataclass(frozen=True, slots=True)
class _Passage:
    block: int
    """Its place among the blocks of its message."""
    text: str
    score: float
    tokens: int


_Place: TypeAlias = tuple[int, int]
"""Of a message and of a block in it."""


class RetrievalCompressionMiddleware(Middleware[Any]):
    """Sends the passages that were looked up for the latest turns, the best ones first within a limit.

    Passages are blocks that were made with
    :func:`~tinyagents.harness.message.retrieved_block`; nothing else is touched, trusted results
    neither, and the transcript keeps all of them. A passage that comes again, word for word, is sent
    once, where it stands last. Those in system messages are of the latest turn.

    Hooks: ``before_model``. It changes messages of the request. Events: ``context.compressed``.

    Args:
        max_tokens: How many tokens all passages together may be; ``None`` for no limit.
        keep_turns: From how many of the latest turns of the user passages are kept; ``None`` for all.
        counter: Counts tokens: see :class:`~tinyagents.harness.token_estimation.TokenEstimator`.

    Raises:
        ConfigurationError: A number is negative.
    """

    def __init__(
        self,
        *,
        max_tokens: int | None = None,
        keep_turns: int | None = 1,
        counter: TokenCounterLike | None = None,
    ) -> None:
        check_at_least(0, max_tokens=max_tokens, keep_turns=keep_turns)
        self._max_tokens = max_tokens
        self._keep_turns = keep_turns
        self._estimator = TokenEstimator(counter)
        self._found: MessageCache[None, tuple[_Passage, ...]] = MessageCache(self._passages)
        self._shorter: MessageCache[tuple[int, ...], Message] = MessageCache(without_blocks)

    async def before_model(self, ctx: RunContext[Any], request: ModelRequest) -> None:
        """Drop passages that are old, come again, or are too many."""
        messages = request.messages
        found = {
            (place, each.block): each
            for place, message in enumerate(messages)
            for each in self._found.of(message, None)
        }
        if not found:
            return
        kept = self._chosen(found, messages)
        dropped: dict[int, list[int]] = {}
        for place, block in found:
            if (place, block) not in kept:
                dropped.setdefault(place, []).append(block)
        shorter = list(messages)
        for place, blocks in dropped.items():
            shorter[place] = self._shorter.of(messages[place], tuple(blocks))
        await put_shorter(ctx, request, shorter, self._estimator, self.name)

    def _passages(self, message: Message, _: None) -> tuple[_Passage, ...]:
        if isinstance(message, ToolMessage) and message.trusted_verbatim:
            return ()
        found: list[_Passage] = []
        for number, block in enumerate(message.content):
            origin = retrieval_of(block)
            if origin is None or block.type != "text":
                continue
            score = origin.score if origin.score is not None else 0.0
            tokens = self._estimator.text(block.text) if self._max_tokens is not None else 0
            found.append(_Passage(number, block.text, score, tokens))
        return tuple(found)

    def _chosen(self, found: Mapping[_Place, _Passage], messages: Sequence[Message]) -> set[_Place]:
        """Return the places of the passages that stay."""
        turns = self._keep_turns
        first = 0 if turns is None else start_of_turns(messages, turns)

        def age(place: _Place) -> int:
            # What the application says, it says for the latest turn, wherever that stands.
            is_system = messages[place[0]].role == "system" and self._keep_turns != 0
            return len(messages) if is_system else place[0]

        latest = {each.text: place for place, each in found.items() if age(place) >= first}
        # The best of the latest message come first, then those of the messages before.
        ranked = sorted(latest.values(), key=lambda p: (-age(p), -found[p].score, p))
        left = self._max_tokens
        if left is None:
            return set(ranked)
        kept: set[_Place] = set()
        for place in ranked:
            if found[place].tokens <= left:
                left -= found[place].tokens
                kept.add(place)
        return kept
