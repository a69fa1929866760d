"""Recorded answers of providers: what is told of each, without its texts."""

from dataclasses import dataclass
from typing import Any

import orjson

from tests.harness.providers.server import Reply, cut, single_bytes
from tinyagents.harness.errors import ModelError
from tinyagents.harness.message import (
    Block,
    CitationBlock,
    ProviderExtensionBlock,
    ToolCallBlock,
    UserMessage,
)
from tinyagents.harness.model import ChatModel, ModelRequest, ModelResponse, drain

_SMALL = 600
"""Bytes: bodies up to here are also sent one byte at a time."""

REQUEST = ModelRequest(messages=[UserMessage(content="hello")])


@dataclass(frozen=True)
class Answer:
    """An answer, without its texts."""

    blocks: list[str]
    usage: tuple[int, int, int, int, int] | None
    """Input, output, cache read, cache write, reasoning."""
    finish: str | None
    raw_finish: str | None


@dataclass(frozen=True)
class Failure:
    """A failure, without its words."""

    cls: type[ModelError]
    status: int | None
    code: str | None
    retryable: bool
    retry_after: float | None = None


def replies(response: dict[str, Any]) -> list[Reply]:
    """The recorded answer, whole and cut at several places."""
    body = response["sse"].encode() if "sse" in response else orjson.dumps(response["body"])
    forms = [(body,), cut(body, seed=1), cut(body, seed=2, pieces=30)]
    if len(body) <= _SMALL:
        forms.append(single_bytes(body))
    return [
        Reply(pieces=pieces, status=response["status"], headers=response.get("headers", {}))
        for pieces in forms
    ]


async def outcome(model: ChatModel, streamed: bool) -> ModelResponse | ModelError:
    """What a call ends in."""
    try:
        if streamed:
            return await drain(model.stream(REQUEST))
        return await model.invoke(REQUEST)
    except ModelError as error:
        return error


def described(outcome: ModelResponse | ModelError) -> Answer | Failure:
    """Tell an outcome in the terms of the tables."""
    if isinstance(outcome, ModelError):
        return Failure(
            type(outcome), outcome.status, outcome.code, outcome.retryable, outcome.retry_after
        )
    usage = outcome.usage
    return Answer(
        [_told(block) for block in outcome.message.content],
        None
        if usage is None
        else (
            usage.input_tokens,
            usage.output_tokens,
            usage.cache_read_tokens,
            usage.cache_write_tokens,
            usage.reasoning_tokens,
        ),
        outcome.finish_reason,
        outcome.raw_finish_reason,
    )


def _told(block: Block) -> str:
    match block:
        case ToolCallBlock():
            return f"{block.name}({', '.join(block.arguments)})"
        case CitationBlock():
            return "citation"
        case ProviderExtensionBlock(data={"type": str(kind)}):
            return kind
        case _:
            return f"{block.type} {len(getattr(block, 'text', ''))}"


def without_new_ids(outcome: ModelResponse | ModelError) -> object:
    """The parts that must be equal, without the ids that are made for calls that have none."""
    if isinstance(outcome, ModelError):
        return str(outcome)
    calls = [call for call in outcome.message.tool_calls if not call.id.startswith("tacall_")]
    others = [block for block in outcome.message.content if not isinstance(block, ToolCallBlock)]
    return calls, others, outcome.raw, outcome.safety, outcome.model
