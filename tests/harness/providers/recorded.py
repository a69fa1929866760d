"""Recorded answers of providers: who reads them, and what is told of each, without its texts."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
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
from tinyagents.harness.providers import (
    PROVIDERS,
    RESPONSES_PROVIDERS,
    AnthropicModel,
    GeminiModel,
    OllamaModel,
    OpenAIChatModel,
    OpenAIResponsesModel,
)

_SMALL = 600
"""Bytes: bodies up to here are also sent one byte at a time."""

_KEY = "the-key-of-a-test"
_PRESETS = {"google-gla": "google", "ollama-cloud": "ollama"}

Document = dict[str, Any]
Adapter = OpenAIChatModel | OpenAIResponsesModel | AnthropicModel | GeminiModel | OllamaModel

REQUEST = ModelRequest(messages=[UserMessage(content="hello")])


def chat_model(document: Document, url: str) -> OpenAIChatModel:
    """The model of a recording, on a server of ours."""
    name: str = document["provider"]
    provider = _PRESETS.get(name, name)
    known = provider if provider in PROVIDERS else "compatible"
    # On a server of ours the preset's own rules must hold, so that they are what is tested.
    return OpenAIChatModel(
        document["request"]["body"].get("model", "model"),
        provider=PROVIDERS[known],
        api_key=_KEY,
        base_url=f"{url}/v1",
    )


def responses_model(document: Document, url: str) -> OpenAIResponsesModel:
    """The model of a recording, on a server of ours."""
    return OpenAIResponsesModel(
        document["request"]["body"]["model"],
        provider=RESPONSES_PROVIDERS[document["provider"]],
        api_key=_KEY,
        base_url=f"{url}/v1",
    )


def anthropic_model(document: Document, url: str) -> AnthropicModel:
    """The model of a recording, on a server of ours."""
    name = document["request"]["body"]["model"]
    return AnthropicModel(name, provider="anthropic", api_key=_KEY, base_url=url)


def gemini_model(document: Document, url: str) -> GeminiModel:
    """The model of a recording, on a server of ours."""
    name = document["request"]["path"].partition("/models/")[2].partition(":")[0]
    return GeminiModel(name, api_key=_KEY, base_url=f"{url}/v1beta")


def ollama_model(document: Document, url: str) -> OllamaModel:
    """The model of a recording, on a server of ours."""
    return OllamaModel(document["request"]["body"]["model"], base_url=url)


MODELS: dict[str, Callable[[Document, str], Adapter]] = {
    "openai_chat": chat_model,
    "openai_responses": responses_model,
    "anthropic_messages": anthropic_model,
    "google_gemini": gemini_model,
    "ollama": ollama_model,
}
"""The adapter of each folder of recordings."""


def cases(shared: Path, api: str) -> set[str]:
    """The recordings of an API."""
    return {path.stem for path in (shared / "fixtures/providers" / api).glob("*.json")}


def document_of(shared: Path, api: str, case: str) -> Document:
    """One recording: the request and its response."""
    path = shared / "fixtures/providers" / api / f"{case}.json"
    document: Document = json.loads(path.read_text("utf-8"))
    return document


def is_streamed(document: Document) -> bool:
    """Whether the answer was asked for as a stream."""
    request = document["request"]
    return bool((request.get("body") or {}).get("stream")) or "stream" in request["path"]


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


def told(block: Block) -> str:
    """Tell a block by its kind and size."""
    match block:
        case ToolCallBlock():
            return f"{block.name}({', '.join(block.arguments)})"
        case CitationBlock():
            return "citation"
        case ProviderExtensionBlock(data={"type": str(kind)}):
            return kind
        case _:
            return f"{block.type} {len(getattr(block, 'text', ''))}"


def described(
    outcome: ModelResponse | ModelError, told: Callable[[Block], str] = told
) -> Answer | Failure:
    """Tell an outcome in the terms of the tables."""
    if isinstance(outcome, ModelError):
        return Failure(
            type(outcome), outcome.status, outcome.code, outcome.retryable, outcome.retry_after
        )
    usage = outcome.usage
    return Answer(
        [told(block) for block in outcome.message.content],
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


def without_new_ids(outcome: ModelResponse | ModelError) -> object:
    """The parts that must be equal, without the ids that are made for calls that have none."""
    if isinstance(outcome, ModelError):
        return str(outcome)
    calls = [call for call in outcome.message.tool_calls if not call.id.startswith("tacall_")]
    others = [block for block in outcome.message.content if not isinstance(block, ToolCallBlock)]
    return calls, others, outcome.raw, outcome.safety, outcome.model
