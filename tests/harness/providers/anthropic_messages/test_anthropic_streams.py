"""Streams of the Messages API: piece by piece, cut off, failing, and left."""

from typing import Any

import anyio
import httpx
import pytest

from tests.harness.providers.anthropic_messages.answers import (
    ANSWERS,
    REQUEST,
    SSE,
    answering,
    block,
    end,
    event_bytes,
    items_of,
    model,
    partial,
    read,
    start,
    text,
)
from tests.harness.providers.server import Reply, eventually, serve
from tinyagents.harness.errors import (
    AuthenticationError,
    BadRequestError,
    MalformedResponseError,
    ModelError,
    NetworkError,
    ProviderTimeoutError,
    RateLimitError,
    ServerError,
)
from tinyagents.harness.model import (
    MessageDelta,
    StreamCompleted,
    StreamStarted,
    ToolCallDelta,
    UsageDelta,
)
from tinyagents.harness.providers import AnthropicModel
from tinyagents.harness.usage import Usage


async def test_a_stream_gives_each_piece_as_it_comes() -> None:
    events = [
        start(),
        {"type": "ping"},
        *block(
            0,
            {"type": "thinking", "thinking": "", "signature": ""},
            {"type": "thinking_delta", "thinking": "hm"},
            {"type": "signature_delta", "signature": "c2ln"},
        ),
        *block(1, {"type": "text", "text": "a"}, text("b")),
        {"type": "event_of_tomorrow", "index": 1},
        *block(
            2,
            {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}},
            partial(""),
            partial('{"a":'),
            partial("1}"),
        ),
        *end("tool_use"),
    ]
    items = await items_of([event_bytes(event) for event in events])
    assert isinstance(items.pop(), StreamCompleted)
    first = Usage(input_tokens=6, output_tokens=1, cache_read_tokens=2, cache_write_tokens=1)
    assert items == [
        StreamStarted(response_id="msg_1", model="served"),
        UsageDelta(first),
        MessageDelta(reasoning="hm"),
        MessageDelta("a"),
        MessageDelta("b"),
        ToolCallDelta(call_id="toolu_1", name="f", index=2),
        ToolCallDelta(arguments='{"a":', index=2),
        ToolCallDelta(arguments="1}", index=2),
        UsageDelta(first.model_copy(update={"output_tokens": 9})),
    ]


SHORT = [
    start(),
    *block(0, {"type": "thinking", "thinking": ""}, {"type": "signature_delta", "signature": "s"}),
    *block(1, {"type": "text", "text": ""}, text("a")),
    *block(2, {"type": "tool_use", "id": "t", "name": "f", "input": {}}, partial("{}")),
    *end("tool_use"),
]


async def test_a_stream_that_is_cut_anywhere_gives_the_same_message_or_an_error() -> None:
    data = event_bytes(*SHORT)
    complete = await items_of([data])
    # Without the end mark nothing is lost: the reason and the usage came before it.
    enough = len(event_bytes(*SHORT[:-1])) - len(b"\n\n")
    cuts = (data[:length] for length in range(len(data)))

    def answer(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers=SSE, content=next(cuts))

    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
        outcomes = [await read(client) for _ in data]
    for length, (items, error) in enumerate(outcomes):
        assert items == complete[: len(items)]
        if error is None:
            assert items == complete
            assert length >= enough
        else:
            assert isinstance(error, NetworkError | MalformedResponseError)
            assert error.retryable


async def test_a_reason_at_the_beginning_does_not_make_a_stream_complete() -> None:
    begun = [start(stop_reason="end_turn"), *block(0, {"type": "text", "text": "Hel"})]
    with pytest.raises(NetworkError, match="before the answer was complete"):
        await items_of([event_bytes(*begun)])


@pytest.mark.parametrize(
    "event",
    [
        {"type": "content_block_start", "index": 0, "content_block": None},
        {"type": "content_block_start", "content_block": {"type": "text", "text": ""}},
    ],
)
async def test_a_block_without_its_place_is_no_answer(event: dict[str, Any]) -> None:
    with pytest.raises(MalformedResponseError, match="is no object, or has no index"):
        await items_of([event_bytes(start(), event, *end())])


async def test_a_delta_without_its_block_is_no_answer() -> None:
    events = [start(), *block(0, {"type": "text", "text": ""}, text("a"))[1:], *end()]
    with pytest.raises(MalformedResponseError, match="belongs to no content block"):
        await items_of([event_bytes(*events)])


ERRORS: list[tuple[str, type[ModelError], bool]] = [
    ("overloaded_error", ServerError, True),
    ("api_error", ServerError, True),
    ("rate_limit_error", RateLimitError, True),
    ("timeout_error", ProviderTimeoutError, True),
    ("authentication_error", AuthenticationError, False),
    ("permission_error", AuthenticationError, False),
    ("invalid_request_error", BadRequestError, False),
    ("not_found_error", BadRequestError, False),
    ("billing_error", RateLimitError, False),
]


@pytest.mark.parametrize(("kind", "cls", "retryable"), ERRORS)
async def test_an_error_inside_a_stream_is_raised_after_what_came_before_it(
    kind: str, cls: type[ModelError], retryable: bool
) -> None:
    error = {"type": "error", "error": {"type": kind, "message": "No."}, "request_id": "req_1"}
    begun = block(0, {"type": "text", "text": ""}, text("Hel"))
    async with answering([event_bytes(start(), *begun, error)], headers=SSE) as client:
        items, caught = await read(client)
    assert items[-1] == MessageDelta("Hel")
    assert caught is not None
    assert type(caught) is cls
    assert (caught.code, caught.retryable, caught.request_id) == (kind, retryable, "req_1")


@pytest.mark.parametrize(
    ("status", "kind", "cls", "retryable"),
    [
        (400, "invalid_request_error", BadRequestError, False),
        (401, "authentication_error", AuthenticationError, False),
        (403, "permission_error", AuthenticationError, False),
        (404, "not_found_error", BadRequestError, False),
        (429, "rate_limit_error", RateLimitError, True),
        (500, "api_error", ServerError, True),
        (504, "timeout_error", ServerError, True),
        (529, "overloaded_error", ServerError, True),
    ],
)
async def test_a_status_is_typed_and_tells_the_kind_and_the_wait(
    status: int, kind: str, cls: type[ModelError], retryable: bool
) -> None:
    reply = Reply.json({"type": "error", "error": {"type": kind, "message": "No."}})
    headers = {"request-id": "req_1", "retry-after": "7"}
    async with answering(reply.pieces, status=status, headers=headers) as client:
        for call in (model(client).invoke(REQUEST), anext(aiter(model(client).stream(REQUEST)))):
            with pytest.raises(cls) as caught:
                await call
            error = caught.value
            assert (error.status, error.code, error.retryable) == (status, kind, retryable)
            assert (error.retry_after, error.request_id) == (7, "req_1")


@pytest.mark.parametrize("body", [{}, {"content": None}, {"choices": []}])
async def test_a_document_that_is_no_message_is_malformed(body: Any) -> None:
    async with answering(Reply.json(body).pieces) as client:
        with pytest.raises(MalformedResponseError, match="no `content`"):
            await model(client).invoke(REQUEST)


async def test_a_message_instead_of_a_stream_is_read_as_one() -> None:
    reply = Reply.json({**start()["message"], "content": ANSWERS["text"][0]})
    items = await items_of(reply.pieces)
    assert isinstance(items[-1], StreamCompleted)
    assert items[-1].response.text == "Hello"


# Cancellation


async def test_cancelling_a_stream_closes_its_connection() -> None:
    begun = block(0, {"type": "text", "text": ""}, text("Hel"))
    reply = Reply(pieces=(event_bytes(start(), *begun),), headers=SSE, then="hang")
    async with serve(reply) as server:
        asked = AnthropicModel("m", api_key="the-key-of-a-test", base_url=server.url)
        async with asked, anyio.create_task_group() as group:

            async def read() -> None:
                async for item in asked.stream(REQUEST):
                    if item == MessageDelta("Hel"):
                        group.cancel_scope.cancel()

            group.start_soon(read)
        await eventually(lambda: bool(server.gone))


async def test_cancelling_a_plain_call_closes_its_connection() -> None:
    reply = Reply(pieces=(b"{",), then="hang")
    async with serve(reply) as server:
        asked = AnthropicModel("m", api_key="the-key-of-a-test", base_url=server.url)
        async with asked, anyio.create_task_group() as group:
            group.start_soon(asked.invoke, REQUEST)
            await eventually(lambda: bool(server.requests))
            group.cancel_scope.cancel()
        await eventually(lambda: bool(server.gone))
