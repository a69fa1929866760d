from datetime import date
from typing import Any
from unittest.mock import ANY

import pytest

from tinyagents import AgentHarness, AgentRun, RunLimits, StopWithFinal, ToolContext, tool
from tinyagents.harness.errors import LimitExceededError, NetworkError
from tinyagents.harness.middleware import Middleware
from tinyagents.harness.policy import PayloadCapture, RunPolicy
from tinyagents.testkit import (
    EventRecorder,
    FakeSleep,
    FakeTool,
    ScriptedModel,
    Step,
    Trajectory,
    assert_trajectory,
    call,
    say,
)


@tool
async def get_weather(city: str) -> str:
    """Current weather for a city."""
    return f"{city}: sunny"


async def weather_run(**options: Any) -> AgentRun[None, None]:
    model = ScriptedModel([call("get_weather", city="Paris"), say("Sunny.")])
    return await AgentHarness(model=model, tools=[get_weather], **options).invoke(None, "hi")


async def run_of(*steps: Step, tools: list[Any]) -> AgentRun[None, None]:
    return await AgentHarness(model=ScriptedModel(steps), tools=tools).invoke(None, "hi")


async def test_the_example_of_the_documentation_holds() -> None:
    run = await weather_run()
    assert_trajectory(run.events).model_called("default").tool_called(
        "get_weather", city="Paris"
    ).model_called("default").completed()


@pytest.mark.parametrize("exact", [False, True])
async def test_a_chain_that_names_every_step_is_exact(exact: bool) -> None:
    chain = assert_trajectory(await weather_run(), exact=exact)
    chain.model_called().tool_called("get_weather").model_called().completed()


async def test_a_chain_may_leave_steps_out_unless_it_is_exact() -> None:
    run = await weather_run()
    assert_trajectory(run).tool_called("get_weather").completed()
    with pytest.raises(AssertionError, match=r"`get_weather` next, but found `model\.started"):
        assert_trajectory(run, exact=True).tool_called("get_weather")
    with pytest.raises(AssertionError, match="expected the run to complete next, but found"):
        assert_trajectory(run, exact=True).model_called().completed()


async def test_steps_in_another_order_are_refused_with_the_list_of_events() -> None:
    run = await weather_run()
    with pytest.raises(AssertionError) as raised:
        assert_trajectory(run).tool_called("get_weather").tool_called("get_weather")
    text = str(raised.value)
    assert text.startswith("expected a call of the tool `get_weather` after event 4, but there")
    assert "  >    4 tool.started get_weather(city='Paris')" in text
    assert "       1 model.started default" in text


async def test_other_arguments_are_refused_and_the_real_ones_shown() -> None:
    run = await weather_run()
    with pytest.raises(AssertionError) as raised:
        assert_trajectory(run).tool_called("get_weather", city="Rome")
    assert "the tool `get_weather` with city='Rome', but there is none" in str(raised.value)
    assert "get_weather(city='Paris')" in str(raised.value)


async def test_arguments_are_a_part_of_all_and_compared_as_json() -> None:
    step = call("book", {"self": 1}, day=date(2026, 1, 2), seats=2, vip=True, more={"a": [1]})
    run = await run_of(step, "done", tools=[FakeTool("book")])
    for wanted in (
        {"day": date(2026, 1, 2)},
        {"day": "2026-01-02", "seats": 2.0},
        {"more": ANY, "vip": True},
        {"more": {"a": (1,)}},
        {"self": 1},
    ):
        assert_trajectory(run).tool_called("book", wanted)
    others: list[dict[str, Any]] = [
        {"seats": 3},
        {"vip": 1},
        {"other": None},
        {"more": {}},
        {"seats": object()},
    ]
    for refused in others:
        with pytest.raises(AssertionError):
            assert_trajectory(run).tool_called("book", refused)


async def test_arguments_come_from_events_that_captured_them() -> None:
    recorder = EventRecorder()
    policy = RunPolicy(capture=PayloadCapture(tool_io=True))
    await weather_run(listeners=[recorder], policy=policy)
    assert_trajectory(recorder).tool_called("get_weather", city="Paris")
    assert_trajectory(iter(recorder.events)).tool_called("get_weather", city="Paris")


async def test_arguments_that_are_not_known_are_said_to_be_so() -> None:
    recorder = EventRecorder()
    await weather_run(listeners=[recorder])
    assert_trajectory(recorder).tool_called("get_weather")
    with pytest.raises(AssertionError, match="in event 4 are not known"):
        assert_trajectory(recorder).tool_called("get_weather", city="Paris")


async def test_parallel_calls_are_found_in_the_order_of_the_calls() -> None:
    step = [call("a", n=1), call("b", n=2), call("a", n=3)]
    run = await run_of(step, "done", tools=[FakeTool("a"), FakeTool("b")])
    chain = assert_trajectory(run, exact=True).model_called()
    chain.tool_called("a", n=1).tool_called("b").tool_called("a", n=3).model_called().completed()


async def test_a_failed_tool_is_told_from_one_that_worked() -> None:
    tools = [FakeTool("fine"), FakeTool.failing("no", name="told"), FakeTool.failing(KeyError)]
    step = [call("fine"), call("told"), call("fake_tool"), call("fine", n=2)]
    run = await run_of(step, "done", tools=tools)
    assert_trajectory(run).tool_failed("told").tool_failed("fake_tool").tool_called("fine", n=2)
    assert_trajectory(run).tool_called("told").tool_failed("told").completed()
    assert_trajectory(run).tool_failed("fake_tool", "scripted failure")
    with pytest.raises(AssertionError, match="which did not fail"):
        assert_trajectory(run).tool_called("fine").tool_failed("fine")
    with pytest.raises(AssertionError, match="a failed call of the tool `fine`, but there is none"):
        assert_trajectory(run).tool_failed("fine")
    with pytest.raises(AssertionError, match="which failed with 'the tool reported an error'"):
        assert_trajectory(run).tool_called("told").tool_failed("told", "another")


async def test_the_ways_in_which_a_run_ends_are_told_apart() -> None:
    class Stop(Middleware[Any]):
        async def before_model(self, ctx: Any, request: Any) -> None:
            ctx.request_control(StopWithFinal("enough"))

    @tool
    async def ask(ctx: ToolContext[Any]) -> str:
        """Ask."""
        return str(ctx.ask("really?"))

    completed = await weather_run()
    stopped = await weather_run(middleware=[Stop()])
    interrupted = await run_of(call("ask"), tools=[ask])
    with pytest.raises(NetworkError) as raised:
        await AgentHarness(
            model=ScriptedModel([NetworkError("gone", retryable=False)]), sleep=FakeSleep()
        ).invoke(None, "hi")
    failed = raised.value.run
    assert failed is not None

    assert_trajectory(completed).completed()
    assert_trajectory(stopped).stopped("stop_with_final")
    assert_trajectory(interrupted).tool_called("ask").interrupted()
    assert_trajectory(failed).failed().assert_failed()
    assert_trajectory(failed).failed("network")
    assert_trajectory(failed).failed(NetworkError)

    for run, problem in [
        (stopped, "expected the run to complete, but it was stopped: stop_with_final"),
        (interrupted, "expected the run to complete, but it was interrupted"),
        (failed, "expected the run to complete, but it failed with network: gone"),
    ]:
        with pytest.raises(AssertionError, match=problem):
            assert_trajectory(run).completed()
        with pytest.raises(AssertionError, match=problem):
            assert_trajectory(run).assert_completed()
    with pytest.raises(AssertionError, match="to fail with `limit_exceeded`, but it failed with"):
        assert_trajectory(failed).failed(LimitExceededError)
    with pytest.raises(AssertionError, match="to be stopped because of `x`, but it completed"):
        assert_trajectory(completed).stopped("x")
    for check in ("cancelled", "interrupted", "paused", "failed", "assert_failed"):
        with pytest.raises(AssertionError, match="but it completed"):
            getattr(assert_trajectory(completed), check)()
    with pytest.raises(AssertionError, match="but it has not ended"):
        assert_trajectory(list(completed.events)[:-1]).completed()


async def test_the_whole_run_can_be_counted() -> None:
    run = await run_of(
        [call("a"), call("b")], call("a"), "done", tools=[FakeTool("a"), FakeTool("b")]
    )
    trajectory = Trajectory.from_events(run.events)
    assert trajectory.tool_was_called("a")
    assert not trajectory.tool_was_called("c")
    assert (trajectory.tool_call_count("a"), trajectory.tool_call_count()) == (2, 3)
    assert (trajectory.model_call_count(), trajectory.model_call_count("other")) == (3, 0)
    trajectory.assert_tool_called("a").assert_model_called_times(3).assert_completed()
    trajectory.assert_tool_called_times("a", 2).assert_tool_not_called("c")
    trajectory.assert_model_called_times(0, "other")
    for check, arguments in [
        ("assert_tool_called", ("c",)),
        ("assert_tool_called_times", ("a", 1)),
        ("assert_tool_not_called", ("a",)),
        ("assert_model_called_times", (2,)),
    ]:
        with pytest.raises(AssertionError, match="expected"):
            getattr(trajectory, check)(*arguments)
    with pytest.raises(AssertionError, match="with n=1"):
        trajectory.assert_tool_called("a", n=1)


async def test_labels_must_appear_in_their_order() -> None:
    trajectory = assert_trajectory(await weather_run())
    trajectory.assert_order([]).assert_order(["run.started", "get_weather", "run.completed"])
    trajectory.assert_order(["get_weather", "get_weather", "model.started"])
    with pytest.raises(AssertionError, match="expected `run.started` at its place"):
        trajectory.assert_order(["get_weather", "run.started"])


async def test_events_of_several_runs_need_a_choice() -> None:
    recorder = EventRecorder()
    model = ScriptedModel(["a", call("get_weather", city="Rome"), "b"])
    harness = AgentHarness(model=model, tools=[get_weather], listeners=[recorder])
    first = await harness.invoke(None, "hi")
    second = await harness.invoke(None, "hi")
    with pytest.raises(AssertionError, match="events are of several runs: pass run_id="):
        assert_trajectory(recorder)
    assert_trajectory(recorder, run_id=first.run_id, exact=True).model_called().completed()
    assert_trajectory(recorder, run_id=second.run_id).tool_called("get_weather").completed()


async def test_a_run_inside_another_is_left_out_unless_it_is_asked_for() -> None:
    inner = AgentHarness(
        model=ScriptedModel([call("look", n=2), "found"]), tools=[FakeTool("look")]
    )
    runs: list[AgentRun[Any, Any]] = []

    @tool
    async def delegate(n: int, ctx: ToolContext[Any]) -> str:
        """Ask another agent."""
        runs.append(await inner.invoke(None, "go", context=ctx.run))
        return runs[0].text

    outer = await run_of(call("delegate", n=1), "done", tools=[delegate])
    (child,) = runs
    chain = assert_trajectory(outer.events, exact=True).model_called()
    chain.tool_called("delegate", n=1).model_called().completed()
    nested = assert_trajectory(outer, exact=True, nested=True).model_called()
    nested.tool_called("delegate", n=1).model_called().tool_called("look").model_called()
    nested.completed().model_called().completed()
    for events in (child, child.events):
        inside = assert_trajectory(events, exact=True).model_called()
        inside.tool_called("look", n=2).model_called().completed()
    assert_trajectory(outer, run_id=child.run_id).tool_called("look")


def test_a_trajectory_of_no_events_says_so() -> None:
    with pytest.raises(AssertionError, match="no events"):
        assert_trajectory([]).model_called()


async def test_an_interrupted_run_and_its_continuation_are_one_trajectory() -> None:
    @tool
    async def ask(ctx: ToolContext[Any]) -> str:
        """Ask."""
        return str(ctx.ask("really?"))

    recorder = EventRecorder()
    harness = AgentHarness(
        model=ScriptedModel([call("ask"), "done"]), tools=[ask], listeners=[recorder]
    )
    run = await harness.invoke(None, "hi")
    (question,) = run.interrupts
    await harness.resume(run.snapshot, None, answers={question.id: "yes"})
    assert_trajectory(recorder, exact=True).model_called().tool_called(
        "ask"
    ).interrupted().tool_called("ask").model_called().completed()


async def test_a_limit_is_a_failure_with_its_kind() -> None:
    with pytest.raises(LimitExceededError) as raised:
        await weather_run(limits=RunLimits(max_model_calls=1))
    assert raised.value.run is not None
    assert_trajectory(raised.value.run).tool_called("get_weather").failed("limit_exceeded")
