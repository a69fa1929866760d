"""A mock server that nobody here wrote grades how failures are noticed.

The adapter itself never calls again; these tests do it as a run would: when the error says that it
may help, and after the time that it asks for.
"""

from collections.abc import Callable

import pytest
from llmock.pytest_plugin import LLMock

from tests.harness.providers.llmock_apis import APIS, Model
from tests.harness.providers.persistent import persistent
from tinyagents.harness.errors import (
    AuthenticationError,
    BadRequestError,
    ContextOverflowError,
    MalformedResponseError,
    ModelError,
    NetworkError,
    ProviderTimeoutError,
    RateLimitError,
    ServerError,
)
from tinyagents.harness.message import Message, ToolMessage, UserMessage
from tinyagents.harness.model import (
    JsonSchemaFormat,
    ModelRequest,
    ModelResponse,
    ToolSchema,
    drain,
)

WEATHER = ToolSchema(
    name="get_weather",
    description="Current weather of a city.",
    parameters={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)


def request(text: str, **options: object) -> ModelRequest:
    made = ModelRequest(messages=[UserMessage(content=text)])
    for name, value in options.items():
        setattr(made, name, value)
    return made


async def ask(
    model: Model, asked: ModelRequest, *, stream: bool
) -> tuple[ModelResponse, list[ModelError]]:
    if stream:
        return await persistent(lambda: drain(model.stream(asked)))
    return await persistent(lambda: model.invoke(asked))


@pytest.fixture(params=APIS)
def model(request: pytest.FixtureRequest, llmock: LLMock) -> Model:
    """A model of each API."""
    return APIS[request.param](llmock)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("status", "cls"),
    [(500, ServerError), (503, ServerError), (529, ServerError), (408, ProviderTimeoutError)],
)
async def test_a_server_that_fails_once_is_asked_again(
    status: int, cls: type[ModelError], stream: bool, model: Model, llmock: LLMock
) -> None:
    llmock.fail(status, retry_after=0.1)
    async with model:
        response, errors = await ask(model, request(f"status {status}"), stream=stream)
    assert response.text
    assert [type(error) for error in errors] == [cls]
    llmock.assert_resilient(strict=True)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_rate_limit_is_waited_for(stream: bool, model: Model, llmock: LLMock) -> None:
    llmock.rate_limit(times=1, retry_after=0.2)
    async with model:
        response, errors = await ask(model, request("rate"), stream=stream)
    assert response.text
    assert isinstance(errors[0], RateLimitError)
    assert errors[0].retry_after is not None
    assert errors[0].retry_after >= 0.2
    llmock.assert_resilient(strict=True)


@pytest.mark.parametrize(
    ("status", "cls"),
    [(400, BadRequestError), (401, AuthenticationError), (403, AuthenticationError),
     (404, BadRequestError), (422, BadRequestError)],
)  # fmt: skip
async def test_what_no_retry_helps_is_not_asked_again(
    status: int, cls: type[ModelError], model: Model, llmock: LLMock
) -> None:
    llmock.fail(status)
    async with model:
        with pytest.raises(cls):
            await ask(model, request(f"refused {status}"), stream=False)
    assert len(llmock.requests) == 1
    llmock.assert_resilient(strict=True)


async def test_a_prompt_that_is_too_long_is_known(model: Model, llmock: LLMock) -> None:
    llmock.context_overflow()
    async with model:
        with pytest.raises(ContextOverflowError):
            await ask(model, request("long"), stream=False)
    llmock.assert_resilient(strict=True)


@pytest.mark.parametrize(
    ("fault", "cls"),
    [
        (lambda mock: mock.disconnect(after_chunks=2), NetworkError),
        (lambda mock: mock.truncate(after_chunks=2), NetworkError),
        (lambda mock: mock.corrupt(after_chunks=2), MalformedResponseError),
        (lambda mock: mock.stall(after_chunks=2, seconds=2), ProviderTimeoutError),
    ],
    ids=["disconnect", "truncate", "corrupt", "stall"],
)
async def test_a_stream_that_goes_wrong_is_noticed_and_asked_again(
    fault: Callable[[LLMock], LLMock],
    cls: type[ModelError],
    model: Model,
    llmock: LLMock,
) -> None:
    # At a pace, so that the server is still sending when the client leaves.
    words = "It works, and says so in many pieces."
    fault(llmock.pace(10)).reply(words).reply(words)
    async with model:
        response, errors = await ask(model, request(f"broken by {cls.__name__}"), stream=True)
    assert response.text
    assert [type(error) for error in errors] == [cls]
    llmock.assert_resilient(strict=True)


@pytest.mark.parametrize("stream", [False, True])
async def test_arguments_that_a_model_broke_are_kept_for_the_run_to_answer(
    stream: bool, model: Model, llmock: LLMock
) -> None:
    llmock.break_tool_call("malformed_arguments")
    async with model:
        response, _ = await ask(model, request("weather in Oslo", tools=[WEATHER]), stream=stream)
        (call,) = response.message.tool_calls
        # An API that sends objects and no text cannot break them, but leaves out what is needed.
        assert call.invalid is not None or "city" not in call.arguments
        history: list[Message] = [
            UserMessage(content="weather in Oslo"),
            response.message,
            ToolMessage(tool_call_id=call.id, content="the arguments are not JSON", is_error=True),
        ]
        again = ModelRequest(messages=history, tools=[WEATHER])
        answer, _ = await ask(model, again, stream=stream)
    assert answer.message.content
    llmock.assert_resilient(strict=True)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_tool_is_called_and_its_result_answered(
    stream: bool, model: Model, llmock: LLMock
) -> None:
    llmock.call_tool("get_weather", {"city": "Oslo"})
    async with model:
        first, _ = await ask(model, request("weather?", tools=[WEATHER]), stream=stream)
        (call,) = first.message.tool_calls
        assert (call.name, call.arguments) == ("get_weather", {"city": "Oslo"})
        assert first.finish_reason == "tool_calls"
        result = ToolMessage(tool_call_id=call.id, name=call.name, content="Sunny.")
        messages: list[Message] = [UserMessage(content="weather?"), first.message, result]
        last, _ = await ask(model, ModelRequest(messages=messages, tools=[WEATHER]), stream=stream)
    assert last.text
    assert last.usage is not None
    assert last.usage.total_tokens > 0


# The server holds no answer of the Messages API to a schema.
@pytest.mark.parametrize("model", ["chat", "responses", "gemini"], indirect=True)
async def test_an_answer_keeps_to_its_schema(model: Model, llmock: LLMock) -> None:
    wanted = JsonSchemaFormat(name="city", schema=WEATHER.parameters)
    async with model:
        response, _ = await ask(model, request("a city", response_format=wanted), stream=False)
    assert '"city"' in response.text
