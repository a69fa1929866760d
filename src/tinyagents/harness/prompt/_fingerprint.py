"""Digests of what a model is shown, the same in every process."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any

from ..message import Message
from ..model import ModelRequest, PromptSegment, ToolSchema
from ..text import encode_json

_NOT_SHOWN = {"id", "usage", "state", "outcome", "trusted_verbatim", "artifact"}
"""Fields of messages that no model sees."""


def prompt_fingerprint(request: ModelRequest) -> str:
    """Return the SHA-256, in hex, of the stable part of a prompt.

    That is the cacheable segments, each with its id, its role and its messages, and all tools with
    their schemas. History, volatile parts and what follows the segments do not change it. It is the
    digest of ``{"segments": […], "tools": […]}`` as compact JSON with sorted keys.
    """
    stable = [
        {"id": segment.id, "role": segment.role, "messages": [_shown(each) for each in messages]}
        for segment, messages in segmented(request.segments, request.messages)
        if segment.cacheable
    ]
    tools = [_tool(each) for each in request.tools]
    return _digest({"segments": stable, "tools": tools})


def segmented(
    segments: Iterable[PromptSegment], messages: Sequence[Message]
) -> Iterable[tuple[PromptSegment, Sequence[Message]]]:
    """Yield each segment with its messages; what follows the last one belongs to none."""
    reached = 0
    for segment in segments:
        yield segment, messages[reached : reached + segment.messages]
        reached += segment.messages


def resized(
    segments: Sequence[PromptSegment], before: Sequence[Message], after: Sequence[Message]
) -> list[PromptSegment]:
    """Return the segments of a prompt for what was made of its messages.

    A segment has those of its messages that are left, the very same objects. Others belong where the
    messages were in whose place they have come, or else to the segment of the message before them.
    """
    owners: list[int] = []
    for number, (segment, _) in enumerate(segmented(segments, before)):
        owners += [number] * segment.messages
    rest = len(segments)
    owners += [rest] * (len(before) - len(owners))
    places = {id(message): place for place, message in enumerate(before)}
    left = {id(message) for message in after}
    counts = [0] * (rest + 1)
    at, following = owners[0] if owners else rest, 0
    for message in after:
        place = places.get(id(message))
        if place is None and following < len(before) and id(before[following]) not in left:
            place = following
        if place is not None:
            at, following = max(at, owners[place]), place + 1
        counts[at] += 1
    return [
        replace(segment, messages=count) for segment, count in zip(segments, counts, strict=False)
    ]


def message_digest(message: Message) -> str:
    """Return the digest of what a model sees of a message."""
    return _digest(_shown(message))


def tools_digest(tools: Iterable[ToolSchema]) -> str:
    """Return the digest of tools in their order."""
    return _digest([_tool(each) for each in tools])


def _shown(message: Message) -> dict[str, Any]:
    return message.model_dump(mode="json", exclude=_NOT_SHOWN)


def _tool(tool: ToolSchema) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "strict": tool.strict,
    }


def _digest(value: object) -> str:
    return sha256(encode_json(value, sort_keys=True)).hexdigest()
