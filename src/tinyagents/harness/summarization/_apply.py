"""Putting a summary in the place of the older part of a conversation, with its events."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final

import anyio
from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from ..context import RunContext
from ..errors import SummaryError
from ..message import Message
from ..text import error_text
from ._policy import SummaryPlan
from ._records import SummaryMessage, SummaryRecord, is_summary
from ._summarizer import Summarizer

SUMMARY_HOOK: Final = "summarize"
"""What the events of a middleware call the making of a summary."""
_NOTE: Final = "context.summary"


class StoredSummary(BaseModel):
    """The latest summary of a run, as its snapshot keeps it."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    record: SummaryRecord
    covered: int = 0
    """How many messages at the front of the transcript, system messages not counted, it stands for;
    0 where it is itself part of the transcript."""
    covered_hash: str = ""
    goal: str | None = None
    """What the conversation was for, whose words may be summarised by now."""


def stored_summary(notes: Mapping[str, JsonValue]) -> StoredSummary | None:
    """Return the latest summary that a run's notes hold: those of a context, or of a snapshot."""
    note = notes.get(_NOTE)
    if note is None:
        return None
    try:
        return StoredSummary.model_validate(note)
    except ValidationError:
        # Written by another version: then it is made anew.
        return None


def store_summary(ctx: RunContext[Any], stored: StoredSummary) -> None:
    """Keep a summary with the run, in the place of the one before."""
    ctx.notes[_NOTE] = stored.model_dump(mode="json")


def forget_summary(ctx: RunContext[Any]) -> None:
    """Forget the summary that is kept with a run."""
    ctx.notes.pop(_NOTE, None)


async def summarize_plan(
    ctx: RunContext[Any],
    plan: SummaryPlan,
    summarizer: Summarizer,
    *,
    by: str,
    goal: str | None = None,
    focus: str | None = None,
    reason: str = "",
    check: Callable[[SummaryMessage], None] | None = None,
) -> SummaryRecord:
    """Summarise the older part of a conversation.

    The making stands between ``middleware.started`` and ``middleware.completed`` or ``.failed`` of
    the hook ``summarize``; ``context.summarized`` tells of the summary.

    Args:
        ctx: The run.
        plan: The conversation; its older part is not empty.
        summarizer: Makes the summary.
        by: What the events call whoever asks for it.
        goal: What the conversation is for.
        focus: What else is still needed.
        reason: Why it is summarised, for the provenance.
        check: Raises where the summary is of no use.

    Raises:
        SummaryError: The summary says nothing. Whatever else the summariser raises passes through.
    """
    ctx.emit("middleware.started", name=by, hook=SUMMARY_HOOK)
    try:
        aim = "\nStill needed: ".join(each for each in (goal, focus) if each) or None
        record = await summarizer.summarize(plan.older, goal=aim, reason=reason, ctx=ctx)
        if not record.summary.text.strip():
            raise SummaryError(f"`{type(summarizer).__name__}` made a summary without any words")
        if check is not None:
            check(record.summary)
    except BaseException as error:
        cancelled = isinstance(error, anyio.get_cancelled_exc_class())
        why = "cancelled" if cancelled else f"{type(error).__name__}: {error_text(error)}"
        ctx.emit("middleware.failed", name=by, hook=SUMMARY_HOOK, error=why)
        raise
    ctx.emit("middleware.completed", name=by, hook=SUMMARY_HOOK)
    told = record.provenance
    ctx.emit(
        "context.summarized",
        by=by,
        record_id=record.id,
        previous=record.previous,
        messages=len(plan.older),
        from_tokens=told.original_token_estimate,
        to_tokens=told.summary_token_estimate,
        model=told.model,
        prompt_version=told.prompt_version,
    )
    return record


def goal_of(ctx: RunContext[Any], messages: Sequence[Message]) -> str | None:
    """Return what a conversation is for: what the user said last, be it summarised by now."""
    for message in reversed(messages):
        if message.role == "user" and not is_summary(message) and message.text:
            return message.text
    stored = stored_summary(ctx.notes)
    return stored.goal if stored is not None else None
