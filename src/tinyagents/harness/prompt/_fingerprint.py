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

    A segment has those of its messages that are left, the very same objects; others, which have come
    in their place, belong to the segment of the message before them, or else to the one that follows.
    """
    owner: dict[int, int] = {}
    for number, (_, own) in enumerate(segmented(segments, before)):
        owner.update((id(message), number) for message in own)
    rest = len(segments)
    counts = [0] * (rest + 1)
    at = next((owner.get(id(m), rest) for m in after if id(m) in owner), rest) if after else rest
    known = {id(message) for message in before}
    for message in after:
        if id(message) in known:
            at = max(at, owner.get(id(message), rest))
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
