"""Answers of Gemini, and what is read of them."""

from collections.abc import Sequence
from typing import Any

import httpx

from tests.harness.providers.server import Reply, joined
from tinyagents.harness.errors import (
    ModelError,
)
from tinyagents.harness.message import (
    AssistantMessage,
    Block,
    ToolCallBlock,
    UserMessage,
)
from tinyagents.harness.model import (
    ModelRequest,
    ModelResponse,
    ModelStreamItem,
    StreamCompleted,
)
from tinyagents.harness.providers import GeminiModel

REQUEST = ModelRequest(messages=[UserMessage(content="hi")])
SSE = {"content-type": "text/event-stream"}


def answering(
    pieces: Sequence[bytes], headers: dict[str, str] | None = None, status: int = 200
) -> httpx.AsyncClient:
    async def body() -> Any:
        for piece in pieces:
            yield piece

    def answer(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(status, headers=headers, content=body())

    return httpx.AsyncClient(transport=httpx.MockTransport(answer))


def model(client: httpx.AsyncClient) -> GeminiModel:
    return GeminiModel("m", api_key="the-key-of-a-test", http_client=client)


async def whole(document: Any, status: int = 200) -> ModelResponse:
    async with answering(Reply.json(document).pieces, status=status) as client:
        return await model(client).invoke(REQUEST)


async def items_of(pieces: Sequence[bytes]) -> list[ModelStreamItem]:
    async with answering(pieces, SSE) as client:
        return [item async for item in model(client).stream(REQUEST)]


async def streamed(*chunks: Any) -> ModelResponse:
    items = await items_of([joined(chunks, done=False)])
    last = items[-1]
    assert isinstance(last, StreamCompleted)
    return last.response


async def failure(data: bytes) -> tuple[list[ModelStreamItem], ModelError]:
    seen: list[ModelStreamItem] = []
    async with answering([data], SSE) as client:
        try:
            async for item in model(client).stream(REQUEST):
                seen.append(item)
        except ModelError as error:
            return seen, error
    raise AssertionError("the stream did not fail")


def answer(*parts: Any, finish: str | None = "STOP", **candidate: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"content": {"role": "model", "parts": [*parts]}, **candidate}
    if finish is not None:
        made["finishReason"] = finish
    return {"candidates": [made], "modelVersion": "served", "responseId": "r-1"}


def own(**fields: Any) -> dict[str, Any]:
    return {"gemini": fields}


def without_ids(message: AssistantMessage) -> list[Block]:
    return [
        block.model_copy(update={"id": ""}) if isinstance(block, ToolCallBlock) else block
        for block in message.content
    ]
