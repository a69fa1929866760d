"""The middleware that lets calls run only when somebody agrees."""

from collections.abc import Callable
from functools import partial
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from tinyagents import (
    AgentHarness,
    CancellationToken,
    RunContext,
    RunLimits,
    RunPolicy,
    ToolMessage,
    tool,
)
from tinyagents.harness.approval import (
    ApprovalRequest,
    Approve,
    Decision,
    Edit,
    Reject,
    Respond,
)
from tinyagents.harness.errors import (
    ApproverError,
    ConfigurationError,
    RunCancelledError,
)
from tinyagents.harness.middleware import HumanApprovalMiddleware, ToolCall, before_tool
from tinyagents.harness.policy import UnknownToolPolicy
from tinyagents.harness.tool import ToolAccess, ToolPolicy
from tinyagents.testkit import (
    DeterministicClock,
    EventRecorder,
    ScriptedModel,
    Step,
    assert_event_grammar,
    call,
    say,
)
from tinyagents.testkit.checkpoints import CheckpointOutcome, for_every_checkpoint

ran: list[str] = []


@pytest.fixture(autouse=True)
def _clean() -> None:
    ran.clear()


@tool
async def pay(amount: int) -> str:
    """Pay."""
    ran.append(f"pay {amount}")
    return f"paid {amount}"


@tool(policy=ToolPolicy(access=ToolAccess(approval_required=True)))
async def wipe() -> str:
    """Wipe."""
    ran.append("wipe")
    return "wiped"


def agent(*script: Step, gate: HumanApprovalMiddleware, **options: Any) -> AgentHarness:
    model = ScriptedModel([*script, say("done")])
    return AgentHarness(model=model, tools=[pay, wipe], middleware=[gate], **options)


def results(run: Any) -> list[ToolMessage]:
    return [message for message in run.messages if isinstance(message, ToolMessage)]


def decide(decision: object) -> Callable[[RunContext[Any], ApprovalRequest], Any]:
    return lambda ctx, request: decision


async def test_named_tools_wait_and_others_do_not() -> None:
    gate = HumanApprovalMiddleware(names=["pay"], reason="money")
    harness = agent([call("pay", amount=1), call("wipe")], gate=gate)
    run = await harness.invoke(None, "go")
    # The tool's own policy holds whatever a middleware says of other tools.
    assert [asked.tool_name for asked in run.interrupts] == ["pay", "wipe"]
    assert run.interrupts[0].approval is not None
    assert run.interrupts[0].approval.reason == "money"
    assert ran == []


async def test_a_condition_is_asked_of_the_call_as_it_will_run() -> None:
    seen: list[object] = []

    def large(ctx: RunContext[Any], call: ToolCall) -> bool:
        seen.append(call.arguments["amount"])
        return bool(call.arguments["amount"] > 100)  # type: ignore[operator]

    gate = HumanApprovalMiddleware(names=["pay"], when=large)
    policy = RunPolicy(
        unknown_tool=UnknownToolPolicy.rewrite("pay"),
        invalid_args="normalize_then_return_tool_error",
    )
    calls = [call("pay", amount=5), call("pay"), call("pay", amount="500"), call("Pay", amount=300)]
    run = await agent(calls, gate=gate, policy=policy).invoke(None, "go")
    assert ran == ["pay 5"]
    assert seen == [5, 500, 300]
    assert [asked.payload["arguments"] for asked in run.interrupts] == [  # type: ignore[index,call-overload]
        {"amount": 500},
        {"amount": 300},
    ]


async def test_a_condition_may_be_async_and_its_error_ends_the_run() -> None:
    async def never(ctx: RunContext[Any], call: ToolCall) -> bool:
        return False

    def broken(ctx: RunContext[Any], call: ToolCall) -> bool:
        raise LookupError("no such account")

    run = await agent(call("pay", amount=1), gate=HumanApprovalMiddleware(when=never)).invoke(
        None, "go"
    )
    assert (run.status, ran) == ("completed", ["pay 1"])
    with pytest.raises(LookupError):
        await agent(call("pay", amount=1), gate=HumanApprovalMiddleware(when=broken)).invoke(
            None, "go"
        )
    assert ran == ["pay 1"]


@pytest.mark.parametrize(
    ("decision", "ran_then", "said"),
    [
        (Approve(), ["pay 5"], "paid 5"),
        (Edit(arguments={"amount": 2}), ["pay 2"], "paid 2"),
        (Reject(reason="no"), [], "no"),
        (Respond(content="by hand"), [], "by hand"),
        ({"kind": "approve"}, ["pay 5"], "paid 5"),
    ],
)
async def test_an_approver_decides_in_place(
    decision: object, ran_then: list[str], said: str
) -> None:
    gate = HumanApprovalMiddleware(names=["pay"], approver=decide(decision))
    run = await agent(call("pay", amount=5), gate=gate).invoke(None, "go")
    assert (run.status, ran) == ("completed", ran_then)
    assert said in results(run)[0].text
    (event,) = [event for event in run.events if event.kind == "tool.approval"]
    assert event.source == "approver"  # type: ignore[attr-defined]
    assert_event_grammar(run.events)


async def test_an_approver_sees_the_run_and_what_it_is_asked() -> None:
    seen: list[tuple[str, ApprovalRequest]] = []

    async def approver(ctx: RunContext[str], request: ApprovalRequest) -> Decision:
        seen.append((ctx.data, request))
        return Approve(by=ctx.data)

    gate = HumanApprovalMiddleware(approver=approver)
    run = await agent([call("wipe"), call("pay", amount=1)], gate=gate).invoke(
        None, "go", data="ann"
    )
    ((user, request),) = seen
    assert (user, request.tool_name, sorted(ran)) == ("ann", "wipe", ["pay 1", "wipe"])
    assert run.status == "completed"


async def test_an_approver_that_leaves_it_open_has_the_run_wait() -> None:
    gate = HumanApprovalMiddleware(approver=decide(None))
    harness = agent([call("wipe"), call("pay", amount=1)], gate=gate)
    run = await harness.invoke(None, "go")
    assert (run.status, ran) == ("interrupted", ["pay 1"])
    answers = {run.interrupts[0].id: Approve()}
    run = await harness.resume(run.snapshot, None, answers=answers)
    assert (run.status, ran) == ("completed", ["pay 1", "wipe"])


@pytest.mark.parametrize(
    "answer",
    [True, "yes", {"kind": "maybe"}, Edit(arguments={"amount": "lots"}), Approve(remember="tool")],
)
async def test_an_approver_that_gives_no_decision_for_the_call_denies_it(answer: object) -> None:
    gate = HumanApprovalMiddleware(names=["pay"], approver=decide(answer), may_remember=False)
    run = await agent(call("pay", amount=5), gate=gate).invoke(None, "go")
    (result,) = results(run)
    assert (ran, result.is_error, result.outcome) == ([], True, "not_started")
    (failed,) = [event for event in run.events if event.kind == "tool.failed"]
    assert failed.error_kind == "ApproverError"  # type: ignore[attr-defined]
    assert_event_grammar(run.events)


async def test_an_approver_that_raises_denies_the_call_and_may_end_the_run() -> None:
    def approver(ctx: RunContext[Any], request: ApprovalRequest) -> Decision:
        raise OSError("the office is closed")

    gate = HumanApprovalMiddleware(names=["pay"], approver=approver)
    run = await agent(call("pay", amount=5), gate=gate).invoke(None, "go")
    assert (ran, run.status) == ([], "completed")
    assert "office" not in results(run)[0].text
    with pytest.raises(ApproverError) as caught:
        await agent(call("pay", amount=5), gate=gate, policy=RunPolicy(tool_errors="fail")).invoke(
            None, "go"
        )
    assert isinstance(caught.value.__cause__, OSError)
    assert ran == []


async def test_other_calls_run_while_an_approver_thinks_and_approvers_think_at_once() -> None:
    looked = anyio.Event()
    asked: list[str] = []
    both = anyio.Event()

    @tool
    async def look() -> str:
        """Look."""
        looked.set()
        return "seen"

    async def approver(ctx: RunContext[Any], request: ApprovalRequest) -> Decision:
        asked.append(request.call_id)
        if len(asked) == 2:
            both.set()
        await both.wait()
        await looked.wait()
        return Approve()

    gate = HumanApprovalMiddleware(names=["pay"], approver=approver)
    model = ScriptedModel([[call("pay", amount=n) for n in (1, 2)] + [call("look")], say("done")])
    limits = RunLimits(max_concurrency=1)
    harness = AgentHarness(model=model, tools=[pay, look], middleware=[gate], limits=limits)
    with anyio.fail_after(30):
        run = await harness.invoke(None, "go")
    assert [message.text for message in results(run)] == ["paid 1", "paid 2", "seen"]
    assert_event_grammar(run.events)


async def test_a_remembered_approval_saves_asking_the_approver() -> None:
    asked: list[object] = []

    def approver(ctx: RunContext[Any], request: ApprovalRequest) -> Decision:
        asked.append(request.arguments)
        return Approve(remember="tool")

    gate = HumanApprovalMiddleware(names=["pay"], approver=approver)
    script = [call("pay", amount=1), call("pay", amount=2)]
    run = await agent(*script, gate=gate).invoke(None, "go")
    assert (asked, ran) == ([{"amount": 1}], ["pay 1", "pay 2"])
    assert run.status == "completed"


async def test_every_approver_must_agree_and_sees_what_the_one_before_has_edited() -> None:
    seen: list[object] = []

    def second(ctx: RunContext[Any], request: ApprovalRequest) -> Decision:
        seen.append(request.arguments)
        return Approve() if request.arguments == {"amount": 2} else Reject(reason="too much")

    def gates(first: Decision) -> list[HumanApprovalMiddleware]:
        return [
            HumanApprovalMiddleware(names=["pay"], approver=decide(first)),
            HumanApprovalMiddleware(names=["pay"], approver=second),
        ]

    def run_with(first: Decision) -> Any:
        model = ScriptedModel([call("pay", amount=5), say("done")])
        return AgentHarness(model=model, tools=[pay], middleware=gates(first)).invoke(None, "go")

    await run_with(Approve())
    assert (seen, ran) == ([{"amount": 5}], [])
    await run_with(Edit(arguments={"amount": 2}))
    assert (seen[1:], ran) == ([{"amount": 2}], ["pay 2"])
    await run_with(Reject())
    assert (len(seen), ran) == (2, ["pay 2"])


async def test_an_approver_does_not_decide_what_another_one_wants_asked_outside() -> None:
    @before_tool
    def audit(ctx: RunContext[Any], call: ToolCall) -> None:
        call.require_approval("audit")

    asked: list[object] = []

    def approver(ctx: RunContext[Any], request: ApprovalRequest) -> Decision:
        asked.append(request)
        return Approve()

    gate = HumanApprovalMiddleware(names=["pay"], approver=approver)
    model = ScriptedModel([call("pay", amount=5), say("done")])
    harness = AgentHarness(model=model, tools=[pay], middleware=[gate, audit])
    run = await harness.invoke(None, "go")
    assert (run.status, ran, asked) == ("interrupted", [], [])


async def test_what_is_approved_in_place_after_its_time_is_asked_outside() -> None:
    clock = DeterministicClock()

    def slow(ctx: RunContext[Any], request: ApprovalRequest) -> Decision:
        clock.advance(11)
        return Approve()

    gate = HumanApprovalMiddleware(names=["pay"], approver=slow, expires_in=10)
    run = await agent(call("pay", amount=5), gate=gate, clock=clock).invoke(None, "go")
    assert (run.status, ran) == ("interrupted", [])
    request = run.interrupts[0].approval
    assert request is not None
    assert "lapsed" in str(request.problem)


@pytest.mark.parametrize("how", ["token", "task"])
async def test_a_run_that_ends_while_an_approver_thinks_runs_nothing_and_leaves_nothing(
    how: str,
) -> None:
    thinking, ended = anyio.Event(), anyio.Event()

    async def approver(ctx: RunContext[Any], request: ApprovalRequest) -> Decision:
        thinking.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()
        return Approve()

    token = CancellationToken()
    gate = HumanApprovalMiddleware(names=["pay"], approver=approver)
    harness = agent([call("pay", amount=5), call("pay", amount=6)], gate=gate)
    errors: list[BaseException] = []

    async def run() -> None:
        try:
            await harness.invoke(None, "go", cancellation=token if how == "token" else None)
        except BaseException as error:
            errors.append(error)
            raise

    caught: list[BaseException] = []
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            await thinking.wait()
            if how == "token":
                token.cancel()
            else:
                tasks.cancel_scope.cancel()
    except* RunCancelledError as group:
        caught.extend(group.exceptions)
    assert ended.is_set()
    assert ran == []
    left = errors[0].run  # type: ignore[attr-defined]
    assert [message.outcome for message in results(left)] == ["not_started", "not_started"]
    assert all("the run was cancelled" in message.text for message in results(left))
    assert_event_grammar(left.events)
    assert len(caught) == (0 if how == "task" else 1)


async def test_a_cancellation_at_any_point_runs_no_call_that_was_not_approved() -> None:
    decisions: dict[object, Decision] = {
        1: Approve(),
        2: Edit(arguments={"amount": 20}),
        3: Reject(),
    }
    approved: list[str] = []
    recorder = EventRecorder()

    async def approver(ctx: RunContext[Any], request: ApprovalRequest) -> Decision:
        await anyio.lowlevel.checkpoint()
        decision = decisions[request.arguments["amount"]]
        if isinstance(decision, Approve):
            approved.append("pay 1")
        elif isinstance(decision, Edit):
            approved.append("pay 20")
        return decision

    def scenario() -> Any:
        ran.clear()
        approved.clear()
        recorder.clear()
        gate = HumanApprovalMiddleware(names=["pay"], approver=approver)
        turn = [call("wipe"), *(call("pay", amount=n) for n in decisions)]
        return agent(turn, gate=gate, listeners=[recorder]).invoke(None, "go")

    def check(outcome: CheckpointOutcome[Any]) -> None:
        assert set(ran) <= set(approved)
        if recorder.events:
            assert_event_grammar(recorder)
        if outcome.error is None:
            assert sorted(ran) == ["pay 1", "pay 20"]
            assert outcome.result is not None
            assert outcome.result.status == "interrupted"

    assert await for_every_checkpoint(scenario, check=check) > 3


async def test_what_an_approver_waits_for_may_be_cancelled_without_the_run() -> None:
    async def approver(ctx: RunContext[Any], request: ApprovalRequest) -> Decision:
        raise anyio.get_cancelled_exc_class()

    gate = HumanApprovalMiddleware(names=["pay"], approver=approver)
    harness = agent([call("pay", amount=5), call("pay", amount=6)], gate=gate)
    run = await harness.invoke(None, "go")
    assert (run.status, ran) == ("completed", [])
    assert all(message.is_error for message in results(run))


@pytest.mark.parametrize(
    "make",
    [
        partial(HumanApprovalMiddleware, names="pay"),
        partial(HumanApprovalMiddleware, expires_in=0),
        partial(HumanApprovalMiddleware, allow=["maybe"]),  # type: ignore[list-item]
    ],
)
def test_settings_that_cannot_work_are_refused(make: Callable[[], object]) -> None:
    with pytest.raises(ConfigurationError):
        make()
