"""Steps by which a conversation is made shorter, for whoever applies them in an order."""

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

from ..context import RunContext
from ..errors import ConfigurationError, ModelNotFoundError, RunCancelledError
from ..message import Message
from ..options import check_above_zero, check_at_least, names_of
from ..token_estimation import TokenEstimator
from ._apply import StoredSummary, store_summary, summarize_plan
from ._clearing import cleared_result, drop_retrieved
from ._policy import SummarizationPolicy
from ._records import is_summary
from ._results import trim_results
from ._summarizer import ConcatSummarizer, Summarizer
from ._trim import TrimStrategy, trim_messages

_log = logging.getLogger("tinyagents.summarization")

SUMMARY_FAULTS: Final = (RunCancelledError, ModelNotFoundError, ConfigurationError)
"""What a summariser raises that is no failure of the summary: it always passes through."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShorteningTask:
    """What a step is to do, and with what."""

    ctx: RunContext[Any]
    target: int
    """The tokens that the messages should be at most; one step need not get there."""
    estimator: TokenEstimator
    goal: str | None = None
    """What the conversation is for."""
    focus: str | None = None
    """What else is still needed."""
    reason: str = ""
    """Why it is made shorter."""
    kept: bool = False
    """Whether the result takes the transcript's place, and a summary in it is to be stored."""
    by: str = ""
    """Who applies the step, for its events."""


class ContextStep(Protocol):
    """One way to make a conversation shorter. Its class name is what events call it."""

    async def shorten(self, messages: Sequence[Message], task: ShorteningTask) -> Sequence[Message]:
        """Return the conversation made shorter, or as it is where the step can do nothing.

        Exchanges stay whole, system messages in front, and results marked ``trusted_verbatim`` as
        they are. The messages given are not changed.
        """
        ...


class Summarize:
    """Puts a summary in the place of the older part.

    Args:
        summarizer: Makes it; :class:`ConcatSummarizer`, which asks no model, by default.
        keep_last: How many of the last messages stay as they are.
        on_failure: ``pass_through`` leaves the conversation to the next step, ``abort`` raises.
    """

    def __init__(
        self,
        summarizer: Summarizer | None = None,
        *,
        keep_last: int = 8,
        on_failure: Literal["pass_through", "abort"] = "pass_through",
    ) -> None:
        if on_failure not in ("pass_through", "abort"):
            raise ConfigurationError(
                f"`on_failure` is {on_failure!r}: there are `pass_through` and `abort`"
            )
        self._summarizer = summarizer or ConcatSummarizer()
        self._policy = SummarizationPolicy(keep_last=keep_last)
        self._on_failure = on_failure

    async def shorten(self, messages: Sequence[Message], task: ShorteningTask) -> Sequence[Message]:
        """Return the conversation with a summary in it."""
        plan = self._policy.plan(messages)
        if plan.is_empty:
            return messages
        try:
            record = await summarize_plan(
                task.ctx,
                plan,
                self._summarizer,
                by=task.by or type(self).__name__,
                goal=task.goal,
                focus=task.focus,
                reason=task.reason,
            )
        except SUMMARY_FAULTS:
            raise
        except Exception as error:
            if self._on_failure == "abort":
                raise
            _log.warning(
                "a conversation could not be summarised", exc_info=task.ctx.loggable(error)
            )
            return messages
        shorter = plan.with_summary(record.summary)
        if task.estimator.messages(shorter) >= task.estimator.messages(messages):
            return messages
        if task.kept:
            store_summary(task.ctx, StoredSummary(record=record, goal=task.goal))
        return shorter


class DropRetrieved:
    """Drops what was looked up for earlier turns: see :func:`~tinyagents.harness.message.retrieved_block`.

    Args:
        keep_turns: For how many of the latest turns of the user it stays.
    """

    def __init__(self, *, keep_turns: int = 1) -> None:
        if keep_turns < 0:
            raise ConfigurationError(f"`keep_turns` is {keep_turns}: it must not be negative")
        self._keep_turns = keep_turns

    async def shorten(self, messages: Sequence[Message], task: ShorteningTask) -> Sequence[Message]:
        """Return the conversation without what was looked up."""
        return drop_retrieved(messages, keep_turns=self._keep_turns)


class ClearToolResults:
    """Puts a placeholder in the place of old results, the oldest first, as far as is needed.

    Args:
        keep_recent: How many of the latest results stay.
        exclude_tools: Tools whose results stay.
    """

    def __init__(self, *, keep_recent: int = 3, exclude_tools: Collection[str] = ()) -> None:
        check_at_least(0, keep_recent=keep_recent)
        self._keep_recent = keep_recent
        self._excluded = names_of("exclude_tools", exclude_tools)

    async def shorten(self, messages: Sequence[Message], task: ShorteningTask) -> Sequence[Message]:
        """Return the conversation with its old results cleared."""
        count = task.estimator.message
        places = [place for place, message in enumerate(messages) if message.role == "tool"]
        left, tokens = list(messages), task.estimator.messages(messages)
        for place in places[: max(0, len(places) - self._keep_recent)]:
            message = messages[place]
            if tokens <= task.target:
                break
            if (
                message.role != "tool"
                or message.trusted_verbatim
                or message.name in self._excluded
                or count(cleared := cleared_result(message)) >= count(message)
            ):
                continue
            left[place] = cleared
            tokens += count(cleared) - count(message)
        return left


class CompactToolOutputs:
    """Cuts the middle out of long results: the largest first, recent ones last.

    Args:
        keep_last: How many messages at the end are spared as long as possible.
        keep_characters: How much of a result stays.
    """

    def __init__(self, *, keep_last: int = 4, keep_characters: int = 2_000) -> None:
        check_at_least(0, keep_last=keep_last, keep_characters=keep_characters)
        self._keep_last = keep_last
        self._keep_characters = keep_characters

    async def shorten(self, messages: Sequence[Message], task: ShorteningTask) -> Sequence[Message]:
        """Return the conversation with its longest results cut."""
        return trim_results(
            messages,
            task.target,
            keep_last=self._keep_last,
            keep_characters=self._keep_characters,
            estimator=task.estimator,
        ).messages


class TrimOldest:
    """Drops the oldest exchanges until the rest fits; the last one always stays.

    Args:
        keep_last: How many of the last messages stay however large they are.
    """

    def __init__(self, *, keep_last: int = 1) -> None:
        check_above_zero(keep_last=keep_last)
        self._keep_last = keep_last

    async def shorten(self, messages: Sequence[Message], task: ShorteningTask) -> Sequence[Message]:
        """Return the newest part of the conversation."""
        return trim_oldest(
            messages, task.target, keep_last=self._keep_last, estimator=task.estimator
        )


def default_steps(summarizer: Summarizer | None = None) -> tuple[ContextStep, ...]:
    """Return the usual steps, the cheapest and least lossy first.

    Trimming comes last: before a summary it would leave nothing to summarise.

    Args:
        summarizer: Adds a :class:`Summarize` step.
    """
    summaries = () if summarizer is None else (Summarize(summarizer),)
    return (
        DropRetrieved(),
        ClearToolResults(),
        *summaries,
        CompactToolOutputs(),
        TrimOldest(),
    )


def trim_oldest(
    messages: Sequence[Message], limit: int, *, keep_last: int = 1, estimator: TokenEstimator
) -> list[Message]:
    """Return the newest part of a conversation that is within ``limit`` tokens.

    The last ``keep_last`` messages stay however large they are. System messages, results marked
    ``trusted_verbatim`` and what the user said at the beginning of a turn of which a part is kept
    stay too; and a summary, which is all that is left of what it stands for, unless with it there are
    more than ``limit``.
    """
    summaries = [m for m in messages if m.role != "system" and is_summary(m)]
    if summaries:
        others = [m for m in messages if m.role == "system" or not is_summary(m)]
        room = max(0, limit - sum(map(estimator.message, summaries)))
        newest = _newest_within(others, room, keep_last, estimator)
        front = sum(1 for m in newest if m.role == "system")
        newest[front:front] = summaries
        if estimator.messages(newest) <= limit:
            return newest
    return _newest_within(messages, limit, keep_last, estimator)


def _newest_within(
    messages: Sequence[Message], limit: int, keep_last: int, estimator: TokenEstimator
) -> list[Message]:
    least = trim_messages(messages, TrimStrategy.keep_last(keep_last), keep_user_turn=True)
    if estimator.messages(least) >= limit:
        return least
    newest = trim_messages(
        messages,
        TrimStrategy.max_tokens(limit),
        keep_user_turn=True,
        estimate=estimator.message,
    )
    return newest if len(newest) >= len(least) else least
