"""A run that a hook pauses goes on where it was."""

import pytest

from tinyagents import AgentHarness, Pause, RunContext, RunPolicy, RunSnapshot, StopWithFinal, tool
from tinyagents.harness.errors import InvalidRequestError, ResumeError
from tinyagents.harness.events import ControlApplied
from tinyagents.harness.middleware import ToolCall, after_model, before_model, before_tool
from tinyagents.harness.model import ModelRequest, ModelResponse
from tinyagents.harness.policy import PayloadCapture
from tinyagents.testkit import ScriptedModel, Step, assert_event_grammar, call, say

ran: list[str] = []


@tool
async def look(what: str) -> str:
    """Look."""
    ran.append(what)
    return what


@pytest.fixture(autouse=True)
def _clean() -> None:
    ran.clear()


@after_model
def pause_after_calls(ctx: RunContext[None], response: ModelResponse) -> None:
    if response.message.tool_calls:
        ctx.request_control(Pause("for the night"))


@pytest.mark.parametrize("input", [None, "still there?"])
async def test_a_paused_run_goes_on_with_the_calls_that_it_had_not_begun(
    input: str | None,
) -> None:
    model = ScriptedModel([call("look", what="x"), say("done")])
    agent = AgentHarness(model=model, tools=[look], middleware=[pause_after_calls])
    paused = await agent.invoke(None, "go")
    assert (paused.status, paused.reason, ran) == ("paused", "for the night", [])
    snapshot = RunSnapshot.model_validate_json(paused.snapshot.model_dump_json())
    if input is not None:
        with pytest.raises(ResumeError, match="wait"):
            await agent.resume(snapshot, None, input=input)
        return
    run = await agent.resume(snapshot, None)
    assert (run.status, run.reason, run.text, ran) == ("completed", None, "done", ["x"])
    assert_event_grammar([*paused.events, *run.events])


async def test_what_is_said_to_a_run_that_paused_after_its_answer_begins_another_turn() -> None:
    @after_model
    def pause(ctx: RunContext[None], response: ModelResponse) -> None:
        if response.message.text == "first":
            ctx.request_control(Pause())

    model = ScriptedModel([say("first"), say("second")])
    agent = AgentHarness(model=model, middleware=[pause])
    paused = await agent.invoke(None, "go")
    assert paused.status == "paused"
    run = await agent.resume(paused.snapshot, None, input="and now?")
    assert (run.status, run.text) == ("completed", "second")
    with pytest.raises(InvalidRequestError, match="empty"):
        await agent.resume(paused.snapshot, None, input="")


async def test_a_stop_outranks_a_pause_that_was_asked_for_too() -> None:
    @before_model
    def both(ctx: RunContext[None], request: ModelRequest) -> None:
        ctx.request_control(Pause("later"))
        ctx.request_control(StopWithFinal("enough"))

    run = await AgentHarness(model=ScriptedModel([say("x")]), middleware=[both]).invoke(None, "go")
    assert (run.status, run.text) == ("stopped", "enough")


@pytest.mark.parametrize(("capture", "detail"), [(False, None), (True, "my secret")])
async def test_the_text_of_a_stop_is_told_only_where_content_is_captured(
    capture: bool, detail: str | None
) -> None:
    @before_tool
    def stop(ctx: RunContext[None], call: ToolCall) -> None:
        ctx.request_control(StopWithFinal("my secret"))

    steps: list[Step] = [call("look", what="x")]
    agent = AgentHarness(
        model=ScriptedModel(steps),
        tools=[look],
        middleware=[stop],
        policy=RunPolicy(capture=PayloadCapture(model_io=capture)),
    )
    run = await agent.invoke(None, "go")
    assert run.text == "my secret"
    (applied,) = (event for event in run.events if isinstance(event, ControlApplied))
    assert applied.detail == detail
