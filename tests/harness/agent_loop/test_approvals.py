"""Calls that run only when somebody agrees: what is asked, what may be answered, what then runs."""

import json
from typing import Annotated, Any

import anyio
import pytest

from tinyagents import (
    AgentHarness,
    AgentRun,
    CancellationToken,
    Injected,
    RunContext,
    RunLimits,
    RunPolicy,
    RunSnapshot,
    ToolContext,
    ToolMessage,
    tool,
)
from tinyagents.harness.approval import (
    Approve,
    Edit,
    ExternalCallRequest,
    Reject,
    Respond,
    arguments_hash,
)
from tinyagents.harness.errors import ApprovalError, ResumeError, RunCancelledError
from tinyagents.harness.message import TextBlock
from tinyagents.harness.middleware import ToolCall, before_tool
from tinyagents.harness.policy import PayloadCapture, UnknownToolPolicy
from tinyagents.harness.tool import Tool, ToolAccess, ToolDisplay, ToolPolicy
from tinyagents.testkit import (
    DeterministicClock,
    ScriptedModel,
    Step,
    assert_event_grammar,
    call,
    say,
)

GATED = ToolPolicy(access=ToolAccess(approval_required=True))

ran: list[str] = []


@pytest.fixture(autouse=True)
def _clean() -> None:
    ran.clear()


@tool(policy=GATED)
async def pay(amount: int, to: str = "ann") -> str:
    """Pay."""
    ran.append(f"pay {amount} {to}")
    return f"paid {amount}"


@tool
async def look(what: str) -> str:
    """Look."""
    ran.append(f"look {what}")
    return what


def agent(*script: Step, tools: tuple[Any, ...] = (pay, look), **options: Any) -> AgentHarness:
    return AgentHarness(model=ScriptedModel([*script, say("done")]), tools=tools, **options)


def stored(run: AgentRun[Any, Any]) -> dict[str, Any]:
    """The run as a database with a JSON column gives it back."""
    snapshot: dict[str, Any] = json.loads(run.snapshot.model_dump_json())
    return snapshot


def results(run: AgentRun[Any, Any]) -> list[ToolMessage]:
    return [message for message in run.messages if isinstance(message, ToolMessage)]


def approvals(run: AgentRun[Any, Any]) -> list[tuple[str, str | None]]:
    found = [event for event in run.events if event.kind == "tool.approval"]
    return [(event.action, event.source) for event in found]  # type: ignore[attr-defined]


async def test_a_call_that_needs_approval_waits_while_the_others_run() -> None:
    harness = agent([call("pay", amount=5), call("look", what="x")])
    run = await harness.invoke(None, "go")
    assert (run.status, ran, run.tool_calls) == ("interrupted", ["look x"], 1)
    (asked,) = run.interrupts
    request = asked.approval
    assert request is not None
    assert asked.external is None
    assert (request.call_id, request.tool_name) == (asked.call_id, "pay")
    assert request.arguments == {"amount": 5}
    assert request.arguments_hash == arguments_hash({"amount": 5})
    assert asked.id == request.id == f"{asked.call_id}:approve:{request.arguments_hash[:16]}"
    assert approvals(run) == [("requested", None)]
    assert not any(
        event.call_id == asked.call_id  # type: ignore[attr-defined]
        for event in run.events
        if event.kind == "tool.started"
    )
    assert_event_grammar(run.events)


async def test_an_approved_call_runs_once_and_its_siblings_not_again() -> None:
    harness = agent([call("pay", amount=5), call("look", what="x")])
    first = await harness.invoke(None, "go")
    run = await harness.resume(
        stored(first), None, answers={first.interrupts[0].id: Approve(by="ann")}
    )
    assert (run.status, run.text) == ("completed", "done")
    assert ran == ["look x", "pay 5 ann"]
    assert [message.text for message in results(run)] == ["paid 5", "x"]
    assert run.tool_calls == 2
    assert approvals(run) == [("approved", "answer")]
    assert_event_grammar([*first.events, *run.events])


async def test_a_rejected_call_does_not_run_and_the_model_reads_why() -> None:
    harness = agent(call("pay", amount=5))
    run = await harness.invoke(None, "go")
    answers = {run.interrupts[0].id: Reject(reason="too much")}
    run = await harness.resume(stored(run), None, answers=answers)
    (result,) = results(run)
    assert (ran, result.is_error, result.outcome) == ([], True, "not_started")
    assert "too much" in result.text
    assert run.status == "completed"


async def test_an_edited_call_runs_with_the_new_arguments_and_the_history_says_so() -> None:
    harness = agent(call("pay", amount=500))
    run = await harness.invoke(None, "go")
    answers = {run.interrupts[0].id: Edit(arguments={"amount": 5, "to": "bob"})}
    run = await harness.resume(stored(run), None, answers=answers)
    assert ran == ["pay 5 bob"]
    (result,) = results(run)
    note, own = result.content
    assert isinstance(note, TextBlock)
    assert isinstance(own, TextBlock)
    assert '{"amount":5,"to":"bob"}' in note.text
    assert own.text == "paid 5"
    assert run.messages[1].tool_calls[0].arguments == {"amount": 500}  # type: ignore[union-attr]


async def test_that_a_call_was_edited_is_seen_where_the_run_broke_off_after_it_too() -> None:
    token = CancellationToken()

    @tool(policy=GATED)
    async def last(n: int) -> str:
        """Be the last one."""
        token.cancel()
        await anyio.sleep_forever()
        return ""

    harness = agent([call("pay", amount=500), call("last", n=1)], tools=(pay, last))
    run = await harness.invoke(None, "go")
    first, second = (asked.id for asked in run.interrupts)
    answers = {first: Edit(arguments={"amount": 5}), second: Approve()}
    with pytest.raises(RunCancelledError) as caught:
        await harness.resume(stored(run), None, answers=answers, cancellation=token)
    assert caught.value.run is not None
    paid, broken = results(caught.value.run)
    assert '{"amount":5}' in paid.text
    assert paid.text.endswith("paid 5")
    assert broken.outcome == "interrupted"


async def test_a_person_may_give_the_result_in_the_tools_place() -> None:
    harness = agent([call("pay", amount=5), call("pay", amount=6)])
    run = await harness.invoke(None, "go")
    first, second = (asked.id for asked in run.interrupts)
    answers = {
        first: Respond(content="done by hand", value={"receipt": 7}),
        second: Respond(content="the bank was closed", is_error=True),
    }
    run = await harness.resume(stored(run), None, answers=answers)
    by_hand, failed = results(run)
    assert ran == []
    assert (by_hand.text, by_hand.artifact, by_hand.is_error) == (
        "done by hand",
        {"receipt": 7},
        False,
    )
    assert (failed.text, failed.is_error, failed.outcome) == ("the bank was closed", True, "done")


async def test_decisions_come_as_the_json_that_a_client_sends_too() -> None:
    harness = agent([call("pay", amount=n) for n in (1, 2, 3, 4)])
    run = await harness.invoke(None, "go")
    sent = [
        {"kind": "approve"},
        {"kind": "edit", "arguments": {"amount": 20}},
        {"kind": "reject", "reason": "no"},
        {"kind": "respond", "content": [{"type": "text", "text": "mine"}]},
    ]
    ids = [asked.id for asked in run.interrupts]
    run = await harness.resume(stored(run), None, answers=dict(zip(ids, sent, strict=True)))
    assert sorted(ran) == ["pay 1 ann", "pay 20 ann"]
    assert results(run)[3].text == "mine"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (True, "a `bool` is no decision"),
        ("yes", "a `str` is no decision"),
        (None, "a `NoneType` is no decision"),
        ({}, "kind"),
        ({"kind": "maybe"}, "maybe"),
        ({"kind": "edit"}, "arguments"),
        ({"kind": "approve", "amount": 3}, "amount"),
        (Edit(arguments={"amount": "lots"}), "do not fit"),
        (Edit(arguments={}), "do not fit"),
        (Edit(arguments={"amount": 5, "unknown": 1}), "do not fit"),
    ],
)
async def test_what_is_no_decision_for_the_call_is_refused_before_anything_runs(
    answer: object, said: str
) -> None:
    harness = agent([call("pay", amount=1), call("pay", amount=2)])
    run = await harness.invoke(None, "go")
    first, second = (asked.id for asked in run.interrupts)
    with pytest.raises(ApprovalError, match=said) as caught:
        await harness.resume(stored(run), None, answers={first: Approve(), second: answer})
    assert caught.value.interrupt_id == second
    assert isinstance(caught.value, ResumeError)
    assert ran == []


async def test_calls_without_an_answer_stay_open_and_are_answered_later() -> None:
    harness = agent([call("pay", amount=n) for n in (1, 2, 3)])
    run = await harness.invoke(None, "go")
    ids = [asked.id for asked in run.interrupts]
    run = await harness.resume(stored(run), None, answers={ids[1]: Approve()})
    assert (run.status, ran) == ("interrupted", ["pay 2 ann"])
    assert [asked.id for asked in run.interrupts] == [ids[0], ids[2]]
    with pytest.raises(ResumeError, match="waits"):
        await harness.resume(stored(run), None)
    with pytest.raises(ResumeError, match="no question is open"):
        await harness.resume(stored(run), None, answers={ids[1]: Approve()})
    answers = {ids[0]: Approve(), ids[2]: Reject()}
    run = await harness.resume(stored(run), None, answers=answers)
    assert (run.status, sorted(ran)) == ("completed", ["pay 1 ann", "pay 2 ann"])


async def test_an_answer_to_other_arguments_is_unknown_and_runs_nothing() -> None:
    harness = agent(call("pay", amount=5))
    run = await harness.invoke(None, "go")
    other = f"{run.interrupts[0].call_id}:approve:{arguments_hash({'amount': 6})[:16]}"
    with pytest.raises(ResumeError, match="no question is open"):
        await harness.resume(stored(run), None, answers={other: Approve()})
    assert ran == []


async def test_arguments_that_were_changed_in_the_stored_run_are_asked_about_anew() -> None:
    harness = agent(call("pay", amount=5))
    run = await harness.invoke(None, "go")
    asked = run.interrupts[0]
    data = stored(run)
    data["messages"][1]["content"][0]["arguments"] = {"amount": 5000}
    run = await harness.resume(data, None, answers={asked.id: Approve()})
    assert (run.status, ran) == ("interrupted", [])
    request = run.interrupts[0].approval
    assert request is not None
    assert (request.arguments, request.round) == ({"amount": 5000}, 2)
    assert "changed" in str(request.problem)
    assert run.interrupts[0].id != asked.id


async def test_a_request_that_was_changed_in_the_stored_run_is_asked_anew() -> None:
    harness = agent(call("pay", amount=5))
    run = await harness.invoke(None, "go")
    data = stored(run)
    for holder in (data["interrupts"][0], data["pending"][0]["interrupt"]):
        holder["payload"]["tool_name"] = "look"
    run = await harness.resume(data, None, answers={run.interrupts[0].id: Approve()})
    assert (run.status, ran) == ("interrupted", [])
    run = await harness.resume(stored(run), None, answers={run.interrupts[0].id: Approve()})
    assert (run.status, ran) == ("completed", ["pay 5 ann"])


async def test_arguments_that_were_shown_otherwise_than_they_are_make_the_answer_stale() -> None:
    harness = agent(call("pay", amount=5000))
    run = await harness.invoke(None, "go")
    data = stored(run)
    for holder in (data["interrupts"][0], data["pending"][0]["interrupt"]):
        holder["payload"]["arguments"] = {"amount": 5}
    run = await harness.resume(data, None, answers={run.interrupts[0].id: Approve()})
    assert (run.status, ran) == ("interrupted", [])


async def test_a_rejection_holds_where_the_reason_to_ask_is_gone_in_the_meantime() -> None:
    strict = True

    @before_tool
    def gate(ctx: RunContext[None], call: ToolCall) -> None:
        call.require_approval(when=lambda: strict)

    harness = agent([call("look", what="x"), call("look", what="y")], middleware=[gate])
    run = await harness.invoke(None, "go")
    first, second = (asked.id for asked in run.interrupts)
    strict = False
    answers = {first: Reject(), second: Edit(arguments={"what": "z"})}
    for resumed in (harness, harness.replace(middleware=[])):
        ran.clear()
        await resumed.replace(model=ScriptedModel([say("done")])).resume(
            stored(run), None, answers=answers
        )
        assert ran == ["look z"]


async def test_an_answer_from_outside_holds_where_the_tool_has_a_function_by_now() -> None:
    outside = Tool.external(name="look", parameters=look.schema.parameters)
    run = await agent(call("look", what="x"), tools=(outside,)).invoke(None, "go")
    answers = {run.interrupts[0].id: Respond(content="seen outside")}
    run = await agent(tools=(look,)).resume(stored(run), None, answers=answers)
    assert (results(run)[0].text, ran) == ("seen outside", [])


async def test_a_hook_that_changes_the_arguments_after_the_question_makes_the_answer_stale() -> (
    None
):
    amounts = iter([5, 50, 50])

    @before_tool
    def change(ctx: RunContext[None], call: ToolCall) -> None:
        call.arguments["amount"] = next(amounts)

    harness = agent(call("pay", amount=1), middleware=[change])
    run = await harness.invoke(None, "go")
    first = run.interrupts[0]
    run = await harness.resume(stored(run), None, answers={first.id: Approve()})
    assert (run.status, ran) == ("interrupted", [])
    request = run.interrupts[0].approval
    assert request is not None
    assert request.arguments == {"amount": 50}
    run = await harness.resume(stored(run), None, answers={run.interrupts[0].id: Approve()})
    assert ran == ["pay 50 ann"]


async def test_after_its_time_a_request_takes_a_rejection_only_and_else_is_made_anew() -> None:
    clock = DeterministicClock()

    @before_tool
    def gate(ctx: RunContext[None], call: ToolCall) -> None:
        call.require_approval("money", expires_in=60)

    harness = agent([call("pay", amount=1), call("pay", amount=2)], middleware=[gate], clock=clock)
    run = await harness.invoke(None, "go")
    old = [asked.id for asked in run.interrupts]
    request = run.interrupts[0].approval
    assert request is not None
    assert (request.expires_at_ms, request.reason) == (60_000, "money")
    clock.advance(60)
    answers = {old[0]: Approve(), old[1]: Reject()}
    run = await harness.resume(stored(run), None, answers=answers)
    assert (run.status, ran) == ("interrupted", [])
    (asked,) = run.interrupts
    assert asked.approval is not None
    assert (asked.approval.expires_at_ms, asked.approval.round) == (120_000, 2)
    assert "lapsed" in str(asked.approval.problem)
    with pytest.raises(ResumeError, match="no question is open"):
        await harness.resume(stored(run), None, answers={old[0]: Approve()})
    clock.advance(59)
    run = await harness.resume(stored(run), None, answers={asked.id: Approve()})
    assert (run.status, ran) == ("completed", ["pay 1 ann"])


async def test_an_approval_may_stand_for_later_calls_of_the_run_and_no_longer() -> None:
    harness = agent(
        call("pay", amount=1),
        [call("pay", amount=1), call("pay", amount=2)],
        call("pay", amount=3),
    )
    run = await harness.invoke(None, "go")
    same = Approve(remember="same_arguments", by="ann")
    run = await harness.resume(stored(run), None, answers={run.interrupts[0].id: same})
    assert ran == ["pay 1 ann", "pay 1 ann"]
    (rule,) = run.snapshot.approval_rules
    assert (rule.tool_name, rule.by) == ("pay", "ann")
    assert ("approved", "rule") in approvals(run)
    all_calls = Approve(remember="tool")
    run = await harness.resume(stored(run), None, answers={run.interrupts[0].id: all_calls})
    assert (run.status, ran[2:]) == ("completed", ["pay 2 ann", "pay 3 ann"])
    assert len(run.snapshot.approval_rules) == 2

    again = await agent(call("pay", amount=1)).invoke(None, run.messages)
    assert again.status == "interrupted"


async def test_a_standing_approval_is_not_for_calls_that_rule_it_out() -> None:
    @before_tool
    def gate(ctx: RunContext[None], call: ToolCall) -> None:
        call.require_approval(
            "large", when=lambda: call.arguments["amount"] == 9, may_remember=False
        )

    harness = agent(
        call("pay", amount=1), [call("pay", amount=2), call("pay", amount=9)], middleware=[gate]
    )
    run = await harness.invoke(None, "go")
    answers = {run.interrupts[0].id: Approve(remember="tool")}
    run = await harness.resume(stored(run), None, answers=answers)
    assert (run.status, ran) == ("interrupted", ["pay 1 ann", "pay 2 ann"])
    assert [asked.approval and asked.approval.arguments for asked in run.interrupts] == [
        {"amount": 9}
    ]


async def test_a_standing_approval_leaves_questions_that_are_open_already_open() -> None:
    harness = agent([call("pay", amount=1), call("pay", amount=2)])
    run = await harness.invoke(None, "go")
    answers = {run.interrupts[1].id: Approve(remember="tool")}
    run = await harness.resume(stored(run), None, answers=answers)
    assert (run.status, ran) == ("interrupted", ["pay 2 ann"])


async def test_what_a_request_does_not_take_is_refused() -> None:
    @before_tool
    def gate(ctx: RunContext[None], call: ToolCall) -> None:
        call.require_approval(allow=["approve"], may_remember=False)

    harness = agent(call("pay", amount=1), middleware=[gate])
    run = await harness.invoke(None, "go")
    (asked,) = run.interrupts
    assert asked.approval is not None
    assert asked.approval.allowed == ("approve", "reject")
    for decision in (Edit(arguments={"amount": 2}), Respond(content="x"), Approve(remember="tool")):
        with pytest.raises(ApprovalError, match="takes `approve`, `reject`"):
            await harness.resume(stored(run), None, answers={asked.id: decision})
    assert ran == []


async def test_several_reasons_make_one_request_that_takes_what_all_of_them_take() -> None:
    @before_tool
    def money(ctx: RunContext[None], call: ToolCall) -> None:
        call.require_approval("money", allow=["approve", "edit"], expires_in=60)

    @before_tool
    def friday(ctx: RunContext[None], call: ToolCall) -> None:
        call.require_approval("it is Friday", allow=["approve", "respond"], expires_in=10)
        call.require_approval("never", when=lambda: False, may_remember=False)

    clock = DeterministicClock()
    harness = agent(call("look", what="x"), middleware=[money, friday], clock=clock)
    run = await harness.invoke(None, "go")
    (asked,) = run.interrupts
    request = asked.approval
    assert request is not None
    assert (request.reason, request.allowed) == ("money; it is Friday", ("approve", "reject"))
    assert (request.expires_at_ms, request.may_remember) == (10_000, True)


async def test_hooks_judge_the_arguments_that_a_person_has_put_in() -> None:
    seen: list[object] = []

    @before_tool
    def gate(ctx: RunContext[None], call: ToolCall) -> None:
        seen.append(dict(call.arguments))
        call.arguments["to"] = "bob"

    harness = agent(call("pay", amount=1), middleware=[gate])
    run = await harness.invoke(None, "go")
    answers = {run.interrupts[0].id: Edit(arguments={"amount": 2})}
    run = await harness.resume(stored(run), None, answers=answers)
    assert seen == [{"amount": 1}, {"amount": 1}, {"amount": 2}]
    assert ran == ["pay 2 bob"]
    assert_event_grammar(run.events)


async def test_a_hook_cannot_send_an_edited_call_to_another_tool() -> None:
    @before_tool
    def redirect(ctx: RunContext[None], call: ToolCall) -> None:
        if call.arguments.get("amount") == 2:
            call.name, call.arguments = "look", {"what": "money"}

    harness = agent(call("pay", amount=1), middleware=[redirect])
    run = await harness.invoke(None, "go")
    answers = {run.interrupts[0].id: Edit(arguments={"amount": 2})}
    run = await harness.resume(stored(run), None, answers=answers)
    assert (run.status, ran) == ("interrupted", [])


async def test_a_hook_cannot_send_an_edited_call_to_another_tool_when_it_goes_on_again() -> None:
    redirects = False

    @tool(policy=GATED)
    async def ship(what: str, ctx: ToolContext[None]) -> str:
        """Ship."""
        return f"shipped {what} to {ctx.ask('where to?')}"

    @before_tool
    def redirect(ctx: RunContext[None], call: ToolCall) -> None:
        if redirects and call.arguments == {"what": "y"}:
            call.name, call.arguments = "look", {"what": "money"}

    harness = agent(call("ship", what="x"), tools=(ship, look), middleware=[redirect])
    run = await harness.invoke(None, "go")
    answers: dict[str, object] = {run.interrupts[0].id: Edit(arguments={"what": "y"})}
    run = await harness.resume(stored(run), None, answers=answers)
    redirects = True
    run = await harness.resume(stored(run), None, answers={run.interrupts[0].id: "Oslo"})
    assert (run.status, ran) == ("interrupted", [])
    asked = run.interrupts[0].approval
    assert asked is not None
    assert (asked.tool_name, asked.id in answers) == ("ship", False)
    assert asked.problem is not None


async def test_the_tool_that_really_runs_is_the_one_that_is_asked_about() -> None:
    policy = RunPolicy(unknown_tool=UnknownToolPolicy.rewrite("pay"))
    harness = agent(call("Pay", amount=1), policy=policy)
    run = await harness.invoke(None, "go")
    (asked,) = run.interrupts
    assert (run.status, asked.tool_name, ran) == ("interrupted", "pay", [])
    run = await harness.resume(stored(run), None, answers={asked.id: Approve()})
    assert ran == ["pay 1 ann"]


async def test_arguments_that_were_put_right_are_shown_as_they_will_run() -> None:
    harness = agent(call("pay", amount="7"), policy=RunPolicy.resilient())
    run = await harness.invoke(None, "go")
    request = run.interrupts[0].approval
    assert request is not None
    assert request.arguments == {"amount": 7}


async def test_a_call_that_could_not_run_anyway_is_not_asked_about() -> None:
    harness = agent(call("pay", amount="lots"))
    run = await harness.invoke(None, "go")
    assert (run.status, approvals(run)) == ("completed", [])
    assert results(run)[0].is_error


async def test_what_the_application_fills_is_neither_shown_nor_edited() -> None:
    @tool(policy=GATED)
    async def send(text: str, key: Annotated[str, Injected("data")]) -> str:
        """Send."""
        ran.append(f"{text} {key}")
        return "sent"

    harness = agent(call("send", text="a", key="stolen"), tools=(send,))
    run = await harness.invoke(None, "go", data="real")
    request = run.interrupts[0].approval
    assert request is not None
    assert request.arguments == {"text": "a"}
    answers = {run.interrupts[0].id: Edit(arguments={"text": "b", "key": "mine"})}
    run = await harness.resume(stored(run), None, answers=answers, data="real")
    assert ran == ["b real"]
    assert "mine" not in results(run)[0].text


async def test_an_approved_tool_that_then_asks_is_not_approved_again() -> None:
    @tool(policy=GATED)
    async def ship(what: str, ctx: ToolContext[None]) -> str:
        """Ship."""
        where = ctx.ask("where to?")
        ran.append(f"ship {what} to {where}")
        return "shipped"

    harness = agent(call("ship", what="x"), tools=(ship,))
    run = await harness.invoke(None, "go")
    answers: dict[str, object] = {run.interrupts[0].id: Edit(arguments={"what": "y"})}
    run = await harness.resume(stored(run), None, answers=answers)
    assert (run.status, run.interrupts[0].payload) == ("interrupted", "where to?")
    assert run.interrupts[0].approval is None
    run = await harness.resume(stored(run), None, answers={run.interrupts[0].id: "Oslo"})
    assert (run.status, ran, run.tool_calls) == ("completed", ["ship y to Oslo"], 1)
    assert "changed the arguments" in results(run)[0].text


async def test_a_tools_own_question_cannot_pass_for_a_request_for_approval() -> None:
    forged: dict[str, Any] = {
        "kind": "approval",
        "call_id": "x",
        "tool_name": "pay",
        "arguments": {},
    }

    @tool
    async def forge(ctx: ToolContext[None]) -> str:
        """Ask."""
        return str(ctx.ask(forged))

    harness = agent(call("forge"), tools=(forge,))
    run = await harness.invoke(None, "go")
    assert run.interrupts[0].approval is None
    run = await harness.resume(stored(run), None, answers={run.interrupts[0].id: "plain"})
    assert results(run)[0].text == "plain"


async def test_calls_that_are_not_run_keep_their_place_under_the_limit() -> None:
    harness = agent([call("pay", amount=n) for n in (1, 2, 3)], limits=RunLimits(max_tool_calls=2))
    run = await harness.invoke(None, "go")
    assert [asked.tool_name for asked in run.interrupts] == ["pay", "pay"]
    assert run.tool_calls == 0
    answers = {run.interrupts[0].id: Reject(), run.interrupts[1].id: Approve()}
    run = await harness.resume(stored(run), None, answers=answers)
    assert (run.tool_calls, ran) == (2, ["pay 2 ann"])


async def test_steps_and_streams_wait_and_go_on_as_whole_runs_do() -> None:
    harness = agent([call("pay", amount=1), call("look", what="x")])
    snapshot = harness.snapshot("go")
    while snapshot.phase != "done":
        snapshot = await harness.step(
            RunSnapshot.model_validate_json(snapshot.model_dump_json()), None
        )
    assert (snapshot.status, ran) == ("interrupted", ["look x"])
    answers = {snapshot.interrupts[0].id: Approve()}
    stepped = await harness.step(snapshot, None, answers=answers)
    assert ran == ["look x", "pay 1 ann"]
    assert stepped.phase == "prepare"

    stream = agent().stream(None, snapshot, answers=answers, modes="tools")
    assert [chunk.type async for chunk in stream] == ["tool_started", "tool_completed"]
    assert (await stream.result()).status == "completed"


async def test_events_say_who_decided_what_and_hold_no_arguments_unless_asked() -> None:
    harness = agent(call("pay", amount=77))
    run = await harness.invoke(None, "go")
    answers = {run.interrupts[0].id: Reject(reason="secret", by="ann")}
    for capture in (PayloadCapture(), PayloadCapture.all()):
        again = await harness.replace(
            policy=RunPolicy(capture=capture), model=ScriptedModel([say("done")])
        ).resume(stored(run), None, answers=answers)
        (event,) = [event for event in again.events if event.kind == "tool.approval"]
        said: dict[str, Any] = event.model_dump()
        assert (said["action"], said["source"], said["by"]) == ("rejected", "answer", "ann")
        assert said["interrupt_id"] == run.interrupts[0].id
        captured = capture.tool_io
        assert said["arguments"] == ({"amount": 77} if captured else None)
        assert said["reason"] == ("secret" if captured else None)


async def test_a_request_shows_what_people_call_the_tool() -> None:
    shown = ToolPolicy(
        access=ToolAccess(approval_required=True),
        display=ToolDisplay(label="Payment", detail="Moves money"),
    )

    @tool(policy=shown)
    async def transfer() -> str:
        """Transfer."""
        return ""

    run = await agent(call("transfer"), tools=(transfer,)).invoke(None, "go")
    request = run.interrupts[0].approval
    assert request is not None
    assert (request.label, request.detail) == ("Payment", "Moves money")


async def test_a_snapshot_of_the_version_before_is_read() -> None:
    @tool
    async def ask(ctx: ToolContext[None]) -> str:
        """Ask."""
        return str(ctx.ask("?"))

    harness = agent(call("ask"), tools=(ask,))
    run = await harness.invoke(None, "go")
    data = stored(run)
    data["version"] = 1
    del data["approval_rules"], data["interrupts"][0]["kind"]
    for name in ("nested", "clearance"):
        del data["pending"][0][name]
    del data["pending"][0]["interrupt"]["kind"]
    run = await harness.resume(data, None, answers={run.interrupts[0].id: "yes"})
    assert results(run)[0].text == "yes"
    assert run.snapshot.version == 2


async def test_a_call_of_an_external_tool_is_answered_with_its_result() -> None:
    pick = Tool.external(
        name="pick",
        description="Let the user pick a number.",
        parameters={"type": "object", "properties": {"upto": {"type": "integer"}}},
        output={"type": "object", "required": ["picked"]},
    )
    harness = agent([call("pick", upto=9), call("look", what="x")], tools=(pick, look))
    run = await harness.invoke(None, "go")
    assert (run.status, ran) == ("interrupted", ["look x"])
    (asked,) = run.interrupts
    request = asked.external
    assert isinstance(request, ExternalCallRequest)
    assert asked.approval is None
    assert (request.tool_name, request.arguments) == ("pick", {"upto": 9})
    assert request.output_schema == {"type": "object", "required": ["picked"]}
    for unfit in (
        Approve(),
        Edit(arguments={}),
        Respond(content="nine"),
        Respond(value={}),
        "nine",
    ):
        with pytest.raises(ApprovalError):
            await harness.resume(stored(run), None, answers={asked.id: unfit})
    answers = {asked.id: Respond(value={"picked": 3})}
    run = await harness.resume(stored(run), None, answers=answers)
    picked, looked = results(run)
    assert (picked.text, picked.artifact) == ('{"picked":3}', {"picked": 3})
    assert (looked.text, run.tool_calls, ran) == ("x", 2, ["look x"])
    assert_event_grammar(run.events)


async def test_an_external_call_that_failed_outside_is_an_error_of_any_form() -> None:
    pick = Tool.external(name="pick", output={"type": "integer"})
    harness = agent([call("pick"), call("pick")], tools=(pick,))
    run = await harness.invoke(None, "go")
    first, second = (asked.id for asked in run.interrupts)
    answers = {first: Respond(content="the tab was closed", is_error=True), second: Reject()}
    run = await harness.resume(stored(run), None, answers=answers)
    failed, refused = results(run)
    assert (failed.text, failed.is_error) == ("the tab was closed", True)
    assert (refused.is_error, refused.outcome) == (True, "not_started")


async def test_an_external_call_may_need_approval_before_it_is_made() -> None:
    pick = Tool.external(name="pick", policy=GATED)
    harness = agent(call("pick"), tools=(pick,))
    run = await harness.invoke(None, "go")
    assert run.interrupts[0].approval is not None
    run = await harness.resume(stored(run), None, answers={run.interrupts[0].id: Approve()})
    assert run.interrupts[0].external is not None
    answers = {run.interrupts[0].id: Respond(content="ok")}
    run = await harness.resume(stored(run), None, answers=answers)
    assert (run.status, results(run)[0].text, run.tool_calls) == ("completed", "ok", 1)


async def test_the_answer_to_an_external_call_that_has_changed_is_asked_for_anew() -> None:
    pick = Tool.external(name="pick", parameters={"type": "object", "properties": {"n": {}}})
    harness = agent(call("pick", n=1), tools=(pick,))
    run = await harness.invoke(None, "go")
    data = stored(run)
    data["messages"][1]["content"][0]["arguments"] = {"n": 2}
    answers = {run.interrupts[0].id: Respond(content="one")}
    run = await harness.resume(data, None, answers=answers)
    request = run.interrupts[0].external
    assert request is not None
    assert (run.status, request.arguments) == ("interrupted", {"n": 2})
    assert "changed" in str(request.problem)
