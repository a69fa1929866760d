"""Limits of calls count what was made: reserved before, given back where nothing ran."""

from typing import Any

import anyio
import pytest

from tinyagents import (
    AgentHarness,
    AgentRun,
    AssistantMessage,
    Middleware,
    RunConfig,
    RunContext,
    RunPolicy,
    RunSnapshot,
    ToolContext,
    ToolResult,
    tool,
)
from tinyagents.harness.approval import Approve, Edit, Reject
from tinyagents.harness.call_counter import InMemoryCallCounter
from tinyagents.harness.context import Interrupt
from tinyagents.harness.errors import ConfigurationError, LimitExceededError, ServerError
from tinyagents.harness.middleware import (
    HumanApprovalMiddleware,
    ModelCallLimitMiddleware,
    RetryMiddleware,
    ToolCall,
    ToolCallLimitMiddleware,
    ToolHandler,
    before_model,
    before_tool,
    wrap_model,
    wrap_tool,
)
from tinyagents.harness.model import ModelRequest, ModelResponse
from tinyagents.harness.policy import UnknownToolPolicy
from tinyagents.testkit import (
    EventRecorder,
    FakeSleep,
    FakeTool,
    ScriptedModel,
    assert_event_grammar,
    call,
    calls,
    fail,
    hang,
    say,
)
from tinyagents.testkit.checkpoints import CheckpointOutcome, for_every_checkpoint

Ctx = RunContext[Any]
THREAD = RunConfig(thread_id="t")
TOLD = RunPolicy(refused_tools="return_to_model")


class CountingCounter(InMemoryCallCounter):
    """Knows how many calls are counted under all keys."""

    def __init__(self) -> None:
        super().__init__()
        self.counted = 0

    async def take(self, key: str, wanted: int, maximum: int, /) -> int:
        await anyio.lowlevel.checkpoint()
        allowed = await super().take(key, wanted, maximum)
        self.counted += allowed
        return allowed

    async def give_back(self, key: str, count: int, /) -> None:
        self.counted -= count
        await super().give_back(key, count)


def texts(run: AgentRun[Any, Any]) -> list[str]:
    return [message.text for message in run.messages if message.role == "tool"]


def used(run: AgentRun[Any, Any], name: str = "ToolCallLimitMiddleware") -> Any:
    notes: Any = run.snapshot.notes[name]
    return notes["used"]


async def again(agent: AgentHarness, run: AgentRun[Any, Any], **options: Any) -> AgentRun[Any, Any]:
    """Resume from JSON."""
    stored = RunSnapshot.model_validate_json(run.snapshot.model_dump_json())
    resumed: AgentRun[Any, Any] = await agent.resume(stored, None, **options)
    return resumed


# Tools


@before_tool
async def refuse_pay(ctx: Ctx, call: ToolCall) -> None:
    if call.name == "pay":
        call.refuse("not today")


@tool
async def look(n: int = 0) -> str:
    """Look."""
    return "found"


async def test_calls_that_do_not_run_use_up_nothing() -> None:
    counter = CountingCounter()
    agent = AgentHarness(
        model=ScriptedModel(
            [
                calls(call("pay"), call("look", n="many")),
                call("nowhere"),
                calls(call("look"), call("look")),
                say("done"),
            ]
        ),
        tools=[look, FakeTool("pay", "paid")],
        middleware=[
            ToolCallLimitMiddleware(run_limit=2, thread_limit=2, counter=counter),
            refuse_pay,
        ],
        policy=RunPolicy(
            refused_tools="return_to_model",
            unknown_tool=UnknownToolPolicy(action="return_tool_error"),
        ),
    )
    run = await agent.invoke(None, "go", config=THREAD)
    assert texts(run)[3:] == ["found", "found"]
    assert (used(run), counter.counted) == (2, 2)


async def test_a_wrap_in_front_that_answers_itself_uses_up_nothing() -> None:
    @wrap_tool
    async def cached(ctx: Ctx, call: ToolCall, call_next: ToolHandler) -> ToolResult:
        return ToolResult("from the cache")

    for middleware, expected in (([cached], 0), ([], 1)):
        agent = AgentHarness(
            model=ScriptedModel([call("look"), say("done")]),
            tools=[look],
            middleware=[*middleware, ToolCallLimitMiddleware(run_limit=1)],
        )
        assert used(await agent.invoke(None, "go")) == expected


async def test_a_call_that_a_hook_gives_to_another_tool_counts_for_that_one() -> None:
    @before_tool
    async def prefer_look(ctx: Ctx, call: ToolCall) -> None:
        call.name = "look"

    agent = AgentHarness(
        model=ScriptedModel([calls(call("pay"), call("pay")), say("done")]),
        tools=[look, FakeTool("pay", "paid")],
        middleware=[
            ToolCallLimitMiddleware("pay", run_limit=1),
            ToolCallLimitMiddleware("look", run_limit=2),
            prefer_look,
        ],
    )
    run = await agent.invoke(None, "go")
    assert texts(run) == ["found", "found"]
    assert used(run, "ToolCallLimitMiddleware(pay)") == 0
    assert used(run, "ToolCallLimitMiddleware(look)") == 2


async def test_the_tool_that_takes_an_unknown_ones_place_is_counted() -> None:
    agent = AgentHarness(
        model=ScriptedModel([calls(call("lok"), call("lok")), say("done")]),
        tools=[look],
        middleware=[ToolCallLimitMiddleware("look", run_limit=1)],
        policy=RunPolicy(unknown_tool=UnknownToolPolicy(action="rewrite", tool_name="look")),
    )
    first, second = texts(await agent.invoke(None, "go"))
    assert first == "found"
    assert "was not run" in second


async def test_nobody_is_asked_to_approve_a_call_over_the_limit() -> None:
    agent = AgentHarness(
        model=ScriptedModel([calls(call("look"), call("look")), say("done")]),
        tools=[look],
        middleware=[
            HumanApprovalMiddleware(names=["look"]),
            ToolCallLimitMiddleware(run_limit=1),
        ][::-1],
    )
    run = await agent.invoke(None, "go")
    assert [request.call_id for request in run.interrupts] == [run.messages[1].tool_calls[0].id]  # type: ignore[union-attr]
    run = await again(agent, run, answers={run.interrupts[0].id: Approve()})
    assert (run.status, used(run)) == ("completed", 1)
    assert texts(run)[0] == "found"
    assert "was not run" in texts(run)[1]


@pytest.mark.parametrize(
    ("decision", "expected"), [(Edit(arguments={"n": 2}), 1), (Approve(), 1), (Reject(), 0)]
)
async def test_a_call_that_waited_for_a_person_counts_once_if_it_runs(
    decision: Any, expected: int
) -> None:
    counter = CountingCounter()
    agent = AgentHarness(
        model=ScriptedModel([call("look"), say("done")]),
        tools=[look],
        middleware=[
            ToolCallLimitMiddleware(run_limit=1, thread_limit=1, counter=counter),
            HumanApprovalMiddleware(names=["look"]),
        ],
    )
    run = await agent.invoke(None, "go", config=THREAD)
    assert (run.status, counter.counted) == ("interrupted", 1)
    run = await again(agent, run, answers={run.interrupts[0].id: decision})
    assert (run.status, used(run), counter.counted) == ("completed", expected, expected)


async def test_calls_over_the_limit_are_answered_whatever_the_policy_for_refusals_is() -> None:
    recorder = EventRecorder()
    agent = AgentHarness(
        model=ScriptedModel([call("look"), say("done")]),
        tools=[look],
        middleware=[ToolCallLimitMiddleware(run_limit=0)],
        policy=RunPolicy(refused_tools="fail"),
        listeners=[recorder],
    )
    run = await agent.invoke(None, "go")
    assert run.text == "done"
    assert [m.outcome for m in run.messages if m.role == "tool"] == ["not_started"]
    assert_event_grammar(recorder.events)


async def test_a_batch_that_ends_the_run_with_an_error_uses_up_nothing_of_the_thread() -> None:
    counter = CountingCounter()
    agent = AgentHarness(
        model=ScriptedModel([calls(call("look"), call("look"), call("look"))]),
        tools=[look],
        middleware=[ToolCallLimitMiddleware(thread_limit=2, on_limit="error", counter=counter)],
    )
    with pytest.raises(LimitExceededError, match="thread") as caught:
        await agent.invoke(None, "go", config=THREAD)
    assert (caught.value.limit, counter.counted) == ("thread_tool_calls", 0)


async def test_two_limits_count_apart_under_names_of_their_own() -> None:
    soft = ToolCallLimitMiddleware(run_limit=1)
    agent = AgentHarness(
        model=ScriptedModel([call("look", n=n) for n in range(9)]),
        tools=[look],
        middleware=[soft, ToolCallLimitMiddleware(run_limit=2, on_limit="error")],
    )
    with pytest.raises(ConfigurationError, match="give each a `name`"):
        await agent.invoke(None, "go")
    hard = ModelCallLimitMiddleware(run_limit=3, name="hard")
    agent = agent.replace(middleware=[soft, hard, ModelCallLimitMiddleware(run_limit=5)])
    with pytest.raises(LimitExceededError, match=r"3 model calls \(`hard`\)"):
        await agent.invoke(None, "go")


async def test_runs_at_once_and_runs_inside_each_other_have_counts_of_their_own() -> None:
    limit = ToolCallLimitMiddleware(run_limit=2)
    inner = AgentHarness(
        model=ScriptedModel([*[calls(call("look"), call("look"))] * 2, *[say("in")] * 2]),
        tools=[look],
        middleware=[limit],
    )

    @tool
    async def ask_inner(ctx: ToolContext[Any]) -> str:
        """Ask another agent."""
        run = await inner.invoke(None, "go", context=ctx.run)
        return ",".join(texts(run))

    outer = AgentHarness(
        model=ScriptedModel([calls(call("ask_inner"), call("ask_inner")), say("out")]),
        tools=[ask_inner],
        middleware=[limit],
    )
    run = await outer.invoke(None, "go")
    assert texts(run) == ["found,found", "found,found"]
    assert used(run) == 2


async def test_wherever_a_run_is_cancelled_no_call_of_its_thread_stays_counted_unmade() -> None:
    counter, ran = CountingCounter(), list[int]()

    @tool
    async def work(n: int) -> str:
        """Work."""
        ran.append(n)
        await anyio.lowlevel.checkpoint()
        return "done"

    async def scenario() -> None:
        nonlocal counter
        counter = CountingCounter()
        ran.clear()
        agent = AgentHarness(
            model=ScriptedModel([calls(call("work", n=1), call("work", n=2)), say("done")]),
            tools=[work],
            middleware=[ToolCallLimitMiddleware(thread_limit=5, counter=counter)],
        )
        await agent.invoke(None, "go", config=THREAD)

    def check(outcome: CheckpointOutcome[None]) -> None:
        assert len(ran) <= counter.counted <= 2
        if not ran:
            assert counter.counted == 0

    assert await for_every_checkpoint(scenario, check=check) > 3


# Models


async def test_a_model_call_that_a_hook_holds_up_is_counted_once() -> None:
    asked = False

    @before_model
    async def ask(ctx: Ctx, request: ModelRequest) -> None:
        nonlocal asked
        if not asked:
            asked = True
            ctx.request_control(Interrupt("May I?"))

    counter = CountingCounter()
    agent = AgentHarness(
        model=ScriptedModel([say("ok")]),
        middleware=[ModelCallLimitMiddleware(run_limit=1, thread_limit=1, counter=counter), ask],
    )
    run = await agent.invoke(None, "go", config=THREAD)
    assert run.status == "interrupted"
    run = await again(agent, run, answers={run.interrupts[0].id: "yes"})
    assert (run.text, counter.counted) == ("ok", 1)


async def test_a_model_call_that_is_not_made_is_given_back() -> None:
    @before_model
    async def broken(ctx: Ctx, request: ModelRequest) -> None:
        raise ValueError("a bug")

    @wrap_model
    async def cached(ctx: Ctx, request: ModelRequest, call_next: Any) -> ModelResponse:
        return ModelResponse(AssistantMessage(content="from the cache"))

    for middleware, fails in ((broken, True), (cached, False)):
        counter = CountingCounter()
        limit = ModelCallLimitMiddleware(thread_limit=1, counter=counter)
        agent = AgentHarness(
            model=ScriptedModel([]),
            middleware=[limit, broken] if fails else [middleware, limit],
        )
        if fails:
            with pytest.raises(ValueError, match="bug"):
                await agent.invoke(None, "go", config=THREAD)
        else:
            await agent.invoke(None, "go", config=THREAD)
        assert counter.counted == 0


async def test_attempts_of_a_call_count_as_one_wherever_the_retry_stands() -> None:
    for order in (1, -1):
        counter = CountingCounter()
        limit = ModelCallLimitMiddleware(thread_limit=5, counter=counter)
        agent = AgentHarness(
            model=ScriptedModel([fail(ServerError("down")), say("ok")]),
            middleware=[limit, RetryMiddleware()][::order],
            sleep=FakeSleep(),
        )
        await agent.invoke(None, "go", config=THREAD)
        assert counter.counted == 1


async def test_a_model_call_that_was_cut_off_stays_counted() -> None:
    counter = CountingCounter()
    step = hang()
    agent = AgentHarness(
        model=ScriptedModel([step]),
        middleware=[ModelCallLimitMiddleware(thread_limit=5, counter=counter)],
    )
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: agent.invoke(None, "go", config=THREAD))
        await step.started.wait()
        group.cancel_scope.cancel()
    assert counter.counted == 1


async def test_a_streamed_and_a_stepped_run_end_with_the_answer_of_the_limit() -> None:
    limit: Middleware[Any] = ModelCallLimitMiddleware(run_limit=0, on_limit="end", answer="")
    agent = AgentHarness(model=ScriptedModel([]), middleware=[limit])
    run = await agent.stream(None, "go").result()
    assert (run.status, run.text) == ("stopped", "")
