import pytest

from tinyagents.harness.errors import InvalidRequestError, ServerError
from tinyagents.harness.message import AssistantMessage, SystemMessage, UserMessage
from tinyagents.harness.model import (
    CapabilitySet,
    ChatModel,
    MessageDelta,
    ModelRequest,
    ModelResponse,
    StreamCompleted,
    StreamFailed,
    StreamStarted,
    ToolCallDelta,
    UsageDelta,
    drain,
)
from tinyagents.harness.providers import MockModel
from tinyagents.harness.usage import Usage

REQUEST = ModelRequest(
    messages=[
        SystemMessage(content="Be kind."),
        UserMessage(content="first"),
        AssistantMessage(content="ok"),
        UserMessage(content="second"),
    ]
)


async def test_it_repeats_the_last_text_of_the_user() -> None:
    assert (await MockModel().invoke(REQUEST)).text == "second"
    assert (await MockModel().invoke(ModelRequest(messages=[]))).text == ""


async def test_it_says_the_same_always() -> None:
    model = MockModel.constant("yes")
    assert [(await model.invoke(REQUEST)).text for _ in range(2)] == ["yes", "yes"]


async def test_a_script_begins_again_at_its_end() -> None:
    model = MockModel.scripted(["a", AssistantMessage(content="b")])
    assert [(await model.invoke(REQUEST)).text for _ in range(3)] == ["a", "b", "a"]
    assert model.calls == 3


def test_an_empty_script_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="at least one answer"):
        MockModel.scripted([])


async def test_a_scripted_response_is_given_as_it_is() -> None:
    response = ModelResponse(message=AssistantMessage(content="x"), finish_reason="length")
    assert await MockModel.scripted([response]).invoke(REQUEST) is response


async def test_it_calls_a_tool_with_ids_that_count_up() -> None:
    model = MockModel.tool_call("f", {"a": 1})
    first, second = await model.invoke(REQUEST), await model.invoke(REQUEST)
    assert [call.id for call in first.message.tool_calls] == ["mock-tool-1"]
    assert [call.id for call in second.message.tool_calls] == ["mock-tool-2"]
    assert (first.message.id, first.finish_reason) == ("mock-msg-1", "tool_calls")
    assert first.usage is not None
    assert first.usage.output_tokens == 5


async def test_usage_is_estimated_at_four_bytes_a_token() -> None:
    request = ModelRequest(messages=[UserMessage(content="12345678")])
    response = await MockModel.constant("caf\u00e9").invoke(request)
    assert response.usage == Usage(input_tokens=2, output_tokens=2, source="estimated")


async def test_a_stream_comes_in_two_halves() -> None:
    items = [item async for item in MockModel.constant("hello").stream(REQUEST)]
    assert items[0] == StreamStarted(response_id="mock-msg-1", model="mock")
    assert items[1:3] == [MessageDelta("hel"), MessageDelta("lo")]
    assert isinstance(items[3], UsageDelta)
    assert isinstance(items[4], StreamCompleted)
    assert items[4].response.text == "hello"


async def test_a_call_is_streamed_too() -> None:
    items = [item async for item in MockModel.tool_call("f", {"a": 1}).stream(REQUEST)]
    assert ToolCallDelta("mock-tool-1", "f", '{"a":1}', 0) in items


async def test_scripted_items_are_the_stream() -> None:
    model = MockModel.items([MessageDelta("a"), MessageDelta("b")])
    assert [item async for item in model.stream(REQUEST)] == [MessageDelta("a"), MessageDelta("b")]
    assert (await model.invoke(REQUEST)).text == "ab"
    failing = MockModel.items([MessageDelta("a"), StreamFailed(ServerError("down"))])
    with pytest.raises(ServerError, match="down"):
        await drain(failing.stream(REQUEST))


def test_it_claims_to_do_everything() -> None:
    model = MockModel()
    assert isinstance(model, ChatModel)
    demands = CapabilitySet(
        tool_calling=True,
        parallel_tool_calls=True,
        streaming=True,
        streaming_tool_chunks=True,
        native_structured_output=True,
        json_schema=True,
        reasoning=True,
    )
    assert model.profile.satisfies(demands)
