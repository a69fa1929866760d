"""Tools, formats and settings of the Responses API, what is refused, and the model itself."""

import gc
from dataclasses import replace
from typing import Any

import httpx
import orjson
import pytest
import respx

from tests.harness.providers.openai_responses.asking import (
    ANSWER,
    HI,
    WEATHER,
    body_of,
    model,
    with_settings,
)
from tinyagents.harness.errors import ConfigurationError, InvalidRequestError
from tinyagents.harness.message import (
    AudioBlock,
    FileBlock,
    ImageBlock,
    Message,
    SystemMessage,
    UserMessage,
)
from tinyagents.harness.model import (
    ChatModel,
    JsonObjectFormat,
    JsonSchemaFormat,
    ModelRequest,
    ModelSettings,
    NamedTool,
    ReasoningConfig,
)
from tinyagents.harness.providers import (
    RESPONSES_PROVIDERS,
    OpenAIChatModel,
    OpenAIResponsesModel,
    resolve_model,
)
from tinyagents.harness.tool import wire_names

# Tools and formats


async def test_tools_are_flat_and_strict_where_their_schema_can_be(
    router: respx.MockRouter,
) -> None:
    body = await body_of(router, model(), tools=[WEATHER], tool_choice="required")
    assert body["tools"] == [
        {
            "type": "function",
            "name": "get_weather",
            "description": "Weather.",
            "parameters": {**WEATHER.parameters, "additionalProperties": False},
            "strict": True,
        }
    ]
    assert body["tool_choice"] == "required"
    loose = replace(WEATHER, strict=False)
    (tool,) = (await body_of(router, model(), tools=[loose]))["tools"]
    assert (tool["parameters"], tool["strict"]) == (WEATHER.parameters, False)


async def test_a_strict_tool_is_closed(router: respx.MockRouter) -> None:
    strict = replace(WEATHER, name="weather.now", strict=True)
    body = await body_of(
        router,
        model(),
        tools=[strict],
        tool_choice=NamedTool("weather.now"),
        settings=ModelSettings(parallel_tool_calls=False),
    )
    (tool,) = body["tools"]
    assert tool["strict"] is True
    assert tool["parameters"] == {**WEATHER.parameters, "additionalProperties": False}
    name = wire_names(["weather.now"])["weather.now"]
    assert tool["name"] == name
    assert body["tool_choice"] == {"type": "function", "name": name}
    assert body["parallel_tool_calls"] is False


async def test_the_providers_own_tools_stand_behind_those_of_the_application(
    router: respx.MockRouter,
) -> None:
    settings = ModelSettings(provider_options={"tools": [{"type": "web_search"}]})
    both = await body_of(router, model(), tools=[WEATHER], settings=settings)
    assert [tool["type"] for tool in both["tools"]] == ["function", "web_search"]
    alone = await body_of(router, model(), settings=settings)
    assert (alone["tools"], alone["tool_choice"]) == ([{"type": "web_search"}], "auto")


async def test_a_server_without_strict_schemas_is_not_sent_the_word(
    router: respx.MockRouter,
) -> None:
    body = await body_of(router, model(provider="vllm"), tools=[WEATHER])
    assert "strict" not in body["tools"][0]


async def test_a_schema_is_the_format_of_the_text(router: respx.MockRouter) -> None:
    wanted = JsonSchemaFormat(
        name="place", schema=WEATHER.parameters, description="A place.", strict=True
    )
    settings = ModelSettings(provider_options={"text": {"verbosity": "low"}})
    body = await body_of(router, model(), response_format=wanted, settings=settings)
    assert body["text"] == {
        "verbosity": "low",
        "format": {
            "type": "json_schema",
            "name": "place",
            "description": "A place.",
            "schema": {**WEATHER.parameters, "additionalProperties": False},
            "strict": True,
        },
    }


async def test_any_object_is_the_format_of_the_text(router: respx.MockRouter) -> None:
    body = await body_of(router, model(), response_format=JsonObjectFormat())
    assert body["text"] == {"format": {"type": "json_object"}}
    local = await body_of(router, model(provider="vllm"), response_format=JsonObjectFormat())
    assert local["text"]["format"] == {
        "type": "json_schema",
        "name": "object",
        "schema": {"type": "object", "additionalProperties": True},
    }


# Settings


async def test_settings_have_the_names_of_this_api(router: respx.MockRouter) -> None:
    assert await with_settings(
        router,
        temperature=0.5,
        top_p=0.9,
        max_tokens=100,
        logprobs=2,
        user="u",
        provider_options={"truncation": "auto", "include": ["file_search_call.results"]},
    ) == {
        "store": False,
        "temperature": 0.5,
        "top_p": 0.9,
        "max_output_tokens": 100,
        "top_logprobs": 2,
        "user": "u",
        "truncation": "auto",
        "include": ["file_search_call.results", "message.output_text.logprobs"],
    }


async def test_a_model_that_reasons_is_asked_for_its_reasoning_and_sent_no_temperature(
    router: respx.MockRouter,
) -> None:
    assert await with_settings(
        router,
        "gpt-5-mini",
        temperature=1.0,
        reasoning=ReasoningConfig(effort="low", summary="auto"),
        provider_options={"reasoning": {"context": "all_turns"}},
    ) == {
        "store": False,
        "reasoning": {"context": "all_turns", "effort": "low", "summary": "auto"},
        "include": ["reasoning.encrypted_content"],
    }


@pytest.mark.parametrize(
    ("name", "settings", "asked"),
    [
        ("gpt-5-mini", {}, True),
        ("gpt-5-mini", {"provider_options": {"store": True}}, False),
        ("gpt-4.1", {}, False),
        ("my-deployment", {"reasoning": ReasoningConfig(effort="high")}, True),
    ],
)
async def test_encrypted_reasoning_is_asked_for_where_it_exists_and_is_needed(
    name: str, settings: dict[str, Any], asked: bool, router: respx.MockRouter
) -> None:
    body = await with_settings(router, name, **settings)
    assert ("include" in body) is asked


async def test_a_stream_is_asked_for(router: respx.MockRouter) -> None:
    router.route().mock(return_value=httpx.Response(200, json=ANSWER))
    asked = model()
    async with asked:
        _ = [item async for item in asked.stream(ModelRequest(messages=[HI]))]
    request = router.calls.last.request
    assert orjson.loads(request.content)["stream"] is True
    assert request.headers["accept"] == "text/event-stream"


async def test_numbers_beyond_64_bits_are_sent_as_they_are(router: respx.MockRouter) -> None:
    options = {"metadata": {"n": 2**70}, "tools": [{"type": "x", "n": 2**70}]}
    async with model() as asked:
        settings = ModelSettings(provider_options=options)
        await asked.invoke(ModelRequest(messages=[HI], tools=[WEATHER], settings=settings))
    assert router.calls.last.request.content.count(str(2**70).encode()) == 2


# Refused

REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("openai", {"messages": []}, "an empty list of messages"),
    ("openai", {"settings": ModelSettings(stop=("x",))}, "the setting `stop`"),
    ("openai", {"settings": ModelSettings(seed=1)}, "the setting `seed`"),
    ("openai", {"settings": ModelSettings(frequency_penalty=1)}, "`frequency_penalty`"),
    (
        "openai",
        {"settings": ModelSettings(reasoning=ReasoningConfig(budget_tokens=5))},
        "`budget_tokens`",
    ),
    (
        "openai",
        {"settings": ModelSettings(provider_options={"input": [], "model": "x"})},
        "settings of their own: input, model",
    ),
    (
        "openai",
        {"settings": ModelSettings(provider_options={"text": {"format": {}}})},
        r"text\.format",
    ),
    (
        "openai",
        {"settings": ModelSettings(provider_options={"background": True})},
        "`background` without `store`",
    ),
    (
        "openai",
        {
            "continuation_id": "r",
            "settings": ModelSettings(provider_options={"conversation": "c"}),
        },
        "together with a `conversation`",
    ),
    ("groq", {"continuation_id": "r"}, "keeps no conversations"),
    ("openai", {"tool_choice": NamedTool("f")}, "`f`, which is not offered"),
    (
        "openai",
        {"tools": [replace(WEATHER, parameters={"type": "object"}, strict=True)]},
        "strict arguments for `get_weather`",
    ),
    ("deepseek", {"response_format": JsonSchemaFormat(name="x", schema={})}, "JSON schema"),
    (
        "openai",
        {"messages": [UserMessage(content=[AudioBlock(url="https://x")])]},
        "a `audio` block in a user message",
    ),
    (
        "openai",
        {"messages": [SystemMessage(content=[ImageBlock(url="https://x")]), HI]},
        "a `image` block in a system message",
    ),
]


@pytest.mark.parametrize(("provider", "request_", "words"), REFUSED)
async def test_a_request_that_cannot_work_is_refused_before_anything_is_sent(
    provider: str, request_: dict[str, Any], words: str, router: respx.MockRouter
) -> None:
    asked = model(provider=provider)
    async with asked:
        with pytest.raises(InvalidRequestError, match=words):
            await asked.invoke(ModelRequest(**{"messages": [HI], **request_}))
    assert not router.calls


@pytest.mark.parametrize(
    ("lacks", "request_", "words"),
    [
        ({"tools": False}, {"tools": [WEATHER]}, "cannot take tools"),
        (
            {"forced_tool_choice": False},
            {"tools": [WEATHER], "tool_choice": "required"},
            "a forced tool choice",
        ),
        (
            {"parallel_tool_calls": False},
            {"tools": [WEATHER], "settings": ModelSettings(parallel_tool_calls=True)},
            "`parallel_tool_calls`",
        ),
        (
            {"json_object": False, "json_schema": False},
            {"response_format": JsonObjectFormat()},
            "JSON answers",
        ),
        (
            {"image_input": False},
            {"messages": [UserMessage(content=[ImageBlock(url="https://x")])]},
            "a `image` block",
        ),
        (
            {"file_urls": False},
            {"messages": [UserMessage(content=[FileBlock(url="https://x")])]},
            "only as data or by its file_id",
        ),
    ],
)
async def test_what_a_preset_says_a_provider_lacks_is_refused(
    lacks: dict[str, Any], request_: dict[str, Any], words: str, router: respx.MockRouter
) -> None:
    asked = model(provider=replace(RESPONSES_PROVIDERS["openai"], **lacks))
    with pytest.raises(InvalidRequestError, match=words):
        await asked.invoke(ModelRequest(**{"messages": [HI], **request_}))
    assert not router.calls


# The model


def test_a_name_with_responses_in_it_means_this_api() -> None:
    made = resolve_model("openai_responses:gpt-5-mini", api_key="k")
    assert isinstance(made, OpenAIResponsesModel)
    assert isinstance(made, ChatModel)
    assert repr(made) == (
        "OpenAIResponsesModel('gpt-5-mini', provider='openai', "
        "base_url='https://api.openai.com/v1')"
    )
    assert made.profile.reasoning
    default = resolve_model("openai-responses", api_key="k")
    assert isinstance(default, OpenAIResponsesModel)
    assert isinstance(resolve_model("openai:gpt-5-mini", api_key="k"), OpenAIChatModel)
    with pytest.raises(ConfigurationError, match="`mistral` is no known provider; known are az"):
        resolve_model("mistral_responses:m")
    with pytest.raises(ConfigurationError, match="write `vllm_responses:MODEL`"):
        resolve_model("vllm_responses:")


async def test_the_endpoint_is_appended_once_and_azure_has_its_own_path(
    router: respx.MockRouter,
) -> None:
    await body_of(router, model(base_url="https://h.example/v1/responses"))
    assert str(router.calls.last.request.url) == "https://h.example/v1/responses"
    for url in ("https://me.openai.azure.com", "https://me.openai.azure.com/openai/v1"):
        await body_of(router, model(provider="azure", base_url=url))
        request = router.calls.last.request
        assert str(request.url) == "https://me.openai.azure.com/openai/v1/responses"
        assert request.headers["api-key"] == "the-key-of-a-test"


def test_a_missing_key_is_told_by_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ConfigurationError, match="OPENAI_API_KEY"):
        OpenAIResponsesModel("m").check()


def test_every_preset_knows_what_its_chat_counterpart_knows() -> None:
    openai = RESPONSES_PROVIDERS["openai"]
    assert openai.key_env == ("OPENAI_API_KEY",)
    assert openai.refuses_temperature("gpt-5")
    assert all(name == preset.name for name, preset in RESPONSES_PROVIDERS.items())


def test_the_identity_tells_this_api_from_the_other() -> None:
    made = [
        OpenAIResponsesModel("m", api_key="a"),
        OpenAIChatModel("m", api_key="a"),
        OpenAIResponsesModel("n", api_key="a"),
    ]
    assert len({each.cache_identity for each in made}) == 3


async def test_a_message_is_encoded_once_and_forgotten_with_it(router: respx.MockRouter) -> None:
    asked = model()
    # What is kept shows in nothing but the time and the memory that a call takes.
    cache = asked._variants.of(frozenset())[1]._wires._known
    history: list[Message] = [UserMessage(content=str(n)) for n in range(5)]
    async with asked:
        await asked.invoke(ModelRequest(messages=[*history]))
        kept = {key: entry[-1] for key, entry in cache.items()}
        await asked.invoke(ModelRequest(messages=[*history, HI]))
        assert all(cache[key][-1] is wire for key, wire in kept.items())
    del history
    gc.collect()
    assert len(cache) <= 1
