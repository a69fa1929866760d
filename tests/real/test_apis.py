"""The adapters against a real small model, over each API that its server speaks.

Structure is judged, never wording.
"""

import json
from collections.abc import Callable

import pytest

from tests.harness.providers.persistent import persistent
from tinyagents import AgentHarness
from tinyagents.harness.errors import BadRequestError, ContextOverflowError
from tinyagents.harness.message import Message, SystemMessage, ToolMessage, UserMessage
from tinyagents.harness.model import (
    JsonSchemaFormat,
    MessageDelta,
    ModelRequest,
    ModelSettings,
    NamedTool,
    StreamCompleted,
    ToolCallDelta,
    ToolSchema,
    UsageDelta,
)
from tinyagents.harness.providers import AnthropicModel, OpenAIChatModel, OpenAIResponsesModel
from tinyagents.harness.stream import TextDelta

pytestmark = pytest.mark.service

Model = OpenAIChatModel | OpenAIResponsesModel | AnthropicModel

SETTINGS = ModelSettings(temperature=0, max_tokens=60)
WEATHER = ToolSchema(
    name="weather.get",
    description="Current weather of a city.",
    parameters={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
APIS: dict[str, Callable[[str], Model]] = {
    "chat": lambda url: OpenAIChatModel(
        "qwen", provider="llama_cpp", base_url=url, settings=SETTINGS
    ),
    "responses": lambda url: OpenAIResponsesModel(
        "qwen", base_url=f"{url}/v1", api_key="", settings=SETTINGS
    ),
    "anthropic": lambda url: AnthropicModel("qwen", base_url=url, api_key="", settings=SETTINGS),
}


@pytest.fixture(params=APIS)
def model(request: pytest.FixtureRequest, local_llm: str) -> Model:
    return APIS[request.param](local_llm)


async def test_it_answers_in_one_piece(model: Model) -> None:
    async with model:
        response = await model.invoke(
            ModelRequest(messages=[SystemMessage(content="Be brief."), UserMessage(content="Hi!")])
        )
    assert response.text
    assert response.finish_reason in ("stop", "length")
    assert response.usage is not None
    assert response.usage.input_tokens > 0
    assert response.usage.output_tokens > 0


async def test_it_answers_piece_by_piece(model: Model) -> None:
    async with model:
        request = ModelRequest(messages=[UserMessage(content="Count to five.")])
        items = [item async for item in model.stream(request)]
    texts = [item.text for item in items if isinstance(item, MessageDelta)]
    assert len(texts) > 1
    last = items[-1]
    assert isinstance(last, StreamCompleted)
    assert last.response.text == "".join(texts)
    assert any(isinstance(item, UsageDelta) for item in items)


@pytest.mark.parametrize("stream", [False, True])
async def test_it_calls_a_tool_and_answers_with_its_result(stream: bool, model: Model) -> None:
    messages: list[Message] = [UserMessage(content="What is the weather in Paris?")]
    request = ModelRequest(messages=messages, tools=[WEATHER], tool_choice=NamedTool("weather.get"))
    async with model:
        if stream:
            items = [item async for item in model.stream(request)]
            last = items[-1]
            assert isinstance(last, StreamCompleted)
            assert any(isinstance(item, ToolCallDelta) for item in items)
            first = last.response
        else:
            first = await model.invoke(request)
        (call,) = first.message.tool_calls
        assert call.name == "weather.get"
        assert call.invalid is None
        assert "city" in call.arguments
        assert first.finish_reason == "tool_calls"
        result = ToolMessage(tool_call_id=call.id, name=call.name, content="Sunny, 21 degrees.")
        again = ModelRequest(messages=[*messages, first.message, result], tools=[WEATHER])
        # The server closes connections after a few requests, sometimes just as one is sent.
        answer, _ = await persistent(lambda: model.invoke(again))
    assert answer.message.content


@pytest.mark.parametrize("stream", [False, True])
async def test_an_agent_runs_the_tool_that_the_model_asks_for(stream: bool, model: Model) -> None:
    asked: list[str] = []

    async def get_weather(city: str) -> str:
        """Current weather of a city.

        Args:
            city: City name, in English.
        """
        asked.append(city)
        return "Sunny, 21 degrees."

    async with model:
        agent = AgentHarness(model=model, tools=[get_weather])
        chunks = agent.stream(None, "What is the weather in Paris?")
        if stream:
            said = "".join([chunk.text async for chunk in chunks if isinstance(chunk, TextDelta)])
            run = await chunks.result()
            assert run.text in said
        else:
            run = await agent.invoke(None, "What is the weather in Paris?")
    assert len(asked) >= 1
    assert "paris" in asked[0].lower()
    assert [message.role for message in run.messages[:4]] == [
        "user", "assistant", "tool", "assistant",
    ]  # fmt: skip
    assert run.status == "completed"
    assert run.usage.source == "reported"


async def test_it_keeps_to_a_schema(local_llm: str) -> None:
    # The server holds only answers of Chat Completions to a schema.
    schema = JsonSchemaFormat(
        name="city",
        schema={
            "type": "object",
            "properties": {"city": {"type": "string"}, "country": {"type": "string"}},
            "required": ["city", "country"],
        },
    )
    async with APIS["chat"](local_llm) as model:
        response = await model.invoke(
            ModelRequest(
                messages=[UserMessage(content="The capital of France, as JSON.")],
                response_format=schema,
            )
        )
    assert set(json.loads(response.text)) == {"city", "country"}


async def test_a_prompt_that_is_too_long_is_told_by_its_class(model: Model) -> None:
    async with model:
        with pytest.raises(ContextOverflowError) as raised:
            await model.invoke(ModelRequest(messages=[UserMessage(content="word " * 9_000)]))
    assert isinstance(raised.value, BadRequestError)
