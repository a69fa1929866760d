import json
from decimal import Decimal
from typing import Any

import anyio
import pytest
from hypothesis import given, strategies as st

from tinyagents import AgentHarness, RunLimits, UserMessage
from tinyagents.harness.cost import ModelPricing
from tinyagents.harness.errors import NetworkError, ProviderTimeoutError
from tinyagents.harness.events import Custom, ModelStarted, ToolFailed, load_event
from tinyagents.harness.model import (
    MessageDelta,
    ModelProfile,
    ModelRequest,
    ModelStreamItem,
    StreamCompleted,
    StreamStarted,
)
from tinyagents.harness.policy import RunPolicy
from tinyagents.harness.retry import RetryPolicy
from tinyagents.harness.stream import TextDelta
from tinyagents.harness.tool import ToolRegistry
from tinyagents.testkit import (
    DeterministicClock,
    DeterministicIds,
    EventRecorder,
    FakeChatModel,
    FakeSleep,
    FakeStreamingModel,
    FakeTool,
    ScriptedModel,
    SlowModel,
    call,
    say,
)


def request(text: str = "hi") -> ModelRequest:
    return ModelRequest([UserMessage(content=text)])


# Models


async def test_a_fake_model_gives_its_reply_as_often_as_it_is_asked() -> None:
    model = FakeChatModel("hello")
    texts = [(await model.invoke(request())).text for _ in range(3)]
    assert (texts, model.calls) == (["hello"] * 3, 3)


async def test_a_fake_model_without_a_reply_repeats_the_user() -> None:
    model = FakeChatModel()
    asked = ModelRequest([UserMessage(content="one"), UserMessage(content="two")])
    assert (await model.invoke(asked)).text == "two"
    assert (await model.invoke(ModelRequest([]))).text == ""


async def test_calls_of_a_fake_model_have_ids_of_their_own() -> None:
    model = FakeChatModel([call("a"), call("b")])
    ids = [c.id for _ in "12" for c in (await model.invoke(request())).message.tool_calls]
    assert ids == ["call_1", "call_2", "call_3", "call_4"]


async def test_a_fake_model_can_fail_every_call() -> None:
    error = NetworkError("gone")
    model = FakeChatModel(error)
    for _ in range(2):
        with pytest.raises(NetworkError, match="gone") as raised:
            await model.invoke(request())
        assert raised.value is not error


async def test_a_streaming_model_streams_its_items_and_merges_them_for_a_plain_call() -> None:
    items: list[ModelStreamItem] = [StreamStarted("r"), MessageDelta("a"), MessageDelta("b")]
    model = FakeStreamingModel(items)
    for _ in range(2):
        assert [item async for item in model.stream(request())] == items
    assert (await model.invoke(request())).text == "ab"
    assert model.calls == 3


async def test_text_chunks_stream_between_a_start_and_the_whole_text() -> None:
    model = FakeStreamingModel.from_text_chunks(["Sun", "", "ny"])
    first, *deltas, last = [item async for item in model.stream(request())]
    assert isinstance(first, StreamStarted)
    assert deltas == [MessageDelta("Sun"), MessageDelta(""), MessageDelta("ny")]
    assert isinstance(last, StreamCompleted)
    assert last.response.text == "Sunny"
    assert (await model.invoke(request())).text == "Sunny"


async def test_a_run_streams_the_chunks_as_they_are() -> None:
    harness = AgentHarness(model=FakeStreamingModel.from_text_chunks(["Sun", "ny"]))
    chunks = [chunk async for chunk in harness.stream(None, "hi")]
    assert [chunk.text for chunk in chunks if isinstance(chunk, TextDelta)] == ["Sun", "ny"]


def test_text_chunks_that_are_one_string_are_refused() -> None:
    with pytest.raises(TypeError, match="several chunks"):
        FakeStreamingModel.from_text_chunks("Sunny")


async def test_a_slow_model_counts_a_call_before_it_waits() -> None:
    model = SlowModel(60)
    with anyio.move_on_after(0.01):
        await model.invoke(request())
    assert model.calls == 1
    assert (await SlowModel(0, "x").invoke(request())).text == "x"


async def test_a_slow_model_runs_into_the_limit_of_a_call() -> None:
    model = SlowModel(60)
    limits = RunLimits(model_timeout=0.01, max_retries_per_call=0)
    with pytest.raises(ProviderTimeoutError):
        await AgentHarness(model=model, limits=limits).invoke(None, "hi")
    assert model.calls == 1


# Tools


async def run_with(tool: FakeTool, **arguments: Any) -> Any:
    model = ScriptedModel([call(tool.name, **arguments), "done"])
    return await AgentHarness(model=model, tools=[tool]).invoke(None, "hi")


def test_a_fake_tool_describes_itself_and_takes_any_arguments() -> None:
    schema = ToolRegistry([FakeTool("lookup")]).schemas[0]
    assert "lookup" in schema.description
    assert schema.parameters["properties"] == {}
    assert schema.parameters["type"] == "object"


async def test_a_fake_tool_returns_its_result_and_keeps_its_calls() -> None:
    tool = FakeTool.returning({"name": "Ada"}, name="lookup")
    run = await run_with(tool, id_number=7)
    assert run.messages[2].text == '{"name":"Ada"}'
    assert (run.messages[2].tool_call_id, run.messages[2].name) == ("call_1", "lookup")
    assert tool.calls == [{"id_number": 7}]
    assert [context.call_id for context in tool.contexts] == ["call_1"]


async def test_a_new_fake_tool_returns_an_empty_text() -> None:
    run = await run_with(FakeTool("lookup"))
    assert run.messages[2].text == ""
    assert not run.messages[2].is_error


async def test_a_failing_tool_tells_the_model() -> None:
    run = await run_with(FakeTool.failing("no such user"))
    assert run.messages[2].text == "no such user"
    assert run.messages[2].is_error


@pytest.mark.parametrize("error", [KeyError("x"), KeyError])
async def test_a_failing_tool_can_raise_any_error(error: KeyError | type[KeyError]) -> None:
    run = await run_with(FakeTool.failing(error))
    (failed,) = [event for event in run.events if isinstance(event, ToolFailed)]
    assert failed.error_kind == "KeyError"


async def test_a_hanging_tool_tells_that_it_runs_and_that_it_was_cancelled() -> None:
    tool = FakeTool.hanging()
    async with anyio.create_task_group() as group:
        group.start_soon(run_with, tool)
        await tool.started.wait()
        assert tool.cancelled == 0
        group.cancel_scope.cancel()
    assert tool.cancelled == 1


async def test_a_fake_tool_with_parameters_is_called_with_what_fits_alone() -> None:
    number = {"type": "object", "properties": {"n": {"type": "integer"}}}
    tool = FakeTool("double", parameters=number)
    run = await run_with(tool, n="x")
    assert run.messages[2].is_error
    assert tool.calls == []


# Time, ids and waits


def test_a_deterministic_clock_stands_still_until_it_is_moved_on() -> None:
    clock = DeterministicClock(start=1_000)
    assert (clock.now_ms(), clock.now_millis(), clock.monotonic()) == (1_000, 1_000, 0.0)
    clock.advance(1.5)
    clock.advance(ms=20)
    assert (clock.now_ms(), clock.monotonic()) == (2_520, 1.52)


def test_a_deterministic_clock_adds_up_small_steps_exactly() -> None:
    clock = DeterministicClock()
    for _ in range(10):
        clock.advance(0.1)
    assert (clock.now_ms(), clock.monotonic()) == (1_000, 1.0)


@pytest.mark.parametrize("step", [{"seconds": -1.0}, {"ms": -1}])
def test_a_deterministic_clock_does_not_go_backwards(step: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="backwards"):
        DeterministicClock().advance(**step)


def test_deterministic_ids_count_each_kind_from_zero() -> None:
    ids = DeterministicIds()
    assert [ids.new("run"), ids.new("call"), ids.new("run")] == ["run-0", "call-0", "run-1"]


def test_deterministic_ids_take_a_prefix() -> None:
    ids = DeterministicIds("test")
    assert [ids.next_id(), ids.next_id(), ids.new("run")] == ["test-0", "test-1", "test-run-0"]
    assert DeterministicIds().next_id() == "id-0"


@given(st.lists(st.sampled_from(["", "a", "b", "a-0"]), max_size=30), st.sampled_from(["", "p"]))
def test_deterministic_ids_of_other_kinds_never_meet(kinds: list[str], prefix: str) -> None:
    ids = DeterministicIds(prefix)
    made = [ids.new(kind) if kind else ids.next_id() for kind in kinds]
    assert len(set(made)) == len(made)


async def test_a_fake_sleep_notes_its_seconds_and_moves_the_clock_on() -> None:
    clock = DeterministicClock()
    sleep = FakeSleep(clock)
    await sleep(2)
    await sleep(0.5)
    assert (sleep.delays, sleep.total, clock.monotonic()) == ([2, 0.5], 2.5, 2.5)


async def test_a_fake_sleep_can_be_cancelled() -> None:
    sleep = FakeSleep(DeterministicClock())
    with anyio.CancelScope() as scope:
        scope.cancel()
        await sleep(1)
    assert scope.cancelled_caught


async def test_backoff_takes_no_time_with_a_fake_sleep() -> None:
    sleep = FakeSleep()
    model = ScriptedModel([NetworkError] * 4 + ["done"])
    policy = RetryPolicy(max_attempts=5, initial_backoff=10, max_backoff=1000)
    assert policy.delay_after(3) == 40
    limits = RunLimits(max_retries_per_call=4)
    harness = AgentHarness(model=model, sleep=sleep, policy=RunPolicy(retry=policy, limits=limits))
    assert (await harness.invoke(None, "hi")).text == "done"
    assert sleep.delays == [10, 20, 40, 80]


# The recorder


async def test_a_recorder_keeps_what_it_is_shown_deltas_too() -> None:
    recorder = EventRecorder()
    harness = AgentHarness(model=FakeChatModel(say("a", "b")), listeners=[recorder])
    async for _ in harness.stream(None, "hi"):
        pass
    assert recorder.kinds.count("model.delta") == 2
    assert recorder.kinds[0] == "run.started"
    assert len(recorder) == len(recorder.events)
    (started,) = recorder.of(ModelStarted)
    assert started.model == "default"
    assert recorder.of("model.started") == [started]


async def test_a_recorder_writes_events_that_can_be_loaded_again() -> None:
    recorder = EventRecorder()
    harness = AgentHarness(model=FakeChatModel("\ud800 ä"), listeners=[recorder])
    await harness.invoke(None, "hi")
    lines = recorder.to_jsonl().splitlines()
    assert [load_event(line) for line in lines] == recorder.events
    assert json.loads(lines[0])["kind"] == "run.started"
    assert EventRecorder(recorder.events).to_jsonl() == recorder.to_jsonl()
    recorder.clear()
    assert recorder.to_jsonl() == ""


async def test_a_recorder_writes_money_and_text_of_every_kind() -> None:
    recorder = EventRecorder()
    pricing = ModelPricing(input=Decimal("0.25"), output=Decimal(2))
    model = FakeChatModel("hi", profile=ModelProfile(pricing=pricing))
    harness = AgentHarness(model=model, listeners=[recorder])
    await harness.invoke(None, "hi")
    assert "cost.recorded" in recorder.kinds
    made = recorder.events[0].model_dump(exclude={"resumed"})
    odd = Custom.model_validate(
        {**made, "kind": "custom", "name": "x"}
        | {"payload": {"lone": "\ud800", "large": 2**70, "nan": float("nan")}}
    )
    text = EventRecorder([*recorder.events, odd]).to_jsonl()
    assert [load_event(line).kind for line in text.splitlines()] == [*recorder.kinds, "custom"]
    assert '{"lone":"\ufffd","large":1180591620717411303424,"nan":null}' in text
