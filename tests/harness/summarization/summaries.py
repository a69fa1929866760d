"""Summarisers and conversations for tests."""

from collections.abc import Sequence
from typing import Any

from tinyagents import AssistantMessage, RunContext, SystemMessage, ToolMessage, UserMessage
from tinyagents.harness.message import Message, ToolCallBlock
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


class SayingSummarizer:
    """Says the same of whatever it is given, in a user message as a model's summary is."""

    def __init__(self, text: str) -> None:
        self.text = text

    async def summarize(
        self,
        messages: Sequence[Message],
        *,
        goal: str | None = None,
        reason: str = "",
        ctx: RunContext[Any] | None = None,
    ) -> SummaryRecord:
        provenance = CompressionProvenance(
            source_ids=tuple(map(message_ref, messages)),
            original_token_estimate=10 * len(messages),
            summary_token_estimate=8,
            reason=reason,
        )
        return record_of(messages, UserMessage(content=self.text), provenance)


def talk(*roles: str, filler: str = "") -> list[Message]:
    """Messages by letter: s, u, a; c for a call with its result, t for a trusted one."""
    messages: list[Message] = []
    for n, role in enumerate(roles):
        match role:
            case "s":
                messages.append(SystemMessage(content=f"s{n}"))
            case "u":
                messages.append(UserMessage(content=f"u{n}{filler}"))
            case "a":
                messages.append(AssistantMessage(content=f"a{n}{filler}"))
            case _:
                block = ToolCallBlock(id=f"c{n}", name="look", arguments={})
                messages.append(AssistantMessage(content=[block]))
                messages.append(
                    ToolMessage(
                        tool_call_id=f"c{n}",
                        content=f"r{n}{filler}",
                        trusted_verbatim=role == "t",
                    )
                )
    return messages
