"""Calls that wait for a person: mixed decisions, several at once, and a run in another process."""

import gc
import json
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any

import pytest

from tinyagents import AgentHarness, RunSnapshot, ToolContext, ToolMessage, tool
from tinyagents.harness.approval import Approve, Edit, Reject, Respond
from tinyagents.harness.errors import ResumeError
from tinyagents.harness.tool import Tool, ToolAccess, ToolPolicy
from tinyagents.testkit import ScriptedModel, assert_event_grammar, call, say

from . import nested_payment

GATED = ToolPolicy(access=ToolAccess(approval_required=True))


def counting(name: str, ran: list[tuple[str, int]], policy: ToolPolicy | None = None) -> Tool:
    """A tool that notes its calls."""

    @tool(name=name, policy=policy)
    async def counted(n: int = 0) -> str:
        """Count."""
        ran.append((name, n))
        return f"{name} {n}"

    return counted


# C52


async def test_a_batch_takes_a_decision_for_each_call_and_one_model_call_follows() -> None:
    ran: list[tuple[str, int]] = []
    tools = [counting("a", ran), *(counting(name, ran, GATED) for name in "bcde")]
    model = ScriptedModel([[call("a"), *(call(name, n=1) for name in "bcde")], say("done")])
    harness = AgentHarness(model=model, tools=tools)
    run = await harness.invoke(None, "go")
    by_tool = {asked.tool_name: asked.id for asked in run.interrupts}
    decisions = {
        by_tool["b"]: Approve(),
        by_tool["c"]: Reject(reason="not today"),
        by_tool["d"]: Edit(arguments={"n": 2}),
        by_tool["e"]: Respond(content="done by hand"),
    }
    stored = run.snapshot.model_dump_json()
    run = await harness.resume(stored, None, answers=decisions)
    assert run.status == "completed"
    assert sorted(ran) == [("a", 0), ("b", 1), ("d", 2)]
    assert model.calls == 2
    results = [
        message for message in model.requests[1].messages if isinstance(message, ToolMessage)
    ]
    assert [message.name for message in results] == ["a", "b", "c", "d", "e"]
    assert [message.is_error for message in results] == [False, False, True, False, False]
    assert "not today" in results[2].text
    assert '{"n":2}' in results[3].text
    assert results[3].text.endswith("d 2")
    assert results[4].text == "done by hand"
    assert_event_grammar(run.events)


# C53


@tool
async def confirm(what: str, ctx: ToolContext[None]) -> str:
    """Ask."""
    return f"{what}: {ctx.ask(what)}"


@pytest.mark.parametrize("kind", ["approval", "question"])
async def test_three_calls_that_wait_are_answered_two_now_and_one_later(kind: str) -> None:
    ran: list[tuple[str, int]] = []
    tools: list[Tool] = [counting("p", ran, GATED), confirm]
    gated = kind == "approval"
    calls = [call("p", n=n) if gated else call("confirm", what=str(n)) for n in (1, 2, 3)]
    harness = AgentHarness(model=ScriptedModel([calls, say("done")]), tools=tools)
    run = await harness.invoke(None, "go")
    first, second, third = (asked.id for asked in run.interrupts)
    assert len({first, second, third}) == 3
    loaded = RunSnapshot.model_validate_json(run.snapshot.model_dump_json())
    assert [asked.id for asked in loaded.interrupts] == [first, second, third]

    def answer(number: int) -> Any:
        return Respond(content=f"{number}!") if gated else f"{number}!"

    run = await harness.resume(loaded, None, answers={third: answer(3), first: answer(1)})
    assert (run.status, [asked.id for asked in run.interrupts]) == ("interrupted", [second])
    stored = run.snapshot.model_dump_json()
    run = await harness.resume(stored, None, answers={second: answer(2)})
    assert run.status == "completed"
    texts = [message.text for message in run.messages if isinstance(message, ToolMessage)]
    prefix = ["", "", ""] if gated else ["1: ", "2: ", "3: "]
    assert texts == [f"{said}{number}!" for said, number in zip(prefix, "123", strict=True)]
    assert ran == []


async def test_one_bare_answer_while_three_wait_is_an_error_that_lists_them() -> None:
    ran: list[tuple[str, int]] = []
    model = ScriptedModel([[call("p", n=n) for n in (1, 2, 3)], say("done")])
    harness = AgentHarness(model=model, tools=[counting("p", ran, GATED)])
    run = await harness.invoke(None, "go")
    with pytest.raises(ResumeError) as caught:
        await harness.resume(run.snapshot, None, answers=Approve())
    assert all(asked.id in caught.value.message for asked in run.interrupts)
    assert ran == []


async def test_one_bare_answer_is_for_the_only_call_that_waits() -> None:
    ran: list[tuple[str, int]] = []
    model = ScriptedModel([call("p", n=1), say("done")])
    harness = AgentHarness(model=model, tools=[counting("p", ran, GATED)])
    run = await harness.invoke(None, "go")
    run = await harness.resume(run.snapshot, None, answers=Approve())
    assert (run.status, ran) == ("completed", [("p", 1)])


# C55


def process(what: str, file: Path) -> dict[str, Any]:
    """What a process of its own reports."""
    script = str(Path(nested_payment.__file__))
    command = [sys.executable, script, what, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def test_a_nested_approval_is_given_in_another_process(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    asked = process("ask", file)
    assert (asked["status"], asked["paid"], len(asked["asked"])) == ("interrupted", [], 1)
    answered = process("answer", file)
    assert (answered["status"], answered["asked"]) == ("completed", [])
    assert answered["paid"] == ["5 by second"]
    assert answered["text"] == "said: said: paid 5"
    assert asked["tokens"] == asked["spent"] > 0
    assert answered["tokens"] == asked["spent"] + answered["spent"]


async def test_a_nested_approval_outlives_every_object_of_the_run() -> None:
    harness = nested_payment.build()
    run = await harness.invoke(None, "go", data={"user": "first"})
    stored, gone = run.snapshot.model_dump_json(), weakref.ref(harness)
    del harness, run
    gc.collect()
    assert gone() is None
    nested_payment.paid.clear()
    snapshot = RunSnapshot.model_validate_json(stored)
    answers = {snapshot.interrupts[0].id: Approve()}
    again = await nested_payment.build().resume(
        snapshot, None, answers=answers, data={"user": "second"}
    )
    assert (again.status, nested_payment.paid) == ("completed", ["5 by second"])
