"""What comes back from Ollama's own API: whole and line by line, it makes the same message."""

from collections.abc import Sequence
from typing import Any

import httpx
import orjson
import pytest

from tests.harness.providers.server import cut, single_bytes
from tinyagents import AgentHarness, tool
from tinyagents.harness.errors import (
    AuthenticationError,
    BadRequestError,
    ContextOverflowError,
    MalformedResponseError,
    ModelError,
    NetworkError,
    ServerError,
)
from tinyagents.harness.message import (
    AssistantMessage,
    Block,
    ProviderExtensionBlock,
    ReasoningBlock,
    TextBlock,
    ToolCallBlock,
    UserMessage,
)
from tinyagents.harness.model import (
    MessageDelta,
    ModelRequest,
    ModelResponse,
    ModelStreamItem,
    StreamCompleted,
    StreamStarted,
    ToolCallDelta,
    ToolSchema,
    UsageDelta,
    drain,
)
from tinyagents.harness.providers import OllamaModel
from tinyagents.harness.tool import wire_names
from tinyagents.harness.usage import Usage
from tinyagents.testkit import DeterministicIds

REQUEST = ModelRequest(messages=[UserMessage(content="hi")])
END = {"done": True, "done_reason": "stop", "prompt_eval_count": 12, "eval_count": 5}
THINKING = {"ollama": {"field": "thinking"}}


def line(message: Any = None, **fields: Any) -> dict[str, Any]:
    document = {"model": "served", "created_at": "2026-01-01T00:00:00Z", "done": False, **fields}
    return document if message is None else {**document, "message": message}


def said(content: str = "", **fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **fields}


def lines(*documents: Any) -> bytes:
    return b"".join(orjson.dumps(document) + b"\n" for document in documents)


def answering(pieces: Sequence[bytes], status: int = 200) -> httpx.AsyncClient:
    async def body() -> Any:
        for piece in pieces:
            yield piece

    def answer(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(status, content=body())

    return httpx.AsyncClient(transport=httpx.MockTransport(answer))


async def items_of(
    pieces: Sequence[bytes], request: ModelRequest = REQUEST
) -> list[ModelStreamItem]:
    async with answering(pieces) as client:
        return [i async for i in OllamaModel("m", http_client=client).stream(request)]


async def streamed(*messages: Any, request: ModelRequest = REQUEST, **end: Any) -> ModelResponse:
    """Return the answer that lines make, having checked that it does not matter how they are cut."""
    data = lines(*(line(each) for each in messages), line(said(), **{**END, **end}))
    responses = []
    for pieces in ((data,), cut(data, seed=3), single_bytes(data)):
        items = await items_of(pieces, request)
        assert items[0] == StreamStarted(model="served")
        assert isinstance(items[-1], StreamCompleted)
        responses.append(items[-1].response)
    assert all(told(each) == told(responses[0]) for each in responses)
    return responses[0]


async def whole(message: Any, *, request: ModelRequest = REQUEST, **end: Any) -> ModelResponse:
    body = orjson.dumps(line(message, **{**END, **end}))
    async with answering([body]) as client:
        return await OllamaModel("m", http_client=client).invoke(request)


def without_ids(blocks: list[Block]) -> list[Block]:
    return [
        block.model_copy(update={"id": "new"})
        if isinstance(block, ToolCallBlock) and block.id.startswith("tacall_")
        else block
        for block in blocks
    ]


def told(response: ModelResponse) -> object:
    return (
        without_ids(response.message.content),
        response.message.usage,
        response.message.provider_data,
        response.finish_reason,
        response.raw_finish_reason,
        response.model,
        response.raw,
    )


# One meaning, two forms


async def test_text_comes_in_pieces_or_whole() -> None:
    pieces = await streamed(said("Hel"), said("lo"))
    assert told(pieces) == told(await whole(said("Hello")))
    assert pieces.message == AssistantMessage(
        content=[TextBlock(text="Hello")], usage=Usage(input_tokens=12, output_tokens=5)
    )
    assert (pieces.finish_reason, pieces.raw_finish_reason) == ("stop", "stop")
    assert pieces.raw["prompt_eval_count"] == 12


async def test_thinking_is_reasoning_before_the_text() -> None:
    pieces = await streamed(said(thinking="They "), said(thinking="want."), said("Sunny."))
    assert told(pieces) == told(await whole(said("Sunny.", thinking="They want.")))
    assert pieces.message.content == [
        ReasoningBlock(text="They want.", provider_data=THINKING),
        TextBlock(text="Sunny."),
    ]


async def test_thinking_between_tags_in_the_text_is_reasoning_too() -> None:
    pieces = await streamed(said("<th"), said("ink>hm</think>"), said("Yes."))
    assert told(pieces) == told(await whole(said("<think>hm</think>Yes.")))
    assert [block.type for block in pieces.message.content] == ["reasoning", "text"]


async def test_calls_without_ids_get_one_each_and_keep_their_order() -> None:
    first = {"function": {"name": "a", "arguments": {"n": 1}}}
    second = {"function": {"name": "a", "arguments": {"n": 1}}}
    pieces = await streamed(said(tool_calls=[first]), said(tool_calls=[second]))
    assert told(pieces) == told(await whole(said(tool_calls=[first, second])))
    calls = pieces.message.tool_calls
    assert [(call.name, call.arguments) for call in calls] == [("a", {"n": 1})] * 2
    assert len({call.id for call in calls}) == 2
    assert (pieces.finish_reason, pieces.raw_finish_reason) == ("tool_calls", "stop")


async def test_a_servers_own_ids_and_what_else_it_says_of_a_call_are_kept() -> None:
    call = {"id": "call_1", "function": {"index": 0, "name": "a", "arguments": {"x": "é"}}}
    response = await streamed(said(tool_calls=[call]))
    own = {"ollama": {"function": {"index": 0}}}
    assert response.message.content == [
        ToolCallBlock(id="call_1", name="a", arguments={"x": "é"}, provider_data=own)
    ]


async def test_one_id_for_several_calls_mixes_none_of_them() -> None:
    calls = [{"id": "x", "function": {"name": name, "arguments": {}}} for name in "ab"]
    response = await streamed(said(tool_calls=calls))
    assert [call.name for call in response.message.tool_calls] == ["a", "b"]


@pytest.mark.parametrize(
    ("given", "arguments"),
    [({"n": 1}, {"n": 1}), (None, {}), ('{"n": 1}', {"n": 1}), ("", {}), ({}, {})],
)
async def test_arguments_are_an_object_or_its_text(given: Any, arguments: Any) -> None:
    response = await whole(said(tool_calls=[{"function": {"name": "a", "arguments": given}}]))
    (call,) = response.message.tool_calls
    assert (call.arguments, call.invalid) == (arguments, None)


async def test_arguments_that_are_no_object_are_invalid_and_kept() -> None:
    response = await whole(said(tool_calls=[{"function": {"name": "a", "arguments": [1]}}]))
    (call,) = response.message.tool_calls
    assert call.invalid is not None
    assert call.invalid.raw == "[1]"


async def test_a_call_of_a_kind_that_is_not_understood_is_kept_whole() -> None:
    odd = {"id": "c", "shell": {"command": "ls"}}
    response = await streamed(said(tool_calls=[odd]))
    assert response.message.content == [
        ProviderExtensionBlock(provider="ollama", data={"tool_call": odd})
    ]


async def test_names_come_back_as_the_applications_own() -> None:
    name = "files.read"
    offered = ToolSchema(name=name, description="", parameters={"type": "object"})
    request = ModelRequest(messages=REQUEST.messages, tools=[offered])
    call = {"function": {"name": wire_names([name])[name], "arguments": {}}}
    response = await streamed(said(tool_calls=[call]), request=request)
    assert [each.name for each in response.message.tool_calls] == [name]


async def test_the_ids_of_calls_are_the_runs_own() -> None:
    @tool
    def now() -> str:
        """Tell the time."""
        return "noon"

    call = said(tool_calls=[{"function": {"name": "now", "arguments": {}}}])

    async def once() -> list[str]:
        replies = iter([line(call, **END), line(said("Noon."), **END)])
        transport = httpx.MockTransport(lambda _: httpx.Response(200, json=next(replies)))
        async with httpx.AsyncClient(transport=transport) as client:
            model = OllamaModel("m", http_client=client)
            agent = AgentHarness(model=model, tools=[now], ids=DeterministicIds())
            run = await agent.invoke(None, "what time is it?")
        messages = [m for m in run.messages if isinstance(m, AssistantMessage)]
        return [each.id for message in messages for each in message.tool_calls]

    ids = await once()
    assert len(ids) == 1
    assert ids == await once()


async def test_fields_that_are_not_known_are_kept() -> None:
    pieces = await streamed(said("a", odd={"n": 1}), remote_host="https://ollama.com:443")
    assert pieces.message.provider_data == {"ollama": {"odd": {"n": 1}}}
    assert pieces.raw["remote_host"] == "https://ollama.com:443"


async def test_log_probabilities_of_all_lines_are_joined() -> None:
    data = lines(
        line(said("a"), logprobs=[{"token": "a", "logprob": -0.1}]),
        line(said("b"), logprobs=[{"token": "b", "logprob": -0.2}]),
        line(said(), **END),
    )
    (*_, last) = await items_of([data])
    assert isinstance(last, StreamCompleted)
    assert [each["token"] for each in last.response.raw["logprobs"]] == ["a", "b"]


@pytest.mark.parametrize(
    ("reason", "finish"),
    [("stop", "stop"), ("length", "length"), ("unload", "other"), (None, None)],
)
async def test_reasons_for_ending_have_one_meaning(reason: str | None, finish: str | None) -> None:
    for response in (
        await whole(said("a"), done_reason=reason),
        await streamed(said("a"), done_reason=reason),
    ):
        assert (response.finish_reason, response.raw_finish_reason) == (finish, reason)


@pytest.mark.parametrize(
    ("counts", "usage"),
    [
        ((7, 3), Usage(input_tokens=7, output_tokens=3)),
        ((None, 3), Usage(output_tokens=3)),
        ((None, None), None),
    ],
)
async def test_counts_are_usage(counts: tuple[int | None, int | None], usage: Usage | None) -> None:
    response = await whole(said("a"), prompt_eval_count=counts[0], eval_count=counts[1])
    assert response.usage == usage


async def test_the_items_of_a_stream_come_in_their_order() -> None:
    call = {"function": {"name": "a", "arguments": {"n": 1}}}
    data = lines(
        line(said(thinking="hm")),
        line(said("x")),
        line(said(tool_calls=[call])),
        line(said(), **END),
    )
    items = await items_of([data])
    assert items[:3] == [
        StreamStarted(model="served"),
        MessageDelta(reasoning="hm"),
        MessageDelta("x"),
    ]
    assert isinstance(items[3], ToolCallDelta)
    assert (items[3].name, items[3].arguments) == ("a", '{"n":1}')
    assert items[4] == UsageDelta(Usage(input_tokens=12, output_tokens=5))
    completed = items[5]
    assert isinstance(completed, StreamCompleted)
    assert completed.response.message.tool_calls[0].id == items[3].call_id


async def test_lines_that_are_not_understood_are_passed_over() -> None:
    data = lines({"status": "loading"}, line(said("a"))) + b"\n\n" + lines(line(said(), **END))
    (*_, last) = await items_of([data])
    assert isinstance(last, StreamCompleted)
    assert last.response.text == "a"


async def test_an_answer_without_a_line_end_behind_it_is_whole() -> None:
    (*_, last) = await items_of([lines(line(said("a"), **END)).rstrip()])
    assert isinstance(last, StreamCompleted)
    assert last.response.text == "a"


async def test_half_a_character_is_made_safe() -> None:
    body = b'{"message":{"content":"a\\ud83d"},"done":false}\n' + lines(line(said(), **END))
    (*_, last) = await items_of([body])
    assert isinstance(last, StreamCompleted)
    assert last.response.text == "a\N{REPLACEMENT CHARACTER}"


# What goes wrong


async def read(pieces: Sequence[bytes]) -> tuple[list[ModelStreamItem], ModelError | None]:
    """Return the items of a stream, and the error that ended it."""
    seen: list[ModelStreamItem] = []
    async with answering(pieces) as client:
        try:
            async for item in OllamaModel("m", http_client=client).stream(REQUEST):
                seen.append(item)
        except ModelError as error:
            return seen, error
    return seen, None


def pieces_of(items: Sequence[ModelStreamItem]) -> list[ModelStreamItem]:
    return [item for item in items if isinstance(item, MessageDelta | UsageDelta)]


async def test_a_stream_that_is_cut_anywhere_gives_the_same_answer_or_an_error() -> None:
    call = {"function": {"name": "a", "arguments": {"n": 1}}}
    data = lines(line(said("é", thinking="hm")), line(said(tool_calls=[call]), **END))
    complete, _ = await read([data])
    assert isinstance(complete[-1], StreamCompleted)
    for place in range(len(data) - 1):
        seen, error = await read([data[:place]])
        assert isinstance(error, NetworkError | MalformedResponseError)
        assert error.retryable
        assert not any(isinstance(item, StreamCompleted) for item in seen)
        assert pieces_of(seen) == pieces_of(complete)[: len(pieces_of(seen))]
    seen, error = await read([data[:-1]])  # the line end alone is missing
    assert error is None
    assert pieces_of(seen) == pieces_of(complete)


@pytest.mark.parametrize(
    ("error", "cls"),
    [
        ("an error was met while running the model", ServerError),
        ("model runner has unexpectedly stopped", ServerError),
        ({"message": "unauthorized"}, AuthenticationError),
    ],
)
async def test_an_error_within_a_stream_is_raised_behind_what_came_before_it(
    error: Any, cls: type[ModelError]
) -> None:
    seen, raised = await read([lines(line(said("Su")), {"error": error})])
    assert type(raised) is cls
    assert seen == [StreamStarted(model="served"), MessageDelta("Su")]


async def test_an_error_in_a_whole_answer_is_raised() -> None:
    async with answering([orjson.dumps({"error": "out of memory"})]) as client:
        with pytest.raises(ServerError, match="out of memory"):
            await OllamaModel("m", http_client=client).invoke(REQUEST)


@pytest.mark.parametrize(
    "body",
    [
        b"<html>hello</html>",
        b'{"note": 1}',
        b"[1]",
        b'{"message": {"content": [1]}, "done": true}',
        b'{"message": {"content": "a"}, "done": false}',
    ],
)
async def test_what_is_no_answer_is_malformed(body: bytes) -> None:
    async with answering([body]) as client:
        with pytest.raises(MalformedResponseError):
            await OllamaModel("m", http_client=client).invoke(REQUEST)


async def test_a_stream_that_is_no_json_is_malformed() -> None:
    seen, error = await read([b"<html>\nhello\n</html>\n"])
    assert not seen
    assert isinstance(error, MalformedResponseError)


@pytest.mark.parametrize(
    ("status", "words", "cls"),
    [
        (400, "the input length exceeds the context length", ContextOverflowError),
        (400, '"m" does not support tools', BadRequestError),
        (401, "unauthorized", AuthenticationError),
        (500, "model requires more system memory", ServerError),
        (503, "server busy, please try again", ServerError),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
async def test_a_refusal_by_the_server_is_told_in_its_words(
    status: int, words: str, cls: type[ModelError], stream: bool
) -> None:
    async with answering([orjson.dumps({"error": words})], status) as client:
        model = OllamaModel("m", http_client=client)
        with pytest.raises(cls) as caught:
            await (drain(model.stream(REQUEST)) if stream else model.invoke(REQUEST))
    assert caught.value.message == words
    assert caught.value.provider == "ollama"
