"""Making a summary: the interface, and the summariser that asks no model."""

import re
from collections.abc import Sequence
from typing import Any, Final, Protocol

from ..context import RunContext
from ..errors import ConfigurationError, InvalidRequestError
from ..message import Message, SystemMessage
from ..token_estimation import TokenEstimator
from ._records import (
    CompressionProvenance,
    SummaryMessage,
    SummaryRecord,
    is_summary,
    message_ref,
    named_summary,
    record_of,
)
from ._render import MOST_OF_A_PAYLOAD, render_message

_HEADER: Final = "Summary of the earlier conversation:"
_LEAST_LINE: Final = 80
"""How short a line may become before the oldest are left out."""
_ENTRY: Final = re.compile(r"\[msg-(\d+)\] ")
_LEFT_OUT: Final = re.compile(r"\[(\d+) earlier left out\]")


class Summarizer(Protocol):
    """Says in one message what several messages say. Shared by runs."""

    async def summarize(
        self,
        messages: Sequence[Message],
        *,
        goal: str | None = None,
        reason: str = "",
        ctx: RunContext[Any] | None = None,
    ) -> SummaryRecord:
        """Return a summary of ``messages``, which hold no half of an exchange.

        Where the first is itself a summary (:func:`is_summary`), the new one takes its place too.

        Args:
            messages: What is summarised, at least one message.
            goal: What the conversation is for, so that what matters for it is kept.
            reason: Why, for the provenance.
            ctx: The run; what the summary costs is counted to it.

        Raises:
            InvalidRequestError: There are no messages.
            SummaryError: No summary could be made that is any use.
        """
        ...


class ConcatSummarizer:
    """Lists what was said, a shortened line for each message: no model is asked.

    The summary is a system message with a header and a line ``[msg-i]`` for each message. Lines of an
    earlier summary are carried on. Where there is not room for all of them
    they get shorter, and then the oldest go.

    Args:
        max_line: How many characters of each text, value or argument list are kept.
        max_characters: How long the summary may be.
        estimator: Counts tokens.

    Raises:
        ConfigurationError: A length is too small to say anything.
    """

    def __init__(
        self,
        *,
        max_line: int = MOST_OF_A_PAYLOAD,
        max_characters: int = 16_000,
        estimator: TokenEstimator | None = None,
    ) -> None:
        if max_line < 16 or max_characters < 200:
            raise ConfigurationError(
                f"`max_line` must be at least 16 and `max_characters` 200, got {max_line} and "
                f"{max_characters}"
            )
        self._max_line = max_line
        self._max_characters = max_characters
        self._estimator = estimator or TokenEstimator()

    async def summarize(
        self,
        messages: Sequence[Message],
        *,
        goal: str | None = None,
        reason: str = "",
        ctx: RunContext[Any] | None = None,
    ) -> SummaryRecord:
        """Return the list of what was said."""
        check_source(messages)
        lines, left_out = _carried_on(messages[0])
        number = left_out + len(lines)
        for message in messages[1:] if lines or left_out else messages:
            line = " ".join(render_message(message, most=self._max_line).split())
            lines.append(f"[msg-{number}] {line}")
            number += 1
        text = _fitted(lines, left_out, self._max_characters)
        return concluded(
            messages,
            SystemMessage(content=text),
            estimator=self._estimator,
            reason=reason,
            summarizer=type(self).__name__,
        )


def concluded(
    messages: Sequence[Message],
    summary: SummaryMessage,
    *,
    estimator: TokenEstimator,
    reason: str,
    summarizer: str,
    model: str | None = None,
    prompt_version: str | None = None,
) -> SummaryRecord:
    """Return the record of a summary, with its provenance."""
    # Named before it is counted: the estimator knows it again when it stands in the conversation.
    summary = named_summary(messages, summary)
    provenance = CompressionProvenance(
        source_ids=tuple(message_ref(message) for message in messages),
        original_token_estimate=estimator.messages(messages),
        summary_token_estimate=estimator.messages([summary]),
        reason=reason,
        summarizer=summarizer,
        model=model,
        prompt_version=prompt_version,
    )
    return record_of(messages, summary, provenance)


def check_source(messages: Sequence[Message]) -> None:
    """Refuse to summarise nothing.

    Raises:
        InvalidRequestError: There are no messages.
    """
    if not messages:
        raise InvalidRequestError("there are no messages to summarise")


def _carried_on(first: Message) -> tuple[list[str], int]:
    """Return the lines of an earlier list, and how many it has left out already."""
    if not is_summary(first) or not first.text.startswith(_HEADER):
        return [], 0
    lines = first.text.split("\n")[1:]
    left_out = _LEFT_OUT.fullmatch(lines[0]) if lines else None
    return [line for line in lines if _ENTRY.match(line)], int(left_out[1]) if left_out else 0


def _fitted(lines: Sequence[str], left_out: int, most: int) -> str:
    """Join the lines, all shortened alike where there is not room for them, and the latest at least."""
    room = most - len(_HEADER) - len("\n[999999 earlier left out]")
    if sum(len(line) + 1 for line in lines) > room:
        each = max(_LEAST_LINE, room // len(lines) - 1)
        lines = [line if len(line) <= each else f"{line[: each - 3]}..." for line in lines]
        fitting = max(1, room // (each + 1))
        left_out += len(lines[:-fitting])
        lines = lines[-fitting:]
    note = [f"[{left_out} earlier left out]"] if left_out else []
    return "\n".join((_HEADER, *note, *lines))
