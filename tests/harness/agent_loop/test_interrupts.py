"""A run that needs an answer from outside ends, is stored, and goes on in another place."""

import pytest

from tinyagents import (
    AgentHarness,
    Interrupt,
    RunConfig,
    RunContext,
    RunLimits,
    RunSnapshot,
    StopWithFinal,
    ToolContext,
    ToolMessage,
    tool,
)
from tinyagents.harness.errors import (
    InvalidRequestError,
    LimitExceededError,
    ResumeError,
    ServerError,
)
from tinyagents.harness.message import repair_messages
from tinyagents.harness.middleware import ToolCall, after_model, before_model, before_tool
from tinyagents.harness.model import ModelRequest, ModelResponse
from tinyagents.testkit import ScriptedModel, Step, assert_event_grammar, call, fail, say

ran: list[str] = []


@tool
async def pay(amount: int, ctx: ToolContext[None]) -> str:
    """Pay, once somebody agrees."""
    answer = ctx.ask({"pay": amount})
    ran.append(f"pay {amount}")
    return f"paid {amount}: {answer}"


@tool
async def look(what: str) -> str:
    """Look."""
    ran.append(f"look {what}")
    return what


def stored(snapshot: RunSnapshot) -> RunSnapshot:
    return RunSnapshot.model_validate_json(snapshot.model_dump_json())


@pytest.fixture(autouse=True)
def _clean() -> None:
    ran.clear()


async def test_a_call_that_asks_interrupts_the_run_after_its_siblings_have_ended() -> None:
    model = ScriptedModel([[call("pay", amount=5), call("look", what="x")]])
    run = await AgentHarness(model=model, tools=[pay, look]).invoke(None, "go")
    assert run.status == "interrupted"
    assert ran == ["look x"]
    (request,) = run.interrupts
    assert (request.payload, request.tool_name) == ({"pay": 5}, "pay")
    assert not repair_messages(run.messages).changed
    assert run.messages[-1].text == "x"
    assert [event.kind for event in run.events][-1] == "run.interrupted"
    assert_event_grammar(run.events)


async def test_a_resumed_run_calls_nothing_twice_and_hands_the_answer_to_the_tool() -> None:
    model = ScriptedModel([[call("pay", amount=5), call("look", what="x")], say("done")])
    first = await AgentHarness(model=model, tools=[pay, look]).invoke(None, "go")
    snapshot = stored(first.snapshot)
    elsewhere = AgentHarness(model=model, tools=[pay, look])
    run = await elsewhere.resume(snapshot, None, answers={first.interrupts[0].id: "ok"})
    assert run.status == "completed"
    assert ran == ["look x", "pay 5"]
    results = [m.text for m in run.messages if isinstance(m, ToolMessage)]
    assert results == ["paid 5: ok", "x"]
    assert run.run_id == first.run_id
    assert run.usage.total_tokens > first.usage.total_tokens
    assert run.tool_calls == 2
    assert run.events[0].offset == len(first.events)
    assert snapshot.status == "interrupted"


async def test_some_answers_leave_the_others_waiting_and_answered_calls_ask_no_more() -> None:
    model = ScriptedModel([[call("pay", amount=n) for n in (1, 2, 3)], say("done")])
    harness = AgentHarness(model=model, tools=[pay])
    run = await harness.invoke(None, "go")
    ids = [request.id for request in run.interrupts]
    assert len(set(ids)) == 3
    run = await harness.resume(stored(run.snapshot), None, answers={ids[0]: "a", ids[2]: "c"})
    assert run.status == "interrupted"
    assert [request.id for request in run.interrupts] == [ids[1]]
    assert sorted(ran) == ["pay 1", "pay 3"]
    run = await harness.resume(stored(run.snapshot), None, answers={ids[1]: "b"})
    assert run.status == "completed"
    assert sorted(ran) == ["pay 1", "pay 2", "pay 3"]
    results = [m.text for m in run.messages if isinstance(m, ToolMessage)]
    assert results == ["paid 1: a", "paid 2: b", "paid 3: c"]


async def test_one_bare_answer_is_refused_while_several_questions_are_open() -> None:
    model = ScriptedModel([[call("pay", amount=1), call("pay", amount=2)]])
    harness = AgentHarness(model=model, tools=[pay])
    run = await harness.invoke(None, "go")
    with pytest.raises(ResumeError) as caught:
        await harness.resume(run.snapshot, None, answers="yes")
    assert all(request.id in str(caught.value) for request in run.interrupts)


async def test_a_missing_or_foreign_answer_runs_nothing() -> None:
    model = ScriptedModel([call("pay", amount=1)])
    harness = AgentHarness(model=model, tools=[pay])
    run = await harness.invoke(None, "go")
    with pytest.raises(ResumeError, match="waits"):
        await harness.resume(run.snapshot, None)
    with pytest.raises(ResumeError, match="nobody"):
        await harness.resume(run.snapshot, None, answers={"nobody": 1})
    assert ran == []


async def test_a_hook_interrupts_before_the_next_model_call_and_the_run_goes_on_there() -> None:
    asked = False

    @before_tool
    def gate(ctx: RunContext[None], call: ToolCall) -> None:
        nonlocal asked
        if not asked:
            asked = True
            ctx.request_control(Interrupt("look at this", {"n": 1}))

    model = ScriptedModel([call("look", what="x"), say("done")])
    harness = AgentHarness(model=model, tools=[look], middleware=[gate])
    run = await harness.invoke(None, "go")
    assert run.status == "interrupted"
    assert model.calls == 1
    assert run.interrupts[0].payload == {"message": "look at this", "payload": {"n": 1}}
    run = await harness.resume(stored(run.snapshot), None, answers={run.interrupts[0].id: True})
    assert (run.status, run.text) == ("completed", "done")
    assert ran == ["look x"]


async def test_a_hook_sees_the_answer_to_its_interrupt() -> None:
    seen: list[object] = []

    @before_model
    def gate(ctx: RunContext[None], request: ModelRequest) -> None:
        seen.append(dict(ctx.answers))
        if not ctx.answers:
            ctx.request_control(Interrupt("may I?"))

    model = ScriptedModel([say("done")])
    harness = AgentHarness(model=model, middleware=[gate])
    run = await harness.invoke(None, "go")
    assert model.calls == 0
    (request,) = run.interrupts
    run = await harness.resume(stored(run.snapshot), None, answers={request.id: "yes"})
    assert (run.status, run.text) == ("completed", "done")
    assert seen == [{}, {request.id: "yes"}]


async def test_a_hook_that_stops_the_run_before_the_model_saves_the_call() -> None:
    @before_model
    def stop(ctx: RunContext[None], request: ModelRequest) -> None:
        ctx.request_control(StopWithFinal("closed"))

    model = ScriptedModel([say("never")])
    run = await AgentHarness(model=model, middleware=[stop]).invoke(None, "go")
    assert (run.text, model.calls, run.model_calls) == ("closed", 0, 0)


async def test_a_hook_ends_the_run_with_a_final_answer_of_its_own() -> None:
    @after_model
    def stop(ctx: RunContext[None], response: ModelResponse) -> None:
        ctx.request_control(StopWithFinal("closed"))

    model = ScriptedModel([call("look", what="x")])
    harness = AgentHarness(model=model, tools=[look], middleware=[stop])
    run = await harness.invoke(None, "go")
    assert (run.status, run.text, run.reason) == ("stopped", "closed", "stop_with_final")
    assert ran == []
    assert not repair_messages(run.messages).changed
    kinds = [event.kind for event in run.events]
    assert kinds[-2:] == ["control.applied", "run.completed"]


async def test_an_interrupt_wins_over_a_stop() -> None:
    @before_model
    def both(ctx: RunContext[None], request: ModelRequest) -> None:
        ctx.request_control(Interrupt("wait"))
        ctx.request_control(StopWithFinal("closed"))

    run = await AgentHarness(model=ScriptedModel([say("x")]), middleware=[both]).invoke(None, "go")
    assert run.status == "interrupted"


async def test_stepping_through_the_phases_gives_the_run_that_invoke_gives() -> None:
    script: list[Step] = [[call("look", what="x"), call("look", what="y")], say("done")]
    harness = AgentHarness(model=ScriptedModel(script), tools=[look])
    snapshot = harness.snapshot("go")
    phases = []
    while snapshot.phase != "done":
        phases.append(snapshot.phase)
        snapshot = await harness.step(stored(snapshot), None)
    assert phases == [
        "start",
        "prepare",
        "call_model",
        "decide",
        "call_tools",
        "prepare",
        "call_model",
        "decide",
        "finish",
    ]
    direct = await AgentHarness(model=ScriptedModel(script), tools=[look]).invoke(None, "go")
    assert [m.text for m in snapshot.messages] == [m.text for m in direct.messages]
    assert snapshot.status == "completed"
    with pytest.raises(ResumeError):
        await harness.step(snapshot, None)


async def test_what_a_hook_asks_for_takes_effect_between_steps_too() -> None:
    @after_model
    def approve(ctx: RunContext[None], response: ModelResponse) -> None:
        if response.message.tool_calls:
            ctx.request_control(Interrupt("approve?"))

    model = ScriptedModel([call("look", what="x"), say("done")])
    harness = AgentHarness(model=model, tools=[look], middleware=[approve])
    snapshot = harness.snapshot("go")
    while snapshot.phase != "done":
        snapshot = await harness.step(stored(snapshot), None)
    assert (snapshot.status, ran) == ("interrupted", [])
    run = await harness.resume(snapshot, None, answers="yes")
    assert (run.status, run.text, ran) == ("completed", "done", ["look x"])


async def test_a_run_that_failed_asks_again_when_it_is_resumed() -> None:
    model = ScriptedModel([fail(ServerError("down", retryable=False)), say("up")])
    harness = AgentHarness(model=model)
    with pytest.raises(ServerError) as caught:
        await harness.invoke(None, "hi")
    assert caught.value.run is not None
    run = await harness.resume(stored(caught.value.run.snapshot), None)
    assert (run.status, run.text) == ("completed", "up")


async def test_limits_and_tags_of_a_resumed_run_can_be_set_anew_but_not_its_identity() -> None:
    model = ScriptedModel([[call("pay", amount=1)], call("look", what="x"), say("done")])
    harness = AgentHarness(model=model, tools=[pay, look])
    run = await harness.invoke(None, "go", config=RunConfig(tags=("a",)))
    answers = {run.interrupts[0].id: "ok"}
    with pytest.raises(ResumeError, match="thread_id"):
        await harness.resume(
            run.snapshot, None, answers=answers, config=RunConfig(thread_id="other")
        )
    config = RunConfig(limits=RunLimits(max_model_calls=2), tags=("b",))
    with pytest.raises(LimitExceededError) as caught:
        await harness.resume(run.snapshot, None, answers=answers, config=config)
    assert caught.value.run is not None
    assert caught.value.run.snapshot.config.tags == ("a", "b")


async def test_answers_without_a_snapshot_are_refused() -> None:
    with pytest.raises(InvalidRequestError, match="snapshot"):
        await AgentHarness(model=ScriptedModel([])).invoke(None, "hi", answers={"x": 1})


@pytest.mark.parametrize("payload", [object(), {1, 2}])
async def test_a_question_without_a_json_form_is_the_tools_failure(payload: object) -> None:
    @tool
    async def odd(ctx: ToolContext[None]) -> str:
        """Ask what nobody could store."""
        return str(ctx.ask(payload))  # type: ignore[arg-type]

    model = ScriptedModel([call("odd"), say("done")])
    run = await AgentHarness(model=model, tools=[odd]).invoke(None, "go")
    assert run.status == "completed"
    assert "the question of the tool `odd` is no JSON" in run.messages[2].text


async def test_a_request_of_a_hook_is_storable_or_refused_where_it_is_made() -> None:
    with pytest.raises(InvalidRequestError, match="interrupt"):
        Interrupt("wait", object())  # type: ignore[arg-type]
    assert Interrupt("\ud800", {"a": ["\ud800"]}) == Interrupt("\ufffd", {"a": ["\ufffd"]})
    assert StopWithFinal("\ud800").text == "\ufffd"
