"""Digests of what a model is shown, the same in every process."""

from collections.abc import Iterable, Sequence
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
