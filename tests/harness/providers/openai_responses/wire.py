"""Answers of the Responses API as they are on the wire, and what a model makes of them."""

from collections.abc import Sequence
from typing import Any

import httpx
import pytest

from tests.harness.providers.server import (
    Reply,
    cut,
    joined,
    single_bytes,
)
from tinyagents.harness.errors import (
    ModelError,
)
from tinyagents.harness.message import (
    UserMessage,
)
from tinyagents.harness.model import (
    MessageDelta,
    ModelRequest,
    ModelResponse,
    ModelStreamItem,
    StreamCompleted,
    StreamMerger,
    StreamStarted,
)
from tinyagents.harness.providers import OpenAIResponsesModel

REQUEST = ModelRequest(messages=[UserMessage(content="hi")])
SSE = {"content-type": "text/event-stream"}
NAME = "openai_responses"
USAGE = {
    "input_tokens": 10,
    "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 2},
    "output_tokens": 7,
    "output_tokens_details": {"reasoning_tokens": 5},
    "total_tokens": 17,
}


def model(client: httpx.AsyncClient) -> OpenAIResponsesModel:
    return OpenAIResponsesModel("m", api_key="the-key-of-a-test", http_client=client)


def answering(
    pieces: Sequence[bytes], headers: dict[str, str] | None = None, status: int = 200
) -> httpx.AsyncClient:
    async def body() -> Any:
        for piece in pieces:
            yield piece

    def answer(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(status, headers=headers, content=body())

    return httpx.AsyncClient(transport=httpx.MockTransport(answer))


def own(**fields: Any) -> Any:
    return {NAME: fields}


def response(*output: Any, status: str = "completed", **more: Any) -> dict[str, Any]:
    made = {"id": "resp_1", "object": "response", "model": "served", "status": status}
    return {**made, "output": list(output), **more}


def message(*parts: Any, **more: Any) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "status": "completed",
        "role": "assistant",
        "content": list(parts),
        **more,
    }


def text(words: str, *annotations: Any, **more: Any) -> dict[str, Any]:
    return {"type": "output_text", "text": words, "annotations": list(annotations), **more}


def thought(*summary: str, **more: Any) -> dict[str, Any]:
    parts = [{"type": "summary_text", "text": each} for each in summary]
    return {"id": "rs_1", "type": "reasoning", "summary": parts, **more}


def call(arguments: Any, name: str = "f", **more: Any) -> dict[str, Any]:
    made = {"id": "fc_1", "type": "function_call", "status": "completed", "call_id": "call_1"}
    return {**made, "name": name, "arguments": arguments, **more}


def event(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}", **fields}


def pieces_of(words: str) -> list[str]:
    return [words[: len(words) // 2], words[len(words) // 2 :]]


def events_of(whole: dict[str, Any]) -> list[dict[str, Any]]:
    """The events that a server sends for an answer, each text in two pieces."""
    begun = {**whole, "status": "in_progress", "output": [], "usage": None}
    events = [event("created", response=begun), event("in_progress", response=begun)]
    for index, item in enumerate(whole["output"]):
        empty = {**item, "status": "in_progress"}
        for field in ("content", "summary"):
            if field in item:
                empty[field] = []
        if "arguments" in item:
            empty["arguments"] = ""
        events.append(event("output_item.added", output_index=index, item=empty))
        place = {"output_index": index, "item_id": item.get("id")}
        for field, position in (("summary", "summary_index"), ("content", "content_index")):
            for number, part in enumerate(item.get(field) or ()):
                events += part_events(part, {**place, position: number})
        for piece in pieces_of(item.get("arguments") or ""):
            events.append(event("function_call_arguments.delta", delta=piece, **place))
        events.append(event("output_item.done", output_index=index, item=item))
    return [*events, event(whole["status"], response=whole)]


def part_events(part: dict[str, Any], place: dict[str, Any]) -> list[dict[str, Any]]:
    kinds = {
        "output_text": ("output_text", "text"),
        "refusal": ("refusal", "refusal"),
        "summary_text": ("reasoning_summary_text", "text"),
        "reasoning_text": ("reasoning_text", "text"),
    }
    if part["type"] not in kinds:
        return [event("content_part.added", part=part, **place)]
    kind, field = kinds[part["type"]]
    deltas = [event(f"{kind}.delta", delta=each, **place) for each in pieces_of(part[field])]
    return [*deltas, event(f"{kind}.done", **{field: part[field]}, **place)]


async def whole(body: Any, request: ModelRequest = REQUEST) -> ModelResponse:
    async with answering(Reply.json(body).pieces) as client:
        return await model(client).invoke(request)


async def items_of(
    pieces: Sequence[bytes],
    request: ModelRequest = REQUEST,
    headers: dict[str, str] | None = None,
) -> list[ModelStreamItem]:
    async with answering(pieces, SSE if headers is None else headers) as client:
        return [item async for item in model(client).stream(request)]


async def streamed(events: Sequence[Any], request: ModelRequest = REQUEST) -> ModelResponse:
    """Read a stream in several cuts; its deltas say what its last item does."""
    data = joined(events, done=False)
    responses: list[ModelResponse] = []
    for pieces in ((data,), cut(data, seed=3), single_bytes(data)):
        items = await items_of(pieces, request)
        assert isinstance(items[0], StreamStarted)
        assert isinstance(items[-1], StreamCompleted)
        merger = StreamMerger()
        for item in items[:-1]:
            assert item != MessageDelta()
            merger.add(item)
        final, merged = items[-1].response, merger.message()
        assert (merged.text, merged.refusal) == (final.text, final.refusal)
        assert [(c.id, c.name) for c in merged.tool_calls] == [
            (c.id, c.name) for c in final.message.tool_calls
        ]
        responses.append(final)
    assert all(each == responses[0] for each in responses)
    return responses[0]


async def failure(
    data: bytes, headers: dict[str, str] | None = None
) -> tuple[list[ModelStreamItem], ModelError]:
    seen: list[ModelStreamItem] = []

    async def read(asked: OpenAIResponsesModel) -> None:
        async for item in asked.stream(REQUEST):
            seen.append(item)

    async with answering([data], SSE if headers is None else headers) as client:
        with pytest.raises(ModelError) as raised:
            await read(model(client))
    return seen, raised.value
