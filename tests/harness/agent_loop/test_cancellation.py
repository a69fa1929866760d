"""Every way to stop a run leaves a history that the next run can go on from."""

import anyio
import pytest

from tinyagents import (
    AgentHarness,
    CancellationToken,
    RunLimits,
    RunPolicy,
    ToolMessage,
    UserMessage,
    tool,
)
from tinyagents.harness.errors import RunCancelledError, RunTimeoutError
from tinyagents.harness.message import repair_messages
from tinyagents.testkit import ScriptedModel, SlowModel, assert_event_grammar, call, say


class Hanging:
    """A tool that says when it has begun and then never ends."""

    def __init__(self) -> None:
        self.started = anyio.Event()
        self.runs = 0
        self.cleaned = 0

    async def __call__(self, key: str) -> str:
        """Hang."""
        self.runs += 1
        self.started.set()
        try:
            await anyio.sleep_forever()
        finally:
            self.cleaned += 1
        return key


async def test_a_token_cancels_a_running_tool_and_the_history_goes_on() -> None:
    hanging = Hanging()
    token = CancellationToken()
    model = ScriptedModel([call("slow", key="a", id="k1"), say("fine")])
    harness = AgentHarness(model=model, tools=[tool(hanging, name="slow")])

    async def cancel() -> None:
        await hanging.started.wait()
        token.cancel("enough")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(cancel)
        with pytest.raises(RunCancelledError, match="enough") as caught:
            await harness.invoke(None, "go", cancellation=token)
    run = caught.value.run
    assert run is not None
    assert run.status == "cancelled"
    assert [m.role for m in run.messages] == ["user", "assistant", "tool"]
    result = run.messages[2]
    assert isinstance(result, ToolMessage)
    assert (result.tool_call_id, result.outcome, result.is_error) == ("k1", "interrupted", True)
    assert hanging.cleaned == 1
    assert_event_grammar(run.events)

    again = await harness.invoke(None, [*run.messages, UserMessage(content="carry on")])
    assert again.text == "fine"
    assert hanging.runs == 1
    assert not repair_messages(model.requests[1].messages).changed


async def test_a_sibling_that_had_ended_keeps_its_result() -> None:
    hanging = Hanging()
    token = CancellationToken()

    @tool
    async def quick() -> str:
        """Be quick."""
        return "ok"

    model = ScriptedModel([[call("quick", id="k1"), call("slow", key="b", id="k2")]])
    harness = AgentHarness(model=model, tools=[quick, tool(hanging, name="slow")])

    async def cancel() -> None:
        await hanging.started.wait()
        await anyio.wait_all_tasks_blocked()
        token.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(cancel)
        with pytest.raises(RunCancelledError) as caught:
            await harness.invoke(None, "go", cancellation=token)
    run = caught.value.run
    assert run is not None
    first, second = [m for m in run.messages if isinstance(m, ToolMessage)]
    assert (first.text, first.is_error) == ("ok", False)
    assert second.outcome == "interrupted"
    kinds = [event.kind for event in run.events]
    assert kinds.count("tool.completed") == kinds.count("tool.cancelled") == 1
    assert kinds[-1] == "run.failed"
    assert kinds.count("run.failed") == 1
    assert_event_grammar(run.events)


async def test_cancelling_the_calling_task_unwinds_the_run() -> None:
    hanging = Hanging()
    events: list[str] = []
    model = ScriptedModel([call("slow", key="a")])
    harness = AgentHarness(
        model=model,
        tools=[tool(hanging, name="slow")],
        listeners=[lambda event: events.append(event.kind)],
    )
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(harness.invoke, None, "go")
        await hanging.started.wait()
        tasks.cancel_scope.cancel()
    assert hanging.cleaned == 1
    assert events[-2:] == ["tool.cancelled", "run.failed"]


async def test_a_token_that_is_cancelled_before_stops_the_run_before_any_model_call() -> None:
    token = CancellationToken()
    token.cancel()
    model = ScriptedModel([say("no")])
    with pytest.raises(RunCancelledError):
        await AgentHarness(model=model).invoke(None, "hi", cancellation=token)
    with pytest.raises(RunCancelledError):
        await AgentHarness(model=model).stream(None, "hi", cancellation=token).result()
    assert model.calls == 0


async def test_the_wall_clock_cuts_a_slow_model() -> None:
    harness = AgentHarness(model=SlowModel(30, "late"), limits=RunLimits(wall_clock=0.05))
    with pytest.raises(RunTimeoutError) as caught:
        await harness.invoke(None, "hi")
    run = caught.value.run
    assert run is not None
    assert run.status == "failed"
    kinds = [event.kind for event in run.events]
    assert kinds == [
        "run.started",
        "model.started",
        "model.cancelled",
        "limit.reached",
        "run.failed",
    ]


async def test_the_wall_clock_can_stop_the_run_with_what_there_is() -> None:
    hanging = Hanging()
    harness = AgentHarness(
        model=ScriptedModel([call("slow", key="a")]),
        tools=[tool(hanging, name="slow")],
        policy=RunPolicy(on_wall_clock="stop_with_partial", limits=RunLimits(wall_clock=0.05)),
    )
    run = await harness.invoke(None, "go")
    assert (run.status, run.reason) == ("stopped", "wall_clock")
    assert isinstance(run.messages[-1], ToolMessage)
    assert run.messages[-1].outcome == "interrupted"
    assert_event_grammar(run.events)


async def test_a_fast_run_under_the_same_clock_succeeds() -> None:
    harness = AgentHarness(model=ScriptedModel([say("quick")]), limits=RunLimits(wall_clock=30))
    assert (await harness.invoke(None, "hi")).text == "quick"


async def test_a_tool_that_runs_out_of_time_is_told_to_the_model() -> None:
    hanging = Hanging()
    model = ScriptedModel([call("slow", key="a"), say("went on")])
    slow = tool(hanging, name="slow", timeout=0.02)
    run = await AgentHarness(model=model, tools=[slow]).invoke(None, "go")
    result = next(m for m in run.messages if isinstance(m, ToolMessage))
    assert result.is_error
    assert "slow" in result.text
    assert "20 ms" in result.text
    assert run.text == "went on"
    assert hanging.cleaned == 1


async def test_a_token_reaches_into_a_phase_that_is_performed_alone() -> None:
    hanging = Hanging()
    token = CancellationToken()
    model = ScriptedModel([call("slow", key="a", id="k1")])
    harness = AgentHarness(model=model, tools=[tool(hanging, name="slow")])
    snapshot = harness.snapshot("go")

    async def cancel() -> None:
        await hanging.started.wait()
        token.cancel("enough")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(cancel)
        while snapshot.phase != "call_tools":
            snapshot = await harness.step(snapshot, None)
        with pytest.raises(RunCancelledError, match="enough"):
            await harness.step(snapshot, None, cancellation=token)
    assert hanging.cleaned == 1
