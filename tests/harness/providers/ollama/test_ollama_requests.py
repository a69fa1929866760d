"""What is sent to Ollama's own API, and what is refused before anything is."""

from dataclasses import replace
from typing import Any

import httpx
import orjson
import pytest
import respx

from tests.harness.providers.ollama.asking import ANSWER, HI, WEATHER, body_of, refused
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
    ModelRequest,
    ModelSettings,
    NamedTool,
    drain,
)
from tinyagents.harness.providers import OllamaModel, OpenAIChatModel
from tinyagents.harness.text import JsonObject
from tinyagents.harness.tool import wire_names

PNG = "iVBORw0KGgo="
WEATHER_WIRE = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Weather.",
        "parameters": WEATHER.parameters,
    },
}


async def sent(router: respx.MockRouter, *messages: Message) -> list[Any]:
    wire: list[Any] = (await body_of(router, *messages))["messages"]
    return wire


# Messages


async def test_a_plain_conversation_is_sent_as_roles_and_texts(router: respx.MockRouter) -> None:
    assert await body_of(
        router,
        SystemMessage(content="Be brief."),
        UserMessage(content="hi"),
        AssistantMessage(content="hello"),
        UserMessage(content=[TextBlock(text="and "), TextBlock(text="now?")]),
    ) == {
        "model": "qwen3",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "hello"},
            {"role": "user", "content": "and now?"},
        ],
        "stream": False,
    }
    request = router.calls.last.request
    assert str(request.url) == "http://localhost:11434/api/chat"
    assert request.headers["content-type"] == "application/json"
    assert "authorization" not in request.headers


async def test_a_stream_is_asked_for_as_lines_of_json(router: respx.MockRouter) -> None:
    async with OllamaModel("qwen3") as model:
        await drain(model.stream(ModelRequest(messages=[HI])))
    request = router.calls.last.request
    assert orjson.loads(request.content)["stream"] is True
    assert request.headers["accept"] == "application/x-ndjson"


async def test_images_are_sent_beside_the_text_as_base64_alone(router: respx.MockRouter) -> None:
    picture = ImageBlock(data=PNG, media_type="image/png")
    assert await sent(
        router,
        UserMessage(
            content=[
                TextBlock(text="Which is older?"),
                picture,
                ImageBlock(url=f"data:image/png;base64,{PNG}"),
                TextBlock(text="The first?"),
            ]
        ),
    ) == [{"role": "user", "content": "Which is older?\nThe first?", "images": [PNG, PNG]}]


@pytest.mark.parametrize(
    ("block", "words"),
    [
        (ImageBlock(url="https://host/a.png"), "only as data"),
        (ImageBlock(file_id="f-1"), "only as data"),
        (ImageBlock(data="/tmp/cat", media_type="image/png"), "its data is a path"),
        (ImageBlock(data="no base64!", media_type="image/png"), "not base64"),
        (AudioBlock(data=PNG, media_type="audio/wav"), "`audio` block in a user message"),
        (FileBlock(data=PNG, media_type="application/pdf"), "`file` block in a user message"),
    ],
)
async def test_what_the_api_has_no_form_for_is_refused(block: Block, words: str) -> None:
    await refused(words, UserMessage(content=[block]))


async def test_json_is_sent_as_text_and_what_only_a_model_says_is_left_out(
    router: respx.MockRouter,
) -> None:
    blocks: list[Block] = [
        TextBlock(text="Given:"),
        JsonBlock(value={"a": [1]}),
        ReasoningBlock(text="hm"),
        CitationBlock(url="https://host"),
        ProviderExtensionBlock(provider="other", data={"x": 1}),
    ]
    assert await sent(router, UserMessage(content=blocks)) == [
        {"role": "user", "content": 'Given:\n{"a":[1]}'}
    ]


async def test_messages_that_say_nothing_are_left_out(router: respx.MockRouter) -> None:
    wire = await sent(router, SystemMessage(content=""), AssistantMessage(content=""), HI)
    assert wire == [{"role": "user", "content": "hi"}]


async def test_a_request_without_messages_is_refused_since_it_would_only_load_the_model() -> None:
    await refused("an empty list of messages", SystemMessage(content=""))


# Calls and results


async def test_calls_are_sent_as_objects_and_results_with_the_names_of_their_tools(
    router: respx.MockRouter,
) -> None:
    wire = await sent(
        router,
        AssistantMessage(
            content=[
                TextBlock(text="Looking."),
                ToolCallBlock(id="a", name="get_weather", arguments={"city": "Oslo"}),
                ToolCallBlock(id="b", name="get_time"),
            ]
        ),
        ToolMessage(tool_call_id="a", name="get_weather", content="Rain."),
        ToolMessage(tool_call_id="b", content="it failed", is_error=True),
    )
    assert wire == [
        {
            "role": "assistant",
            "content": "Looking.",
            "tool_calls": [
                {"id": "a", "function": {"name": "get_weather", "arguments": {"city": "Oslo"}}},
                {"id": "b", "function": {"name": "get_time", "arguments": {}}},
            ],
        },
        {"role": "tool", "content": "Rain.", "tool_name": "get_weather", "tool_call_id": "a"},
        {"role": "tool", "content": "it failed", "tool_name": "get_time", "tool_call_id": "b"},
    ]


async def test_a_result_whose_call_is_not_in_the_history_goes_by_its_own_name(
    router: respx.MockRouter,
) -> None:
    wire = await sent(router, HI, ToolMessage(tool_call_id="x", content="1"))
    assert wire[1] == {"role": "tool", "content": "1", "tool_call_id": "x"}


async def test_images_in_a_result_stay_with_it(router: respx.MockRouter) -> None:
    picture = ImageBlock(data=PNG, media_type="image/png")
    result = ToolMessage(tool_call_id="x", name="look", content=[TextBlock(text="seen"), picture])
    assert (await sent(router, HI, result))[1] == {
        "role": "tool",
        "content": "seen",
        "images": [PNG],
        "tool_name": "look",
        "tool_call_id": "x",
    }


async def test_arguments_that_were_no_object_are_sent_as_one(router: respx.MockRouter) -> None:
    broken = InvalidArguments(raw="{city", reason="no JSON")
    wire = await sent(
        router, AssistantMessage(content=[ToolCallBlock(id="a", name="t", invalid=broken)])
    )
    function = wire[0]["tool_calls"][0]["function"]
    assert function == {"name": "t", "arguments": {"invalid_arguments": "{city"}}


async def test_names_that_do_not_fit_are_the_same_in_tools_calls_and_results(
    router: respx.MockRouter,
) -> None:
    name = "files.read (v2)"
    body = await body_of(
        router,
        AssistantMessage(content=[ToolCallBlock(id="a", name=name)]),
        ToolMessage(tool_call_id="a", name=name, content="x"),
        tools=[replace(WEATHER, name=name)],
    )
    told = wire_names([name])[name]
    call, result = body["messages"]
    assert call["tool_calls"][0]["function"]["name"] == told
    assert result["tool_name"] == told
    assert body["tools"][0]["function"]["name"] == told


async def test_what_the_server_said_goes_back_to_it_as_it_came(router: respx.MockRouter) -> None:
    said = {
        "role": "assistant",
        "content": "Looking.",
        "thinking": "They want rain.",
        "odd": {"n": 1},
        "tool_calls": [
            {
                "id": "call_1",
                "note": "n",
                "function": {"index": 0, "name": "get_weather", "arguments": {"city": "Oslo"}},
            },
            {"id": "call_2", "shell": {"command": "ls"}},
        ],
    }
    answer = {"model": "m", "message": said, "done": True, "done_reason": "stop"}
    router.route().mock(return_value=httpx.Response(200, json=answer))
    async with OllamaModel("qwen3") as model:
        first = await model.invoke(ModelRequest(messages=[HI], tools=[WEATHER]))
    assert await sent(router, first.message) == [said]


async def test_thinking_within_the_text_goes_back_within_its_tags(router: respx.MockRouter) -> None:
    text = "<think>\nhm\n</think>\n\nYes."
    answer = {"model": "m", "message": {"role": "assistant", "content": text}, "done": True}
    router.route().mock(return_value=httpx.Response(200, json=answer))
    async with OllamaModel("qwen3") as model:
        first = await model.invoke(ModelRequest(messages=[HI]))
    assert [block.type for block in first.message.content] == ["reasoning", "text"]
    assert await sent(router, first.message) == [{"role": "assistant", "content": text}]


OTHERS = AssistantMessage(
    content=[
        ReasoningBlock(text="hm", signature="s", provider_data={"anthropic": {"type": "thinking"}}),
        TextBlock(text="Yes.", provider_data={"google": {"thoughtSignature": "x"}}),
        CitationBlock(url="https://host"),
        RefusalBlock(text=" No."),
        JsonBlock(value=[1]),
        ProviderExtensionBlock(provider="openai", data={"type": "odd"}),
        AudioBlock(data=PNG, media_type="audio/wav", transcript=" Said."),
        ToolCallBlock(id="toolu_1", name="t", provider_data={"anthropic": {"caller": "x"}}),
    ],
    provider_data={"groq": {"extra": 1}},
)


async def test_another_providers_own_things_are_left_out_and_the_rest_is_sent(
    router: respx.MockRouter,
) -> None:
    assert await sent(router, OTHERS, ToolMessage(tool_call_id="toolu_1", content="1")) == [
        {
            "role": "assistant",
            "content": "Yes. No.[1] Said.",
            "tool_calls": [{"id": "toolu_1", "function": {"name": "t", "arguments": {}}}],
        },
        {"role": "tool", "content": "1", "tool_name": "t", "tool_call_id": "toolu_1"},
    ]


async def test_an_image_of_another_model_is_sent_as_an_image(router: respx.MockRouter) -> None:
    painted = AssistantMessage(content=[ImageBlock(data=PNG, media_type="image/png")])
    assert await sent(router, painted) == [{"role": "assistant", "content": "", "images": [PNG]}]


@pytest.mark.parametrize(
    "block",
    [
        ToolResultBlock(tool_call_id="s"),
        ProviderExtensionBlock(provider="ollama", data={"odd": 1}),
    ],
)
async def test_what_an_assistant_message_cannot_hold_is_refused(block: Block) -> None:
    await refused(
        f"`{block.type}` block in an assistant message", AssistantMessage(content=[block])
    )


async def test_a_history_moves_between_both_apis_of_one_server(router: respx.MockRouter) -> None:
    thought = {"reasoning": "They want rain.", "content": "Looking."}
    answer = {"choices": [{"message": thought, "finish_reason": "stop"}]}
    replies = [httpx.Response(200, json=each) for each in (answer, ANSWER, answer)]
    router.route().mock(side_effect=replies)
    async with OpenAIChatModel("qwen3", provider="ollama") as chat:
        first = await chat.invoke(ModelRequest(messages=[HI]))
        wire = {"role": "assistant", "content": "Looking.", "thinking": "They want rain."}
        assert await sent(router, first.message) == [wire]
        own = {"ollama": {"function": {"index": 0}}}
        call = ToolCallBlock(id="a", name="t", arguments={"n": 1}, provider_data=own)
        await chat.invoke(ModelRequest(messages=[AssistantMessage(content=[call])]))
    body = orjson.loads(router.calls.last.request.content)
    assert body["messages"][0]["tool_calls"] == [
        {
            "id": "a",
            "type": "function",
            "function": {"name": "t", "arguments": '{"n":1}', "index": 0},
        }
    ]


async def test_a_message_whose_list_was_appended_to_is_encoded_anew(
    router: respx.MockRouter,
) -> None:
    message = UserMessage(content="a")
    model = OllamaModel("qwen3")
    assert (await body_of(router, message, asked=model))["messages"][0]["content"] == "a"
    message.content.append(TextBlock(text="b"))
    assert (await body_of(router, message, asked=model))["messages"][0]["content"] == "ab"


# Tools


async def test_tools_are_sent_with_their_schemas(router: respx.MockRouter) -> None:
    assert (await body_of(router, tools=[WEATHER]))["tools"] == [WEATHER_WIRE]


async def test_definitions_stand_where_a_schema_refers_to_them(router: respx.MockRouter) -> None:
    place: JsonObject = {"type": "object", "properties": {"name": {"type": "string"}}}
    node: JsonObject = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}
    parameters: JsonObject = {
        "type": "object",
        "properties": {
            "start": {"$ref": "#/$defs/Place", "description": "From."},
            "stops": {"type": "array", "items": {"$ref": "#/$defs/Place"}},
        },
        "$defs": {"Place": place},
    }
    circular: JsonObject = {
        "type": "object",
        "properties": {"first": {"$ref": "#/$defs/Node"}},
        "$defs": {"Node": node},
    }
    offered = [replace(WEATHER, parameters=each) for each in (parameters, circular)]
    first, second = (await body_of(router, tools=offered))["tools"]
    assert first["function"]["parameters"] == {
        "type": "object",
        "properties": {
            "start": {**place, "description": "From."},
            "stops": {"type": "array", "items": place},
        },
    }
    assert second["function"]["parameters"] == {
        "type": "object",
        "properties": {"first": node},
        "$defs": {"Node": node},
    }
    assert "$defs" in parameters


async def test_a_model_that_must_not_call_tools_is_offered_none(router: respx.MockRouter) -> None:
    assert "tools" not in await body_of(router, tools=[WEATHER], tool_choice="none")


@pytest.mark.parametrize("choice", ["required", NamedTool("get_weather")])
async def test_a_forced_tool_choice_is_refused(choice: Any) -> None:
    await refused("a forced tool choice", tools=[WEATHER], tool_choice=choice)


async def test_a_choice_of_a_tool_that_is_not_offered_is_refused() -> None:
    await refused("`nope`, which is not offered", tools=[WEATHER], tool_choice=NamedTool("nope"))


async def test_calls_one_at_a_time_cannot_be_asked_for(router: respx.MockRouter) -> None:
    one = ModelSettings(parallel_tool_calls=False)
    await refused("`parallel_tool_calls=False`", tools=[WEATHER], settings=one)
    many = ModelSettings(parallel_tool_calls=True)
    assert "parallel_tool_calls" not in await body_of(router, tools=[WEATHER], settings=many)


async def test_references_that_multiply_are_not_all_followed(router: respx.MockRouter) -> None:
    levels: JsonObject = {
        f"L{n}": {"allOf": [{"$ref": f"#/$defs/L{n + 1}"}, {"$ref": f"#/$defs/L{n + 1}"}]}
        for n in range(60)
    }
    parameters: JsonObject = {
        "type": "object",
        "properties": {"x": {"$ref": "#/$defs/L0"}},
        "$defs": {**levels, "L60": {"type": "string"}},
    }
    body = await body_of(router, tools=[replace(WEATHER, parameters=parameters)])
    sent = body["tools"][0]["function"]["parameters"]
    assert sent["$defs"]["L60"] == {"type": "string"}
    assert len(orjson.dumps(sent)) < 200_000
