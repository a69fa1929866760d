"""The layout of a prompt, kept right while its messages change."""

from collections.abc import Sequence
from dataclasses import replace

from ..message import Message
from ._request import PromptSegment


def segments_after_insertion(
    segments: Sequence[PromptSegment], position: int
) -> tuple[PromptSegment, ...]:
    """Return the layout once there is one more message, at ``position``.

    It belongs with the message before it, and at the beginning to the first segment.
    """
    end = 0
    for place, segment in enumerate(segments):
        end += segment.messages
        if end >= position:
            grown = replace(segment, messages=segment.messages + 1)
            return (*segments[:place], grown, *segments[place + 1 :])
    return tuple(segments)  # it stands behind all of them


def segments_after_repair(
    segments: Sequence[PromptSegment], before: Sequence[Message], after: Sequence[Message]
) -> tuple[PromptSegment, ...]:
    """Return the layout once results of tools were added, moved to their calls, or dropped."""
    home: dict[int, int] = {}
    reached = 0
    for place, segment in enumerate(segments):
        for message in before[reached : reached + segment.messages]:
            home[id(message)] = place
        reached += segment.messages
    behind = len(segments)
    counts = [0] * (behind + 1)
    at = 0
    for message in after:
        if message.role != "tool":  # a result belongs with its call
            at = home.get(id(message), behind)
        counts[at] += 1
    return tuple(
        replace(segment, messages=count)
        for segment, count in zip(segments, counts[:behind], strict=True)
    )
