"""Runs over the five wire formats against a scripted server that nobody here wrote."""

from collections.abc import Awaitable, Callable

import pytest

from tinyagents import AgentHarness, RunPolicy, UserMessage
from tinyagents.harness.errors import NetworkError, RateLimitError
from tinyagents.harness.message import ReasoningBlock
from tinyagents.harness.model import MessageDelta, ModelRequest, StreamCompleted, drain
from tinyagents.harness.providers import (
    AnthropicModel,
    GeminiModel,
    OllamaModel,
    OpenAIChatModel,
    OpenAIResponsesModel,
)
from tinyagents.harness.retry import RetryPolicy
from tinyagents.harness.stream import TextDelta
from tinyagents.testkit import FakeSleep, assert_event_grammar

pytestmark = pytest.mark.service

Model = OpenAIChatModel | OpenAIResponsesModel | AnthropicModel | GeminiModel | OllamaModel
KEY = "the-key-of-a-test"
APIS: dict[str, Callable[[str], Model]] = {
    "chat": lambda url: OpenAIChatModel("gpt-5-mini", base_url=f"{url}/v1", api_key=KEY),
    "responses": lambda url: OpenAIResponsesModel("gpt-5-mini", base_url=f"{url}/v1", api_key=KEY),
    "anthropic": lambda url: AnthropicModel("claude-sonnet-4-5", base_url=url, api_key=KEY),
    "gemini": lambda url: GeminiModel("gemini-2.5-flash", base_url=f"{url}/v1beta", api_key=KEY),
    "ollama": lambda url: OllamaModel("qwen3", base_url=url),
}
both_ways = pytest.mark.parametrize("stream", [True, False], ids=["streamed", "plain"])


@pytest.fixture(params=APIS)
def model(request: pytest.FixtureRequest, aimock: str) -> Model:
    return APIS[request.param](aimock)


def asking(words: str) -> ModelRequest:
    return ModelRequest(messages=[UserMessage(content=words)])


@both_ways
async def test_an_agent_calls_its_tool_and_answers_with_what_it_found(
    stream: bool, model: Model
) -> None:
    asked: list[str] = []

    async def get_weather(city: str) -> str:
        """Current weather of a city."""
        asked.append(city)
        return "18 degrees"

    prompt = "What is the weather?"
    async with model:
        agent = AgentHarness(model=model, tools=[get_weather])
        if stream:
            chunks = agent.stream(None, prompt)
            said = "".join([chunk.text async for chunk in chunks if isinstance(chunk, TextDelta)])
            run = await chunks.result()
            assert said == run.text
        else:
            run = await agent.invoke(None, prompt)
    assert asked == ["Paris"]
    assert run.text == "It is 18 degrees in Paris."
    assert [message.role for message in run.messages] == ["user", "assistant", "tool", "assistant"]
    assert_event_grammar(run.events)


@both_ways
async def test_text_arrives_whole_and_in_pieces(stream: bool, model: Model) -> None:
    text = "Hello, na\u00efve \U0001f642 world."
    async with model:
        if stream:
            items = [item async for item in model.stream(asking("hello"))]
            pieces = [item.text for item in items if isinstance(item, MessageDelta)]
            assert "".join(pieces) == text
            assert len(pieces) > 2
            assert isinstance(last := items[-1], StreamCompleted)
            response = last.response
        else:
            response = await model.invoke(asking("hello"))
    assert (response.text, response.finish_reason) == (text, "stop")


@both_ways
async def test_reasoning_is_kept_apart_from_the_answer(stream: bool, model: Model) -> None:
    async with model:
        if stream:
            response = await drain(model.stream(asking("think")))
        else:
            response = await model.invoke(asking("think"))
    thoughts = [b.text for b in response.message.content if isinstance(b, ReasoningBlock)]
    # The server has a field for Ollama's thoughts that Ollama has not: it is no part of the text.
    expected = [] if isinstance(model, OllamaModel) else ["I thought about it."]
    assert (thoughts, response.text) == (expected, "42")


@both_ways
async def test_a_rate_limit_is_waited_for_as_long_as_the_server_asks(
    stream: bool, model: Model
) -> None:
    sleep = FakeSleep()
    retry = RetryPolicy(max_attempts=3, initial_backoff=0.01)
    async with model:
        agent = AgentHarness(model=model, policy=RunPolicy(retry=retry), sleep=sleep)

        async def ask() -> object:
            prompt = "Do I ask too often?"
            return await (
                agent.stream(None, prompt).result() if stream else agent.invoke(None, prompt)
            )

        await fails_with_the_rate_limit(ask)
    assert len(sleep.delays) == 2
    assert all(delay >= 1 for delay in sleep.delays)


async def fails_with_the_rate_limit(ask: Callable[[], Awaitable[object]]) -> None:
    with pytest.raises(RateLimitError) as raised:
        await ask()
    assert (raised.value.status, raised.value.retry_after) == (429, 1.0)


async def test_a_stream_that_breaks_off_is_no_answer(model: Model) -> None:
    pieces: list[str] = []

    async def read() -> None:
        async for item in model.stream(asking("break off")):
            if isinstance(item, MessageDelta):
                pieces.append(item.text)

    async with model:
        with pytest.raises(NetworkError):
            await read()
    said = "".join(pieces)
    assert said
    assert "This is said in many pieces, and then it breaks off.".startswith(said)
    assert not said.endswith("off.")
