"""Answers of the Messages API, whole and as the events of a stream."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import httpx
import orjson

from tests.harness.providers.server import Reply, cut, single_bytes
from tinyagents.harness.errors import (
    ModelError,
)
from tinyagents.harness.message import (
    Block,
    CitationBlock,
    ProviderExtensionBlock,
    ReasoningBlock,
    TextBlock,
    ToolCallBlock,
    UserMessage,
)
from tinyagents.harness.model import (
    ModelRequest,
    ModelResponse,
    ModelStreamItem,
    StreamCompleted,
    StreamStarted,
)
from tinyagents.harness.providers import AnthropicModel

REQUEST = ModelRequest(messages=[UserMessage(content="hi")])
SSE = {"content-type": "text/event-stream"}
USAGE = {"input_tokens": 3, "cache_read_input_tokens": 2, "cache_creation_input_tokens": 1}
Event = dict[str, Any]


def model(client: httpx.AsyncClient) -> AnthropicModel:
    return AnthropicModel("claude-sonnet-4-5", api_key="the-key-of-a-test", http_client=client)


def answering(
    pieces: Sequence[bytes], *, status: int = 200, headers: dict[str, str] | None = None
) -> httpx.AsyncClient:
    async def body() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    def answer(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(status, headers=headers, content=body())

    return httpx.AsyncClient(transport=httpx.MockTransport(answer))


def event_bytes(*events: Event) -> bytes:
    """Events as the API frames them: the kind stands in a line of its own, too."""
    lines = [b"event: %s\ndata: %s\n\n" % (e["type"].encode(), orjson.dumps(e)) for e in events]
    return b"".join(lines)


def start(**more: Any) -> Event:
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "served"}
    usage = {**USAGE, "output_tokens": 1}
    empty: Event = {"content": [], "stop_reason": None, "stop_sequence": None}
    return {"type": "message_start", "message": {**message, **empty, "usage": usage, **more}}


def block(index: int, begun: Event, *deltas: Event) -> list[Event]:
    return [
        {"type": "content_block_start", "index": index, "content_block": begun},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def end(reason: str = "end_turn", *, delta: Event | None = None, **more: Any) -> list[Event]:
    told = {"stop_reason": reason, "stop_sequence": None, **(delta or {})}
    usage = {"output_tokens": 9}
    return [
        {"type": "message_delta", "delta": told, "usage": usage, **more},
        {"type": "message_stop"},
    ]


async def whole(
    content: Sequence[Event],
    reason: str = "end_turn",
    request: ModelRequest = REQUEST,
    **more: Any,
) -> ModelResponse:
    message = start()["message"]
    usage = {**USAGE, "output_tokens": 9}
    body = {**message, "content": [*content], "stop_reason": reason, "usage": usage, **more}
    async with answering(Reply.json(body).pieces) as client:
        return await model(client).invoke(request)


async def items_of(
    pieces: Sequence[bytes], request: ModelRequest = REQUEST
) -> list[ModelStreamItem]:
    async with answering(pieces, headers=SSE) as client:
        return [item async for item in model(client).stream(request)]


async def read(client: httpx.AsyncClient) -> tuple[list[ModelStreamItem], ModelError | None]:
    """Read a stream as far as it goes."""
    items: list[ModelStreamItem] = []
    try:
        async for item in model(client).stream(REQUEST):
            items.append(item)
    except ModelError as error:
        return items, error
    return items, None


async def streamed(events: Sequence[Event], request: ModelRequest = REQUEST) -> ModelResponse:
    data = event_bytes(*events)
    responses: list[ModelResponse] = []
    for pieces in ((data,), cut(data, seed=3), single_bytes(data)):
        items = await items_of(pieces, request)
        assert isinstance(items[0], StreamStarted)
        assert isinstance(items[-1], StreamCompleted)
        responses.append(items[-1].response)
    assert all(each == responses[0] for each in responses)
    return responses[0]


def text(piece: str) -> Event:
    return {"type": "text_delta", "text": piece}


def partial(piece: str) -> Event:
    return {"type": "input_json_delta", "partial_json": piece}


WEB: Event = {
    "type": "web_search_result_location",
    "url": "https://host.example/a",
    "title": "A",
    "cited_text": "said",
    "encrypted_index": "b3BhcXVl",
}
PAGE: Event = {
    "type": "page_location",
    "cited_text": "p",
    "document_index": 0,
    "document_title": "D",
    "start_page_number": 1,
    "end_page_number": 2,
}
RESULT: Event = {
    "type": "web_search_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": [{"type": "web_search_result", "url": "u", "encrypted_content": "eA=="}],
}
CALLER: Event = {"type": "code_execution_20250825", "tool_id": "srvtoolu_1"}


def extension(data: Event) -> ProviderExtensionBlock:
    return ProviderExtensionBlock(provider="anthropic", data=data)


# The same answer in both forms: the content of a whole one, the events of a stream, the blocks.
ANSWERS: dict[str, tuple[list[Event], list[Event], list[Block]]] = {
    "text": (
        [{"type": "text", "text": "Hello", "citations": None}],
        block(0, {"type": "text", "text": ""}, text("Hel"), text(""), text("lo")),
        [TextBlock(text="Hello")],
    ),
    "an empty text": (
        [{"type": "text", "text": ""}],
        block(0, {"type": "text", "text": ""}),
        [],
    ),
    "calls in parallel": (
        [
            {"type": "text", "text": "Both."},
            {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": {"b": 0}}},
            {"type": "tool_use", "id": "toolu_2", "name": "g", "input": {}, "caller": CALLER},
            {"type": "tool_use", "id": "toolu_3", "name": "f", "input": {"n": 0}},
        ],
        [
            *block(0, {"type": "text", "text": ""}, text("Both.")),
            *block(
                1,
                {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}},
                *map(partial, ("", '{"a": {"', 'b": 0}', "}")),
            ),
            *block(
                2,
                {"type": "tool_use", "id": "toolu_2", "name": "g", "input": {}, "caller": CALLER},
            ),
            *block(3, {"type": "tool_use", "id": "toolu_3", "name": "f", "input": {"n": 0}}),
        ],
        [
            TextBlock(text="Both."),
            ToolCallBlock(id="toolu_1", name="f", arguments={"a": {"b": 0}}),
            ToolCallBlock(
                id="toolu_2", name="g", provider_data={"anthropic": {"caller": dict(CALLER)}}
            ),
            ToolCallBlock(id="toolu_3", name="f", arguments={"n": 0}),
        ],
    ),
    "thinking": (
        [
            {"type": "thinking", "thinking": "Let me", "signature": "c2lnbmVk"},
            {"type": "redacted_thinking", "data": "b3BhcXVl"},
            {"type": "thinking", "thinking": "", "signature": "bW9yZQ=="},
            {"type": "text", "text": "4"},
        ],
        [
            *block(
                0,
                {"type": "thinking", "thinking": "", "signature": ""},
                {"type": "thinking_delta", "thinking": "Let "},
                {"type": "thinking_delta", "thinking": "me"},
                {"type": "signature_delta", "signature": "c2lnbmVk"},
            ),
            *block(1, {"type": "redacted_thinking", "data": "b3BhcXVl"}),
            *block(
                2,
                {"type": "thinking", "thinking": "", "signature": ""},
                {"type": "signature_delta", "signature": "bW9yZQ=="},
            ),
            *block(3, {"type": "text", "text": ""}, text("4")),
        ],
        [
            ReasoningBlock(
                text="Let me",
                signature="c2lnbmVk",
                provider_data={"anthropic": {"type": "thinking"}},
            ),
            ReasoningBlock(
                data="b3BhcXVl",
                redacted=True,
                provider_data={"anthropic": {"type": "redacted_thinking"}},
            ),
            ReasoningBlock(signature="bW9yZQ==", provider_data={"anthropic": {"type": "thinking"}}),
            TextBlock(text="4"),
        ],
    ),
    "citations": (
        [
            {"type": "text", "text": "As "},
            {"type": "text", "text": "said", "citations": [WEB, PAGE]},
            {"type": "text", "text": "."},
        ],
        [
            *block(0, {"type": "text", "text": ""}, text("As ")),
            *block(
                1,
                {"type": "text", "text": "", "citations": []},
                {"type": "citations_delta", "citation": WEB},
                text("said"),
                {"type": "citations_delta", "citation": PAGE},
            ),
            *block(2, {"type": "text", "text": ""}, text(".")),
        ],
        [
            TextBlock(text="As "),
            TextBlock(
                text="said", provider_data={"anthropic": {"citations": [dict(WEB), dict(PAGE)]}}
            ),
            CitationBlock(url="https://host.example/a", title="A", text="said", start=3, end=7),
            CitationBlock(title="D", text="p", start=3, end=7),
            TextBlock(text="."),
        ],
    ),
    "tools that the provider ran": (
        [
            {
                "type": "server_tool_use",
                "id": "srvtoolu_1",
                "name": "web_search",
                "input": {"q": "x"},
            },
            RESULT,
            {"type": "mcp_tool_use", "id": "m", "name": "f", "server_name": "s", "input": {}},
        ],
        [
            *block(
                0,
                {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
                partial('{"q":'),
                partial('"x"}'),
            ),
            *block(1, RESULT),
            *block(
                2,
                {"type": "mcp_tool_use", "id": "m", "name": "f", "server_name": "s", "input": {}},
                partial(""),
            ),
        ],
        [
            extension(
                {
                    "type": "server_tool_use",
                    "id": "srvtoolu_1",
                    "name": "web_search",
                    "input": {"q": "x"},
                }
            ),
            extension(dict(RESULT)),
            extension(
                {"type": "mcp_tool_use", "id": "m", "name": "f", "server_name": "s", "input": {}}
            ),
        ],
    ),
    "blocks of tomorrow": (
        [
            {"type": "compaction", "content": "What was said."},
            {"type": "thing", "parts": [1, 2], "inner": {"a": "xy"}},
        ],
        [
            *block(
                0,
                {"type": "compaction", "content": None},
                {"type": "compaction_delta", "content": "What "},
                {"type": "compaction_delta", "content": "was said."},
            ),
            *block(
                1,
                {"type": "thing", "parts": [1], "inner": {"a": "x"}},
                {"type": "thing_delta", "parts": [2], "inner": {"a": "y"}},
            ),
        ],
        [
            extension({"type": "compaction", "content": "What was said."}),
            extension({"type": "thing", "parts": [1, 2], "inner": {"a": "xy"}}),
        ],
    ),
}
