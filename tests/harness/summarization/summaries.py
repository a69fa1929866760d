"""Summarisers for tests."""

from collections.abc import Sequence
from typing import Any

from tinyagents import RunContext, SystemMessage
from tinyagents.harness.message import Message
from tinyagents.harness.summarization import (
    CompressionProvenance,
    SummaryRecord,
    message_ref,
    record_of,
)


class CountingSummarizer:
    """Says how many summaries it has made, and of how many messages."""

    def __init__(self) -> None:
        self.sources: list[tuple[Message, ...]] = []
        self.goals: list[str | None] = []

    async def summarize(
        self,
        messages: Sequence[Message],
        *,
        goal: str | None = None,
        reason: str = "",
        ctx: RunContext[Any] | None = None,
    ) -> SummaryRecord:
        self.sources.append(tuple(messages))
        self.goals.append(goal)
        text = f"[summary {len(self.sources)} of {len(messages)}]"
        return record_of(
            messages,
            SystemMessage(content=text),
            CompressionProvenance(
                source_ids=tuple(map(message_ref, messages)),
                original_token_estimate=10 * len(messages),
                summary_token_estimate=8,
                reason=reason,
            ),
        )


class BrokenSummarizer:
    """Fails, and counts how often."""

    calls = 0

    async def summarize(
        self,
        messages: Sequence[Message],
        *,
        goal: str | None = None,
        reason: str = "",
        ctx: RunContext[Any] | None = None,
    ) -> SummaryRecord:
        self.calls += 1
        raise RuntimeError("no summary today")
