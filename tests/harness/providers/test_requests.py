"""What is sent, and what is refused before anything is."""

import gc
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx
import orjson
import pytest
import respx

from tinyagents.harness.errors import ConfigurationError, InvalidRequestError
from tinyagents.harness.message import (
    AssistantMessage,
    AudioBlock,
    Block,
    CitationBlock,
    FileBlock,
    ImageBlock,
    InvalidArguments,
    JsonBlock,
    Message,
    ProviderExtensionBlock,
    ReasoningBlock,
    RefusalBlock,
    SystemMessage,
    TextBlock,
    ToolCallBlock,
    ToolMessage,
    ToolResultBlock,
    UserMessage,
)
from tinyagents.harness.model import (
    JsonObjectFormat,
    JsonSchemaFormat,
    ModelRequest,
    ModelSettings,
    NamedTool,
    ReasoningConfig,
    ToolSchema,
    drain,
)
from tinyagents.harness.prompt import PromptBuilder
from tinyagents.harness.providers import PROVIDERS, OpenAIChatModel, ProviderPreset
from tinyagents.harness.structured import OutputSpec
from tinyagents.harness.text import JsonObject
from tinyagents.harness.tool import wire_names

URL = "https://api.openai.com/v1"
ANSWER = {
    "id": "c-1",
    "model": "m",
    "choices": [{"index": 0, "message": {"content": "ok"}, "finish_reason": "stop"}],
}
HI = UserMessage(content="hi")
WEATHER = ToolSchema(
    name="get_weather",
    description="Weather.",
    parameters={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)


@pytest.fixture
def router() -> Iterator[respx.MockRouter]:
    with respx.mock(assert_all_called=False) as router:
        router.route().mock(return_value=httpx.Response(200, json=ANSWER))
        yield router


def model(
    name: str = "gpt-4o", provider: str | ProviderPreset = "openai", **options: Any
) -> OpenAIChatModel:
    options.setdefault("api_key", "the-key-of-a-test")
    if PROVIDERS.get(str(provider), PROVIDERS["openai"]).base_url is None:
        options.setdefault("base_url", URL)
    return OpenAIChatModel(name, provider=provider, **options)


async def body_of(
    router: respx.MockRouter, asked: OpenAIChatModel, *messages: Message, **request: Any
) -> dict[str, Any]:
    async with asked:
        await asked.invoke(ModelRequest(messages=list(messages) or [HI], **request))
    body: dict[str, Any] = orjson.loads(router.calls.last.request.content)
    return body


async def sent(router: respx.MockRouter, *messages: Message, **options: Any) -> list[Any]:
    body = await body_of(router, model(**options), *messages)
    wire: list[Any] = body["messages"]
    return wire


# Messages


async def test_a_plain_conversation_is_sent_as_roles_and_texts(router: respx.MockRouter) -> None:
    assert await body_of(
        router,
        model(),
        SystemMessage(content="Be brief."),
        UserMessage(content="hi", name="ann"),
        AssistantMessage(content="hello"),
    ) == {
        "model": "gpt-4o",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "hi", "name": "ann"},
            {"role": "assistant", "content": "hello"},
        ],
    }


async def test_tool_calls_and_results_are_sent_with_their_ids(router: respx.MockRouter) -> None:
    call = ToolCallBlock(id="call_1", name="get_weather", arguments={"city": "Paris"})
    assert await sent(
        router,
        HI,
        AssistantMessage(content=[call]),
        ToolMessage(tool_call_id="call_1", name="get_weather", content="sunny"),
    ) == [
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "call_1",
                    "type": "function",
                    "function": {"name": "get_weather", "arguments": '{"city":"Paris"}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "sunny"},
    ]


async def test_empty_texts_are_left_out_and_the_message_stays_as_it_was(
    router: respx.MockRouter,
) -> None:
    call = ToolCallBlock(id="c", name="f")
    message = AssistantMessage(content=[TextBlock(text=""), call])
    wire = await sent(router, SystemMessage(content=""), HI, message, AssistantMessage())
    assert [each["role"] for each in wire] == ["user", "assistant"]
    assert wire[1]["content"] is None
    assert message.content == [TextBlock(text=""), call]


async def test_json_is_sent_as_compact_text(router: respx.MockRouter) -> None:
    blocks: list[Block] = [TextBlock(text="see"), JsonBlock(value={"a": [1, None]})]
    assert await sent(router, UserMessage(content=blocks)) == [
        {"role": "user", "content": 'see\n{"a":[1,null]}'}
    ]


async def test_pictures_sound_and_documents_are_sent_as_parts(router: respx.MockRouter) -> None:
    blocks: list[Block] = [
        TextBlock(text="look"),
        ImageBlock(url="https://x/y.png", detail="low"),
        ImageBlock.from_bytes(b"png", "image/png"),
        AudioBlock.from_bytes(b"mp3", "audio/mpeg"),
        FileBlock.from_bytes(b"pdf", "application/pdf", "a.pdf"),
        FileBlock(file_id="file-1"),
    ]
    content = (await sent(router, UserMessage(content=blocks), name="of-tomorrow"))[0]["content"]
    assert content == [
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": "https://x/y.png", "detail": "low"}},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,cG5n"}},
        {"type": "input_audio", "input_audio": {"data": "bXAz", "format": "mp3"}},
        {
            "type": "file",
            "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,cGRm"},
        },
        {"type": "file", "file": {"file_id": "file-1"}},
    ]


async def test_pictures_of_tool_results_follow_all_results_in_a_user_message(
    router: respx.MockRouter,
) -> None:
    picture = ImageBlock(url="https://x/y.png")
    calls: list[Block] = [ToolCallBlock(id="a", name="shoot"), ToolCallBlock(id="b", name="look")]
    wire = await sent(
        router,
        AssistantMessage(content=calls),
        ToolMessage(tool_call_id="a", name="shoot", content=[picture]),
        ToolMessage(tool_call_id="b", name="look", content="seen"),
        UserMessage(content="and?"),
    )
    assert [each["role"] for each in wire] == ["assistant", "tool", "tool", "user", "user"]
    assert wire[1]["content"] == "See the next user message."
    assert wire[3]["content"] == [
        {"type": "text", "text": "What `shoot` returned:"},
        {"type": "image_url", "image_url": {"url": "https://x/y.png"}},
    ]


async def test_pictures_stay_in_the_tool_result_where_the_provider_takes_them(
    router: respx.MockRouter,
) -> None:
    picture = ImageBlock(url="https://x/y.png")
    preset = replace(PROVIDERS["openai"], tool_images=True)
    wire = await sent(router, ToolMessage(tool_call_id="a", content=[picture]), provider=preset)
    assert len(wire) == 1
    assert wire[0]["content"] == [{"type": "image_url", "image_url": {"url": "https://x/y.png"}}]


@pytest.mark.parametrize("raw", ['{"a":', "[1]", '"x"', "7", "true"])
async def test_arguments_that_are_no_object_are_sent_inside_of_one(
    raw: str, router: respx.MockRouter
) -> None:
    broken = ToolCallBlock(id="c", name="f", invalid=InvalidArguments(raw=raw, reason="no"))
    wire = await sent(router, AssistantMessage(content=[broken]))
    arguments = wire[0]["tool_calls"][0]["function"]["arguments"]
    assert orjson.loads(arguments) == {"invalid_arguments": raw}


async def test_numbers_beyond_64_bits_and_nan_are_sent(router: respx.MockRouter) -> None:
    call = ToolCallBlock(id="c", name="f", arguments={"n": 2**70, "x": float("nan")})
    wire = await sent(router, AssistantMessage(content=[call]))
    arguments = wire[0]["tool_calls"][0]["function"]["arguments"]
    assert arguments == '{"n":1180591620717411303424,"x":null}'
    settings = ModelSettings(provider_options={"big": 2**70})
    async with model() as asked:
        await asked.invoke(ModelRequest(messages=[HI], settings=settings))
    assert b'"big":1180591620717411303424' in router.calls.last.request.content


# Reasoning and extensions


async def test_reasoning_goes_back_as_received_to_its_own_provider_only(
    router: respx.MockRouter,
) -> None:
    details = [{"type": "reasoning.text", "text": "hm", "signature": "s1"}]
    parts: list[Block] = [
        ReasoningBlock(text="deep", provider_data={"deepseek": {"field": "reasoning_content"}}),
        ReasoningBlock(
            text="hm",
            provider_data={"openrouter": {"field": "reasoning", "reasoning_details": details}},
        ),
        ReasoningBlock(text="", signature="s1"),
        ReasoningBlock(redacted=True, data="zz"),
        TextBlock(text="hi"),
        ToolCallBlock(
            id="c",
            name="f",
            provider_data={"google": {"extra_content": {"google": {"thought_signature": "g1"}}}},
        ),
    ]
    message = AssistantMessage(content=parts)
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    plain = {"role": "assistant", "content": "hi", "tool_calls": [call]}

    assert await sent(router, message) == [plain]
    deepseek = await sent(router, message, provider="deepseek")
    assert deepseek == [{**plain, "reasoning_content": "deep"}]
    openrouter = await sent(router, message, provider="openrouter")
    assert openrouter == [{**plain, "reasoning": "hm", "reasoning_details": details}]
    google = await sent(router, message, provider="google")
    signed = {**call, "extra_content": {"google": {"thought_signature": "g1"}}}
    assert google == [{**plain, "tool_calls": [signed]}]


async def test_reasoning_is_kept_back_where_a_preset_says_so(router: respx.MockRouter) -> None:
    thought = ReasoningBlock(text="x", provider_data={"deepseek": {"field": "reasoning_content"}})
    message = AssistantMessage(content=[thought, TextBlock(text="hi")])
    preset = replace(PROVIDERS["deepseek"], replay_reasoning=False)
    assert await sent(router, message, provider=preset) == [{"role": "assistant", "content": "hi"}]


async def test_an_extension_goes_back_to_its_own_provider_at_its_place(
    router: respx.MockRouter,
) -> None:
    parts: list[Block] = [
        TextBlock(text="a"),
        ProviderExtensionBlock(provider="groq", data={"type": "odd", "x": 1}),
        TextBlock(text="b"),
    ]
    message = AssistantMessage(content=parts, provider_data={"groq": {"extra": True}})
    assert await sent(router, message) == [{"role": "assistant", "content": "ab"}]
    assert await sent(router, message, provider="groq") == [
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "a"},
                {"type": "odd", "x": 1},
                {"type": "text", "text": "b"},
            ],
            "extra": True,
        }
    ]


async def test_cache_markers_of_a_text_are_sent_to_their_own_provider(
    router: respx.MockRouter,
) -> None:
    marker = {"cache_control": {"type": "ephemeral"}}
    block = TextBlock(text="long", provider_data={"openrouter": marker})
    message = SystemMessage(content=[block])
    assert (await sent(router, message, HI))[0]["content"] == "long"
    assert (await sent(router, message, HI, provider="openrouter"))[0]["content"] == [
        {"type": "text", "text": "long", **marker}
    ]


async def test_a_refusal_goes_back_in_its_field_or_as_text(router: respx.MockRouter) -> None:
    message = AssistantMessage(content=[RefusalBlock(text="No.")])
    assert await sent(router, message) == [{"role": "assistant", "refusal": "No.", "content": None}]
    assert await sent(router, message, provider="groq") == [{"role": "assistant", "content": "No."}]


async def test_citations_are_not_sent(router: respx.MockRouter) -> None:
    message = AssistantMessage(content=[TextBlock(text="a"), CitationBlock(url="https://x")])
    assert await sent(router, message) == [{"role": "assistant", "content": "a"}]


# Names and ids


async def test_a_tool_name_is_sent_in_a_form_that_providers_take(router: respx.MockRouter) -> None:
    tool = replace(WEATHER, name="weather.get/v2")
    call = ToolCallBlock(id="c", name="gone.tool", arguments={})
    body = await body_of(
        router,
        model(),
        HI,
        AssistantMessage(content=[call]),
        tools=[tool],
        tool_choice=NamedTool("weather.get/v2"),
    )
    name = wire_names(["weather.get/v2"])["weather.get/v2"]
    assert body["tools"][0]["function"]["name"] == name
    assert body["tool_choice"] == {"type": "function", "function": {"name": name}}
    spoken = body["messages"][1]["tool_calls"][0]["function"]["name"]
    assert spoken == wire_names(["gone.tool"])["gone.tool"]


async def test_ids_are_derived_where_a_provider_takes_its_own_form_only(
    router: respx.MockRouter,
) -> None:
    long = "call_" + "x" * 60
    calls: list[Block] = [ToolCallBlock(id="call_1", name="f"), ToolCallBlock(id=long, name="f")]
    history = (
        AssistantMessage(content=calls),
        ToolMessage(tool_call_id="call_1", content="1"),
        ToolMessage(tool_call_id=long, content="2"),
    )
    for provider, form in (("mistral", r"[A-Za-z0-9]{9}"), ("openai", r"[A-Za-z0-9_-]{1,40}")):
        wire = await sent(router, *history, provider=provider)
        ids = [call["id"] for call in wire[0]["tool_calls"]]
        assert ids == [wire[1]["tool_call_id"], wire[2]["tool_call_id"]]
        assert len(set(ids)) == 2
        assert all(re.fullmatch(form, each) for each in ids)


async def test_a_providers_own_odd_id_goes_back_to_it_with_its_result(
    router: respx.MockRouter,
) -> None:
    own = {"moonshot": {"id": "functions.f:0"}}
    call = ToolCallBlock(id="functions_f_0-abc", name="f", provider_data=own)
    history = (
        AssistantMessage(content=[call]),
        ToolMessage(tool_call_id="functions_f_0-abc", content="1"),
    )
    wire = await sent(router, *history, provider="moonshot")
    assert wire[0]["tool_calls"][0]["id"] == wire[1]["tool_call_id"] == "functions.f:0"
    elsewhere = await sent(router, *history)
    assert elsewhere[1]["tool_call_id"] == "functions_f_0-abc"


# Tools, formats, settings


async def test_tools_are_sent_with_the_choice_and_the_choice_not_without_them(
    router: respx.MockRouter,
) -> None:
    body = await body_of(router, model(), tools=[WEATHER], tool_choice="required")
    assert body["tools"] == [
        {
            "type": "function",
            "function": {
                "name": "get_weather",
                "description": "Weather.",
                "parameters": {**WEATHER.parameters, "additionalProperties": False},
                "strict": True,
            },
        }
    ]
    assert body["tool_choice"] == "required"
    without = await body_of(router, model(), tool_choice="none")
    assert "tool_choice" not in without
    assert "tools" not in without


async def test_a_named_tool_becomes_the_only_one_where_names_are_not_taken(
    router: respx.MockRouter,
) -> None:
    other = replace(WEATHER, name="other")
    asked = model("llama3.2", "ollama")
    body = await body_of(
        router, asked, tools=[other, WEATHER], tool_choice=NamedTool("get_weather")
    )
    assert [tool["function"]["name"] for tool in body["tools"]] == ["get_weather"]
    assert body["tool_choice"] == "required"


async def test_a_strict_tool_is_closed_and_marked(router: respx.MockRouter) -> None:
    body = await body_of(router, model(), tools=[replace(WEATHER, strict=True)])
    function = body["tools"][0]["function"]
    assert function["strict"] is True
    assert function["parameters"]["additionalProperties"] is False
    assert "additionalProperties" not in WEATHER.parameters


CITY: JsonObject = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
}
OPEN: JsonObject = {
    "type": "object",
    "properties": {"tags": {"type": "object"}},
    "required": ["tags"],
}


async def test_a_schema_is_strict_where_that_changes_nothing_of_its_meaning(
    router: respx.MockRouter,
) -> None:
    body = await body_of(router, model(), response_format=JsonSchemaFormat(name="r", schema=CITY))
    assert body["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "r", "schema": {**CITY, "additionalProperties": False}, "strict": True},
    }  # fmt: skip
    loose = await body_of(router, model(), response_format=JsonSchemaFormat(name="r", schema=OPEN))
    assert loose["response_format"]["json_schema"] == {"name": "r", "schema": OPEN, "strict": False}


async def test_an_answer_is_named_in_characters_that_providers_take(
    router: respx.MockRouter,
) -> None:
    wanted = OutputSpec(list[int]).response_format()
    assert wanted.name == "list[int]"
    body = await body_of(router, model(), response_format=wanted)
    assert body["response_format"]["json_schema"]["name"] == wire_names(["list[int]"])["list[int]"]


async def test_a_schema_says_nothing_of_strictness_to_a_local_runtime(
    router: respx.MockRouter,
) -> None:
    wanted = JsonSchemaFormat(name="r", schema=CITY, description="A city.")
    body = await body_of(router, model("m", "vllm"), response_format=wanted)
    assert body["response_format"]["json_schema"] == {
        "name": "r",
        "schema": CITY,
        "description": "A city.",
    }


async def test_any_json_is_asked_for_in_the_form_that_the_provider_has(
    router: respx.MockRouter,
) -> None:
    body = await body_of(router, model(), response_format=JsonObjectFormat())
    assert body["response_format"] == {"type": "json_object"}
    local = await body_of(router, model("m", "lmstudio"), response_format=JsonObjectFormat())
    assert local["response_format"]["json_schema"]["schema"]["type"] == "object"


async def test_every_setting_has_its_field(router: respx.MockRouter) -> None:
    settings = ModelSettings(
        temperature=0.0,
        top_p=0.5,
        max_tokens=10,
        stop=("END",),
        seed=1,
        frequency_penalty=0.1,
        presence_penalty=0.2,
        logprobs=2,
        parallel_tool_calls=False,
        user="u-1",
        provider_options={"service_tier": "flex"},
    )
    body = await body_of(router, model(), tools=[WEATHER], settings=settings)
    for name in ("model", "messages", "tools", "tool_choice"):
        del body[name]
    assert body == {
        "temperature": 0.0,
        "top_p": 0.5,
        "max_tokens": 10,
        "stop": ["END"],
        "seed": 1,
        "frequency_penalty": 0.1,
        "presence_penalty": 0.2,
        "logprobs": True,
        "top_logprobs": 2,
        "parallel_tool_calls": False,
        "user": "u-1",
        "service_tier": "flex",
    }


@pytest.mark.parametrize("name", ["gpt-5-mini", "o3", "o4-mini"])
async def test_a_reasoning_model_takes_its_own_token_field_and_no_temperature(
    name: str, router: respx.MockRouter
) -> None:
    settings = ModelSettings(
        temperature=0.3, max_tokens=10, reasoning=ReasoningConfig(effort="low")
    )
    body = await body_of(router, model(name), settings=settings)
    assert body["max_completion_tokens"] == 10
    assert body["reasoning_effort"] == "low"
    assert not {"temperature", "max_tokens"} & set(body)


async def test_reasoning_is_asked_for_in_each_providers_words(router: respx.MockRouter) -> None:
    cases: list[tuple[str, ReasoningConfig, dict[str, Any]]] = [
        ("openrouter", ReasoningConfig(effort="low"), {"reasoning": {"effort": "low"}}),
        ("openrouter", ReasoningConfig(budget_tokens=9), {"reasoning": {"max_tokens": 9}}),
        ("zai", ReasoningConfig(effort="none"), {"thinking": {"type": "disabled"}}),
        ("deepseek", ReasoningConfig(effort="high"), {"thinking": {"type": "enabled"}}),
        (
            "anthropic",
            ReasoningConfig(budget_tokens=9),
            {"thinking": {"type": "enabled", "budget_tokens": 9}},
        ),
    ]
    for provider, config, expected in cases:
        settings = ModelSettings(reasoning=config)
        body = await body_of(router, model("m", provider), settings=settings)
        assert {k: v for k, v in body.items() if k not in ("model", "messages")} == expected


async def test_provider_options_win_over_what_is_derived_from_settings(
    router: respx.MockRouter,
) -> None:
    settings = ModelSettings(
        reasoning=ReasoningConfig(effort="low"), provider_options={"reasoning_effort": "xhigh"}
    )
    body = await body_of(router, model("gpt-5"), settings=settings)
    assert body["reasoning_effort"] == "xhigh"


async def test_settings_lie_in_layers_of_preset_model_and_request(
    router: respx.MockRouter,
) -> None:
    preset = replace(PROVIDERS["groq"], default_options={"a": 1, "b": 1, "c": 1})
    asked = model(
        "m",
        preset,
        settings=ModelSettings(temperature=0.1, seed=3, provider_options={"b": 2, "c": 2}),
    )
    settings = ModelSettings(temperature=0.9, provider_options={"c": 3})
    body = await body_of(router, asked, settings=settings)
    assert (body["temperature"], body["seed"]) == (0.9, 3)
    assert (body["a"], body["b"], body["c"]) == (1, 2, 3)


async def test_mistral_is_asked_with_the_fields_that_it_has(router: respx.MockRouter) -> None:
    router.route().mock(
        return_value=httpx.Response(
            200, content=b'data: {"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}\n\n'
        )
    )
    async with model("mistral-small-latest", "mistral") as asked:
        await drain(asked.stream(ModelRequest(messages=[HI], settings=ModelSettings(seed=1))))
    body = orjson.loads(router.calls.last.request.content)
    assert body["random_seed"] == 1
    assert body["stream"] is True
    assert "stream_options" not in body


async def test_a_stream_asks_for_usage(router: respx.MockRouter) -> None:
    async with model() as asked:
        await drain(asked.stream(ModelRequest(messages=[HI])))
    body = orjson.loads(router.calls.last.request.content)
    assert (body["stream"], body["stream_options"]) == (True, {"include_usage": True})
    assert router.calls.last.request.headers["accept"] == "text/event-stream"


async def test_system_messages_are_folded_into_the_first_user_message(
    router: respx.MockRouter,
) -> None:
    preset = replace(PROVIDERS["groq"], fold_system=True)
    picture = ImageBlock(url="https://x/y.png")
    first: list[Block] = [TextBlock(text="hi"), picture]
    wire = await sent(
        router,
        SystemMessage(content="One."),
        UserMessage(content=first),
        SystemMessage(content=""),
        SystemMessage(content="Two."),
        provider=preset,
    )
    assert wire == [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "One.\n\nTwo.\n\n"},
                {"type": "text", "text": "hi"},
                {"type": "image_url", "image_url": {"url": "https://x/y.png"}},
            ],
        }
    ]
    alone = await sent(router, SystemMessage(content="One."), provider=preset)
    assert alone == [{"role": "user", "content": "One."}]


# Refusals


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"provider_options": {"messages": [], "stream": True}}, "messages, stream"),
        ({"provider_options": {"n": 2}}, "`n`"),
        ({"reasoning": ReasoningConfig(summary="auto")}, "summaries"),
        ({"reasoning": ReasoningConfig(budget_tokens=5)}, "`budget_tokens`"),
    ],
)
async def test_settings_that_cannot_work_are_refused_by_name(
    options: dict[str, Any], words: str, router: respx.MockRouter
) -> None:
    with pytest.raises(InvalidRequestError, match=words) as refusal:
        await body_of(router, model(), settings=ModelSettings(**options))
    assert "gpt-4o" in str(refusal.value)
    assert not router.calls


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (UserMessage(content=[ImageBlock(file_id="f")]), "`image` block in a user message"),
        (UserMessage(content=[AudioBlock(url="https://x/a.mp3")]), "`audio` block"),
        (UserMessage(content=[FileBlock(url="https://x/a.pdf")]), "`file` block"),
        (SystemMessage(content=[ImageBlock(url="https://x")]), "`image` block in a system message"),
        (
            AssistantMessage(content=[ToolResultBlock(tool_call_id="x")]),
            "`tool_result` block in an assistant message",
        ),
    ],
)
async def test_a_block_without_a_form_in_this_api_is_refused_by_name(
    message: Message, words: str, router: respx.MockRouter
) -> None:
    with pytest.raises(InvalidRequestError, match=words):
        await sent(router, message)
    assert not router.calls


@pytest.mark.parametrize(
    ("provider", "request_options", "words"),
    [
        ("deepseek", {"response_format": JsonSchemaFormat(name="r", schema={})}, "JSON schema"),
        ("anthropic", {"response_format": JsonObjectFormat()}, "JSON answers"),
        ("perplexity", {"tools": [WEATHER]}, "tools"),
        ("zai", {"tools": [WEATHER], "tool_choice": "required"}, "forced tool choice"),
        ("mistral", {"settings": ModelSettings(user="u")}, "`user`"),
        ("openai", {"continuation_id": "r-1"}, "`continuation_id`"),
        ("openai", {"tool_choice": NamedTool("gone")}, "`gone`"),
        (
            "openai",
            {"response_format": JsonSchemaFormat(name="r", schema=OPEN, strict=True)},
            r"`\$.tags` takes properties of any name",
        ),
    ],
)
async def test_what_a_provider_cannot_do_is_refused_before_anything_is_sent(
    provider: str, request_options: dict[str, Any], words: str, router: respx.MockRouter
) -> None:
    with pytest.raises(InvalidRequestError, match=words):
        await body_of(router, model("m", provider), **request_options)
    assert not router.calls


async def test_other_settings_that_a_provider_lacks_are_refused(router: respx.MockRouter) -> None:
    preset = replace(PROVIDERS["openai"], parallel_tool_calls=False)
    settings = ModelSettings(parallel_tool_calls=False)
    with pytest.raises(InvalidRequestError, match="`parallel_tool_calls`"):
        await body_of(router, model("m", preset), tools=[WEATHER], settings=settings)
    strict = replace(WEATHER, parameters=OPEN, strict=True)
    with pytest.raises(InvalidRequestError, match="strict arguments for `get_weather`"):
        await body_of(router, model(), tools=[strict])
    with pytest.raises(InvalidRequestError, match="`image` block"):
        await sent(router, UserMessage(content=[ImageBlock(url="https://x")]), provider="deepseek")
    assert not router.calls


async def test_nested_schemas_are_closed_at_every_depth(router: respx.MockRouter) -> None:
    schema: JsonObject = {
        "type": "object",
        "properties": {
            "one": {"anyOf": [CITY, {"type": "null"}]},
            "many": {"type": "array", "items": {"$ref": "#/$defs/City"}},
        },
        "required": ["one", "many"],
        "$defs": {"City": CITY},
    }
    body = await body_of(router, model(), response_format=JsonSchemaFormat(name="r", schema=schema))
    made = body["response_format"]["json_schema"]
    assert made["strict"] is True
    closed = {**CITY, "additionalProperties": False}
    assert made["schema"]["properties"]["one"]["anyOf"][0] == closed
    assert made["schema"]["$defs"]["City"] == closed
    optional: JsonObject = {"type": "object", "properties": {"a": {"type": "string"}}}
    loose = await body_of(
        router, model(), response_format=JsonSchemaFormat(name="r", schema=optional)
    )
    assert loose["response_format"]["json_schema"]["strict"] is False
    forced = JsonSchemaFormat(name="r", schema=optional, strict=True)
    body = await body_of(router, model(), response_format=forced)
    assert body["response_format"]["json_schema"]["schema"]["required"] == ["a"]


async def test_an_extension_of_the_same_provider_is_a_part_of_the_users_message(
    router: respx.MockRouter,
) -> None:
    part = ProviderExtensionBlock(provider="openai", data={"type": "odd"})
    other = ProviderExtensionBlock(provider="groq", data={"type": "odd"})
    blocks: list[Block] = [TextBlock(text="a"), part, other]
    assert (await sent(router, UserMessage(content=blocks)))[0]["content"] == [
        {"type": "text", "text": "a"},
        {"type": "odd"},
    ]


async def test_no_messages_are_refused(router: respx.MockRouter) -> None:
    async with model() as asked:
        with pytest.raises(InvalidRequestError, match="empty list of messages"):
            await asked.invoke(ModelRequest(messages=[]))


# Headers, keys, addresses


async def test_headers_lie_in_layers_and_the_key_is_a_bearer(router: respx.MockRouter) -> None:
    asked = model(headers={"User-Agent": "mine", "x-team": "a"})
    await body_of(router, asked, settings=ModelSettings(extra_headers={"X-Team": "b"}))
    headers = router.calls.last.request.headers
    assert headers["authorization"] == "Bearer the-key-of-a-test"
    assert headers["user-agent"] == "mine"
    assert headers["x-team"] == "b"
    assert headers["content-type"] == "application/json"


async def test_each_auth_style_sends_the_key_its_own_way(router: respx.MockRouter) -> None:
    for auth, name, value in (
        ("api-key", "api-key", "the-key-of-a-test"),
        ("anthropic", "x-api-key", "the-key-of-a-test"),
        ("x-mine", "x-mine", "the-key-of-a-test"),
    ):
        await body_of(router, model("m", replace(PROVIDERS["openai"], auth=auth)))
        headers = router.calls.last.request.headers
        assert headers[name] == value
        assert "authorization" not in headers
    await body_of(router, model("m", replace(PROVIDERS["openai"], auth="none")))
    assert "authorization" not in router.calls.last.request.headers


async def test_azure_is_called_by_deployment_or_by_its_versionless_path(
    router: respx.MockRouter, monkeypatch: pytest.MonkeyPatch
) -> None:
    await body_of(router, model("my-dep", "azure", base_url="https://r.openai.azure.com/"))
    url = router.calls.last.request.url
    assert url.path == "/openai/deployments/my-dep/chat/completions"
    assert url.params["api-version"] == "2024-10-21"
    await body_of(router, model("my-dep", "azure", base_url="https://r.openai.azure.com/openai/v1"))
    assert str(router.calls.last.request.url) == (
        "https://r.openai.azure.com/openai/v1/chat/completions"
    )
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://e.openai.azure.com")
    monkeypatch.setenv("OPENAI_API_VERSION", "2030-01-01")
    asked = OpenAIChatModel("d", provider="azure", api_key="k")
    await body_of(router, asked)
    assert router.calls.last.request.url.host == "e.openai.azure.com"
    assert router.calls.last.request.url.params["api-version"] == "2030-01-01"


async def test_a_missing_key_is_told_by_its_variable_before_anything_is_sent(
    router: respx.MockRouter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROQ_API_KEY", "  ")
    asked = OpenAIChatModel("m", provider="groq")
    with pytest.raises(ConfigurationError, match="`GROQ_API_KEY`"):
        asked.check()
    with pytest.raises(ConfigurationError, match="`GROQ_API_KEY`"):
        await asked.invoke(ModelRequest(messages=[HI]))
    assert not router.calls
    monkeypatch.setenv("GROQ_API_KEY", " from-the-environment\n")
    asked.check()
    await body_of(router, asked)
    assert router.calls.last.request.headers["authorization"] == "Bearer from-the-environment"


async def test_no_key_is_needed_where_someone_else_authorises(
    router: respx.MockRouter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    await body_of(router, OpenAIChatModel("m", headers={"Authorization": "Bearer mine"}))
    assert router.calls.last.request.headers["authorization"] == "Bearer mine"
    async with httpx.AsyncClient(headers={"authorization": "Bearer theirs"}) as client:
        await body_of(router, OpenAIChatModel("m", http_client=client))
    assert router.calls.last.request.headers["authorization"] == "Bearer theirs"
    await body_of(router, OpenAIChatModel("m", api_key=""))
    assert "authorization" not in router.calls.last.request.headers


async def test_credentials_of_the_url_are_sent_as_a_header_and_leave_the_url(
    router: respx.MockRouter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    await body_of(router, OpenAIChatModel("m", base_url="https://ann:p%40w@host.example/v1"))
    request = router.calls.last.request
    assert request.headers["authorization"] == "Basic YW5uOnBAdw=="
    assert str(request.url) == "https://host.example/v1/chat/completions"


async def test_the_query_of_the_base_url_is_sent_with_every_call(router: respx.MockRouter) -> None:
    url = "https://host.example/v1/chat/completions?v=1"
    await body_of(router, OpenAIChatModel("m", api_key="k", base_url=url))
    assert str(router.calls.last.request.url) == url


def test_a_key_that_no_header_can_carry_is_refused_without_quoting_it() -> None:
    with pytest.raises(ConfigurationError, match="no header can carry") as refusal:
        OpenAIChatModel("m", api_key="sk-12\n34").check()
    assert "sk-12" not in str(refusal.value)


def test_repr_and_identity_do_not_hold_secrets() -> None:
    asked = OpenAIChatModel(
        "m",
        api_key="sk-secret",
        base_url="https://user:pw@host.example/v1?token=t",
        headers={"authorization": "Bearer sk-secret"},
    )
    assert repr(asked) == (
        "OpenAIChatModel('m', provider='openai', base_url='https://host.example/v1')"
    )
    assert "secret" not in asked.cache_identity


def test_the_identity_tells_apart_what_answers_differently() -> None:
    made = [
        OpenAIChatModel("m", api_key="a"),
        OpenAIChatModel("n", api_key="a"),
        OpenAIChatModel("m", api_key="b"),
        OpenAIChatModel("m", api_key="a", base_url="https://x/v1"),
        OpenAIChatModel("m", api_key="a", settings=ModelSettings(temperature=0)),
        OpenAIChatModel("m", api_key="a", provider=replace(PROVIDERS["openai"], fold_system=True)),
    ]
    assert len({each.cache_identity for each in made}) == len(made)
    again = OpenAIChatModel("m", api_key="a")
    assert again.cache_identity == made[0].cache_identity


async def test_what_claude_thought_behind_its_own_api_is_not_sent_to_its_other_one(
    router: respx.MockRouter,
) -> None:
    thought = ReasoningBlock(
        text="hm", signature="s", provider_data={"anthropic": {"type": "thinking"}}
    )
    said = AssistantMessage(
        content=[thought, TextBlock(text="4")],
        provider_data={"anthropic": {"container": {"id": "c"}}},
    )
    assert (await sent(router, HI, said, provider="anthropic"))[1] == {
        "role": "assistant",
        "content": "4",
    }


# Cost


async def test_a_message_is_encoded_once_and_forgotten_with_it(router: respx.MockRouter) -> None:
    asked = model()
    # What is kept shows in nothing but the time and the memory that a call takes.
    known = asked._variants.of(frozenset())[1]._wires._known
    history: list[Message] = [UserMessage(content=str(n)) for n in range(5)]
    async with asked:
        await asked.invoke(ModelRequest(messages=[*history]))
        kept = {key: wire for key, (*_, wire) in known.items()}
        await asked.invoke(ModelRequest(messages=[*history, HI]))
        assert all(known[key][2] is wire for key, wire in kept.items())
    del history
    gc.collect()
    assert len(known) <= 1


async def test_a_message_whose_list_was_appended_to_is_encoded_anew(
    router: respx.MockRouter,
) -> None:
    message = UserMessage(content="a")
    asked = model()
    assert (await body_of(router, asked, message))["messages"][0]["content"] == "a"
    message.content.append(TextBlock(text="b"))
    assert (await body_of(router, asked, message))["messages"][0]["content"] == "ab"


# Prompt caches

STABLE = PromptBuilder().push_system("You help.")


async def test_the_key_of_the_prompt_cache_is_made_of_the_fingerprint(
    router: respx.MockRouter,
) -> None:
    request = STABLE.push_volatile("now").build("hi")

    async def key(asked: OpenAIChatModel, **changes: Any) -> object:
        async with asked:
            await asked.invoke(replace(request, **changes))
        return orjson.loads(router.calls.last.request.content).get("prompt_cache_key")

    made = await key(model(prompt_cache_key=True))
    # OpenAI takes 64 characters at most.
    assert made == f"tap-{STABLE.fingerprint}"[:64]
    assert await key(model()) is None
    own = ModelSettings(provider_options={"prompt_cache_key": "mine"})
    assert await key(model(prompt_cache_key=True), settings=own) == "mine"
    assert await key(model(prompt_cache_key=True), prompt_fingerprint=None) is None
    late = PromptBuilder().push_volatile("now").push_system("You help.").build("hi")
    assert await key(model(prompt_cache_key=True), segments=late.segments) is None
