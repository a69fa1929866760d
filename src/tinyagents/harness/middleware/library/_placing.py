"""Putting a message into a prompt, and saying where in its layout."""

from collections.abc import Sequence
from dataclasses import replace

from ...message import SystemMessage, UserMessage
from ...model import ModelRequest, PromptSegment
from ...prompt import resized


def put_instructions(request: ModelRequest, text: str, *, first: bool = False) -> None:
    """Add a system message: before all others, or after those that the prompt begins with.

    It belongs to the segment of the message before it, or else of the one that follows.
    """
    before = request.messages
    place = 0
    while not first and place < len(before) and before[place].role == "system":
        place += 1
    request.messages = [*before[:place], SystemMessage(content=text), *before[place:]]
    if request.segments:
        request.segments = resized(request.segments, before, request.messages)


def put_volatile(request: ModelRequest, text: str, id: str) -> None:
    """Add a user message at the end, in a volatile segment: what comes before may be cached.

    An answer that the prompt ends with, to be gone on with, stays the last message.
    """
    messages = request.messages
    place = len(messages)
    if messages and messages[-1].role == "assistant":
        place -= 1
    segments = _up_to(request.segments, place, id)
    request.messages = [*messages[:place], UserMessage(content=text), *messages[place:]]
    segments.append(
        PromptSegment(
            id=f"{id}-{len(segments)}",
            role="volatile",
            cacheable=False,
            messages=len(request.messages) - place,
        )
    )
    request.segments = segments


def _up_to(segments: Sequence[PromptSegment], end: int, id: str) -> list[PromptSegment]:
    """Return the segments for the first ``end`` messages, with one more where they cover fewer."""
    left, kept = end, list[PromptSegment]()
    for segment in segments:
        count = min(segment.messages, left)
        kept.append(segment if count == segment.messages else replace(segment, messages=count))
        left -= count
    if left:
        kept.append(
            PromptSegment(id=f"{id}-history", role="history", cacheable=False, messages=left)
        )
    return kept
