"""Putting a shorter transcript in the place of the one so far, and what is kept with the run."""

from collections.abc import Sequence
from typing import Any

import pytest

from tinyagents import AgentHarness, RunContext, RunSnapshot, UserMessage
from tinyagents.harness.errors import InvalidRequestError
from tinyagents.harness.message import Message
from tinyagents.harness.middleware import Middleware, compact
from tinyagents.testkit import FakeTool, ScriptedModel, call, say

Ctx = RunContext[Any]
SUMMARY = UserMessage(content="[what was said before]")


class LastTurn(Middleware[Any]):
    """Keeps the first message and the last two."""

    async def compact(self, ctx: Ctx, messages: Sequence[Message]) -> Sequence[Message] | None:
        count = ctx.notes.get("turns", 0)
        assert isinstance(count, int)
        ctx.notes["turns"] = count + 1
        return None if len(messages) <= 3 else [SUMMARY, *messages[-2:]]


async def test_a_compacted_transcript_takes_the_place_of_the_old_one() -> None:
    model = ScriptedModel([call("look", q=1), call("look", q=2), say("done")])
    agent = AgentHarness(model=model, tools=[FakeTool("look", "found")], middleware=[LastTurn()])
    run = await agent.invoke(None, "go")
    assert [len(request.messages) for request in model.requests] == [1, 3, 3]
    assert run.messages[0] == SUMMARY
    assert [m.role for m in run.messages] == ["user", "assistant", "tool", "assistant"]
    assert [m.role for m in run.new_messages] == ["assistant", "tool", "assistant"]
    assert run.text == "done"


async def test_the_input_is_compacted_before_the_first_call() -> None:
    model = ScriptedModel([say("ok")])
    history: list[Message] = [UserMessage(content=str(n)) for n in range(9)]
    await AgentHarness(model=model, middleware=[LastTurn()]).invoke(None, history)
    assert [m.text for m in model.requests[0].messages] == [SUMMARY.text, "7", "8"]


async def test_an_orphan_that_a_hook_leaves_is_mended() -> None:
    @compact
    def cut(ctx: Ctx, messages: Sequence[Message]) -> Sequence[Message] | None:
        return [SUMMARY, messages[-1]] if messages[-1].role == "tool" else None

    model = ScriptedModel([call("look", q=1), say("done")])
    agent = AgentHarness(model=model, tools=[FakeTool("look", "found")], middleware=[cut])
    run = await agent.invoke(None, "go")
    assert [m.role for m in run.messages] == ["user", "assistant"]


async def test_a_hook_that_leaves_nothing_ends_the_run_with_its_transcript() -> None:
    @compact
    def empty(ctx: Ctx, messages: Sequence[Message]) -> Sequence[Message]:
        return []

    agent = AgentHarness(model=ScriptedModel([say("ok")]), middleware=[empty])
    with pytest.raises(InvalidRequestError, match="no message") as caught:
        await agent.invoke(None, "go")
    assert caught.value.run is not None
    assert [m.text for m in caught.value.run.messages] == ["go"]


async def test_a_conversation_that_goes_on_is_compacted_first() -> None:
    model = ScriptedModel([say("one"), say("two"), say("three")])
    agent = AgentHarness(model=model, middleware=[LastTurn()])
    run = await agent.invoke(None, "1")
    for text in ("2", "3"):
        run = await agent.resume(run.snapshot, None, input=text)
    assert [m.text for m in run.messages] == [SUMMARY.text, "two", "3", "three"]


async def test_compact_is_a_phase_of_its_own() -> None:
    model = ScriptedModel([call("look", q=1), say("done")])
    agent = AgentHarness(model=model, tools=[FakeTool("look", "found")], middleware=[LastTurn()])
    snapshot = await agent.step(agent.snapshot("go"), None)
    phases = [snapshot.phase]
    while snapshot.phase != "done":
        snapshot = await agent.step(snapshot, None)
        phases.append(snapshot.phase)
    turn = ["compact", "prepare", "call_model", "decide"]
    assert phases == [*turn, "call_tools", *turn, "finish", "done"]


async def test_notes_outlive_the_process_and_belong_to_one_run() -> None:
    model = ScriptedModel([say("one"), say("two"), say("other")])
    agent = AgentHarness(model=model, middleware=[LastTurn()])
    run = await agent.invoke(None, "1")
    stored = run.snapshot.model_dump_json()
    again = await agent.resume(RunSnapshot.model_validate_json(stored), None, input="2")
    assert (run.snapshot.notes, again.snapshot.notes) == ({"turns": 1}, {"turns": 2})
    assert (await agent.invoke(None, "x")).snapshot.notes == {"turns": 1}
