"""Looked-up passages dropped where they are no longer needed, or too many."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...context import RunContext
from ...errors import ConfigurationError
from ...message import Message, retrieval_of
from ...model import ModelRequest
from ...summarization import start_of_turns, without_blocks
from ...token_estimation import TokenCounterLike, TokenEstimator
from .._base import Middleware
from ._shortening import put_shorter


@dataclass(frozen=True, slots=True)
class _Passage:
    message: int
    block: int
    text: str
    score: float
    tokens: int


class RetrievalCompressionMiddleware(Middleware[Any]):
    """Sends the passages that were looked up for the latest turns, the best ones first within a limit.

    Passages are blocks that were made with
    :func:`~tinyagents.harness.message.retrieved_block`; nothing else is touched, and the transcript
    keeps all of them. A passage that comes again, word for word, is sent once, where it stands last.

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
        if min(max_tokens or 0, keep_turns or 0) < 0:
            raise ConfigurationError("`max_tokens` and `keep_turns` are numbers of 0 or more")
        self._max_tokens = max_tokens
        self._keep_turns = keep_turns
        self._estimator = TokenEstimator(counter)

    async def before_model(self, ctx: RunContext[Any], request: ModelRequest) -> None:
        """Drop passages that are old, come again, or are too many."""
        messages = request.messages
        found = self._passages(messages)
        if not found:
            return
        turns = self._keep_turns
        first = 0 if turns is None else start_of_turns(messages, turns)
        kept = self._chosen(found, first)
        dropped: dict[int, set[int]] = {}
        for each in found:
            if (each.message, each.block) not in kept:
                dropped.setdefault(each.message, set()).add(each.block)
        shorter = list(messages)
        for place, blocks in dropped.items():
            shorter[place] = without_blocks(messages[place], blocks)
        put_shorter(ctx, request, shorter, self._estimator, self.name)

    def _passages(self, messages: Sequence[Message]) -> list[_Passage]:
        found: list[_Passage] = []
        for place, message in enumerate(messages):
            for number, block in enumerate(message.content):
                origin = retrieval_of(block)
                if origin is None or block.type != "text":
                    continue
                score = origin.score if origin.score is not None else 0.0
                tokens = self._estimator.text(block.text)
                found.append(_Passage(place, number, block.text, score, tokens))
        return found

    def _chosen(self, found: Sequence[_Passage], first: int) -> set[tuple[int, int]]:
        """Return which passages stay, of those in messages from ``first`` on."""
        latest = {each.text: each for each in found if each.message >= first}
        # The best of the latest turn come first, then those of the turns before.
        ranked = sorted(latest.values(), key=lambda each: (-each.message, -each.score, each.block))
        kept: set[tuple[int, int]] = set()
        left = self._max_tokens
        for each in ranked:
            if left is not None:
                if each.tokens > left:
                    continue
                left -= each.tokens
            kept.add((each.message, each.block))
        return kept
