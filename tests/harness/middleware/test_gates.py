"""Hooks as gates: which tool they judge, what a refusal does, and what becomes of hidden tools."""

from typing import Any

import pytest

from tinyagents import AgentHarness, AgentRun, Middleware, RunContext, RunPolicy, ToolMessage
from tinyagents.harness.agent_loop import RunSnapshot
from tinyagents.harness.approval import ApprovalRequest, Approve
from tinyagents.harness.context import Interrupt
from tinyagents.harness.errors import MiddlewareError, ToolNotFoundError, ToolRefusedError
from tinyagents.harness.events import ToolRefused, ToolsFiltered, UnknownToolCall
from tinyagents.harness.middleware import (
    HumanApprovalMiddleware,
    ToolCall,
    before_model,
    before_tool,
    hide_tools,
)
from tinyagents.harness.model import ModelRequest, ModelResponse, NamedTool
from tinyagents.harness.policy import UnknownToolPolicy
from tinyagents.harness.stream import ToolCompleted
from tinyagents.harness.tool import ToolAccess, ToolPolicy, ToolResult
from tinyagents.testkit import (
    EventRecorder,
    FakeTool,
    ScriptedModel,
    assert_event_grammar,
    call,
    say,
)

Ctx = RunContext[Any]
TELL = RunPolicy(refused_tools="return_to_model")


def results(run: AgentRun[Any, Any]) -> list[tuple[str, bool]]:
    return [(m.text, m.is_error) for m in run.messages if isinstance(m, ToolMessage)]


class OnlyNamed(Middleware[Any]):
    """Refuses all tools but one, and notes what it was shown."""

    def __init__(self, allowed: str) -> None:
        self.allowed = allowed
        self.seen: list[tuple[str, str | None]] = []

    async def before_tool(self, ctx: Ctx, call: ToolCall) -> None:
        self.seen.append((call.name, call.tool.name if call.tool is not None else None))
        if call.tool is not None and call.tool.name != self.allowed:
            call.refuse("it is locked")


class Hide(Middleware[Any]):
    """Hides tools from each request."""

    def __init__(self, *names: str, announce: bool = True) -> None:
        self.names = names
        self.announce = announce

    async def before_model(self, ctx: Ctx, request: ModelRequest) -> None:
        hide_tools(ctx, request, self.names, by="hide", announce=self.announce)


# What a refusal does


async def test_a_refused_call_ends_the_run_with_an_error_that_says_who_and_why() -> None:
    secret, plain = FakeTool("secret"), FakeTool("plain")
    model = ScriptedModel([[call("plain"), call("secret"), call("plain")]])
    agent = AgentHarness(model=model, tools=[secret, plain], middleware=[OnlyNamed("plain")])
    with pytest.raises(ToolRefusedError, match="`OnlyNamed` .*`secret`: it is locked") as caught:
        await agent.invoke(None, "go")
    error = caught.value
    assert (error.tool, error.by, error.kind) == ("secret", "OnlyNamed", "tool_refused")
    assert error.run is not None
    assert error.call_id == error.run.messages[1].tool_calls[1].id  # type: ignore[union-attr]
    assert not secret.calls
    assert not plain.calls
    assert [text for text, _ in results(error.run)] == ["not executed: the run failed"] * 3
    assert_event_grammar(error.run)


async def test_a_refused_call_is_told_to_the_model_where_the_policy_says_so() -> None:
    secret, plain = FakeTool("secret"), FakeTool("plain", "fine")
    model = ScriptedModel([[call("secret"), call("plain")], say("sorry")])
    agent = AgentHarness(
        model=model,
        tools=[secret, plain],
        middleware=[OnlyNamed("plain")],
        policy=RunPolicy.resilient(),
    )
    run = await agent.invoke(None, "go")
    told = "The call of `secret` was not executed: it is locked."
    assert results(run) == [(told, True), ("fine", False)]
    assert not secret.calls
    assert run.tool_calls == 2
    (event,) = (event for event in run.events if isinstance(event, ToolRefused))
    assert (event.tool_name, event.by, event.reason) == ("secret", "OnlyNamed", "it is locked")
    assert_event_grammar(run)


async def test_hooks_behind_a_refusal_do_not_see_the_call_and_cannot_undo_it() -> None:
    later: list[str] = []

    @before_tool
    def pardon(ctx: Ctx, call: ToolCall) -> None:
        later.append(call.name)
        call.refusal = None

    model = ScriptedModel([call("secret"), say("ok")])
    agent = AgentHarness(
        model=model,
        tools=[FakeTool("secret")],
        middleware=[OnlyNamed("plain"), pardon],
        policy=TELL,
    )
    run = await agent.invoke(None, "go")
    assert later == []
    assert results(run)[0][1]


async def test_a_refused_call_goes_through_the_hooks_after_a_tool() -> None:
    seen: list[bool] = []

    class After(Middleware[Any]):
        async def after_tool(self, ctx: Ctx, call: ToolCall, result: Any) -> None:
            seen.append(result.is_error)

    model = ScriptedModel([call("secret"), say("ok")])
    middleware = [After(), OnlyNamed("plain")]
    agent = AgentHarness(
        model=model, tools=[FakeTool("secret")], middleware=middleware, policy=TELL
    )
    await agent.invoke(None, "go")
    assert seen == [True]


async def test_a_call_with_arguments_that_are_no_json_is_refused_all_the_same() -> None:
    model = ScriptedModel([call("secret", arguments='{"a": '), say("ok")])
    agent = AgentHarness(
        model=model, tools=[FakeTool("secret")], middleware=[OnlyNamed("plain")], policy=TELL
    )
    run = await agent.invoke(None, "go")
    assert "it is locked" in results(run)[0][0]


# Which tool they judge


async def test_a_gate_judges_the_tool_that_an_unknown_call_is_rewritten_to() -> None:
    secret, gate = FakeTool("secret"), OnlyNamed("plain")
    agent = AgentHarness(
        model=ScriptedModel([call("plian"), say("ok")]),
        tools=[secret, FakeTool("plain")],
        middleware=[gate],
        policy=RunPolicy(
            unknown_tool=UnknownToolPolicy.rewrite("secret"), refused_tools="return_to_model"
        ),
    )
    run = await agent.invoke(None, "go")
    assert gate.seen == [("secret", "secret")]
    assert not secret.calls
    assert results(run)[0][1]
    (event,) = (event for event in run.events if isinstance(event, UnknownToolCall))
    assert (event.requested_name, event.recovery) == ("plian", "rewrite:secret")


async def test_an_allowed_tool_runs_for_an_unknown_call_that_is_rewritten_to_it() -> None:
    plain, gate = FakeTool("plain", "fine"), OnlyNamed("plain")
    agent = AgentHarness(
        model=ScriptedModel([call("plian", a=1), say("ok")]),
        tools=[FakeTool("secret"), plain],
        middleware=[gate],
        policy=RunPolicy(unknown_tool=UnknownToolPolicy.rewrite("plain")),
    )
    run = await agent.invoke(None, "go")
    assert plain.calls == [{"a": 1}]
    assert results(run) == [("fine", False)]


@pytest.mark.parametrize("redirect_first", [True, False])
async def test_a_gate_judges_the_tool_that_another_hook_gives_the_call_to(
    redirect_first: bool,
) -> None:
    secret, gate = FakeTool("secret"), OnlyNamed("plain")

    @before_tool
    def redirect(ctx: Ctx, call: ToolCall) -> None:
        call.name = "secret"

    agent = AgentHarness(
        model=ScriptedModel([call("plain"), say("ok")]),
        tools=[secret, FakeTool("plain")],
        middleware=[redirect, gate] if redirect_first else [gate, redirect],
        policy=TELL,
    )
    run = await agent.invoke(None, "go")
    assert gate.seen[-1] == ("secret", "secret")
    assert not secret.calls
    assert results(run)[0][1]


async def test_a_hook_sees_a_call_once_for_each_tool_that_it_is_for() -> None:
    notes: list[tuple[str, str]] = []

    class Note(Middleware[Any]):
        def __init__(self, label: str, to: str | None = None) -> None:
            self.label = label
            self.to = to

        async def before_tool(self, ctx: Ctx, call: ToolCall) -> None:
            notes.append((self.label, call.name))
            call.name = self.to or call.name

    agent = AgentHarness(
        model=ScriptedModel([call("a"), say("ok")]),
        tools=[FakeTool("a"), FakeTool("b", "from b")],
        middleware=[Note("first"), Note("second", "b"), Note("third")],
    )
    run = await agent.invoke(None, "go")
    assert notes == [("first", "a"), ("second", "a"), ("first", "b"), ("third", "b")]
    assert results(run) == [("from b", False)]
    assert_event_grammar(run)


async def test_a_hook_may_give_a_call_to_an_unknown_tool_and_the_policy_gives_it_on() -> None:
    gate = OnlyNamed("plain")

    @before_tool
    def mangle(ctx: Ctx, call: ToolCall) -> None:
        if call.name == "plain":
            call.name = "nothing"

    agent = AgentHarness(
        model=ScriptedModel([call("plain"), say("ok")]),
        tools=[FakeTool("plain"), FakeTool("secret")],
        middleware=[gate, mangle],
        policy=RunPolicy(
            unknown_tool=UnknownToolPolicy.rewrite("secret"), refused_tools="return_to_model"
        ),
    )
    run = await agent.invoke(None, "go")
    assert gate.seen == [("plain", "plain"), ("secret", "secret")]
    assert results(run)[0][1]


async def test_a_rewrite_to_a_tool_that_is_missing_too_is_told_to_the_model() -> None:
    gate = OnlyNamed("plain")
    agent = AgentHarness(
        model=ScriptedModel([call("plian"), say("ok")]),
        tools=[FakeTool("plain")],
        middleware=[gate],
        policy=RunPolicy(unknown_tool=UnknownToolPolicy.rewrite("gone")),
    )
    run = await agent.invoke(None, "go")
    assert gate.seen == [("plian", None)]
    assert "There is no tool `plian`" in results(run)[0][0]


async def test_hooks_that_never_agree_on_a_tool_end_the_run() -> None:
    @before_tool
    def swap(ctx: Ctx, call: ToolCall) -> None:
        call.name = "b" if call.name == "a" else "a"

    agent = AgentHarness(
        model=ScriptedModel([call("a")]),
        tools=[FakeTool("a"), FakeTool("b")],
        middleware=[swap, before_tool(lambda ctx, call: setattr(call, "name", "a"))],
    )
    with pytest.raises(MiddlewareError, match="do not agree"):
        await agent.invoke(None, "go")


async def test_a_hook_cannot_show_the_next_one_another_tool_than_the_one_that_runs() -> None:
    secret, plain = FakeTool("secret"), FakeTool("plain")
    gate = OnlyNamed("plain")

    @before_tool
    def disguise(ctx: Ctx, call: ToolCall) -> None:
        call.tool = plain

    agent = AgentHarness(
        model=ScriptedModel([call("secret"), say("ok")]),
        tools=[secret, plain],
        middleware=[disguise, gate],
        policy=TELL,
    )
    await agent.invoke(None, "go")
    assert gate.seen == [("secret", "secret")]
    assert not secret.calls


# Hidden tools


async def test_a_hidden_tool_is_not_offered_and_not_run() -> None:
    secret, plain = FakeTool("secret"), FakeTool("plain", "fine")
    model = ScriptedModel([[call("secret"), call("plain")], say("ok")])
    agent = AgentHarness(
        model=model, tools=[secret, plain], middleware=[Hide("secret")], policy=TELL
    )
    run = await agent.invoke(None, "go")
    assert [[tool.name for tool in request.tools] for request in model.requests] == [["plain"]] * 2
    assert not secret.calls
    told = "The call of `secret` was not executed: it is not one of the tools of this turn."
    assert results(run) == [(told, True), ("fine", False)]
    (filtered, _) = (event for event in run.events if isinstance(event, ToolsFiltered))
    assert (filtered.by, filtered.excluded, filtered.remaining) == ("hide", ("secret",), 1)
    (refused,) = (event for event in run.events if isinstance(event, ToolRefused))
    assert refused.by == "hide"
    assert_event_grammar(run)


async def test_calling_a_hidden_tool_ends_the_run_by_default() -> None:
    secret = FakeTool("secret")
    model = ScriptedModel([call("secret")])
    agent = AgentHarness(model=model, tools=[secret], middleware=[Hide("secret")])
    with pytest.raises(ToolRefusedError) as caught:
        await agent.invoke(None, "go")
    assert (caught.value.tool, caught.value.by) == ("secret", "hide")
    assert not secret.calls


async def test_a_hidden_tool_does_not_run_for_a_call_that_is_rewritten_to_it() -> None:
    secret = FakeTool("secret")
    agent = AgentHarness(
        model=ScriptedModel([call("plian"), say("ok")]),
        tools=[secret, FakeTool("plain")],
        middleware=[Hide("secret")],
        policy=RunPolicy(
            unknown_tool=UnknownToolPolicy.rewrite("secret"), refused_tools="return_to_model"
        ),
    )
    run = await agent.invoke(None, "go")
    assert not secret.calls
    assert results(run)[0][1]


async def test_a_tool_that_was_hidden_once_may_be_called_when_it_is_offered_again() -> None:
    tool = FakeTool("late", "here")

    @before_model
    def hide_at_first(ctx: Ctx, request: ModelRequest) -> None:
        if not any(isinstance(message, ToolMessage) for message in request.messages):
            hide_tools(ctx, request, ["late"], by="hide")

    agent = AgentHarness(
        model=ScriptedModel([call("late"), call("late"), say("ok")]),
        tools=[tool],
        middleware=[hide_at_first],
        policy=TELL,
    )
    run = await agent.invoke(None, "go")
    assert [is_error for _, is_error in results(run)] == [True, False]
    assert len(tool.calls) == 1


async def test_a_tool_that_was_taken_out_of_the_request_before_can_be_hidden_too() -> None:
    secret = FakeTool("secret")

    @before_model
    def trim(ctx: Ctx, request: ModelRequest) -> None:
        request.tools = ()

    agent = AgentHarness(
        model=ScriptedModel([call("secret"), say("ok")]),
        tools=[secret],
        middleware=[trim, Hide("secret")],
        policy=TELL,
    )
    run = await agent.invoke(None, "go")
    assert not secret.calls
    assert "tool.filtered" not in [event.kind for event in run.events]


@pytest.mark.parametrize(
    ("choice", "hidden", "left"),
    [
        (NamedTool("secret"), ("secret",), "auto"),
        (NamedTool("plain"), ("secret",), NamedTool("plain")),
        ("required", ("secret",), "required"),
        ("required", ("secret", "plain"), "auto"),
        ("none", ("secret", "plain"), "none"),
    ],
)
async def test_a_choice_of_tool_that_hiding_makes_impossible_is_left_to_the_model(
    choice: Any, hidden: tuple[str, ...], left: Any
) -> None:
    @before_model
    def choose(ctx: Ctx, request: ModelRequest) -> None:
        request.tool_choice = choice

    model = ScriptedModel([say("ok")])
    agent = AgentHarness(
        model=model,
        tools=[FakeTool("secret"), FakeTool("plain")],
        middleware=[choose, Hide(*hidden)],
    )
    await agent.invoke(None, "go")
    assert model.requests[0].tool_choice == left


async def test_tools_may_be_hidden_without_an_event() -> None:
    recorder = EventRecorder()
    agent = AgentHarness(
        model=ScriptedModel([say("ok")]),
        tools=[FakeTool("secret")],
        middleware=[Hide("secret", announce=False)],
        listeners=[recorder],
    )
    await agent.invoke(None, "go")
    assert "tool.filtered" not in recorder.kinds


class AskFirst(Middleware[Any]):
    """Interrupts the run over the first tool calls."""

    async def after_model(self, ctx: Ctx, response: ModelResponse) -> None:
        if response.message.tool_calls and not ctx.answers:
            ctx.request_control(Interrupt("may it?"))


async def test_what_was_hidden_when_a_run_stopped_is_refused_though_its_gate_is_gone() -> None:
    secret = FakeTool("secret")
    model = ScriptedModel([call("secret"), say("ok")])
    agent = AgentHarness(
        model=model, tools=[secret], middleware=[Hide("secret"), AskFirst()], policy=TELL
    )
    waiting = await agent.invoke(None, "go")
    without = agent.replace(middleware=())
    run = await without.resume(waiting.snapshot, None, answers={waiting.interrupts[0].id: "yes"})
    assert not secret.calls
    assert [tool.name for tool in model.requests[1].tools] == ["secret"]
    assert run.snapshot.hidden_tools == {}
    assert waiting.snapshot.hidden_tools == {"secret": "hide"}  # it can be resumed once more


@pytest.mark.parametrize("as_json", [True, False])
async def test_what_is_hidden_survives_a_resume(as_json: bool) -> None:
    secret = FakeTool("secret")
    model = ScriptedModel([call("secret"), say("ok")])
    agent = AgentHarness(
        model=model, tools=[secret], middleware=[Hide("secret"), AskFirst()], policy=TELL
    )
    waiting = await agent.invoke(None, "go")
    assert waiting.status == "interrupted"
    assert waiting.snapshot.hidden_tools == {"secret": "hide"}
    stored: Any = waiting.snapshot.model_dump_json() if as_json else waiting.snapshot
    run = await agent.resume(stored, None, answers={waiting.interrupts[0].id: "yes"})
    assert run.status == "completed"
    assert not secret.calls
    assert results(run)[0][1]


async def test_what_is_hidden_holds_where_each_phase_is_a_step_of_its_own() -> None:
    secret = FakeTool("secret")
    model = ScriptedModel([call("secret"), say("ok")])
    agent = AgentHarness(model=model, tools=[secret], middleware=[Hide("secret")], policy=TELL)
    snapshot = agent.snapshot("go")
    while snapshot.phase != "done":
        stored = snapshot.model_dump_json()
        snapshot = await agent.step(RunSnapshot.model_validate_json(stored), None)
    assert not secret.calls
    assert [m.is_error for m in snapshot.messages if isinstance(m, ToolMessage)] == [True]


async def test_what_is_hidden_is_refused_in_a_stream_and_shown_there() -> None:
    secret = FakeTool("secret")
    model = ScriptedModel([call("secret"), say("ok")])
    agent = AgentHarness(model=model, tools=[secret], middleware=[Hide("secret")], policy=TELL)
    chunks = [chunk async for chunk in agent.stream(None, "go")]
    (completed,) = (chunk for chunk in chunks if isinstance(chunk, ToolCompleted))
    assert "not executed" in completed.message.text
    assert not secret.calls


async def test_a_model_that_calls_an_unknown_tool_is_not_told_of_hidden_ones() -> None:
    # C07, behind a gate
    docs = FakeTool("search_docs", "found")
    model = ScriptedModel([call("serch_docs"), call("search_docs"), say("ok")])
    agent = AgentHarness(
        model=model,
        tools=[docs, FakeTool("secret")],
        middleware=[Hide("secret"), OnlyNamed("search_docs")],
        policy=RunPolicy.resilient(),
    )
    run = await agent.invoke(None, "go")
    told = "There is no tool `serch_docs`. The tools are: `search_docs`."
    assert results(run) == [(told, True), ("found", False)]
    kinds = [event.kind for event in run.events]
    assert kinds.count("tool.unknown") == 1
    assert "tool.refused" not in kinds
    assert "tool.failed" not in kinds


async def test_a_snapshot_from_before_tools_were_hidden_can_be_read() -> None:
    run = await AgentHarness(model=ScriptedModel([say("ok")])).invoke(None, "go")
    stored = run.snapshot.model_dump_json().replace('"hidden_tools":{},', "")
    assert "hidden_tools" not in stored
    assert RunSnapshot.model_validate_json(stored).hidden_tools == {}


async def test_a_context_knows_the_tools_of_the_run_hidden_ones_too() -> None:
    seen: list[tuple[str, ...]] = []

    @before_model
    def look(ctx: Ctx, request: ModelRequest) -> None:
        seen.append(ctx.tools.names)

    agent = AgentHarness(
        model=ScriptedModel([say("ok"), say("ok")]),
        tools=[FakeTool("a"), FakeTool("b")],
        middleware=[Hide("a"), look],
    )
    await agent.invoke(None, "go")
    await agent.invoke(None, "go", tools=[FakeTool("c")])
    assert seen == [("a", "b"), ("c",)]


async def test_without_a_rewrite_an_unknown_tool_stays_the_business_of_its_own_policy() -> None:
    gate = OnlyNamed("plain")
    agent = AgentHarness(
        model=ScriptedModel([call("plian")]), tools=[FakeTool("plain")], middleware=[gate]
    )
    with pytest.raises(ToolNotFoundError):
        await agent.invoke(None, "go")
    assert gate.seen == [("plian", None)]


# Beside approvals


async def test_a_refused_call_asks_nobody() -> None:
    asked: list[str] = []
    secret = FakeTool("secret", policy=ToolPolicy(access=ToolAccess(approval_required=True)))
    ask = HumanApprovalMiddleware(
        names=["secret"], approver=lambda ctx, request: asked.append(request.tool_name)
    )
    agent = AgentHarness(
        model=ScriptedModel([call("secret"), say("ok")]),
        tools=[secret],
        middleware=[ask, OnlyNamed("plain")],
        policy=TELL,
    )
    run = await agent.invoke(None, "go")
    assert run.status == "completed"
    assert asked == []
    assert results(run)[0][1]


async def test_a_call_that_waits_for_a_person_is_judged_again_when_it_goes_on() -> None:
    pay = FakeTool("pay", policy=ToolPolicy(access=ToolAccess(approval_required=True)))
    model = ScriptedModel([call("pay"), say("ok")])
    agent = AgentHarness(model=model, tools=[pay], policy=TELL)
    waiting = await agent.invoke(None, "go")
    assert waiting.status == "interrupted"
    stricter = agent.replace(middleware=[OnlyNamed("plain")])
    answers = {waiting.interrupts[0].id: Approve()}
    run = await stricter.resume(waiting.snapshot.model_dump_json(), None, answers=answers)
    assert run.status == "completed"
    assert not pay.calls
    assert "it is locked" in results(run)[0][0]
    assert_event_grammar(run)


async def test_a_question_about_a_call_is_asked_once_where_a_later_hook_redirects_it() -> None:
    reasons: list[str | None] = []

    def approve(ctx: Ctx, request: ApprovalRequest) -> Approve:
        reasons.append(request.reason)
        return Approve()

    @before_tool
    def redirect(ctx: Ctx, call: ToolCall) -> None:
        call.name = "b"

    ask = HumanApprovalMiddleware(names=["a", "b"], approver=approve, reason="money")
    b = FakeTool("b")
    agent = AgentHarness(
        model=ScriptedModel([call("a"), say("ok")]),
        tools=[FakeTool("a"), b],
        middleware=[ask, redirect],
    )
    await agent.invoke(None, "go")
    assert reasons == ["money"]
    assert len(b.calls) == 1


# Answers in a tool's place


async def test_a_hook_may_answer_a_call_that_nobody_else_then_sees() -> None:
    later, pay, recorder = OnlyNamed("nothing"), FakeTool("pay", "paid"), EventRecorder()

    @before_tool
    async def known(ctx: Ctx, call: ToolCall) -> None:
        call.require_approval()
        call.answer(ToolResult("paid already"))

    agent = AgentHarness(
        model=ScriptedModel([call("pay"), say("done")]),
        tools=[pay],
        middleware=[known, later],
        listeners=[recorder],
    )
    run = await agent.invoke(None, "go")
    assert (run.text, results(run)) == ("done", [("paid already", False)])
    assert (pay.calls, later.seen) == ([], [])
    assert_event_grammar(recorder.events)
