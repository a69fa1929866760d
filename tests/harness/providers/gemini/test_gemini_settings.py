"""How tools, formats and settings reach Gemini, and what is refused before anything is sent."""

import re
from collections.abc import Iterator
from typing import Any

import httpx
import orjson
import pytest
import respx

from tests.harness.providers.gemini.asking import (
    ANSWER,
    CITY,
    DECLARED,
    HI,
    SENT_HI,
    WEATHER,
    body_of,
    generation,
    model,
    refused,
)
from tinyagents.harness.message import (
    AssistantMessage,
    SystemMessage,
    ToolCallBlock,
)
from tinyagents.harness.model import (
    JsonObjectFormat,
    JsonSchemaFormat,
    ModelRequest,
    ModelSettings,
    NamedTool,
    ReasoningConfig,
    ToolSchema,
)
from tinyagents.harness.text import JsonObject
from tinyagents.harness.tool import wire_names


@pytest.fixture
def router() -> Iterator[respx.MockRouter]:
    with respx.mock(assert_all_called=False) as router:
        router.route().mock(return_value=httpx.Response(200, json=ANSWER))
        yield router


# Tools


@pytest.mark.parametrize(
    ("choice", "config"),
    [
        ("auto", None),
        ("none", {"mode": "NONE"}),
        ("required", {"mode": "ANY"}),
        (NamedTool("get_weather"), {"mode": "ANY", "allowedFunctionNames": ["get_weather"]}),
    ],
)
async def test_a_tool_choice_becomes_a_mode(
    router: respx.MockRouter, choice: Any, config: Any
) -> None:
    body = await body_of(router, tools=[WEATHER], tool_choice=choice)
    expected: dict[str, Any] = {
        "contents": [SENT_HI],
        "tools": [{"functionDeclarations": [DECLARED]}],
    }
    if config is not None:
        expected["toolConfig"] = {"functionCallingConfig": config}
    assert body == expected


async def test_strict_arguments_are_asked_for_by_mode(router: respx.MockRouter) -> None:
    strict = ToolSchema(name="t", description="T.", parameters=CITY, strict=True)
    body = await body_of(router, tools=[strict])
    assert body["toolConfig"] == {"functionCallingConfig": {"mode": "VALIDATED"}}


async def test_a_tool_without_parameters_is_declared_without_a_schema(
    router: respx.MockRouter,
) -> None:
    bare = ToolSchema(name="t", description="T.", parameters={"type": "object", "properties": {}})
    body = await body_of(router, tools=[bare])
    assert body["tools"] == [{"functionDeclarations": [{"name": "t", "description": "T."}]}]


async def test_names_are_sent_in_a_form_that_is_taken_and_come_back(
    router: respx.MockRouter,
) -> None:
    names = ["a.b", "3d", "-x"]
    tools = [ToolSchema(name=n, description="T.", parameters={"type": "object"}) for n in names]
    call = ToolCallBlock(id="c1", name="3d")
    body = await body_of(router, HI, AssistantMessage(content=[call]), tools=tools)
    declared = [tool["name"] for tool in body["tools"][0]["functionDeclarations"]]
    assert declared[0] == wire_names(["a.b"])["a.b"]
    assert all(re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]{0,63}", name) for name in declared)
    assert len(set(declared)) == 3
    assert body["contents"][1]["parts"][0]["functionCall"]["name"] == declared[1]
    called = {"parts": [{"functionCall": {"name": declared[1], "args": {}}}]}
    router.route().mock(
        return_value=httpx.Response(200, json={"candidates": [{"content": called}]})
    )
    async with model() as asked:
        response = await asked.invoke(ModelRequest(messages=[HI], tools=tools))
    assert response.message.tool_calls[0].name == "3d"


async def test_a_choice_of_a_tool_that_is_not_offered_is_refused() -> None:
    message = await refused(tools=[WEATHER], tool_choice=NamedTool("other"))
    assert "the tool `other`, which is not offered" in message


async def test_one_call_at_a_time_cannot_be_asked_for(router: respx.MockRouter) -> None:
    settings = ModelSettings(parallel_tool_calls=False)
    assert "`parallel_tool_calls`" in await refused(tools=[WEATHER], settings=settings)
    await body_of(router, tools=[WEATHER], settings=ModelSettings(parallel_tool_calls=True))


# The form of the answer


async def test_a_format_is_sent_as_a_json_schema(router: respx.MockRouter) -> None:
    wanted = JsonSchemaFormat(name="place", schema=CITY, description="Where.", strict=True)
    body = await body_of(router, response_format=wanted)
    assert body["generationConfig"] == {
        "responseMimeType": "application/json",
        "responseJsonSchema": {**CITY, "description": "Where."},
    }
    body = await body_of(router, response_format=JsonObjectFormat())
    assert body["generationConfig"] == {"responseMimeType": "application/json"}


async def test_rules_without_a_keyword_are_described_and_told(router: respx.MockRouter) -> None:
    schema: JsonObject = {
        "type": "object",
        "properties": {"zip": {"type": "string", "pattern": "^[0-9]+$", "description": "Code"}},
    }
    tool = ToolSchema(name="t", description="T.", parameters=schema)
    request = ModelRequest(
        messages=[HI],
        tools=[tool],
        response_format=JsonSchemaFormat(name="f", schema=schema),
    )
    async with model("gemini-3-pro-preview") as asked:
        response = await asked.invoke(request)
    body = orjson.loads(router.calls.last.request.content)
    told = {"type": "string", "description": 'Code (pattern: "^[0-9]+$")'}
    declared = body["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"]
    assert declared["properties"]["zip"] == told
    assert body["generationConfig"]["responseJsonSchema"]["properties"]["zip"] == told
    assert response.notices == (
        "tool `t`: `$.zip`: `pattern` is only described",
        "format `f`: `$.zip`: `pattern` is only described",
    )


async def test_a_strict_schema_that_cannot_be_enforced_is_refused() -> None:
    schema: JsonObject = {"type": "string", "minLength": 1}
    wanted = JsonSchemaFormat(name="f", schema=schema, strict=True)
    assert "`$`: `minLength` is only described" in await refused(response_format=wanted)
    tool = ToolSchema(name="t", description="T.", parameters=schema, strict=True)
    assert "strict arguments for `t`" in await refused(tools=[tool])


async def test_a_format_beside_tools_needs_gemini_3(router: respx.MockRouter) -> None:
    request: dict[str, Any] = {"tools": [WEATHER], "response_format": JsonObjectFormat()}
    assert "needs Gemini 3" in await refused(**request)
    body = await body_of(router, name="gemini-3-pro-preview", **request)
    assert body["generationConfig"] == {"responseMimeType": "application/json"}
    assert model("gemini-3-pro-preview").profile.native_structured_output
    assert model().profile.native_structured_output is None


# Settings


async def test_settings_are_sent_under_geminis_names(router: respx.MockRouter) -> None:
    assert await generation(
        router,
        max_tokens=5,
        temperature=0.0,
        top_p=0.5,
        stop=("END",),
        seed=7,
        frequency_penalty=0.1,
        presence_penalty=0.2,
        logprobs=3,
    ) == {
        "maxOutputTokens": 5,
        "temperature": 0.0,
        "topP": 0.5,
        "stopSequences": ["END"],
        "seed": 7,
        "frequencyPenalty": 0.1,
        "presencePenalty": 0.2,
        "responseLogprobs": True,
        "logprobs": 3,
    }
    assert await generation(router, logprobs=0) == {"responseLogprobs": True}


async def test_the_settings_of_a_model_lie_beneath_those_of_a_request(
    router: respx.MockRouter,
) -> None:
    beneath = ModelSettings(temperature=0.1, max_tokens=5)
    over = ModelSettings(temperature=0.9, extra_headers={"X-Team": "search"})
    async with model(settings=beneath, headers={"user-agent": "mine"}) as asked:
        await asked.invoke(ModelRequest(messages=[HI], settings=over))
    request = router.calls.last.request
    assert orjson.loads(request.content)["generationConfig"] == {
        "temperature": 0.9,
        "maxOutputTokens": 5,
    }
    assert (request.headers["x-team"], request.headers["user-agent"]) == ("search", "mine")


@pytest.mark.parametrize(
    ("name", "reasoning", "config"),
    [
        ("gemini-2.5-flash", ReasoningConfig(effort="none"), {"thinkingBudget": 0}),
        ("gemini-2.5-pro", ReasoningConfig(effort="high"), {"thinkingBudget": 24_576}),
        ("gemini-3-pro-preview", ReasoningConfig(effort="low"), {"thinkingLevel": "LOW"}),
        ("gemini-flash-latest", ReasoningConfig(effort="minimal"), {"thinkingLevel": "MINIMAL"}),
        ("gemini-3-pro-preview", ReasoningConfig(budget_tokens=9), {"thinkingBudget": 9}),
        (
            "gemini-2.5-pro",
            ReasoningConfig(effort="medium", summary="auto"),
            {"thinkingBudget": 8_192, "includeThoughts": True},
        ),
    ],
)
async def test_reasoning_is_asked_for_in_the_way_of_the_model(
    router: respx.MockRouter, name: str, reasoning: ReasoningConfig, config: dict[str, Any]
) -> None:
    assert await generation(router, name, reasoning=reasoning) == {"thinkingConfig": config}


@pytest.mark.parametrize(
    ("settings", "name", "words"),
    [
        ({"reasoning": ReasoningConfig(effort="none")}, "gemini-3-pro-preview", "turned off"),
        ({"reasoning": ReasoningConfig(effort="none")}, "gemini-2.5-pro", "turned off"),
        ({"reasoning": ReasoningConfig(effort="low")}, "gemini-2.0-flash", "does not think"),
        (
            {"reasoning": ReasoningConfig(effort="low", budget_tokens=5)},
            "gemini-3-pro-preview",
            "`effort` beside `budget_tokens`",
        ),
        ({"stop": tuple("abcdef")}, "m", "more than 5 texts in `stop`"),
        ({"logprobs": 21}, "m", "more than 20 `logprobs`"),
        ({"user": "u"}, "m", "the setting `user`"),
        ({"provider_options": {"contents": []}}, "m", "contents"),
        ({"provider_options": {"system_instruction": {}}}, "m", "systemInstruction"),
        ({"provider_options": {"generationConfig": {"topP": 1}}}, "m", "topP"),
        (
            {"provider_options": {"toolConfig": {"functionCallingConfig": {}}}},
            "m",
            "functionCallingConfig",
        ),
        ({"provider_options": {"generation_config": {"candidate_count": 2}}}, "m", "one answer"),
    ],
)
async def test_settings_that_cannot_work_are_refused(
    settings: dict[str, Any], name: str, words: str
) -> None:
    assert words in await refused(name=name, settings=ModelSettings(**settings))


async def test_a_continuation_is_refused() -> None:
    assert "`continuation_id`" in await refused(continuation_id="r1")


async def test_fields_of_the_request_are_sent_as_they_are(router: respx.MockRouter) -> None:
    safety = [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}]
    settings = ModelSettings(
        temperature=0.5,
        reasoning=ReasoningConfig(summary="auto"),
        provider_options={
            "safety_settings": safety,
            "tools": [{"googleSearch": {}}],
            "toolConfig": {"retrievalConfig": {"languageCode": "de"}},
            "generationConfig": {"topK": 3, "thinkingConfig": {"thinkingBudget": 2**70}},
        },
    )
    assert await body_of(router, tools=[WEATHER], tool_choice="required", settings=settings) == {
        "contents": [SENT_HI],
        "safetySettings": safety,
        "tools": [{"functionDeclarations": [DECLARED]}, {"googleSearch": {}}],
        "toolConfig": {
            "retrievalConfig": {"languageCode": "de"},
            "functionCallingConfig": {"mode": "ANY"},
        },
        "generationConfig": {
            "topK": 3,
            "temperature": 0.5,
            "thinkingConfig": {"thinkingBudget": 2**70, "includeThoughts": True},
        },
    }


async def test_cached_content_goes_alone(router: respx.MockRouter) -> None:
    settings = ModelSettings(provider_options={"cachedContent": "cachedContents/1"})
    assert await body_of(router, settings=settings) == {
        "contents": [SENT_HI],
        "cachedContent": "cachedContents/1",
    }
    message = await refused(
        SystemMessage(content="x"), HI, tools=[WEATHER], tool_choice="none", settings=settings
    )
    assert "`cachedContent` beside systemInstruction, tools, toolConfig" in message
