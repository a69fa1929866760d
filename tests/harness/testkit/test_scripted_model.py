import copy
from collections.abc import Callable
from contextlib import nullcontext, suppress
from datetime import date
from typing import Any, Literal

import anyio
import pytest
from hypothesis import given, strategies as st
from pydantic import BaseModel

from tinyagents import (
    AgentHarness,
    AssistantMessage,
    RunConfig,
    TextBlock,
    ToolCallBlock,
    Usage,
    UserMessage,
)
from tinyagents.harness.errors import NetworkError, RateLimitError, ToolTimeoutError
from tinyagents.harness.message import CitationBlock, ReasoningBlock, RefusalBlock
from tinyagents.harness.model import (
    ChatModel,
    MessageDelta,
    ModelProfile,
    ModelRequest,
    ModelResponse,
    ModelStreamItem,
    StreamCompleted,
    StreamFailed,
    StreamStarted,
    ToolCallDelta,
    ToolSchema,
    merge_stream,
)
from tinyagents.testkit import (
    FakeSleep,
    FakeTool,
    Reply,
    ScriptedChatModel,
    ScriptedModel,
    ScriptExhausted,
    Step,
    call,
    calls,
    delay,
    fail,
    hang,
    refuse,
    say,
    say_json,
    think,
)

Way = Literal["invoke", "stream"]
both_ways = pytest.mark.parametrize("way", ["invoke", "stream"])


def request(text: str = "hi", **fields: Any) -> ModelRequest:
    return ModelRequest([UserMessage(content=text)], **fields)


async def streamed(model: ChatModel, asked: ModelRequest | None = None) -> list[ModelStreamItem]:
    return [item async for item in model.stream(asked or request())]


async def ask(model: ChatModel, way: Way, asked: ModelRequest | None = None) -> ModelResponse:
    if way == "invoke":
        return await model.invoke(asked or request())
    return merge_stream(await streamed(model, asked))


class Answer(BaseModel):
    city: str
    when: date


EVERY_KIND: dict[str, Callable[[], Step]] = {
    "text": lambda: say("It is sunny in Paris."),
    "a string": lambda: "It is sunny in Paris.",
    "nothing": lambda: "",
    "text in pieces": lambda: say("It is ", "sunny."),
    "a sum of texts": lambda: say("It is ") + say("sunny.") + "!",
    "json": lambda: say_json({"b": [1, None], "a": "ä"}),
    "a pydantic model": lambda: Answer(city="Paris", when=date(2026, 1, 2)),
    "reasoning": lambda: think("hm") + say("Yes."),
    "sealed reasoning": lambda: think("hm", signature="s") + call("a"),
    "a seal alone": lambda: think(signature="s") + call("a"),
    "a refusal": lambda: refuse("I must not."),
    "a call": lambda: call("get_weather", city="Paris", days=3),
    "a call without arguments": lambda: call("now"),
    "broken arguments": lambda: call("x", raw='{"a"'),
    "arguments twice": lambda: call("x", raw='{"a":1}{"a":1}'),
    "no arguments at all": lambda: call("x", raw=""),
    "calls in a list": lambda: [call("a", n=1), call("b", n=2)],
    "calls": lambda: calls(call("a", n=1), call("a", n=2), finish_reason="length"),
    "everything": lambda: think("hm") + "Let me look." + call("a", x="y") + say("and") + call("b"),
    "a message": lambda: AssistantMessage(
        content=[
            ReasoningBlock(text="hm"),
            TextBlock(text="yes"),
            CitationBlock(url="https://example.org"),
            ToolCallBlock(id="c1", name="a", arguments={"x": 1}),
        ]
    ),
    "a response": lambda: ModelResponse(AssistantMessage(content="yes"), "stop"),
    "stream items": lambda: [StreamStarted("r"), MessageDelta("a"), ToolCallDelta("c", "t", "{}")],
    "completed stream items": lambda: [
        MessageDelta("a"),
        StreamCompleted(ModelResponse(AssistantMessage(content="abc"))),
    ],
    "a function": lambda: lambda asked: say(f"You said {asked.messages[-1].text}"),
    "a delay": lambda: delay(0, say("late")),
}


@pytest.mark.parametrize("kind", EVERY_KIND)
async def test_a_step_gives_the_same_message_in_one_piece_and_streamed(kind: str) -> None:
    step = EVERY_KIND[kind]
    whole = await ScriptedModel([step()]).invoke(request())
    pieces = await ask(ScriptedModel([step()]), "stream")
    assert pieces == whole


@pytest.mark.parametrize("kind", EVERY_KIND)
async def test_the_pieces_alone_make_the_same_text_and_calls(kind: str) -> None:
    items = await streamed(ScriptedModel([EVERY_KIND[kind]()], chunk_size=1))
    if kind == "completed stream items":
        return
    whole = merge_stream(items).message
    pieces = merge_stream([item for item in items if not isinstance(item, StreamCompleted)]).message
    assert pieces.text == whole.text
    assert pieces.refusal == whole.refusal
    assert pieces.tool_calls == whole.tool_calls


@given(
    st.lists(
        st.one_of(
            st.text().map(say),
            st.text().map(think),
            st.text().map(lambda raw: call("t", raw=raw)),
            st.dictionaries(st.text(), st.integers()).map(lambda given: call("t", given)),
        )
    ),
    st.one_of(st.none(), st.integers(1, 20)),
)
async def test_whatever_a_reply_holds_its_pieces_merge_to_it(
    parts: list[Reply], size: int | None
) -> None:
    items = await streamed(ScriptedModel([parts], chunk_size=size))
    completed = items[-1]
    assert isinstance(completed, StreamCompleted)
    assert merge_stream(items[:-1]).message.content == completed.response.message.content


async def test_steps_are_done_in_their_order() -> None:
    model = ScriptedModel(["one", say("two"), call("three")])
    assert [(await model.invoke(request())).text for _ in range(3)] == ["one", "two", ""]
    assert model.calls == 3
    assert model.remaining == 0


async def test_text_is_streamed_in_pieces_of_the_chosen_size() -> None:
    model = ScriptedModel(["abcdefgh", "abcdefgh"], chunk_size=3)
    texts = [item.text for item in await streamed(model) if isinstance(item, MessageDelta)]
    assert texts == ["abc", "def", "gh"]


async def test_text_given_in_pieces_is_streamed_in_exactly_these() -> None:
    items = await streamed(ScriptedModel([say("Sun", "ny in Paris", ".")]))
    assert [i.text for i in items if isinstance(i, MessageDelta)] == ["Sun", "ny in Paris", "."]


async def test_arguments_are_streamed_in_several_pieces_after_the_name() -> None:
    items = await streamed(ScriptedModel([call("get_weather", city="Paris")]))
    deltas = [item for item in items if isinstance(item, ToolCallDelta)]
    assert deltas[0] == ToolCallDelta("call_1", "get_weather", "", 0)
    assert len(deltas) > 2
    assert "".join(delta.arguments for delta in deltas) == '{"city":"Paris"}'


async def test_without_a_chunk_size_a_part_is_streamed_whole() -> None:
    items = await streamed(ScriptedModel(["a long text"], chunk_size=None))
    assert [item.text for item in items if isinstance(item, MessageDelta)] == ["a long text"]


@pytest.mark.parametrize("size", [0, -1])
def test_a_chunk_size_below_one_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match=f"{size}"):
        ScriptedModel([], chunk_size=size)


@both_ways
async def test_stream_items_are_served_as_they_are(way: Way) -> None:
    items: list[ModelStreamItem] = [
        StreamStarted("r", "m"),
        MessageDelta("Sun"),
        MessageDelta("ny"),
    ]
    assert (await ask(ScriptedModel([items]), way)).text == "Sunny"
    assert await streamed(ScriptedModel([items])) == items


@both_ways
async def test_a_failure_among_stream_items_is_raised(way: Way) -> None:
    error = NetworkError("gone")
    with pytest.raises(NetworkError) as raised:
        await ask(ScriptedModel([[MessageDelta("Sun"), StreamFailed(error)]]), way)
    assert raised.value is error


@both_ways
async def test_calls_without_an_id_are_counted_and_given_ids_stay(way: Way) -> None:
    script: list[Step] = [[call("a"), call("b", id="mine")], call("c"), lambda _: call("d")]
    model = ScriptedModel([*script, delay(0, call("e"))])
    ids = [call.id for _ in range(4) for call in (await ask(model, way)).message.tool_calls]
    assert ids == ["call_1", "mine", "call_2", "call_3", "call_4"]


async def test_ids_go_on_after_a_function_that_makes_calls() -> None:
    model = ScriptedModel([lambda _: [call("a"), call("b")], [call("c"), call("d")]])
    await model.invoke(request())
    ids = [call.id for call in (await model.invoke(request())).message.tool_calls]
    assert ids == ["call_3", "call_4"]


def test_arguments_named_id_and_raw_are_given_as_a_mapping() -> None:
    reply = call("delete", {"id": "a1", "raw": True}, force=True)
    assert reply == call("delete", raw='{"id":"a1","raw":true,"force":true}')


def test_an_id_that_is_no_string_is_taken_for_the_mistake_it_is() -> None:
    with pytest.raises(TypeError, match=r"call\('delete', \{'id': …\}\)"):
        call("delete", id=7)  # type: ignore[arg-type]


def test_raw_arguments_and_others_together_are_refused() -> None:
    with pytest.raises(TypeError, match="`x` has raw arguments and others"):
        call("x", raw="{", a=1)


async def test_arguments_become_their_json_form() -> None:
    model = ScriptedModel([call("book", at=date(2026, 1, 2), what=Answer(city="x", when=date.min))])
    (made,) = (await model.invoke(request())).message.tool_calls
    assert made.arguments == {"at": "2026-01-02", "what": {"city": "x", "when": "0001-01-01"}}


@both_ways
async def test_usage_is_estimated_from_the_request_and_the_answer_alone(way: Way) -> None:
    two = ModelRequest([UserMessage(content="a"), UserMessage(content="a very long text")])
    response = await ask(ScriptedModel(["123456789"]), way, two)
    assert response.usage == Usage(input_tokens=20, output_tokens=3, source="estimated")


async def test_usage_reason_and_the_like_can_be_given() -> None:
    usage = Usage(input_tokens=1, output_tokens=2)
    step = say("x", usage=usage, finish_reason="length").replace(response_id="r", model="m")
    response = await ScriptedModel([step]).invoke(request())
    assert response.usage == usage
    assert (response.finish_reason, response.response_id, response.model) == ("length", "r", "m")


@pytest.mark.parametrize(
    ("step", "reason"),
    [(say("x"), "stop"), (call("x"), "tool_calls"), (refuse("no"), "refusal"), (say(), "stop")],
)
async def test_the_finish_reason_fits_the_reply(step: Reply, reason: str) -> None:
    assert (await ScriptedModel([step]).invoke(request())).finish_reason == reason


async def test_responses_are_numbered() -> None:
    model = ScriptedModel(["a", "b"], name="m")
    assert [(await model.invoke(request())).response_id for _ in "ab"] == ["m-1", "m-2"]


@both_ways
async def test_an_error_is_raised_as_it_is(way: Way) -> None:
    error = RateLimitError("slow down", retry_after=7)
    for step in (error, fail(error)):
        with pytest.raises(RateLimitError) as raised:
            await ask(ScriptedModel([step]), way)
        assert raised.value is error


@both_ways
async def test_an_error_class_is_raised_as_a_new_error_each_time(way: Way) -> None:
    model = ScriptedModel([KeyError, fail(KeyError)])
    errors: list[KeyError] = []
    for _ in range(2):
        with pytest.raises(KeyError) as raised:
            await ask(model, way)
        errors.append(raised.value)
    assert errors[0] is not errors[1]


def test_an_error_class_that_needs_more_than_a_message_is_refused_at_once() -> None:
    with pytest.raises(TypeError, match=r"step 1 .*`ToolTimeoutError` needs more than a message"):
        ScriptedModel([ToolTimeoutError])


@pytest.mark.parametrize(
    "step", [fail(NetworkError, after="Sunny"), say("Sunny") + fail(NetworkError)]
)
async def test_a_failure_comes_after_what_is_streamed_before_it(step: Step) -> None:
    seen: list[str] = []

    async def read() -> None:
        async for item in ScriptedModel([step], chunk_size=2).stream(request()):
            if isinstance(item, MessageDelta):
                seen.append(item.text)

    with pytest.raises(NetworkError):
        await read()
    assert "".join(seen) == "Sunny"


async def test_a_function_may_be_async_and_is_given_the_request() -> None:
    async def step(asked: ModelRequest) -> Reply:
        await anyio.lowlevel.checkpoint()
        return say(asked.messages[0].text.upper())

    assert (await ScriptedModel([step]).invoke(request("quiet"))).text == "QUIET"


async def test_a_delay_is_over_before_the_first_piece() -> None:
    model = ScriptedModel([delay(60, say("late"))])
    with anyio.move_on_after(0.01) as scope:
        await model.invoke(request())
    assert scope.cancelled_caught
    assert model.calls == 1


async def test_a_hanging_step_tells_when_it_is_reached() -> None:
    step = hang(after="Sun")
    model, seen = ScriptedModel([step]), list[ModelStreamItem]()

    async def read() -> None:
        async for item in model.stream(request()):
            seen.append(item)

    async with anyio.create_task_group() as group:
        group.start_soon(read)
        await step.started.wait()
        group.cancel_scope.cancel()
    assert [item.text for item in seen if isinstance(item, MessageDelta)] == ["Sun"]


def weather_tool() -> ToolSchema:
    return ToolSchema(name="get_weather", description="", parameters={"type": "object"})


@both_ways
async def test_a_call_beyond_the_script_says_how_long_it_was_and_what_was_asked(way: Way) -> None:
    model = ScriptedModel(["one"], name="planner")
    await ask(model, way)
    with pytest.raises(ScriptExhausted) as raised:
        await ask(model, way, request("And in Rome?", tools=[weather_tool()]))
    text = str(raised.value)
    assert "`planner` has 1 step(s)" in text
    assert "the user message 'And in Rome?'" in text
    assert "`get_weather`" in text


async def test_a_run_does_not_retry_an_exhausted_script() -> None:
    sleep = FakeSleep()
    model = ScriptedModel([])
    with pytest.raises(ScriptExhausted):
        await AgentHarness(model=model, sleep=sleep).invoke(None, "hi")
    assert model.calls == 1
    assert sleep.delays == []


async def test_a_run_retries_a_failure_and_waits_as_long_as_was_asked() -> None:
    sleep = FakeSleep()
    model = ScriptedModel([RateLimitError("busy", retry_after=7), "hello"])
    run = await AgentHarness(model=model, sleep=sleep).invoke(None, "hi")
    assert run.text == "hello"
    assert sleep.delays == [7]


def test_steps_that_were_not_used_are_named() -> None:
    model = ScriptedModel(["one", "two"], name="planner")
    with pytest.raises(AssertionError, match="2 of them were not used; the next one is 'one'"):
        model.assert_done()


async def test_leaving_a_with_block_asserts_that_the_script_was_used_up() -> None:
    model = ScriptedModel(["one", "two"])
    for expected in (pytest.raises(AssertionError, match="1 of them were not used"), nullcontext()):
        with expected, model:
            await model.invoke(request())


def test_leaving_a_with_block_hides_no_error() -> None:
    with pytest.raises(KeyError), ScriptedModel(["one"]):
        raise KeyError


async def test_a_call_beyond_the_script_that_was_swallowed_is_raised_on_leaving() -> None:
    with pytest.raises(ScriptExhausted), ScriptedModel([]) as model, suppress(AssertionError):
        await model.invoke(request())


async def test_requests_are_kept_as_they_were_when_they_were_made() -> None:
    model = ScriptedModel(["one", "two"])
    asked = request(tools=[weather_tool()], metadata={"a": 1})
    await model.invoke(asked)
    asked.messages.append(UserMessage(content="more"))
    asked.tools = ()
    asked.metadata["a"] = 2  # type: ignore[index]
    await model.invoke(asked)
    first, second = model.requests
    assert [message.text for message in first.messages] == ["hi"]
    assert [tool.name for tool in first.tools] == ["get_weather"]
    assert first.metadata == {"a": 1}
    assert [message.text for message in second.messages] == ["hi", "more"]


async def test_requests_need_not_be_kept() -> None:
    model = ScriptedModel(["one"], record=False)
    await model.invoke(request())
    assert (model.requests, model.calls) == ([], 1)


async def test_answers_are_not_shared_between_calls() -> None:
    response = ModelResponse(AssistantMessage(content="x"))
    before = copy.deepcopy(response)
    model = ScriptedModel([response, [StreamCompleted(response)]])
    for _ in range(2):
        (await model.invoke(request())).timing.total = 5
    assert response == before


def test_the_default_profile_claims_everything_and_can_be_replaced() -> None:
    profile = ScriptedModel([], name="m").profile
    assert (profile.provider, profile.model) == ("scripted", "m")
    assert profile.tool_calling
    assert profile.streaming
    assert profile.native_structured_output
    small = ModelProfile(tool_calling=False)
    assert ScriptedModel([], profile=small).profile is small


def test_it_is_a_chat_model_and_has_two_names() -> None:
    assert isinstance(ScriptedModel([]), ChatModel)
    assert ScriptedChatModel is ScriptedModel


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ("hello", "a script is a list of steps"),
        (say("hello"), "a script is a list of steps"),
        ([say("x"), 3], "step 2 of the script of `scripted`: `int` is no step: 3"),
        ([{"a": 1}], "step 1 .*: `dict` is no step"),
        ([[say("x"), 3]], "a list as a step holds replies, or else stream items, and no `int`"),
        ([[say("x"), MessageDelta("y")]], "no `MessageDelta`"),
        ([int], "the class `int` is no step"),
    ],
)
def test_what_is_no_script_is_refused_with_its_place(steps: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        ScriptedModel(steps)


async def test_a_wrong_step_from_a_function_is_refused_when_it_comes() -> None:
    step: Any = lambda _: 3  # noqa: E731 - untyped on purpose
    model = ScriptedModel([step])
    with pytest.raises(TypeError, match="`int` is no step"):
        await model.invoke(request())


async def test_concurrent_runs_share_a_script_in_the_order_in_which_they_ask() -> None:
    model = ScriptedModel([delay(0, say(str(n))) for n in range(20)])
    harness, texts = AgentHarness(model=model), list[str]()

    async def run() -> None:
        texts.append((await harness.invoke(None, "hi")).text)

    async with anyio.create_task_group() as group:
        for _ in range(20):
            group.start_soon(run)
    assert sorted(texts, key=int) == [str(n) for n in range(20)]
    model.assert_done()


async def test_a_thousand_runs_at_once_each_have_the_script_to_themselves() -> None:
    model = ScriptedModel.per_run([call("look", n=1), delay(0, call("look", n=2)), "done"])
    harness = AgentHarness(model=model, tools=[FakeTool("look")])

    async def run() -> None:
        run = await harness.invoke(None, "hi")
        ids = [c.id for m in run.messages if m.role == "assistant" for c in m.tool_calls]
        assert (run.text, ids) == ("done", ["call_1", "call_2"])

    async with anyio.create_task_group() as group:
        for _ in range(1000):
            group.start_soon(run)
    assert model.calls == 3000
    model.assert_done()


async def test_an_error_of_a_script_for_each_run_is_each_runs_own() -> None:
    model = ScriptedModel.per_run([KeyError("x")])
    harness = AgentHarness(model=model)
    errors: list[Any] = []
    for number in range(2):
        with pytest.raises(KeyError) as raised:
            await harness.invoke(None, "hi", config=RunConfig(run_id=f"r{number}"))
        errors.append(raised.value)
    assert [error.run.run_id for error in errors] == ["r0", "r1"]


async def test_each_run_must_use_up_its_script() -> None:
    model = ScriptedModel.per_run(["one", "two"])
    harness = AgentHarness(model=model)
    for run_id in ("a", "b", "a"):
        await harness.invoke(None, "hi", config=RunConfig(run_id=run_id))
    assert model.remaining == 1
    with pytest.raises(AssertionError, match="1 of them were not used"):
        model.assert_done()


async def test_typed_output_comes_from_a_script() -> None:
    answer = Answer(city="Paris", when=date(2026, 1, 2))
    harness = AgentHarness(model=ScriptedModel([say(answer)]))
    assert (await harness.invoke(None, "hi", output=Answer)).output == answer


async def test_replies_makes_a_script_of_texts() -> None:
    model = ScriptedModel.replies("a", "b")
    assert [(await model.invoke(request())).text for _ in "ab"] == ["a", "b"]


async def test_a_refusal_and_reasoning_are_blocks_of_their_own() -> None:
    model = ScriptedModel([think("hm") + refuse("no")])
    message = (await model.invoke(request())).message
    assert message.content == [ReasoningBlock(text="hm"), RefusalBlock(text="no")]
