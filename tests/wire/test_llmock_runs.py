"""Whole runs against a mock server that nobody here wrote, and that grades the client.

Its verdict fails a client that retries too early, or what no retry helps, or that takes half an
answer for a whole one.
"""

from collections.abc import Callable

import pytest
from llmock.pytest_plugin import LLMock

from tests.harness.providers.llmock_apis import APIS, Model
from tinyagents.harness.errors import AuthenticationError, ServerError
from tinyagents.harness.policy import RunPolicy
from tinyagents.harness.retry import RetryPolicy
from tinyagents.harness.runtime import AgentHarness

POLICY = RunPolicy(retry=RetryPolicy(initial_backoff=0.15))


async def get_weather(city: str) -> str:
    """Current weather of a city.

    Args:
        city: City name, in English.
    """
    return f"Sunny in {city}."


@pytest.fixture(params=APIS)
def model(request: pytest.FixtureRequest, llmock: LLMock) -> Model:
    """A model of each API."""
    return APIS[request.param](llmock)


def agent(model: Model, policy: RunPolicy = POLICY) -> AgentHarness:
    return AgentHarness(model=model, tools=[get_weather], policy=policy)


async def run_text(harness: AgentHarness, prompt: str, *, stream: bool) -> str:
    if not stream:
        return (await harness.invoke(None, prompt)).text
    async with harness.stream(None, prompt) as chunks:
        async for _ in chunks:
            pass
        return (await chunks.result()).text


@pytest.mark.parametrize("stream", [False, True])
async def test_an_agent_calls_its_tool_and_answers(
    stream: bool, model: Model, llmock: LLMock
) -> None:
    llmock.call_tool("get_weather", {"city": "Oslo"}).reply("It is sunny.")
    async with model:
        assert await run_text(agent(model), "Weather in Oslo?", stream=stream) == "It is sunny."
    assert len(llmock.requests) == 2
    llmock.assert_resilient(strict=True)


FAULTS: dict[str, Callable[[LLMock], LLMock]] = {
    "rate limit": lambda mock: mock.rate_limit(times=2, retry_after=0.15),
    "outage": lambda mock: mock.fail(503, retry_after=0.1),
    "crash": lambda mock: mock.fail(500),
    "overload": lambda mock: mock.fail(529, retry_after=0.1),
}

STREAM_FAULTS: dict[str, Callable[[LLMock], LLMock]] = {
    "disconnect": lambda mock: mock.disconnect(after_chunks=0),
    "truncate": lambda mock: mock.truncate(after_chunks=0),
    "corrupt": lambda mock: mock.corrupt(after_chunks=0),
    "stall": lambda mock: mock.stall(after_chunks=0, seconds=2),
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("fault", FAULTS)
async def test_a_run_gets_over_a_server_that_fails(
    fault: str, stream: bool, model: Model, llmock: LLMock
) -> None:
    FAULTS[fault](llmock).reply("Here it is.")
    async with model:
        text = await run_text(agent(model), f"Get over a {fault}", stream=stream)
    assert text == "Here it is."
    llmock.assert_resilient(strict=True)


@pytest.mark.parametrize("fault", STREAM_FAULTS)
async def test_a_run_gets_over_a_stream_that_fails_before_its_first_piece(
    fault: str, model: Model, llmock: LLMock
) -> None:
    # At a pace, so that the server is still sending when the client leaves.
    STREAM_FAULTS[fault](llmock.pace(10)).reply("Here it is.").reply("Here it is.")
    async with model:
        text = await run_text(agent(model), f"Get over a stream: {fault}", stream=True)
    assert text == "Here it is."
    llmock.assert_resilient(strict=True)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_run_gives_up_on_an_outage_after_patient_attempts(
    stream: bool, model: Model, llmock: LLMock
) -> None:
    llmock.outage()
    # The server asks for a second before each: two attempts show it.
    policy = RunPolicy(retry=RetryPolicy(initial_backoff=0.15, max_attempts=2))
    async with model:
        with pytest.raises(ServerError):
            await run_text(agent(model, policy), "Is anybody there?", stream=stream)
    assert len(llmock.requests) == 2
    llmock.assert_resilient(strict=True)


async def test_a_run_ends_at_once_where_no_retry_helps(model: Model, llmock: LLMock) -> None:
    llmock.fail(401)
    async with model:
        with pytest.raises(AuthenticationError):
            await agent(model).invoke(None, "hi")
    assert len(llmock.requests) == 1
    llmock.assert_resilient(strict=True)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_run_tells_the_model_that_its_arguments_are_broken(
    stream: bool, model: Model, llmock: LLMock
) -> None:
    llmock.break_tool_call("malformed_arguments")
    async with model:
        assert await run_text(agent(model), "Weather in Bergen?", stream=stream)
    assert len(llmock.requests) >= 2
    llmock.assert_resilient(strict=True)
