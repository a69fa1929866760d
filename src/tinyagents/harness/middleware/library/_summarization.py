"""Puts a summary in the place of the older part of a conversation."""

import logging
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from ...context import RunContext
from ...errors import ConfigurationError, SummaryError
from ...message import Message
from ...model import ModelRequest
from ...summarization import (
    SUMMARY_FAULTS,
    ConcatSummarizer,
    ContextArchive,
    ContextSize,
    StoredSummary,
    SummarizationPolicy,
    Summarizer,
    SummaryPlan,
    SummaryRecord,
    WindowFraction,
    compaction_request,
    goal_of,
    is_summary,
    put_away,
    store_summary,
    summarize_plan,
    trim_oldest,
)
from ...token_estimation import TokenCounterLike, TokenEstimator
from .._base import Middleware
from ._applied_summary import AppliedSummary, with_stored
from ._context_measure import Measured, room_for, warn_of_unknown_window
from ._shortening import send_instead

_log = logging.getLogger("tinyagents.middleware")

SummaryFailurePolicy: TypeAlias = Literal["fallback_trim", "abort", "pass_through"]
_FAILURE_POLICIES: Final = ("fallback_trim", "abort", "pass_through")
_COOLING: Final = 1.1
"""How much larger a conversation is before a summary that has failed is tried again."""
_LEAST_GAIN: Final = 0.1
"""What is not this share of the conversation is not yet worth a summary of its own."""


@dataclass(slots=True)
class _Kept:
    """What is known of a run's context while it lives."""

    measured: Measured
    applied: AppliedSummary = field(default_factory=AppliedSummary)
    not_before: int = 0
    """The size below which no summary is tried again, since the last one failed."""


class SummarizationMiddleware(Middleware[Any]):
    """Summarises the older part of a conversation once it is too large; known as context compression too.

    The summary stands behind the system messages, before the latest messages. By default it is put into
    outgoing requests only and the transcript stays whole; the summary is kept with the run and used again
    as long as it stands for the same messages, and the next one takes it in. With
    ``compact_transcript=True`` it takes their place in the transcript.

    Hooks: ``before_model`` (requests), ``compact`` (the transcript). Events: ``context.summarized`` and
    ``context.compressed``; the making of a summary is bracketed as the hook ``summarize``, and where it
    fails ``middleware.failed`` comes before what ``on_failure`` does.

    Args:
        summarizer: Makes summaries; :class:`ConcatSummarizer`, which asks no model, by default.
        policy: When, and how much stays; by default from 0.8 of the window that the model's profile names
            on, with the last 8 messages kept.
        compact_transcript: Change the transcript, and not only requests.
        on_failure: ``fallback_trim`` drops the oldest messages instead, ``pass_through`` leaves the
            conversation as it is, ``abort`` ends the run with the error.
        max_records: How many of the latest records ``records`` holds, of all runs; 0 for none.
        archive: Where summarised messages of the transcript go, for :func:`search_dropped_tool`.
        counter: Counts tokens: see :class:`TokenEstimator`.

    Raises:
        ConfigurationError: ``on_failure`` is none of these, or ``max_records`` is negative.
    """

    def __init__(
        self,
        summarizer: Summarizer | None = None,
        *,
        policy: SummarizationPolicy | None = None,
        compact_transcript: bool = False,
        on_failure: SummaryFailurePolicy = "fallback_trim",
        max_records: int = 1024,
        archive: ContextArchive | None = None,
        counter: TokenCounterLike | None = None,
    ) -> None:
        if on_failure not in _FAILURE_POLICIES:
            raise ConfigurationError(
                f"`on_failure` is {on_failure!r}: there are {', '.join(_FAILURE_POLICIES)}"
            )
        if max_records < 0:
            raise ConfigurationError(f"`max_records` is {max_records}: it must not be negative")
        self._summarizer = summarizer or ConcatSummarizer()
        self._policy = policy or SummarizationPolicy(keep_last=8, trigger=WindowFraction(0.8))
        self._on_transcript = compact_transcript
        self._on_failure = on_failure
        self._archive = archive
        self._estimator = TokenEstimator(counter)
        self.records: deque[SummaryRecord] = deque(maxlen=max_records)
        """The latest summaries, each with its provenance."""

    async def compact(
        self, ctx: RunContext[Any], messages: Sequence[Message]
    ) -> Sequence[Message] | None:
        """Summarise the older part of the transcript, where that is what to change."""
        if not self._on_transcript:
            return None
        with compaction_request(ctx) as focus:
            return await self._compacted(ctx, messages, focus)

    async def _compacted(
        self, ctx: RunContext[Any], messages: Sequence[Message], focus: str | None
    ) -> Sequence[Message] | None:
        measured = self._kept(ctx).measured
        await self._estimator.prepare(messages)
        tokens = measured.of_transcript(self._estimator, messages)
        plan = self._plan(ctx, messages, tokens, focus)
        if plan is None:
            return None
        record = await self._summarized(ctx, messages, tokens, plan, focus)
        shorter = self._told(ctx, messages, plan, record)
        if shorter is None:
            return None
        if record is not None:
            store_summary(ctx, StoredSummary(record=record, goal=goal_of(ctx, messages)))
        if self._archive is not None:
            await put_away(ctx, self._archive, messages, shorter)
        measured.shortened(shorter)
        measured.transcript = self._estimator.messages(shorter)
        return shorter

    async def before_model(self, ctx: RunContext[Any], request: ModelRequest) -> None:
        """Put the summary into the request, and make one where it has become too large."""
        kept = self._kept(ctx)
        await self._estimator.prepare(request.messages)
        if self._on_transcript:
            kept.measured.of_request(ctx, self._estimator, request)
            return
        with compaction_request(ctx) as focus:
            await self._put_into(ctx, request, kept, focus)

    async def _put_into(
        self, ctx: RunContext[Any], request: ModelRequest, kept: _Kept, focus: str | None
    ) -> None:
        body = [message for message in request.messages if message.role != "system"]
        stored = kept.applied.fitting(ctx, body)
        shown, covered = request.messages, 0
        if stored is not None:
            shown, covered = with_stored(request.messages, stored), stored.covered
        kept.measured.request = request
        counted = not kept.measured.is_stale(shown)
        tokens = self._estimator.prompt(shown, request.tools, reported=counted).total
        plan = self._plan(ctx, shown, tokens, focus)
        # What is held back from an earlier cut does not stand where it stood: only later ones count.
        if plan is not None and len(plan.recent) <= len(body) - covered:
            record = await self._summarized(ctx, shown, tokens, plan, focus)
            shorter = self._told(ctx, shown, plan, record)
            if record is not None and shorter is not None:
                kept.applied.store(ctx, record, body[: len(body) - len(plan.recent)])
            if shorter is not None:
                shown = shorter
                kept.measured.shortened(shown)
        if shown is not request.messages:
            send_instead(request, shown)

    def _plan(
        self, ctx: RunContext[Any], messages: Sequence[Message], tokens: int, focus: str | None
    ) -> SummaryPlan | None:
        """Return how to divide the conversation; ``None`` where it is not to be summarised."""
        if focus is None and not self._is_due(ctx, tokens, len(messages)):
            return None
        plan = self._policy.plan(messages)
        if plan.is_empty:
            return None
        fresh = self._estimator.messages([m for m in plan.older if not is_summary(m)])
        worth = fresh >= _LEAST_GAIN * self._estimator.messages(messages)
        return plan if worth or focus is not None else None

    def _is_due(self, ctx: RunContext[Any], tokens: int, messages: int) -> bool:
        policy, measured = self._policy, self._kept(ctx).measured
        window = policy.context_window
        if window is None and policy.trigger is not None:
            room = room_for(ctx, measured.request)
            window = room.window if room is not None else None
        if window is None and policy.effective_trigger.needs_window:
            warn_of_unknown_window(ctx, self.name, measured)
        return policy.triggers(ContextSize(tokens=tokens, messages=messages, window=window))

    async def _summarized(
        self,
        ctx: RunContext[Any],
        messages: Sequence[Message],
        tokens: int,
        plan: SummaryPlan,
        focus: str | None,
    ) -> SummaryRecord | None:
        """Return the summary of the older part; ``None`` where it failed and the run goes on."""
        kept, size = self._kept(ctx), self._estimator.messages(messages)
        if size < kept.not_before:
            return None

        def check(summary: Message) -> None:
            shorter = plan.with_summary(summary)
            gained = size - self._estimator.messages(shorter)
            # Fewer messages can be what is wanted, however long they are.
            if gained <= 0 and self._is_due(ctx, tokens - gained, len(shorter)):
                raise SummaryError(
                    f"with the summary the conversation has about {size - gained} tokens, "
                    f"without it {size}",
                    source_tokens=self._estimator.messages(plan.older),
                    summary_tokens=self._estimator.messages([summary]),
                )

        reason = (
            "the model asked for it" if focus is not None else repr(self._policy.effective_trigger)
        )
        try:
            record = await summarize_plan(
                ctx,
                plan,
                self._summarizer,
                by=self.name,
                goal=goal_of(ctx, messages),
                focus=focus,
                reason=reason,
                check=check,
            )
        except SUMMARY_FAULTS:
            raise
        except Exception as error:
            if self._on_failure == "abort":
                raise
            _log.warning(
                "`%s` could not summarise a conversation", self.name, exc_info=ctx.loggable(error)
            )
            kept.not_before = int(size * _COOLING) + 1
            return None
        kept.not_before = 0
        self.records.append(record)
        return record

    def _told(
        self,
        ctx: RunContext[Any],
        messages: Sequence[Message],
        plan: SummaryPlan,
        record: SummaryRecord | None,
    ) -> list[Message] | None:
        """Return the shorter conversation, with its event; ``None`` where it stays as it is."""
        before = self._estimator.messages(messages)
        if record is not None:
            shorter = plan.with_summary(record.summary)
        elif self._on_failure == "fallback_trim":
            shorter = self._trimmed(ctx, messages, before)
            if len(shorter) == len(messages):
                return None
        else:
            return None
        after = self._estimator.messages(shorter)
        ctx.emit("context.compressed", by=self.name, from_tokens=before, to_tokens=after)
        return shorter

    def _trimmed(
        self, ctx: RunContext[Any], messages: Sequence[Message], tokens: int
    ) -> list[Message]:
        """Drop the oldest messages until the policy would not trigger."""
        room = room_for(ctx, self._kept(ctx).measured.request, window=self._policy.context_window)
        budget = self._policy.effective_trigger.budget(room.window if room is not None else None)
        return trim_oldest(
            messages,
            tokens // 2 if budget is None else budget,
            keep_last=max(1, self._policy.keep_last),
            estimator=self._estimator,
        )

    def _kept(self, ctx: RunContext[Any]) -> _Kept:
        found = ctx.scratch.get(self)
        if found is None:
            found = ctx.scratch[self] = _Kept(Measured.begin(ctx, self._estimator))
        return found


ContextCompressionMiddleware = SummarizationMiddleware
"""What the original calls it."""
