"""Shortening tool results: the largest first, and none that is asked to stay."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..message import Message, TextBlock, ToolMessage
from ..options import check_at_least
from ..token_estimation import TokenEstimator
from ..tool import ToolResult

_MARKER = "[… cut: {dropped} of {total} characters …]"
_MARKED = re.compile(r"\[… cut: (\d{1,15}) of (\d{1,15}) characters …\]")
_ESTIMATOR = TokenEstimator()


@dataclass(frozen=True, slots=True, kw_only=True)
class TrimmedResults:
    """Messages of which results were shortened."""

    messages: list[Message]
    cut: tuple[str, ...] = ()
    """The call ids of the results that were."""
    tokens: int = 0
    """About how many tokens the messages are now."""


def trim_results(
    messages: Sequence[Message],
    limit: int,
    *,
    keep_last: int = 0,
    keep_characters: int = 2_000,
    estimator: TokenEstimator | None = None,
) -> TrimmedResults:
    """Shorten results until all messages are within ``limit`` tokens, or no result is left to shorten.

    The largest comes first; those among the last ``keep_last`` messages come after all others.
    The first and the last characters of a result stay, with a marker between them that tells how
    many there were. Results that are ``trusted_verbatim``, or short, or cut before, stay as they are.

    Args:
        messages: The conversation; it is not changed.
        limit: Tokens.
        keep_last: How many messages at the end are spared as long as possible.
        keep_characters: How much of a result stays, the marker left out.
        estimator: Counts the tokens.

    Raises:
        ConfigurationError: A number is negative.
    """
    check_at_least(0, limit=limit, keep_last=keep_last, keep_characters=keep_characters)
    counter = estimator or _ESTIMATOR
    left = list(messages)
    total = counter.messages(left)
    kept_from = len(left) - keep_last
    able = [
        (place >= kept_from, -counter.message(message), place)
        for place, message in enumerate(left)
        if isinstance(message, ToolMessage) and not message.trusted_verbatim
    ]
    cut: list[str] = []
    for _, size, place in sorted(able):
        if total <= limit:
            break
        message = left[place]
        assert isinstance(message, ToolMessage)
        shorter = shortened_result(message, keep_characters)
        if shorter is message:
            continue
        left[place] = shorter
        total += size + counter.message(shorter)
        cut.append(message.tool_call_id)
    return TrimmedResults(messages=left, cut=tuple(cut), tokens=total)


def shortened_result(message: ToolMessage, keep_characters: int) -> ToolMessage:
    """Return a result with the middle of its text cut out; itself where that saves nothing.

    A result that was cut before tells how long it was at first. Pictures, sound and files beside the
    text stay.
    """
    text = ToolResult(message.content).joined_text()
    begin, end, total = _cut_before(text) or (text, text, len(text))
    head = (keep_characters + 1) // 2
    tail = keep_characters - head
    marker = _MARKER.format(dropped=total - keep_characters, total=total)
    if len(text) <= keep_characters + len(marker):
        return message
    cut = f"{begin[:head]}{marker}{end[len(end) - tail :] if tail else ''}"
    others = [block for block in message.content if block.type not in ("text", "json")]
    return message.model_copy(update={"content": [TextBlock(text=cut), *others]})


def _cut_before(text: str) -> tuple[str, str, int] | None:
    """Return both ends of a text that was cut before, and how long it was; ``None`` if it was not.

    Texts may quote a marker: one of ours stands in the middle, and its numbers are true.
    """
    for found in _MARKED.finditer(text):
        head, tail = found.start(), len(text) - found.end()
        dropped, total = map(int, found.groups())
        if head - tail in (0, 1) and dropped + head + tail == total:
            return text[:head], text[found.end() :], total
    return None
