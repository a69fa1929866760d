"""A run's context: its identity, its events, and what hooks and tools ask of it."""

import datetime

import anyio
import pytest
from pydantic import JsonValue

from tests.support import PATIENCE
from tinyagents import AgentHarness, RunConfig, RunContext, ToolContext, tool
from tinyagents.harness.context import Interrupt, Jump, StopWithFinal
from tinyagents.harness.errors import InvalidRequestError
from tinyagents.harness.middleware import before_agent
from tinyagents.testkit import ScriptedModel, assert_event_grammar, call, say


async def context_of(config: RunConfig | None = None) -> RunContext[None]:
    seen: list[RunContext[None]] = []
    agent = AgentHarness(model=ScriptedModel([say("x")]), middleware=[before_agent(seen.append)])
    await agent.invoke(None, "hi", config=config)
    return seen[0]


async def test_a_context_tells_who_the_run_is() -> None:
    ctx = await context_of(RunConfig(run_id="r1", thread_id="t1", tags=("a",)))
    assert (ctx.run_id, ctx.root_run_id, ctx.parent_run_id) == ("r1", "r1", None)
    assert (ctx.thread_id, ctx.depth, ctx.config.tags) == ("t1", 0, ("a",))


async def test_of_several_requests_the_strongest_wins_and_of_equals_the_first() -> None:
    ctx = await context_of()
    ctx.request_control(Jump("model"))
    ctx.request_control(StopWithFinal("one"))
    ctx.request_control(StopWithFinal("two"))
    assert ctx.control == StopWithFinal("one")
    ctx.request_control(Interrupt("ask"))
    ctx.request_control(StopWithFinal("three"))
    assert ctx.take_control() == Interrupt("ask")
    assert ctx.take_control() is None


def test_a_config_round_trips_and_fills_in_what_is_missing() -> None:
    config = RunConfig(
        run_id="r", metadata={"user": 1}, configurable={"lang": "de"}, tags=("a",), depth=2
    )
    assert RunConfig.model_validate_json(config.model_dump_json()) == config
    assert RunConfig.model_validate({"run_id": "r"}).tags == ()


async def test_a_custom_event_keeps_what_its_payload_was() -> None:
    @before_agent
    def note(ctx: RunContext[None]) -> None:
        items: list[JsonValue] = [1]
        ctx.emit_custom("note", {"items": items})
        items.append(2)

    agent = AgentHarness(model=ScriptedModel([say("x")]), middleware=[note])
    run = await agent.invoke(None, "hi")
    event = next(event for event in run.events if event.kind == "custom")
    assert (event.name, event.payload) == ("note", {"items": [1]})  # type: ignore[attr-defined]


@pytest.mark.parametrize("listeners", [[], [lambda event: None]])
async def test_a_custom_event_that_is_no_json_is_refused_where_it_is_made(
    listeners: list[object],
) -> None:
    @before_agent
    def note(ctx: RunContext[None]) -> None:
        ctx.emit_custom("note", datetime.datetime.now(datetime.UTC))  # type: ignore[arg-type]

    agent = AgentHarness(
        model=ScriptedModel([say("x")]),
        middleware=[note],
        listeners=listeners,  # type: ignore[arg-type]
    )
    with pytest.raises(InvalidRequestError, match="note"):
        await agent.invoke(None, "hi")


async def test_events_of_tools_in_threads_are_recorded_by_the_loop_and_in_order() -> None:
    @tool
    def work(n: int, ctx: ToolContext[None]) -> int:
        """Work in a thread."""
        for step in range(50):
            ctx.run.emit_custom("step", [n, step])
        return n

    seen: list[object] = []
    model = ScriptedModel([[call("work", n=n) for n in range(4)], say("done")])
    agent = AgentHarness(model=model, tools=[work], listeners=[seen.append])
    run = await agent.invoke(None, "go")
    assert [event.offset for event in run.events] == list(range(len(run.events)))
    assert list(run.events) == seen
    steps = [e.payload for e in run.events if e.kind == "custom"]  # type: ignore[attr-defined]
    for n in range(4):
        assert [step for step in steps if step[0] == n] == [[n, step] for step in range(50)]
    assert_event_grammar(run.events)


async def test_a_tool_in_a_thread_can_stop_the_run() -> None:
    @tool
    def stop(ctx: ToolContext[None]) -> str:
        """Stop."""
        ctx.run.request_control(StopWithFinal("that is all"))
        return "ok"

    agent = AgentHarness(model=ScriptedModel([call("stop")]), tools=[stop])
    with anyio.fail_after(PATIENCE):
        run = await agent.invoke(None, "go")
    assert (run.status, run.text) == ("stopped", "that is all")
