"""A summary that is put into each request of a run whose transcript stays whole."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...context import RunContext
from ...message import Message
from ...summarization import (
    StoredSummary,
    SummaryPlan,
    SummaryRecord,
    exchanges,
    forget_summary,
    goal_of,
    source_hash,
    store_summary,
    stored_summary,
)


@dataclass(slots=True)
class AppliedSummary:
    """The summary that is kept with a run, as long as it stands for the front of the transcript."""

    stored: StoredSummary | None = None
    covered: tuple[Message, ...] = ()
    """The messages that it was last found to stand for."""

    def fitting(self, ctx: RunContext[Any], body: Sequence[Message]) -> StoredSummary | None:
        """Return the summary if it was made of the messages at the front, and else forget it.

        Args:
            ctx: The run.
            body: The transcript without its system messages.
        """
        stored = self.stored or stored_summary(ctx.notes)
        if stored is None or not stored.covered:
            return None
        front = tuple(body[: stored.covered])
        same = len(front) == len(self.covered) and all(
            one is other for one, other in zip(front, self.covered, strict=True)
        )
        if same or source_hash(front) == stored.covered_hash:
            self.stored, self.covered = stored, front
            return stored
        self.stored, self.covered = None, ()
        noted = stored_summary(ctx.notes)
        if noted is not None and noted.covered:  # and not one that is part of the transcript
            forget_summary(ctx)
        return None

    def store(
        self, ctx: RunContext[Any], record: SummaryRecord, covered: Sequence[Message]
    ) -> None:
        """Keep a summary with the run, in the place of the one before."""
        self.stored = StoredSummary(
            record=record,
            covered=len(covered),
            covered_hash=source_hash(covered),
            goal=goal_of(ctx, covered),
        )
        self.covered = tuple(covered)
        store_summary(ctx, self.stored)


def with_stored(messages: Sequence[Message], stored: StoredSummary) -> list[Message]:
    """Return a conversation with a summary in the place of what it stands for.

    Results in there that are ``trusted_verbatim`` stay, behind the summary.
    """
    body = [message for message in messages if message.role != "system"]
    front = exchanges(body[: stored.covered])
    plan = SummaryPlan(
        system=tuple(message for message in messages if message.role == "system"),
        older=(),
        held=tuple(m for each in front if each.trusted for m in each.messages),
        recent=tuple(body[stored.covered :]),
    )
    return plan.with_summary(stored.record.summary)
