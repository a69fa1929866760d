"""A run inside a tool call waits for somebody outside, and the run around it waits with it."""

import json
from collections.abc import Callable
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from pydantic import BaseModel

from tinyagents import (
    AgentHarness,
    AgentRun,
    Interrupt,
    RunContext,
    ToolContext,
    ToolMessage,
    tool,
)
from tinyagents.harness.approval import Approve, Edit, Reject
from tinyagents.harness.errors import (
    ApprovalError,
    InvalidRequestError,
    ResumeError,
    ServerError,
)
from tinyagents.harness.middleware import before_model
from tinyagents.harness.model import ModelRequest
from tinyagents.harness.tool import ToolAccess, ToolPolicy
from tinyagents.testkit import (
    ScriptedModel,
    Step,
    assert_event_grammar,
    call,
    fail,
    say,
)

ran: list[str] = []


@pytest.fixture(autouse=True)
def _clean() -> None:
    ran.clear()


@tool(policy=ToolPolicy(access=ToolAccess(approval_required=True)))
async def pay(amount: int) -> str:
    """Pay."""
    ran.append(f"pay {amount}")
    return f"paid {amount}"


@tool
async def look(what: str) -> str:
    """Look."""
    ran.append(f"look {what}")
    return what


def child(*script: Step, name: str = "child", tools: tuple[Any, ...] = (pay, look)) -> AgentHarness:
    return AgentHarness(model=ScriptedModel(script), tools=tools, name=name)


def around(body: Callable[[ToolContext[Any]], Any], *more: Step, retries: int = 0) -> AgentHarness:
    """An agent with a tool of that body, which it calls once."""

    @tool(idempotent=True, retries=retries)
    async def delegate(ctx: ToolContext[Any]) -> str:
        """Ask other agents."""
        said: str = await body(ctx)
        return said

    model = ScriptedModel([*(more or (call("delegate"),)), say("done")])
    return AgentHarness(model=model, tools=[delegate, look, pay], name="parent")


def stored(run: AgentRun[Any, Any]) -> dict[str, Any]:
    snapshot: dict[str, Any] = json.loads(run.snapshot.model_dump_json())
    return snapshot


def results(run: AgentRun[Any, Any]) -> list[str]:
    return [message.text for message in run.messages if isinstance(message, ToolMessage)]


async def test_what_a_run_inside_a_call_waits_for_the_outer_run_waits_for() -> None:
    inner = child([call("pay", amount=1), call("pay", amount=2), call("look", what="x")], say("in"))

    async def ask(ctx: ToolContext[Any]) -> str:
        return (await inner.invoke(None, "help", context=ctx)).text

    harness = around(ask, [call("delegate"), call("look", what="y")])
    run = await harness.invoke(None, "go")
    assert (run.status, sorted(ran)) == ("interrupted", ["look x", "look y"])
    first, second = run.interrupts
    assert first.id != second.id
    outer_call = run.messages[1].tool_calls[0].id  # type: ignore[union-attr]
    assert first.id.startswith(f"{outer_call}/")
    assert (first.call_id, first.tool_name) == (outer_call, "delegate")
    request = first.approval
    assert request is not None
    assert (request.tool_name, request.arguments) == ("pay", {"amount": 1})
    assert_event_grammar(run.events)

    events = list(run.events)
    run = await harness.resume(stored(run), None, answers={second.id: Approve()})
    assert (run.status, ran[2:]) == ("interrupted", ["pay 2"])
    assert [asked.id for asked in run.interrupts] == [first.id]
    events += run.events
    run = await harness.resume(stored(run), None, answers={first.id: Reject(reason="no")})
    assert (run.status, ran[2:]) == ("completed", ["pay 2"])
    assert results(run) == ["in", "y"]
    assert_event_grammar([*events, *run.events])
    assert run.snapshot.pending == []


async def test_the_inner_run_goes_on_and_is_paid_for_once() -> None:
    inner = child(call("look", what="x"), call("pay", amount=1), say("in"))

    async def ask(ctx: ToolContext[Any]) -> str:
        run = await inner.invoke(None, "help", context=ctx)
        assert run.model_calls == 3
        assert run.tool_calls == 2
        return run.text

    harness = around(ask)
    waits = await harness.invoke(None, "go")
    run = await harness.resume(stored(waits), None, answers={waits.interrupts[0].id: Approve()})
    assert (ran, run.tool_calls) == (["look x", "pay 1"], 1)
    spent = [
        event.usage.total_tokens  # type: ignore[attr-defined]
        for event in (*waits.events, *run.events)
        if event.kind == "usage.recorded"
    ]
    assert len(spent) == 5
    assert run.usage.total_tokens == sum(spent)
    assert waits.usage.total_tokens == sum(spent[:3])
    inner_ids = {e.run_id for e in (*waits.events, *run.events)} - {run.run_id}
    assert len(inner_ids) == 1


async def test_answers_of_a_run_inside_are_checked_before_anything_runs() -> None:
    inner = child(call("pay", amount=1), say("in"))

    async def ask(ctx: ToolContext[Any]) -> str:
        return (await inner.invoke(None, "help", context=ctx)).text

    harness = around(ask)
    run = await harness.invoke(None, "go")
    (asked,) = run.interrupts
    for answer in (True, "yes", {"kind": "maybe"}):
        with pytest.raises(ApprovalError):
            await harness.resume(stored(run), None, answers={asked.id: answer})
    with pytest.raises(ResumeError, match="no question is open"):
        await harness.resume(stored(run), None, answers={asked.id.split("/")[-1]: Approve()})
    run = await harness.resume(
        stored(run), None, answers={asked.id: Edit(arguments={"amount": "lots"})}
    )
    # Only the agent inside knows the tool: it asks anew, and says why.
    assert (run.status, ran) == ("interrupted", [])
    (again,) = run.interrupts
    assert again.approval is not None
    assert "do not fit" in str(again.approval.problem)
    answers = {again.id: Edit(arguments={"amount": 7})}
    run = await harness.resume(stored(run), None, answers=answers)
    assert (run.status, ran) == ("completed", ["pay 7"])


async def test_runs_that_had_ended_when_the_call_was_interrupted_are_not_run_again() -> None:
    class Found(BaseModel):
        where: str

    finder = child(call("look", what="x"), say('{"where": "Oslo"}'), name="finder")
    payer = child(call("pay", amount=1), say("in"), name="payer")

    async def ask(ctx: ToolContext[Any]) -> str:
        found = await finder.invoke(None, f"find {len(ran)}", context=ctx, output=Found)
        assert (found.status, found.model_calls) == ("completed", 2)
        paid = await payer.invoke(None, f"pay {found.output.where}", context=ctx)
        return f"{found.output.where}: {paid.text}"

    harness = around(ask)
    run = await harness.invoke(None, "go")
    run = await harness.resume(stored(run), None, answers={run.interrupts[0].id: Approve()})
    assert (run.status, ran, results(run)) == ("completed", ["look x", "pay 1"], ["Oslo: in"])


async def test_runs_of_one_agent_in_one_call_are_told_apart_by_input_and_order() -> None:
    inner = AgentHarness(
        model=ScriptedModel.per_run([lambda request: _pay_what_is_said(request), say("in")]),
        tools=[pay],
    )

    async def ask(ctx: ToolContext[Any]) -> str:
        said: list[str] = []
        for amount in (1, 2):
            run = await inner.invoke(None, str(amount), context=ctx)
            said.append(f"{amount} {run.text}")
        return ", ".join(said)

    harness = around(ask)
    run = await harness.invoke(None, "go")
    asked: list[str] = []
    while run.status == "interrupted":
        (request,) = run.interrupts
        asked.append(request.id)
        run = await harness.resume(stored(run), None, answers={request.id: Approve()})
    assert (ran, results(run)) == (["pay 1", "pay 2"], ["1 in, 2 in"])
    assert len(set(asked)) == 2


def _pay_what_is_said(request: ModelRequest) -> Any:
    return call("pay", amount=int(request.messages[-1].text))


async def test_runs_side_by_side_in_one_call_wait_and_go_on_each_for_itself() -> None:
    inner = AgentHarness(
        model=ScriptedModel.per_run([lambda request: _pay_what_is_said(request), say("in")]),
        tools=[pay],
    )

    async def ask(ctx: ToolContext[Any]) -> str:
        said: dict[int, str] = {}

        async def one(amount: int) -> None:
            said[amount] = (await inner.invoke(None, str(amount), context=ctx)).text

        async with anyio.create_task_group() as tasks:
            for amount in (1, 2, 3):
                tasks.start_soon(one, amount)
        return str(sorted(said))

    harness = around(ask)
    run = await harness.invoke(None, "go")
    for _ in range(10):
        if run.status != "interrupted":
            break
        answers = {request.id: Approve() for request in run.interrupts}
        run = await harness.resume(stored(run), None, answers=answers)
    assert (run.status, results(run)) == ("completed", ["[1, 2, 3]"])
    assert sorted(ran) == ["pay 1", "pay 2", "pay 3"]


async def test_a_question_and_a_hooks_interrupt_inside_pass_outward_too() -> None:
    @tool
    async def where(ctx: ToolContext[None]) -> str:
        """Ask where."""
        return f"to {ctx.ask('where to?')}"

    @before_model
    def gate(ctx: RunContext[None], request: ModelRequest) -> None:
        if not ctx.answers:
            ctx.request_control(Interrupt("may I?"))

    inner = AgentHarness(
        model=ScriptedModel([call("where"), say("in")]), tools=[where], middleware=[gate]
    )

    async def ask(ctx: ToolContext[Any]) -> str:
        run = await inner.invoke(None, "help", context=ctx)
        return run.messages[-2].text

    harness = around(ask)
    run = await harness.invoke(None, "go")
    assert run.interrupts[0].payload == {"message": "may I?", "payload": None}
    run = await harness.resume(stored(run), None, answers="yes")
    assert run.interrupts[0].payload == "where to?"
    run = await harness.resume(stored(run), None, answers={run.interrupts[0].id: "Oslo"})
    assert results(run) == ["to Oslo"]


async def test_a_run_two_levels_down_waits_through_both() -> None:
    deepest = child(call("pay", amount=1), say("deep"), name="deepest")

    @tool
    async def deeper(ctx: ToolContext[None]) -> str:
        """Ask the deepest."""
        return (await deepest.invoke(None, "help", context=ctx)).text

    middle = child(call("deeper"), say("middle"), tools=(deeper,), name="middle")

    async def ask(ctx: ToolContext[Any]) -> str:
        return (await middle.invoke(None, "help", context=ctx)).text

    harness = around(ask)
    run = await harness.invoke(None, "go")
    (asked,) = run.interrupts
    assert asked.approval is not None
    assert asked.id.count("/") == 4
    run = await harness.resume(stored(run), None, answers={asked.id: Approve()})
    assert (run.status, ran, results(run)) == ("completed", ["pay 1"], ["middle"])
    assert_event_grammar(run.events)


async def test_an_approval_inside_does_not_stand_for_the_run_around_nor_the_reverse() -> None:
    inner = child(call("pay", amount=1), call("pay", amount=2), say("in"))

    async def ask(ctx: ToolContext[Any]) -> str:
        return (await inner.invoke(None, "help", context=ctx)).text

    harness = around(ask, call("pay", amount=9), call("delegate"), call("pay", amount=9))
    run = await harness.invoke(None, "go")
    always = Approve(remember="same_arguments")
    run = await harness.resume(stored(run), None, answers={run.interrupts[0].id: always})
    assert (run.status, ran) == ("interrupted", ["pay 9"])
    answers = {run.interrupts[0].id: Approve(remember="tool")}
    run = await harness.resume(stored(run), None, answers=answers)
    assert (run.status, ran) == ("completed", ["pay 9", "pay 1", "pay 2", "pay 9"])
    assert [rule.arguments_hash is None for rule in run.snapshot.approval_rules] == [False]


async def test_a_run_that_failed_after_its_pause_begins_anew_when_the_call_is_tried_again() -> None:
    inner = child(
        call("pay", amount=1),
        fail(ServerError("down", retryable=False)),
        call("pay", amount=2),
        say("in"),
    )

    async def ask(ctx: ToolContext[Any]) -> str:
        try:
            return (await inner.invoke(None, "help", context=ctx)).text
        except ServerError as error:
            raise OSError("try again") from error

    harness = around(ask, retries=1)
    harness = harness.replace(sleep=_no_sleep)
    run = await harness.invoke(None, "go")
    first = run.interrupts[0].id
    run = await harness.resume(stored(run), None, answers={first: Approve()})
    # What comes after the pause may have had effects, so that nothing is taken as approved.
    assert (run.status, ran) == ("interrupted", ["pay 1"])
    assert run.interrupts[0].id != first
    run = await harness.resume(stored(run), None, answers={run.interrupts[0].id: Approve()})
    assert (run.status, ran) == ("completed", ["pay 1", "pay 2"])


async def _no_sleep(seconds: float) -> None:
    await anyio.lowlevel.checkpoint()


async def test_under_its_runs_context_a_tool_sees_the_interrupt_and_may_answer_itself() -> None:
    inner = child(call("pay", amount=1), say("in"))

    async def ask(ctx: ToolContext[Any]) -> str:
        run = await inner.invoke(None, "help", context=ctx.run)
        assert run.status == "interrupted"
        answers = {run.interrupts[0].id: Approve()}
        run = await inner.resume(run.snapshot, None, answers=answers, context=ctx.run)
        return run.text

    run = await around(ask).invoke(None, "go")
    assert (run.status, results(run), ran) == ("completed", ["in"], ["pay 1"])


async def test_a_snapshot_is_not_an_input_of_a_run_that_is_kept_with_its_call() -> None:
    inner = child(say("in"))
    refused: list[str] = []

    async def ask(ctx: ToolContext[Any]) -> str:
        try:
            await inner.invoke(None, inner.snapshot("hi"), context=ctx)
        except InvalidRequestError as error:
            refused.append(error.message)
        return "x"

    await around(ask).invoke(None, "go")
    assert "context=ctx.run" in refused[0]


async def test_what_is_kept_of_runs_inside_goes_with_the_call() -> None:
    inner = child(say("in"))

    async def ask(ctx: ToolContext[Any]) -> str:
        return (await inner.invoke(None, "help", context=ctx)).text

    harness = around(ask, [call("delegate"), call("pay", amount=1)])
    run = await harness.invoke(None, "go")
    assert run.status == "interrupted"
    assert [pending.nested for pending in run.snapshot.pending] == [[], []]
