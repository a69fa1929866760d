"""Tools, cache markers and settings as they are sent to the Messages API."""

from typing import Any

import orjson
import pytest
import respx

from tests.harness.providers.anthropic_messages.requests import (
    HI,
    HI_WIRE,
    MARK,
    WEATHER,
    WEATHER_WIRE,
    body_of,
    model,
    settings_sent,
)
from tinyagents.harness.message import (
    AssistantMessage,
    ImageBlock,
    Message,
    ReasoningBlock,
    SystemMessage,
    TextBlock,
    ToolCallBlock,
    ToolMessage,
    UserMessage,
)
from tinyagents.harness.model import (
    JsonSchemaFormat,
    ModelRequest,
    ModelSettings,
    NamedTool,
    PromptSegment,
    ReasoningConfig,
    ToolSchema,
    drain,
)
from tinyagents.harness.prompt import PromptBuilder
from tinyagents.harness.tool import wire_names

# Tools


async def test_tools_and_each_choice_have_their_form(router: respx.MockRouter) -> None:
    odd = ToolSchema(name="a.b", description="", parameters={"type": "object"})
    name = wire_names(["a.b"])["a.b"]
    cases: list[tuple[Any, bool | None, Any]] = [
        ("auto", None, None),
        ("auto", True, None),
        ("auto", False, {"type": "auto", "disable_parallel_tool_use": True}),
        ("none", False, {"type": "none"}),
        ("required", None, {"type": "any"}),
        ("required", False, {"type": "any", "disable_parallel_tool_use": True}),
        (NamedTool("a.b"), None, {"type": "tool", "name": name}),
    ]
    for choice, parallel, wire in cases:
        settings = ModelSettings(parallel_tool_calls=parallel)
        tools = (WEATHER, odd)
        body = await body_of(router, model(), tools=tools, tool_choice=choice, settings=settings)
        assert body["tools"] == [
            WEATHER_WIRE,
            {"name": name, "input_schema": {"type": "object"}},
        ]
        assert body.get("tool_choice") == wire


async def test_strict_arguments_close_the_schema_and_leave_optional_what_is(
    router: respx.MockRouter,
) -> None:
    parameters: Any = {"type": "object", "properties": {"a": {"type": "integer"}}}
    tool = ToolSchema(name="f", description="F.", parameters=parameters, strict=True)
    body = await body_of(router, model(), tools=[tool])
    assert body["tools"] == [
        {
            "name": "f",
            "description": "F.",
            "strict": True,
            "input_schema": {**parameters, "additionalProperties": False},
        }
    ]


async def test_tools_that_the_provider_runs_stand_before_the_applications(
    router: respx.MockRouter,
) -> None:
    search = {"type": "web_search_20250305", "name": "web_search"}
    settings = ModelSettings(provider_options={"tools": [search]})
    body = await body_of(router, model(), tools=[WEATHER], settings=settings)
    assert body["tools"] == [search, WEATHER_WIRE]
    body = await body_of(router, model(), settings=settings, tool_choice="required")
    assert (body["tools"], body["tool_choice"]) == ([search], {"type": "any"})


# Prompt caches

SEGMENTS = (
    PromptSegment(id="tools", role="tools", cacheable=True),
    PromptSegment(id="rules", role="system", cacheable=True, messages=1),
    PromptSegment(id="past", role="history", cacheable=True, messages=2),
    PromptSegment(id="now", role="volatile", cacheable=False, messages=1),
    PromptSegment(id="more", role="history", cacheable=True, messages=1),
)
CACHED: tuple[Message, ...] = (
    SystemMessage(content="rules"),
    HI,
    AssistantMessage(content="hello"),
    UserMessage(content="now"),
    UserMessage(content="more"),
)


async def test_each_stable_segment_ends_in_a_cache_marker(router: respx.MockRouter) -> None:
    body = await body_of(router, model(), *CACHED, tools=[WEATHER, WEATHER], segments=SEGMENTS)
    assert body["tools"] == [WEATHER_WIRE, {**WEATHER_WIRE, **MARK}]
    assert body["system"] == [{"type": "text", "text": "rules", **MARK}]
    assert body["messages"] == [
        HI_WIRE,
        {"role": "assistant", "content": [{"type": "text", "text": "hello", **MARK}]},
        {
            "role": "user",
            "content": [{"type": "text", "text": "now"}, {"type": "text", "text": "more"}],
        },
    ]


async def test_a_built_prompt_is_marked_where_its_stable_segments_end(
    router: respx.MockRouter,
) -> None:
    stable = PromptBuilder().push_system("You help.").push_tools_segment([WEATHER])
    request = stable.push_instructions("Cite.").push_history([HI]).push_volatile("now").build()
    body = await body_of(
        router, model(), *request.messages, tools=request.tools, segments=request.segments
    )
    assert body["tools"] == [{**WEATHER_WIRE, **MARK}]
    assert body["system"] == [
        {"type": "text", "text": "You help.", **MARK},
        {"type": "text", "text": "Cite.", **MARK},
    ]
    assert "cache_control" not in str(body["messages"])


async def test_markers_say_how_long_where_it_is_not_the_usual_time(
    router: respx.MockRouter,
) -> None:
    body = await body_of(router, model(cache_ttl="1h"), *CACHED, segments=SEGMENTS)
    mark = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
    assert body["system"] == [{"type": "text", "text": "rules", **mark}]
    assert "tools" not in body


async def test_no_more_than_four_markers_are_sent_the_applications_own_included(
    router: respx.MockRouter,
) -> None:
    own = TextBlock(text="own", provider_data={"anthropic": dict(MARK)})
    messages = [UserMessage(content=[own]), *(UserMessage(content=str(n)) for n in range(5))]
    segments = [
        PromptSegment(id=str(n), role="history", cacheable=True, messages=1) for n in range(6)
    ]
    body = await body_of(router, model(), *messages, segments=segments)
    marked = [part["text"] for part in body["messages"][0]["content"] if "cache_control" in part]
    assert marked == ["own", "2", "3", "4"]


LAID_OUT = PromptBuilder().push_system("a").push_tools_segment([WEATHER]).push_instructions("b")


@pytest.mark.parametrize(
    "options",
    [
        # The provider's automatic caching takes one of the four.
        {"cache_control": {"type": "ephemeral"}},
        {"tools": [{"type": "web_search_20250305", "name": "web_search", **MARK}]},
    ],
)
async def test_markers_among_the_options_count_too(
    router: respx.MockRouter, options: dict[str, Any]
) -> None:
    request = LAID_OUT.push_instructions("c").build("hi")
    settings = ModelSettings(provider_options=options)
    wire = await body_of(
        router,
        model(),
        *request.messages,
        tools=request.tools,
        segments=request.segments,
        settings=settings,
    )
    assert str(wire).count("cache_control") == 4
    assert "cache_control" not in wire["tools"][-1]
    assert [MARK.items() <= each.items() for each in wire["system"]] == [True] * 3


async def test_markers_within_a_result_of_a_tool_count_too(router: respx.MockRouter) -> None:
    said = AssistantMessage(content=[ToolCallBlock(id="c", name="get_weather", arguments={})])
    own = TextBlock(text="rain", provider_data={"anthropic": dict(MARK)})
    result = ToolMessage(tool_call_id="c", content=[own, TextBlock(text="wind")])
    request = LAID_OUT.push_instructions("c").push_history([HI, said, result]).build()
    wire = await body_of(
        router, model(), *request.messages, tools=request.tools, segments=request.segments
    )
    assert str(wire).count("cache_control") == 4


async def test_a_segment_that_ends_in_a_marker_of_the_application_gets_no_second_one(
    router: respx.MockRouter,
) -> None:
    own = TextBlock(text="own", provider_data={"anthropic": dict(MARK)})
    request = (
        LAID_OUT.push_instructions([SystemMessage(content=[own])]).push_instructions("d").build(HI)
    )
    wire = await body_of(
        router, model(), *request.messages, tools=request.tools, segments=request.segments
    )
    # The tools lie before all of them, and yield first.
    assert "cache_control" not in str(wire["tools"])
    assert [each.get("cache_control") for each in wire["system"]] == [MARK["cache_control"]] * 4


async def test_thinking_never_carries_a_marker(router: respx.MockRouter) -> None:
    thought = ReasoningBlock(
        text="hm", signature="s", provider_data={"anthropic": {"type": "thinking"}}
    )
    segments = [PromptSegment(id="all", role="history", cacheable=True, messages=2)]
    wire = (
        await body_of(router, model(), HI, AssistantMessage(content=[thought]), segments=segments)
    )["messages"]
    assert wire[0]["content"] == [{"type": "text", "text": "hi", **MARK}]
    assert wire[1]["content"] == [{"type": "thinking", "thinking": "hm", "signature": "s"}]


# Settings


async def test_settings_have_their_fields(router: respx.MockRouter) -> None:
    assert await settings_sent(
        router,
        max_tokens=7,
        top_p=0.9,
        stop=("END",),
        user="u-1",
        provider_options={"top_k": 5, "metadata": {"more": "x"}, "service_tier": "auto"},
    ) == {
        "max_tokens": 7,
        "top_p": 0.9,
        "stop_sequences": ["END"],
        "metadata": {"user_id": "u-1", "more": "x"},
        "top_k": 5,
        "service_tier": "auto",
    }


@pytest.mark.parametrize(
    ("name", "tokens"),
    [
        ("claude-3-haiku-20240307", 4_096),
        ("claude-3-5-sonnet-20241022", 8_192),
        ("claude-sonnet-4-20250514", 16_384),
        ("anything-else", 16_384),
    ],
)
async def test_an_answer_without_a_limit_gets_the_documented_one(
    name: str, tokens: int, router: respx.MockRouter
) -> None:
    assert await settings_sent(router, name) == {"max_tokens": tokens}


REASONING: list[tuple[str, ReasoningConfig, dict[str, Any]]] = [
    (
        "claude-sonnet-4-5",
        ReasoningConfig(budget_tokens=2_000),
        {
            "max_tokens": 18_384,
            "thinking": {"type": "enabled", "budget_tokens": 2_000},
        },
    ),
    (
        "claude-sonnet-4-5",
        ReasoningConfig(effort="low"),
        {
            "max_tokens": 18_432,
            "thinking": {"type": "enabled", "budget_tokens": 2_048},
        },
    ),
    (
        "claude-opus-4-6",
        ReasoningConfig(effort="minimal", summary="auto"),
        {
            "max_tokens": 16_384,
            "thinking": {"type": "adaptive", "display": "summarized"},
            "output_config": {"effort": "low"},
        },
    ),
    (
        "claude-opus-4-6",
        ReasoningConfig(budget_tokens=2_000, effort="high"),
        {
            "max_tokens": 18_384,
            "thinking": {"type": "enabled", "budget_tokens": 2_000},
            "output_config": {"effort": "high"},
        },
    ),
    (
        "claude-opus-4-7",
        ReasoningConfig(effort="high"),
        {
            "max_tokens": 16_384,
            "thinking": {"type": "adaptive"},
            "output_config": {"effort": "high"},
        },
    ),
    (
        "claude-opus-4-7",
        ReasoningConfig(effort="none"),
        {"max_tokens": 16_384, "thinking": {"type": "disabled"}},
    ),
]


@pytest.mark.parametrize(("name", "config", "wire"), REASONING)
async def test_thinking_is_asked_for_as_each_generation_takes_it(
    name: str, config: ReasoningConfig, wire: dict[str, Any], router: respx.MockRouter
) -> None:
    assert await settings_sent(router, name, reasoning=config) == wire


async def test_a_temperature_is_left_out_where_none_is_taken(router: respx.MockRouter) -> None:
    assert await settings_sent(router, "claude-opus-4-7", temperature=0.5) == {"max_tokens": 16_384}
    wire = await settings_sent(
        router, temperature=0.5, reasoning=ReasoningConfig(budget_tokens=1_024)
    )
    assert "temperature" not in wire


async def test_options_may_hold_numbers_and_texts_of_any_kind(router: respx.MockRouter) -> None:
    options = {"metadata": {"n": 2**70, "text": "\ud800"}, "thinking": {"type": "disabled"}}
    wire = await settings_sent(router, provider_options=options)
    assert b'"n":1180591620717411303424' in router.calls.last.request.content
    assert wire["thinking"] == {"type": "disabled"}


async def test_a_schema_is_sent_closed_and_its_limits_in_words(router: respx.MockRouter) -> None:
    schema: Any = {
        "type": "object",
        "properties": {
            "age": {"type": "integer", "minimum": 0, "description": "In years."},
            "names": {"type": "array", "items": {"type": "string", "maxLength": 9}, "minItems": 2},
        },
    }
    wanted = JsonSchemaFormat(name="person", schema=schema)
    settings = ModelSettings(provider_options={"output_config": {"effort": "low"}})
    body = await body_of(router, model(), response_format=wanted, settings=settings)
    assert body["output_config"] == {
        "effort": "low",
        "format": {
            "type": "json_schema",
            "schema": {
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    "age": {"type": "integer", "description": "In years. (minimum: 0)"},
                    "names": {
                        "type": "array",
                        "items": {"type": "string", "description": "maxLength: 9"},
                        "description": "minItems: 2",
                    },
                },
            },
        },
    }


async def test_betas_of_every_origin_are_sent_once_each_in_one_header(
    router: respx.MockRouter,
) -> None:
    asked = model(betas=["a", "b"], headers={"Anthropic-Beta": "b, c"})
    settings = ModelSettings(
        extra_headers={"anthropic-beta": "d"}, provider_options={"betas": ["e", "a"]}
    )
    image = UserMessage(content=[ImageBlock(file_id="f")])
    body = await body_of(router, asked, image, settings=settings)
    assert "betas" not in body
    header = router.calls.last.request.headers["anthropic-beta"]
    assert header == "a,b,c,d,e,files-api-2025-04-14"


async def test_a_stream_is_asked_for_in_the_body_and_the_accept_header(
    router: respx.MockRouter,
) -> None:
    asked = model()
    async with asked:
        await drain(asked.stream(ModelRequest(messages=[HI])))
    request = router.calls.last.request
    assert orjson.loads(request.content)["stream"] is True
    assert request.headers["accept"] == "text/event-stream"


@pytest.mark.parametrize(
    ("base_url", "address"),
    [
        ("https://host.example", "https://host.example/v1/messages"),
        ("https://host.example/anthropic/", "https://host.example/anthropic/v1/messages"),
        ("https://host.example/v1", "https://host.example/v1/messages"),
        ("https://host.example/v1/messages?x=1", "https://host.example/v1/messages?x=1"),
    ],
)
async def test_a_base_url_may_end_with_or_without_its_version(
    base_url: str, address: str, router: respx.MockRouter
) -> None:
    await body_of(router, model(base_url=base_url))
    assert str(router.calls.last.request.url) == address


async def test_older_models_take_a_temperature_beside_top_p(router: respx.MockRouter) -> None:
    settings = ModelSettings(temperature=0.5, top_p=0.9, max_tokens=7)
    body = await body_of(router, model("claude-sonnet-4-20250514"), HI, settings=settings)
    assert (body["temperature"], body["top_p"]) == (0.5, 0.9)


async def test_a_temperature_is_left_out_beside_top_p_while_it_thinks(
    router: respx.MockRouter,
) -> None:
    settings = ModelSettings(temperature=0.5, top_p=0.95, reasoning=ReasoningConfig(effort="low"))
    body = await body_of(router, model(), HI, settings=settings)
    assert ("temperature" in body, body["top_p"]) == (False, 0.95)
