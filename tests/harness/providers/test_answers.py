"""What comes back: every shape of answer, whole and streamed, makes the same message."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import httpx
import pytest

from tests.harness.providers.server import Reply, cut, joined, single_bytes
from tinyagents.harness.errors import (
    BadRequestError,
    MalformedResponseError,
    ModelError,
    NetworkError,
    RateLimitError,
    ServerError,
)
from tinyagents.harness.message import (
    AssistantMessage,
    AudioBlock,
    Block,
    CitationBlock,
    ImageBlock,
    ProviderExtensionBlock,
    ReasoningBlock,
    RefusalBlock,
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
from tinyagents.harness.providers import PROVIDERS, OpenAIChatModel, ProviderPreset
from tinyagents.harness.tool import wire_names
from tinyagents.harness.usage import Usage

REQUEST = ModelRequest(messages=[UserMessage(content="hi")])
SSE = {"content-type": "text/event-stream"}


def model(client: httpx.AsyncClient, provider: str | ProviderPreset = "openai") -> OpenAIChatModel:
    preset = PROVIDERS[provider] if isinstance(provider, str) else provider
    url = preset.base_url or "https://host.example/v1"
    return OpenAIChatModel(
        "m", provider=preset, api_key="the-key-of-a-test", base_url=url, http_client=client
    )


def answering(
    pieces: Sequence[bytes], headers: dict[str, str] | None = None, status: int = 200
) -> httpx.AsyncClient:
    async def body() -> Any:
        for piece in pieces:
            yield piece

    def answer(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(status, headers=headers, content=body())

    return httpx.AsyncClient(transport=httpx.MockTransport(answer))


async def whole(
    message: Any,
    *,
    provider: str | ProviderPreset = "openai",
    finish: str | None = "stop",
    request: ModelRequest = REQUEST,
    **body: Any,
) -> ModelResponse:
    choice = {"index": 0, "message": message, "finish_reason": finish}
    reply = Reply.json({"id": "c-1", "model": "served", "choices": [choice], **body})
    async with answering(reply.pieces) as client:
        return await model(client, provider).invoke(request)


def chunks(deltas: Sequence[Any], finish: str | None = "stop", **last: Any) -> list[Any]:
    made: list[Any] = [
        {"id": "c-1", "model": "served", "choices": [{"index": 0, "delta": delta}]}
        for delta in deltas
    ]
    end = {"index": 0, "delta": {}, "finish_reason": finish}
    return [*made, {"id": "c-1", "model": "served", "choices": [end], **last}]


async def items_of(
    pieces: Sequence[bytes],
    *,
    provider: str | ProviderPreset = "openai",
    request: ModelRequest = REQUEST,
    headers: dict[str, str] | None = None,
) -> list[ModelStreamItem]:
    async with answering(pieces, SSE if headers is None else headers) as client:
        return [item async for item in model(client, provider).stream(request)]


async def streamed(
    *deltas: Any,
    provider: str | ProviderPreset = "openai",
    finish: str | None = "stop",
    request: ModelRequest = REQUEST,
    **last: Any,
) -> ModelResponse:
    data = joined(chunks(deltas, finish, **last))
    responses = []
    for pieces in ((data,), cut(data, seed=3), single_bytes(data)):
        items = await items_of(pieces, provider=provider, request=request)
        assert isinstance(items[0], StreamStarted)
        assert isinstance(items[-1], StreamCompleted)
        responses.append(items[-1].response)
    ids = {tuple(call.id for call in each.message.tool_calls) for each in responses}
    if not any(identifier.startswith("tacall_") for each in ids for identifier in each):
        assert all(each == responses[0] for each in responses)
    return responses[0]


def call(
    arguments: Any, name: str = "f", identifier: Any = "call_1", **more: Any
) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"id": identifier, "type": "function", "function": function, **more}


# The same answer in both forms

ANSWERS: dict[str, tuple[Any, list[Any], str, list[Block]]] = {
    "text": (
        {"role": "assistant", "content": "Hello"},
        [{"role": "assistant", "content": ""}, {"content": "Hel"}, {"content": "lo"}],
        "openai",
        [TextBlock(text="Hello")],
    ),
    "refusal": (
        {"content": None, "refusal": "I will not."},
        [{"content": None, "refusal": ""}, {"refusal": "I will "}, {"refusal": "not."}],
        "openai",
        [RefusalBlock(text="I will not.")],
    ),
    "calls": (
        {"content": None, "tool_calls": [call('{"a":1}'), call("", "g", "call_2")]},
        [
            {"tool_calls": [{"index": 0, **call("")}]},
            {"tool_calls": [{"index": 0, "function": {"arguments": '{"a"'}}]},
            {"tool_calls": [{"index": 0, "function": {"arguments": ":1}"}}]},
            {"tool_calls": [{"index": 1, **call("", "g", "call_2")}]},
        ],
        "openai",
        [
            ToolCallBlock(id="call_1", name="f", arguments={"a": 1}),
            ToolCallBlock(id="call_2", name="g", arguments={}),
        ],
    ),
    "reasoning_content": (
        {"reasoning_content": "Let me see", "content": "4"},
        [{"reasoning_content": "Let "}, {"reasoning_content": "me see"}, {"content": "4"}],
        "deepseek",
        [
            ReasoningBlock(
                text="Let me see", provider_data={"deepseek": {"field": "reasoning_content"}}
            ),
            TextBlock(text="4"),
        ],
    ),
    "the same reasoning under two names": (
        {"reasoning_content": "x", "reasoning": "x", "content": "4"},
        [{"reasoning_content": "x", "reasoning": "x"}, {"content": "4"}],
        "vllm",
        [
            ReasoningBlock(text="x", provider_data={"vllm": {"field": "reasoning_content"}}),
            TextBlock(text="4"),
        ],
    ),
    "reasoning as an object": (
        {"reasoning": {"text": "hm"}, "content": "4"},
        [{"reasoning": {"text": "hm"}}, {"content": "4"}],
        "together",
        [
            ReasoningBlock(text="hm", provider_data={"together": {"reasoning": {"text": "hm"}}}),
            TextBlock(text="4"),
        ],
    ),
    "reasoning as a list": (
        {"reasoning": [{"text": "h"}, {"content": "m"}], "content": "4"},
        [{"reasoning": [{"text": "h"}]}, {"reasoning": [{"content": "m"}]}, {"content": "4"}],
        "together",
        [
            ReasoningBlock(
                text="hm",
                provider_data={"together": {"reasoning": [{"text": "h"}, {"content": "m"}]}},
            ),
            TextBlock(text="4"),
        ],
    ),
    "reasoning details": (
        {
            "reasoning": "I think",
            "reasoning_details": [
                {"type": "reasoning.text", "text": "I think", "index": 0, "signature": "s1"},
                {"type": "reasoning.encrypted", "data": "zz", "index": 1},
            ],
            "content": "4",
        },
        [
            {
                "reasoning": "I ",
                "reasoning_details": [{"type": "reasoning.text", "text": "I ", "index": 0}],
            },
            {
                "reasoning": "think",
                "reasoning_details": [{"type": "reasoning.text", "text": "think", "index": 0}],
            },
            {"reasoning_details": [{"type": "reasoning.text", "signature": "s1", "index": 0}]},
            {"reasoning_details": [{"type": "reasoning.encrypted", "data": "zz", "index": 1}]},
            {"content": "4"},
        ],
        "openrouter",
        [
            ReasoningBlock(
                text="I think",
                signature="s1",
                data="zz",
                provider_data={
                    "openrouter": {
                        "field": "reasoning",
                        "reasoning_details": [
                            {"type": "reasoning.text", "text": "I think", "index": 0, "signature": "s1"},
                            {"type": "reasoning.encrypted", "data": "zz", "index": 1},
                        ],
                    }
                },
            ),
            TextBlock(text="4"),
        ],
    ),
    "think tags": (
        {"content": "<think>\nhm\n</think>\n\n4 < 5"},
        [{"content": "<thi"}, {"content": "nk>\nhm\n"}, {"content": "</think>\n\n4"}, {"content": " < 5"}],
        "groq",
        [
            ReasoningBlock(
                text="hm", provider_data={"groq": {"inline": ["<think>\n", "\n</think>\n\n"]}}
            ),
            TextBlock(text="4 < 5"),
        ],
    ),
    "a list of thinking and text": (
        {
            "content": [
                {"type": "thinking", "thinking": [{"type": "text", "text": "hm hm"}], "closed": True},
                {"type": "text", "text": "144"},
            ]
        },
        [
            {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm "}]}]},
            {
                "content": [
                    {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}], "closed": True}
                ]
            },
            {"content": "1"},
            {"content": [{"type": "text", "text": "44"}]},
        ],
        "mistral",
        [
            ReasoningBlock(text="hm hm", provider_data={"mistral": {"part": {"closed": True}}}),
            TextBlock(text="144"),
        ],
    ),
    "an unknown part": (
        {"content": [{"type": "text", "text": "a"}, {"type": "odd", "x": 1}]},
        [{"content": "a"}, {"content": [{"type": "odd", "x": 1}]}],
        "groq",
        [TextBlock(text="a"), ProviderExtensionBlock(provider="groq", data={"type": "odd", "x": 1})],
    ),
    "citations": (
        {
            "content": "see",
            "annotations": [
                {"type": "url_citation", "url_citation": {
                    "url": "https://x", "title": "X", "content": "c", "start_index": 0, "end_index": 3,
                }}
            ],
        },
        [
            {"content": "see"},
            {"annotations": [
                {"type": "url_citation", "url_citation": {
                    "url": "https://x", "title": "X", "content": "c", "start_index": 0, "end_index": 3,
                }}
            ]},
        ],
        "openai",
        [
            TextBlock(text="see"),
            CitationBlock(url="https://x", title="X", text="c", start=0, end=3),
        ],
    ),
    "pictures": (
        {"content": "", "images": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,eA=="}}]},
        [{"images": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,eA=="}}]}],
        "openrouter",
        [ImageBlock(url="data:image/png;base64,eA==", provider_data={"openrouter": {"images": True}})],
    ),
    "sound": (
        {"content": None, "audio": {"id": "a-1", "data": "eHl6", "transcript": "hello", "expires_at": 9}},
        [
            {"audio": {"id": "a-1", "transcript": "hel"}},
            {"audio": {"data": "eHl6", "transcript": "lo"}},
            {"audio": {"expires_at": 9}},
        ],
        "openai",
        [
            AudioBlock(
                data="eHl6",
                media_type="audio/wav",
                transcript="hello",
                provider_data={"openai": {"id": "a-1", "expires_at": 9}},
            )
        ],
    ),
    "a signature on a call": (
        {"tool_calls": [call("{}", extra_content={"google": {"thought_signature": "g1"}})]},
        [{"tool_calls": [{"index": 0, **call("{}", extra_content={"google": {"thought_signature": "g1"}})}]}],
        "google",
        [
            ToolCallBlock(
                id="call_1",
                name="f",
                provider_data={"google": {"extra_content": {"google": {"thought_signature": "g1"}}}},
            )
        ],
    ),
    "a call of an unknown type": (
        {"tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "f", "input": "x"}}]},
        [{"tool_calls": [{"index": 0, "id": "c", "type": "custom", "custom": {"name": "f", "input": "x"}}]}],
        "groq",
        [],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ANSWERS)
async def test_whole_and_streamed_answers_make_the_same_message(name: str) -> None:
    message, deltas, provider, blocks = ANSWERS[name]
    in_one = await whole(message, provider=provider)
    in_pieces = await streamed(*deltas, provider=provider)
    if name != "a call of an unknown type":
        assert in_one.message.content == blocks
        assert in_pieces == in_one
    else:
        (block,) = in_one.message.content
        assert isinstance(block, ProviderExtensionBlock)
        assert isinstance(in_pieces.message.content[0], ProviderExtensionBlock)


@pytest.mark.parametrize("name", ANSWERS)
async def test_an_answer_can_be_sent_back_to_its_provider(name: str) -> None:
    message, _, provider, _ = ANSWERS[name]
    answer = (await whole(message, provider=provider)).message
    seen: list[Any] = []

    def reply(request: httpx.Request) -> httpx.Response:
        seen.append(json.loads(request.content)["messages"][-1])
        return httpx.Response(200, json={"choices": [{"message": {"content": "ok"}}]})

    async with httpx.AsyncClient(transport=httpx.MockTransport(reply)) as client:
        asked = model(client, provider)
        await asked.invoke(ModelRequest(messages=[*REQUEST.messages, answer]))
        elsewhere = AssistantMessage(
            content=[block for block in answer.content if not isinstance(block, ImageBlock)]
        )
        other = model(client, "cerebras")
        await other.invoke(ModelRequest(messages=[*REQUEST.messages, elsewhere]))
    for field in ("reasoning_content", "reasoning", "reasoning_details", "content", "images"):
        given = message.get(field)
        if name == "the same reasoning under two names" and field == "reasoning":
            continue
        if given and field in seen[0]:
            assert seen[0][field] == given
        elif field.startswith("reasoning"):
            assert not given
    assert not {"reasoning_content", "reasoning", "reasoning_details"} & set(seen[-1])


# Items


async def test_the_items_of_a_stream_come_in_order_and_empty_ones_not_at_all() -> None:
    data = joined(
        [
            *chunks([{"role": "assistant", "content": ""}, {"content": "Hel"}, {"content": "lo"}]),
            {"id": "c-1", "choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 3}},
        ]
    )
    items = await items_of([data])
    assert items[:-1] == [
        StreamStarted(response_id="c-1", model="served"),
        MessageDelta("Hel"),
        MessageDelta("lo"),
        UsageDelta(Usage(input_tokens=5, output_tokens=3)),
    ]
    last = items[-1]
    assert isinstance(last, StreamCompleted)
    assert last.response.usage == Usage(input_tokens=5, output_tokens=3)
    assert last.response.finish_reason == "stop"


async def test_a_tag_is_held_back_only_while_it_may_still_be_one() -> None:
    data = joined(chunks([{"content": "a <b"}, {"content": " <th"}, {"content": "is"}]))
    items = await items_of([data], provider="groq")
    texts = [item.text for item in items if isinstance(item, MessageDelta)]
    assert texts == ["a <b", " ", "<this"]


async def test_reasoning_in_tags_streams_as_reasoning_with_the_line_ends_taken_off() -> None:
    data = joined(
        chunks([{"content": "<think>\n\na\n"}, {"content": "b\n</think>\n"}, {"content": "\nc"}])
    )
    items = await items_of(single_bytes(data), provider="groq")
    deltas = [item for item in items if isinstance(item, MessageDelta)]
    assert "".join(delta.reasoning for delta in deltas) == "a\nb"
    assert "".join(delta.text for delta in deltas) == "c"


async def test_a_text_that_begins_inside_of_reasoning_needs_no_opening_tag() -> None:
    preset = replace(PROVIDERS["groq"], starts_thinking=True)
    response = await streamed({"content": "hm"}, {"content": "</think>4"}, provider=preset)
    assert [block.type for block in response.message.content] == ["reasoning", "text"]


async def test_reasoning_may_stand_in_a_tag_of_another_name() -> None:
    preset = replace(PROVIDERS["groq"], think_tag="reasoning")
    response = await streamed(
        {"content": "<reason"},
        {"content": "ing>hm</"},
        {"content": "reasoning>4 <think>"},
        provider=preset,
    )
    assert [block.type for block in response.message.content] == ["reasoning", "text"]
    assert response.text == "4 <think>"


async def test_tags_are_plain_text_at_the_hosted_api() -> None:
    assert (await whole({"content": "<think>x</think>y"})).text == "<think>x</think>y"


async def test_tags_are_read_at_another_server_than_the_hosted_api() -> None:
    document = {"choices": [{"message": {"content": "<think>x</think>y"}, "finish_reason": "stop"}]}
    transport = httpx.MockTransport(lambda _: httpx.Response(200, json=document))
    async with httpx.AsyncClient(transport=transport) as client:
        asked = OpenAIChatModel(
            "m", provider="openai", base_url="http://box/v1", api_key="k", http_client=client
        )
        response = await asked.invoke(ModelRequest([UserMessage(content="hi")]))
    assert [block.type for block in response.message.content] == ["reasoning", "text"]


# Tool calls


@pytest.mark.parametrize("arguments", ["", None, "   ", "{}", "null", {}])
async def test_no_arguments_are_an_empty_object(arguments: Any) -> None:
    for response in (
        await whole({"tool_calls": [call(arguments)]}),
        await streamed({"tool_calls": [{"index": 0, **call(arguments)}]}),
    ):
        assert response.message.tool_calls == [ToolCallBlock(id="call_1", name="f")]


async def test_arguments_may_be_an_object() -> None:
    response = await whole({"tool_calls": [call({"a": 1})]})
    assert response.message.tool_calls[0].arguments == {"a": 1}


@pytest.mark.parametrize("raw", ["[1]", '"x"', "7", "true", '{"body":"abc'])
async def test_arguments_that_are_no_object_are_kept_as_invalid(raw: str) -> None:
    (made,) = (await whole({"tool_calls": [call(raw)]})).message.tool_calls
    assert made.arguments == {}
    assert made.invalid is not None
    assert made.invalid.raw == raw


async def test_arguments_with_leaked_markers_are_repaired() -> None:
    (made,) = (await whole({"tool_calls": [call('{"a":1}<|im_end|>')]})).message.tool_calls
    assert (made.arguments, made.invalid) == ({"a": 1}, None)


async def test_the_first_index_need_not_be_zero() -> None:
    response = await streamed(
        {"tool_calls": [{"index": 1, **call('{"a"', "add", "t1")}]},
        {"tool_calls": [{"index": 1, "function": {"arguments": ':1,"b":2}'}}]},
    )
    assert response.message.tool_calls == [
        ToolCallBlock(id="t1", name="add", arguments={"a": 1, "b": 2})
    ]


async def test_two_ids_at_one_index_are_two_calls() -> None:
    response = await streamed(
        {"tool_calls": [{"index": 0, **call('{"x":1}', "f", "u1")}]},
        {"tool_calls": [{"index": 0, **call('{"x":2}', "f", "u2")}]},
    )
    assert [made.arguments for made in response.message.tool_calls] == [{"x": 1}, {"x": 2}]


async def test_an_id_on_every_chunk_and_a_summary_make_one_call() -> None:
    pieces = ['{"q"', ':"mo', 'ss"}', '{"q":"moss"}']
    response = await streamed(
        *({"tool_calls": [{"index": 0, **call(piece, "find", "w1")}]} for piece in pieces)
    )
    assert response.message.tool_calls == [
        ToolCallBlock(id="w1", name="find", arguments={"q": "moss"})
    ]


async def test_calls_without_ids_get_ids_of_their_own_in_deltas_and_message() -> None:
    data = joined(
        chunks(
            [
                {"tool_calls": [{"index": 0, **call('{"a"', "f", "")}]},
                {"tool_calls": [{"index": 0, "function": {"arguments": ":1}"}}]},
                {"tool_calls": [{"index": 0, **call('{"a":2}', "f", None)}]},
            ]
        )
    )
    items = await items_of([data])
    last = items[-1]
    assert isinstance(last, StreamCompleted)
    made = last.response.message.tool_calls
    assert [each.arguments for each in made] == [{"a": 1}, {"a": 2}]
    named = [item.call_id for item in items if isinstance(item, ToolCallDelta) and item.call_id]
    assert [each.id for each in made] == named
    assert len(set(named)) == 2
    again = (await whole({"tool_calls": [call("{}", "f", ""), call("{}", "f", "")]})).message
    assert len({each.id for each in again.tool_calls} | set(named)) == 4


async def test_a_name_repeated_on_every_chunk_of_a_call_without_id_stays_one_call() -> None:
    pieces = ['{"a"', ":1", "}", ""]
    response = await streamed(
        *({"tool_calls": [{"index": 0, **call(piece, "f", "")}]} for piece in pieces)
    )
    (made,) = response.message.tool_calls
    assert made.arguments == {"a": 1}


async def test_an_odd_id_is_made_plain_and_kept_for_its_provider() -> None:
    odd = "functions.f:0"
    (made,) = (
        await whole({"tool_calls": [call("{}", "f", odd)]}, provider="moonshot")
    ).message.tool_calls
    assert made.id.startswith("functions_f_0-")
    assert made.provider_data == {"moonshot": {"id": odd}}
    (again,) = (
        await streamed(
            {"tool_calls": [{"index": 0, **call("", "f", odd)}]},
            {"tool_calls": [{"index": 0, "id": odd, "function": {"arguments": "{}"}}]},
            provider="moonshot",
        )
    ).message.tool_calls
    assert again == made


async def test_the_old_function_call_is_a_tool_call() -> None:
    function = {"name": "f", "arguments": '{"a":1}'}
    response = await whole({"content": None, "function_call": function}, finish="function_call")
    (made,) = response.message.tool_calls
    assert (made.name, made.arguments) == ("f", {"a": 1})
    assert (response.finish_reason, response.raw_finish_reason) == ("tool_calls", "function_call")
    in_pieces = await streamed(
        {"function_call": {"name": "f", "arguments": ""}},
        {"function_call": {"arguments": '{"a":1}'}},
        finish="function_call",
    )
    assert in_pieces.message.tool_calls[0].arguments == {"a": 1}


async def test_a_wire_name_comes_back_as_the_applications_name() -> None:
    schema = ToolSchema(name="a.b", description="", parameters={"type": "object"})
    request = replace(REQUEST, tools=[schema])
    name = wire_names(["a.b"])["a.b"]
    for response in (
        await whole({"tool_calls": [call("{}", name)]}, request=request),
        await streamed({"tool_calls": [{"index": 0, **call("{}", name)}]}, request=request),
    ):
        assert response.message.tool_calls[0].name == "a.b"


async def test_slots_that_hold_nothing_are_dropped_and_fillers_are_no_content() -> None:
    response = await whole(
        {
            "content": "hi",
            "refusal": "",
            "audio": {"id": "", "data": "", "expires_at": 0},
            "function_call": {"name": "", "arguments": ""},
            "annotations": None,
            "tool_calls": [{"id": "", "function": {"name": "", "arguments": ""}}],
        }
    )
    assert response.message.content == [TextBlock(text="hi")]
    assert response.message.provider_data is None


# Finish reasons, facts, usage


@pytest.mark.parametrize(
    ("raw", "normal"),
    [
        ("stop", "stop"),
        ("eos", "stop"),
        ("", None),
        (None, None),
        ("length", "length"),
        ("model_length", "length"),
        ("content_filter", "content_filter"),
        ("tool_calls", "tool_calls"),
        ("something_new", "other"),
    ],
)
async def test_finish_reasons_have_one_meaning(raw: str | None, normal: str | None) -> None:
    response = await whole({"content": "x"}, finish=raw)
    assert response.finish_reason == normal
    assert response.raw_finish_reason == (raw or None)


async def test_calls_without_their_finish_reason_still_end_in_calls() -> None:
    assert (await whole({"tool_calls": [call("{}")]}, finish="stop")).finish_reason == "tool_calls"
    cut_off = await whole({"tool_calls": [call('{"a')]}, finish="length")
    assert cut_off.finish_reason == "length"


async def test_a_finish_reason_of_an_error_is_one() -> None:
    for reason in ("error", "insufficient_system_resource"):
        with pytest.raises(ServerError, match=reason):
            await whole({"content": "x"}, finish=reason)


async def test_what_else_a_provider_says_is_kept() -> None:
    logprobs = {"content": [{"token": "x", "logprob": -0.1}]}
    choice = {
        "message": {"content": "x", "odd": {"a": 1}},
        "finish_reason": "stop",
        "logprobs": logprobs,
        "native_finish_reason": "STOP",
        "content_filter_results": {"hate": {"filtered": False}},
    }
    body = {
        "id": "c-1",
        "service_tier": "flex",
        "choices": [choice],
        "prompt_filter_results": [{"prompt_index": 0}],
    }
    async with answering(Reply.json(body).pieces, {"x-request-id": "r-1"}) as client:
        response = await model(client).invoke(REQUEST)
    assert response.raw == {
        "service_tier": "flex",
        "logprobs": logprobs,
        "choice": {"native_finish_reason": "STOP"},
    }
    assert response.safety == {
        "prompt_filter_results": [{"prompt_index": 0}],
        "content_filter_results": {"hate": {"filtered": False}},
    }
    assert response.message.provider_data == {"openai": {"odd": {"a": 1}}}
    assert (response.request_id, response.response_id) == ("r-1", "c-1")


async def test_log_probabilities_of_a_stream_are_joined() -> None:
    parts = [
        {"id": "c", "choices": [{"delta": {"content": c}, "logprobs": {"content": [{"token": c}]}}]}
        for c in "ab"
    ]
    items = await items_of([joined([*parts, *chunks([])])])
    last = items[-1]
    assert isinstance(last, StreamCompleted)
    assert last.response.raw["logprobs"] == {"content": [{"token": "a"}, {"token": "b"}]}


def usage(*counts: int) -> Usage:
    names = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
    return Usage(**dict(zip((*names, "reasoning_tokens"), counts, strict=False)))


@pytest.mark.parametrize(
    ("report", "provider", "expected"),
    [
        ({"prompt_tokens": 5, "completion_tokens": 3}, "openai", usage(5, 3)),
        (
            {"prompt_tokens": 100, "completion_tokens": 9,
             "prompt_tokens_details": {"cached_tokens": 90, "cache_write_tokens": 5},
             "completion_tokens_details": {"reasoning_tokens": 4}},
            "openai",
            usage(100, 9, 90, 5, 4),
        ),
        ({"prompt_tokens": 100, "completion_tokens": 9, "prompt_cache_hit_tokens": 64},
         "deepseek", usage(100, 9, 64)),
        ({"prompt_tokens": 100, "completion_tokens": 9, "num_cached_tokens": 64},
         "mistral", usage(100, 9, 64)),
        ({"prompt_tokens": 10, "completion_tokens": 9, "cached_tokens": 4},
         "together", usage(10, 9, 4)),
        # reasoning beside the completion, as xAI counts
        ({"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 42,
          "completion_tokens_details": {"reasoning_tokens": 30}}, "xai", usage(10, 32, 0, 0, 30)),
        # thoughts in the total alone, as Google counts
        ({"prompt_tokens": 35, "completion_tokens": 12, "total_tokens": 109},
         "google", usage(35, 74, 0, 0, 62)),
        # the whole from the parts that are there
        ({"prompt_tokens": 10, "total_tokens": 14}, "openai", usage(10, 4)),
        ({"completion_tokens": 4, "total_tokens": 14}, "openai", usage(10, 4)),
        # parts are never more than their whole
        ({"prompt_tokens": 7, "completion_tokens": 8, "prompt_tokens_details": {"cached_tokens": 161},
          "completion_tokens_details": {"reasoning_tokens": 9}}, "openai", usage(7, 8, 7, 0, 8)),
        # other spellings, and nulls
        ({"input_tokens": 5, "output_tokens": 3, "prompt_tokens": None,
          "prompt_tokens_details": None}, "openai", usage(5, 3)),
        ({}, "openai", None),
        ({"prompt_tokens": None}, "openai", None),
    ],
)  # fmt: skip
async def test_usage_has_one_meaning(report: Any, provider: str, expected: Usage | None) -> None:
    assert (await whole({"content": "x"}, provider=provider, usage=report)).usage == expected
    assert (await streamed({"content": "x"}, provider=provider, usage=report)).usage == expected


async def test_usage_without_the_cache_is_completed_where_a_preset_says_so() -> None:
    preset = replace(PROVIDERS["openai"], cache_in_input=False)
    report = {
        "prompt_tokens": 10,
        "completion_tokens": 7,
        "prompt_tokens_details": {"cached_tokens": 90},
        "cache_creation_input_tokens": 5,
    }
    made = (await whole({"content": "x"}, provider=preset, usage=report)).usage
    assert made == usage(105, 7, 90, 5)
    assert made is not None
    assert made.fresh_input_tokens == 10


async def test_cumulative_usage_replaces_and_what_a_report_lacks_stays_known() -> None:
    first = {
        "prompt_tokens": 10,
        "completion_tokens": 0,
        "prompt_tokens_details": {"cached_tokens": 9},
    }
    data = joined(
        [
            {"id": "c", "choices": [{"delta": {"content": "x"}}], "usage": first},
            *chunks([{"content": "y"}]),
            {"id": "c", "choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 7}},
        ]
    )
    items = await items_of([data])
    usages = [item.usage for item in items if isinstance(item, UsageDelta)]
    assert usages == [usage(10, 0, 9), usage(10, 7, 9)]


async def test_usage_is_found_where_some_providers_put_it() -> None:
    inside = [{"delta": {"content": "x"}, "finish_reason": "stop", "usage": {"prompt_tokens": 4}}]
    groq = {"id": "c", "x_groq": {"usage": {"prompt_tokens": 4}}, "choices": []}
    for extra in ({"id": "c", "choices": inside}, groq):
        items = await items_of([joined([*chunks([{"content": "x"}]), extra])])
        last = items[-1]
        assert isinstance(last, StreamCompleted)
        assert last.response.usage == usage(4)


async def test_sources_beside_the_choices_are_citations() -> None:
    results = [{"url": "https://x", "title": "X", "snippet": "s"}, {"title": "no address"}]
    response = await whole({"content": "see"}, provider="perplexity", search_results=results)
    assert response.message.content[1:] == [CitationBlock(url="https://x", title="X", text="s")]
    plain = await whole({"content": "see"}, provider="perplexity", citations=["https://y"])
    assert plain.message.content[1:] == [CitationBlock(url="https://y")]


async def test_annotations_and_pictures_of_an_unknown_form_go_back_as_they_came() -> None:
    odd = {
        "content": "a",
        "annotations": [{"type": "file", "file": {"hash": "h"}}],
        "images": [{"type": "odd"}],
    }
    message = (await whole(odd, provider="openrouter")).message
    assert message.content == [TextBlock(text="a")]
    assert message.provider_data == {
        "openrouter": {"annotations": odd["annotations"], "images": odd["images"]}
    }


async def test_two_kinds_of_reasoning_are_both_kept() -> None:
    message = (await whole({"reasoning_content": "a", "reasoning": "b"}, provider="groq")).message
    (block,) = message.content
    assert isinstance(block, ReasoningBlock)
    assert (block.text, message.provider_data) == ("a", {"groq": {"reasoning": "b"}})


async def test_unknown_fields_of_a_call_and_its_function_are_kept() -> None:
    odd = call("{}", cache="x")
    odd["function"]["thought"] = "t"
    (made,) = (await whole({"tool_calls": [odd]})).message.tool_calls
    assert made.provider_data == {"openai": {"cache": "x", "function": {"thought": "t"}}}


# Streams that go wrong


async def failure(
    *pieces: bytes, headers: dict[str, str] | None = None
) -> tuple[list[Any], ModelError]:
    seen: list[Any] = []

    async def read(asked: OpenAIChatModel) -> None:
        async for item in asked.stream(REQUEST):
            seen.append(item)

    async with answering(pieces, SSE if headers is None else headers) as client:
        with pytest.raises(ModelError) as raised:
            await read(model(client))
    return seen, raised.value


@pytest.mark.parametrize("one_piece", [True, False])
async def test_what_came_before_a_failure_is_given_out_first(one_piece: bool) -> None:
    start = joined(chunks([{"content": "Hel"}])[:1], done=False)
    broken = b'data: {"error":{"message":"overloaded","code":503}}\n\ndata: [DONE]\n\n'
    seen, error = await failure(*([start + broken] if one_piece else [start, broken]))
    assert seen[1:] == [MessageDelta("Hel")]
    assert isinstance(error, ServerError)
    assert error.status == 503


@pytest.mark.parametrize(
    ("event", "cls"),
    [
        (b'event: error\ndata: {"message":"Rate limit reached"}\n\n', RateLimitError),
        (b'event: error\ndata: {"error":{"message":"x","status_code":400}}\n\n', BadRequestError),
        (b"event: error\ndata: overloaded\n\n", ServerError),
        (
            b'data: {"choices":[{"delta":{},"error":{"code":429,"message":"x"}}]}\n\n',
            RateLimitError,
        ),
        (b'data: {"error":"boom","choices":[]}\n\n', ServerError),
        (b'data: {"choices":[7]}\n\n', MalformedResponseError),
        (b'data: {"choices":[{"delta":{"content":7}}]}\n\n', MalformedResponseError),
    ],
)
async def test_an_error_inside_of_a_stream_is_raised_by_its_kind(
    event: bytes, cls: type[ModelError]
) -> None:
    _, error = await failure(event)
    assert type(error) is cls


async def test_a_chunk_that_is_cut_json_is_an_error_and_may_be_tried_again() -> None:
    seen, error = await failure(
        joined(chunks([{"content": "a"}])[:1], done=False) + b'data: {"choices": [{"del\n\n'
    )
    assert seen[1:] == [MessageDelta("a")]
    assert isinstance(error, MalformedResponseError)
    assert error.retryable


async def test_keep_alives_that_are_no_json_are_passed_over() -> None:
    data = b": ping\n\ndata: ping\n\nevent: ping\ndata: 1\n\ndata:\n\n" + joined(
        chunks([{"content": "a"}])
    )
    items = await items_of([data])
    assert [type(item) for item in items] == [StreamStarted, MessageDelta, StreamCompleted]


async def test_a_stream_that_ends_without_an_end_is_broken() -> None:
    seen, error = await failure(joined(chunks([{"content": "Hel"}])[:1], done=False))
    assert seen[-1] == MessageDelta("Hel")
    assert isinstance(error, NetworkError)
    assert error.retryable
    _, nothing = await failure(b"")
    assert isinstance(nothing, NetworkError)


async def test_either_sign_of_the_end_is_enough() -> None:
    without_mark = await items_of([joined(chunks([{"content": "a"}]), done=False)])
    assert isinstance(without_mark[-1], StreamCompleted)
    without_reason = await items_of([joined(chunks([{"content": "a"}], None))])
    last = without_reason[-1]
    assert isinstance(last, StreamCompleted)
    assert last.response.finish_reason is None
    assert last.response.text == "a"


async def test_a_stream_of_nothing_but_its_end_is_no_answer() -> None:
    _, error = await failure(b"data: [DONE]\n\n")
    assert isinstance(error, MalformedResponseError)


async def test_nothing_after_the_end_mark_is_read_into_the_answer() -> None:
    data = joined(chunks([{"content": "a"}])) + joined(chunks([{"content": "b"}]))
    items = await items_of([data])
    last = items[-1]
    assert isinstance(last, StreamCompleted)
    assert last.response.text == "a"


async def test_half_a_character_from_a_model_does_not_break_the_answer() -> None:
    event = rb'data: {"id":"c","choices":[{"delta":{"content":"x\ud83d"},"finish_reason":"stop"}]}'
    items = await items_of([event + b"\n\n"])
    last = items[-1]
    assert isinstance(last, StreamCompleted)
    assert last.response.text == "x\ufffd"


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream", ""])
async def test_a_plain_document_in_the_place_of_a_stream_is_an_answer(kind: str) -> None:
    choice = {"message": {"content": "hi"}, "finish_reason": "stop"}
    body = Reply.json({"id": "c", "choices": [choice], "usage": {"prompt_tokens": 1}}).pieces[0]
    items = await items_of(single_bytes(body), headers={"content-type": kind})
    assert [type(item) for item in items] == [
        StreamStarted, MessageDelta, UsageDelta, StreamCompleted,
    ]  # fmt: skip


@pytest.mark.parametrize("body", [b"<html>hello</html>", b'"text"', b"[]", b"42", b"hello", b"{}"])
async def test_a_document_that_is_no_answer_is_malformed(body: bytes) -> None:
    for headers in ({"content-type": "text/html"}, {"content-type": "application/json"}):
        _, error = await failure(body, headers=headers)
        assert isinstance(error, MalformedResponseError)
        async with answering([body], headers) as client:
            with pytest.raises(MalformedResponseError):
                await model(client).invoke(REQUEST)


async def test_an_error_in_an_answer_of_status_200_is_raised_by_its_kind() -> None:
    body = Reply.json({"error": {"code": 429, "message": "slow down"}}).pieces
    async with answering(body) as client:
        with pytest.raises(RateLimitError, match="slow down"):
            await model(client).invoke(REQUEST)


async def test_a_refused_stream_raises_the_error_of_its_status() -> None:
    body = Reply.json({"error": {"message": "no"}}).pieces
    async with answering(body, {"retry-after": "3"}, 429) as client:
        with pytest.raises(RateLimitError) as raised:
            await drain(model(client).stream(REQUEST))
    assert raised.value.retry_after == 3


async def test_a_plain_call_may_be_made_from_a_stream() -> None:
    preset = replace(PROVIDERS["openai"], require_streaming=True)
    async with answering([joined(chunks([{"content": "a"}]))], SSE) as client:
        assert (await model(client, preset).invoke(REQUEST)).text == "a"


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    "message",
    [
        {"content": "x", "extra": nested(150)},
        {"content": [{"type": "odd", "data": nested(150)}]},
        {"content": "x", "annotations": [nested(150)]},
    ],
)
async def test_what_no_message_can_hold_is_malformed(
    message: dict[str, Any], streamed: bool
) -> None:
    part = "delta" if streamed else "message"
    document = {"id": "c", "choices": [{part: message, "finish_reason": "stop"}]}
    if streamed:
        client = answering([joined([document])], SSE)
    else:
        client = answering([json.dumps(document).encode()])
    async with client:
        asked = model(client)
        with pytest.raises(MalformedResponseError, match="cannot be read"):
            await (drain(asked.stream(REQUEST)) if streamed else asked.invoke(REQUEST))


@pytest.mark.parametrize("reason", [["stop"], {"why": "stop"}, 5])
async def test_a_finish_reason_that_is_no_text_breaks_nothing(reason: Any) -> None:
    document = {"choices": [{"message": {"content": "x"}, "finish_reason": reason}]}
    async with answering([json.dumps(document).encode()]) as client:
        response = await model(client).invoke(REQUEST)
    assert (response.text, response.finish_reason) == ("x", "other")
