"""What goes wrong with an answer of the Responses API, and what does not although it is odd."""

import json
from typing import Any

import anyio
import httpx
import pytest

from tests.harness.providers.openai_responses.wire import (
    REQUEST,
    SSE,
    USAGE,
    answering,
    call,
    event,
    events_of,
    failure,
    items_of,
    message,
    model,
    response,
    streamed,
    text,
    thought,
    whole,
)
from tests.harness.providers.server import (
    Reply,
    eventually,
    joined,
    serve,
)
from tinyagents.harness.errors import (
    BadRequestError,
    ContextOverflowError,
    MalformedResponseError,
    ModelError,
    NetworkError,
    RateLimitError,
    ServerError,
)
from tinyagents.harness.model import (
    MessageDelta,
    ModelRequest,
    ModelSettings,
    StreamCompleted,
    StreamStarted,
    UsageDelta,
    drain,
)
from tinyagents.harness.providers import OpenAIResponsesModel


@pytest.mark.parametrize(
    ("status", "error", "cls", "code", "retryable"),
    [
        ("failed", {"code": "server_error", "message": "x"}, ServerError, "server_error", True),
        (
            "failed",
            {"code": "rate_limit_exceeded", "message": "x"},
            RateLimitError,
            "rate_limit_exceeded",
            True,
        ),
        (
            "failed",
            {"code": "context_length_exceeded", "message": "too long"},
            ContextOverflowError,
            "context_length_exceeded",
            False,
        ),
        ("failed", None, ServerError, "failed", True),
        ("cancelled", None, ServerError, "cancelled", False),
    ],
)
async def test_an_answer_that_failed_raises_the_error_of_its_kind(
    status: str, error: Any, cls: type[ModelError], code: str, retryable: bool
) -> None:
    body = response(status=status, error=error)
    with pytest.raises(cls) as raised:
        await whole(body)
    assert (raised.value.code, raised.value.retryable) == (code, retryable)
    assert raised.value.raw
    seen, streamed_error = await failure(joined(events_of(body), done=False))
    assert type(streamed_error) is cls
    assert streamed_error.code == code
    assert seen == [StreamStarted(response_id="resp_1", model="served")]


@pytest.mark.parametrize("status", ["queued", "in_progress"])
async def test_an_answer_that_is_not_finished_is_no_answer(status: str) -> None:
    with pytest.raises(ServerError, match="has not finished") as raised:
        await whole(response(status=status))
    assert (raised.value.code, raised.value.retryable) == (status, False)


async def test_an_answer_in_the_background_is_read_as_a_stream() -> None:
    events = [event("queued", response=response(status="queued"))]
    body = response(message(text("a")))
    async with answering([joined([*events, *events_of(body)], done=False)], SSE) as client:
        settings = ModelSettings(provider_options={"background": True, "store": True})
        request = ModelRequest(messages=REQUEST.messages, settings=settings)
        assert (await model(client).invoke(request)).text == "a"


@pytest.mark.parametrize(
    "data",
    [
        b'event: error\ndata: {"type":"error","code":"server_error","message":"broke"}\n\n',
        b'data: {"type":"error","code":"server_error","message":"broke"}\n\n',
        b'data: {"type":"error","error":{"code":"server_error","message":"broke"}}\n\n',
        b'data: {"error":{"code":"server_error","message":"broke"}}\n\n',
        b'data: {"type":"response.failed","error":{"code":"server_error","message":"broke"}}\n\n',
    ],
)
async def test_an_error_inside_a_stream_is_raised_after_what_came_before(data: bytes) -> None:
    begun = joined(events_of(response(message(text("Hello"))))[:4], done=False)
    seen, error = await failure(begun + data)
    assert isinstance(error, ServerError)
    assert "broke" in str(error)
    assert error.code == "server_error"
    assert seen[-1] == MessageDelta("He")


async def test_a_refused_request_raises_the_error_of_its_status() -> None:
    body = {"error": {"message": "no", "type": "invalid_request_error", "code": "bad"}}
    async with answering(Reply.json(body).pieces, {"x-request-id": "req-1"}, 400) as client:
        for asked in (model(client).invoke(REQUEST), drain(model(client).stream(REQUEST))):
            with pytest.raises(BadRequestError) as raised:
                await asked
            assert (raised.value.code, raised.value.request_id) == ("bad", "req-1")


async def test_a_stream_cut_anywhere_is_the_same_answer_or_an_error() -> None:
    body = response(thought("a"), message(text("Hello é")), call('{"a":1}'), usage=USAGE)
    data = joined(events_of(body), done=False)
    expected = await whole(body)
    lengths = iter(range(len(data) + 1))

    def answer(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers=SSE, content=data[: next(lengths)])

    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
        asked = model(client)
        # The blank line after the last event may be missing.
        for _ in range(len(data) - 2):
            with pytest.raises((NetworkError, MalformedResponseError)) as raised:
                await drain(asked.stream(REQUEST))
            assert raised.value.retryable
        for _ in range(3):
            assert await drain(asked.stream(REQUEST)) == expected


async def test_an_end_mark_without_the_end_of_the_answer_is_an_error() -> None:
    events = events_of(response(message(text("Hello"))))[:-1]
    seen, error = await failure(joined(events, done=True))
    assert isinstance(error, NetworkError)
    assert error.retryable
    assert isinstance(seen[-1], MessageDelta)


async def test_nothing_after_the_end_is_read_into_the_answer() -> None:
    body = response(message(text("a")))
    late = [*events_of(body), *events_of(response(message(text("b")), id="resp_2"))]
    assert await streamed(late) == await whole(body)


async def test_a_plain_document_in_the_place_of_a_stream_is_an_answer() -> None:
    body = response(message(text("hi")), usage=USAGE)
    items = await items_of(Reply.json(body).pieces, headers={"content-type": "application/json"})
    assert [type(item) for item in items] == [
        StreamStarted, MessageDelta, UsageDelta, StreamCompleted,
    ]  # fmt: skip


@pytest.mark.parametrize(
    "body",
    [
        b"<html>hello</html>",
        b"[]",
        b"{}",
        b'{"choices": []}',
        b'{"status": "completed", "output": [1]}',
    ],
)
async def test_a_document_that_is_no_answer_is_malformed(body: bytes) -> None:
    async with answering([body]) as client:
        with pytest.raises(MalformedResponseError):
            await model(client).invoke(REQUEST)


@pytest.mark.parametrize(
    "odd",
    [
        event("completed"),
        event("output_item.done", output_index=0, item=1),
        event("completed", response={"output": ["x"]}),
    ],
)
async def test_an_event_that_breaks_the_protocol_is_malformed(odd: Any) -> None:
    _, error = await failure(joined([odd], done=False))
    assert isinstance(error, MalformedResponseError)


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "item", [{"type": "odd", "data": nested(150)}, message(text("x", extra=nested(150)))]
)
async def test_what_no_message_can_hold_is_malformed(item: dict[str, Any]) -> None:
    async with answering([json.dumps(response(item)).encode()]) as client:
        with pytest.raises(MalformedResponseError, match="cannot be read"):
            await model(client).invoke(REQUEST)


async def test_servers_that_leave_things_out_are_understood() -> None:
    bare: dict[str, Any] = {
        "output": [
            {"type": "message", "role": "assistant", "content": "plain"},
            {"type": "function_call", "id": "x", "name": "f", "arguments": {"a": 1}},
        ]
    }
    answer = await whole(bare)
    assert answer.text == "plain"
    assert [(c.id, c.arguments) for c in answer.message.tool_calls] == [("x", {"a": 1})]
    assert (answer.finish_reason, answer.usage) == ("tool_calls", None)


@pytest.mark.parametrize("bare", [{}, {"output": []}, {"output": [thought("a")]}])
async def test_a_text_that_stands_beside_the_items_alone_is_the_answer(
    bare: dict[str, Any],
) -> None:
    said = {**bare, "output_text": "Hello"}
    answer = await whole(said)
    assert (answer.text, answer.finish_reason) == ("Hello", "stop")
    end = {"type": "response.completed", "response": {**said, "status": "completed"}}
    assert (await streamed([end])).message == answer.message


async def test_a_text_that_stands_beside_the_items_too_is_taken_once() -> None:
    body = {**response(message(text("Hello"))), "output_text": "Hello"}
    assert (await whole(body)).text == "Hello"
    assert (await streamed(events_of(body))).text == "Hello"
    end = {
        "type": "response.completed",
        "response": {"output_text": "Hello", "output": list[int]()},
    }
    pieces = [{"type": "response.output_text.delta", "output_index": 0, "delta": "Hello"}, end]
    assert (await streamed(pieces)).text == "Hello"


async def test_events_without_positions_belong_to_the_last_item() -> None:
    body = response(thought("a"), message(text("Hello")))
    events = [
        {k: v for k, v in each.items() if not k.endswith("_index")} for each in events_of(body)
    ]
    assert (await streamed(events)).message == (await whole(body)).message


async def test_leaving_a_stream_closes_its_connection() -> None:
    begun = events_of(response(message(text("Hello"))))[:4]
    silent = Reply.events(*begun, done=False, then="hang")
    async with (
        serve(silent) as server,
        OpenAIResponsesModel("m", api_key="k", base_url=f"{server.url}/v1") as asked,
    ):
        stream = asked.stream(REQUEST)
        assert isinstance(await anext(aiter(stream)), StreamStarted)
        close: Any = stream
        await close.aclose()
        await eventually(lambda: bool(server.gone))


async def test_a_cancelled_call_closes_its_connection() -> None:
    waiting = Reply(pieces=(b"{",), then="hang")
    async with (
        serve(waiting) as server,
        OpenAIResponsesModel("m", api_key="k", base_url=f"{server.url}/v1") as asked,
        anyio.create_task_group() as group,
    ):
        group.start_soon(asked.invoke, REQUEST)
        await eventually(lambda: bool(server.requests))
        group.cancel_scope.cancel()
    assert server.requests[0].path == "/v1/responses"
