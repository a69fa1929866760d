"""What resuming makes of snapshots, answers and arguments that are not what a run has left."""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from itertools import product
from types import MappingProxyType
from typing import Any, get_args

import pytest
from pydantic import BaseModel, ValidationError

from tinyagents import (
    AgentHarness,
    AssistantMessage,
    Message,
    RunConfig,
    RunSnapshot,
    ToolContext,
    ToolMessage,
    UserMessage,
    tool,
)
from tinyagents.harness.agent_loop import PendingCall, Phase
from tinyagents.harness.errors import InvalidRequestError, ResumeError, TinyAgentsError
from tinyagents.harness.events import RunStatus
from tinyagents.testkit import ScriptedModel, call, say

Change = Callable[[dict[str, Any]], object]


@tool
async def pay(amount: int, ctx: ToolContext[None]) -> str:
    """Pay, once somebody agrees."""
    return f"paid {amount}: {ctx.ask(amount)}"


async def interrupted() -> tuple[AgentHarness, RunSnapshot]:
    """Return a run that waits for two answers, and its agent."""
    model = ScriptedModel([[call("pay", amount=1), call("pay", amount=2)], say("done")])
    agent = AgentHarness(model=model, tools=[pay])
    return agent, (await agent.invoke(None, "go")).snapshot


def answered(snapshot: RunSnapshot) -> dict[str, str]:
    return {request.id: "yes" for request in snapshot.interrupts}


def at(phase: str) -> Change:
    """Return a change to a run that goes on at ``phase``."""
    return lambda data: data.update(status="running", phase=phase)


def unasked_at(phase: str) -> Change:
    """Return a change to a run that goes on at ``phase``, without an answer of the model."""
    return lambda data: data.update(
        status="running", phase=phase, pending=[], messages=data["messages"][:1]
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda data: data["pending"].pop(0), "pending"),
        (lambda data: data["pending"].reverse(), "pending"),
        (lambda data: data["pending"][0].update(call_id="other"), "other"),
        (lambda data: data["messages"].pop(), "pending"),
        (lambda data: data.update(messages=[]), "no messages"),
        (lambda data: data.update(pending=[]), "no result"),
        (lambda data: data.update(pending=[], resume_phase="done"), "done"),
        (unasked_at("decide"), "`decide`.*user"),
        (unasked_at("structured"), "`structured`.*user"),
        (unasked_at("call_tools"), "`call_tools`"),
        (at("prepare"), "no result"),
        (at("start"), "start"),
        (at("finish"), "finish.*running"),
    ],
)
async def test_a_snapshot_that_contradicts_itself_is_refused_and_says_where(
    change: Change, said: str
) -> None:
    agent, snapshot = await interrupted()
    data = json.loads(snapshot.model_dump_json())
    change(data)
    with pytest.raises(ResumeError, match=f"contradicts itself.*{said}"):
        await agent.resume(data, None, answers=answered(snapshot))


async def test_a_result_of_another_call_is_no_result() -> None:
    agent, snapshot = await interrupted()
    snapshot.pending[0].result = ToolMessage(tool_call_id="other", content="x")
    with pytest.raises(ResumeError, match="contradicts itself.*other"):
        await agent.resume(snapshot, None, answers={snapshot.interrupts[1].id: "yes"})


async def test_a_phase_that_does_not_exist_is_refused() -> None:
    agent = AgentHarness(model=ScriptedModel([]))
    snapshot = agent.snapshot("hi")
    snapshot.phase = "nowhere"  # type: ignore[assignment]
    with pytest.raises(ResumeError, match="nowhere"):
        await agent.resume(snapshot, None)
    with pytest.raises(ResumeError, match="nowhere"):
        await agent.step(snapshot, None)


@pytest.mark.parametrize("stepped", [False, True])
async def test_no_combination_of_a_snapshots_parts_fails_in_another_way(stepped: bool) -> None:
    _, snapshot = await interrupted()
    agent = AgentHarness(model=ScriptedModel.per_run([say("done")]), tools=[pay])
    waiting = snapshot.pending
    user, answer = snapshot.messages
    histories: list[list[Message]] = [
        [],
        [user],
        [user, answer],
        [user, answer, UserMessage(content="hm")],
        [user, AssistantMessage(content="x")],
        [user, answer, ToolMessage(tool_call_id=waiting[0].call_id, content="x")],
    ]
    turns = [[], waiting, waiting[:1], [PendingCall("other")], [*waiting, *waiting]]
    statuses: tuple[RunStatus, ...] = ("running", "completed", "interrupted", "paused", "failed")
    later: tuple[Phase | None, ...] = (None, "structured", "call_tools", "done")
    worked = 0
    combinations = product(get_args(Phase), statuses, histories, turns, later)
    for number, (phase, status, messages, pending, resume_phase) in enumerate(combinations):
        tampered = RunSnapshot(
            config=RunConfig(run_id=f"run_{number}", root_run_id=f"run_{number}"),
            phase=phase,
            status=status,
            messages=messages,
            pending=pending,
            interrupts=snapshot.interrupts,
            resume_phase=resume_phase,
        )
        try:
            if stepped:
                await agent.step(tampered, None)
            else:
                await agent.resume(tampered, None, answers=answered(snapshot))
        except TinyAgentsError:
            continue
        worked += 1
    assert worked > 0


async def test_a_run_that_was_stored_before_its_last_phase_ends_as_it_would_have() -> None:
    agent = AgentHarness(model=ScriptedModel([say("done")]))
    snapshot = agent.snapshot("hi")
    while snapshot.phase != "finish":
        snapshot = await agent.step(snapshot, None)
    run = await agent.resume(snapshot, None)
    assert (run.status, run.text, run.snapshot.phase) == ("completed", "done", "done")


async def test_a_typed_answer_that_is_yet_to_be_read_needs_its_type() -> None:
    agent = AgentHarness(model=ScriptedModel([say("[1]")]))
    snapshot = agent.snapshot("hi")
    while snapshot.phase != "structured":
        snapshot = await agent.step(snapshot, None, output=list[int])
    with pytest.raises(ResumeError, match="output="):
        await agent.resume(snapshot, None)
    run = await agent.resume(snapshot, None, output=list[int])
    assert run.output == [1]


@pytest.mark.parametrize("news", [{}, {"a_new_field": 1}, {"phase": "a_new_phase"}])
async def test_a_snapshot_of_another_version_says_so_before_anything_else(
    news: dict[str, object],
) -> None:
    agent, snapshot = await interrupted()
    data = {**json.loads(snapshot.model_dump_json()), "version": 3, **news}
    said = "version 3.*version 2"
    with pytest.raises(ResumeError, match=said):
        RunSnapshot.model_validate_json(json.dumps(data))
    with pytest.raises(ResumeError, match=said):
        RunSnapshot.model_validate(data)
    with pytest.raises(ResumeError, match=said):
        await agent.resume(data, None)


@pytest.mark.parametrize("data", ["{}", "[]", "nothing", '{"version": "x"}', b"\xff"])
def test_what_is_no_snapshot_at_all_fails_to_load_with_the_place(data: str | bytes) -> None:
    with pytest.raises(ValidationError, match="RunSnapshot"):
        RunSnapshot.model_validate_json(data)


STORED: list[Callable[[str], str | bytes | Mapping[str, Any]]] = [
    str,
    str.encode,
    json.loads,
    lambda text: MappingProxyType(json.loads(text)),
]


@pytest.mark.parametrize("store", STORED, ids=["text", "bytes", "dict", "mapping"])
async def test_a_run_goes_on_from_whatever_it_was_stored_as(
    store: Callable[[str], str | bytes | Mapping[str, Any]],
) -> None:
    agent, snapshot = await interrupted()
    stored = store(snapshot.model_dump_json())
    run = await agent.resume(stored, None, answers=answered(snapshot))
    assert (run.status, run.text) == ("completed", "done")


async def test_a_snapshot_survives_being_stored_as_a_dict() -> None:
    _, snapshot = await interrupted()
    assert RunSnapshot.model_validate(json.loads(snapshot.model_dump_json())) == snapshot
    assert RunSnapshot.model_validate(snapshot) is snapshot


@pytest.mark.parametrize(
    ("garbage", "said"),
    [
        ("", "JSON"),
        ("hello", "JSON"),
        ("\ud800", "`str`"),
        (b"\xff", "JSON"),
        ("[]", "`str`"),
        ({}, "config"),
        ({"config": {}, "messages": [], "_id": 7}, "_id"),
        (None, "`NoneType`.*pass the run's `snapshot`"),
        (object(), "`object`.*pass the run's `snapshot`"),
    ],
)
async def test_what_is_no_snapshot_is_refused_and_says_what_to_pass(
    garbage: Any, said: str
) -> None:
    with pytest.raises(ResumeError, match=said):
        await AgentHarness(model=ScriptedModel([])).resume(garbage, None)


class Approval(BaseModel):
    yes: bool = True


@pytest.mark.parametrize(
    "answer", [object(), {1, 2}, b"yes", datetime(2026, 1, 1, tzinfo=UTC), Approval(), [object()]]
)
async def test_an_answer_that_cannot_be_stored_is_refused_before_anything_runs(
    answer: object,
) -> None:
    agent, snapshot = await interrupted()
    first, second = snapshot.interrupts
    with pytest.raises(ResumeError, match=f"`{first.id}` is no JSON"):
        await agent.resume(snapshot, None, answers={first.id: answer, second.id: "yes"})
    with pytest.raises(ResumeError, match="is no JSON"):
        await agent.invoke(None, snapshot, answers={first.id: answer})


async def test_an_answer_is_kept_as_it_was_given_whatever_becomes_of_the_callers_object() -> None:
    agent, snapshot = await interrupted()
    first, _ = snapshot.interrupts
    answer = {"ids": (1, 2)}
    run = await agent.resume(snapshot, None, answers={first.id: answer})
    answer.clear()
    assert run.status == "interrupted"
    assert run.snapshot.pending[0].answers == {first.id: {"ids": [1, 2]}}
    assert RunSnapshot.model_validate_json(run.snapshot.model_dump_json()) == run.snapshot


async def test_an_input_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="`int`"):
        await AgentHarness(model=ScriptedModel([])).invoke(None, 5)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    "begin",
    [
        lambda agent, ctx: agent.stream(None, "hi", context=ctx),
        lambda agent, ctx: agent.start(None, "hi", context=ctx),
        lambda agent, ctx: agent.resume(agent.snapshot("hi"), None, context=ctx),
        lambda agent, ctx: agent.step(agent.snapshot("hi"), None, context=ctx),
        lambda agent, ctx: agent.invoke_model("hi", context=ctx),
    ],
    ids=["stream", "start", "resume", "step", "invoke_model"],
)
async def test_a_tools_context_is_not_taken_for_that_of_its_run(
    begin: Callable[[AgentHarness, Any], Any],
) -> None:
    inner = AgentHarness(model=ScriptedModel([]))
    refused: list[str] = []

    @tool
    async def delegate(ctx: ToolContext[None]) -> str:
        """Ask another agent."""
        try:
            await begin(inner, ctx)
        except InvalidRequestError as error:
            refused.append(error.message)
        return "x"

    model = ScriptedModel([call("delegate"), say("done")])
    await AgentHarness(model=model, tools=[delegate]).invoke(None, "go")
    assert refused == [
        "`context` is a `ToolContext`, not a `RunContext`: in a tool, pass `ctx.run`; "
        "only `invoke` takes a tool's own context"
    ]


async def test_a_config_that_is_none_is_refused_when_a_run_goes_on_too() -> None:
    agent, snapshot = await interrupted()
    config: Any = {"tags": ("a",)}
    with pytest.raises(InvalidRequestError, match="`dict`, not a `RunConfig`"):
        await agent.resume(snapshot, None, answers=answered(snapshot), config=config)
