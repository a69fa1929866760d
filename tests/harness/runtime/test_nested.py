"""A run inside another one: its place in the tree, what it shares, and what is its own."""

import anyio
import pytest

from tinyagents import (
    AgentHarness,
    CancellationToken,
    RunConfig,
    RunLimits,
    ToolContext,
    tool,
)
from tinyagents.harness.errors import RunCancelledError
from tinyagents.testkit import ScriptedModel, assert_event_grammar, call, say

child = AgentHarness(model=ScriptedModel.per_run([say("from below")]), name="child")


@tool
async def delegate(ctx: ToolContext[str]) -> str:
    """Ask another agent."""
    run = await child.invoke(None, "help", context=ctx.run)
    kinds = [event.kind for event in run.events]
    assert kinds[0] == "run.started"
    assert kinds[-1] == "run.completed"
    assert {event.run_id for event in run.events} == {run.run_id}
    return run.text


async def test_a_nested_run_shares_the_tree_and_its_usage_reaches_the_parent() -> None:
    model = ScriptedModel([[call("delegate"), call("delegate")], say("done")])
    harness = AgentHarness(model=model, tools=[delegate])
    config = RunConfig(thread_id="t1", tags=("a",), metadata={"k": 1})
    run = await harness.invoke(None, "go", data="deps", config=config)
    nested = {event.run_id for event in run.events} - {run.run_id}
    assert len(nested) == 2
    for event in run.events:
        if event.run_id in nested:
            assert (event.root_run_id, event.parent_run_id) == (run.run_id, run.run_id)
            assert (event.depth, event.thread_id, event.tags) == (1, "t1", ("a",))
            assert event.component == "child"
    assert [event.offset for event in run.events] == list(range(len(run.events)))
    assert_event_grammar(run.events)
    spent = [event.usage for event in run.events if event.kind == "usage.recorded"]  # type: ignore[attr-defined]
    assert run.usage.total_tokens == sum(usage.total_tokens for usage in spent)
    assert run.model_calls == 2


async def test_a_nested_run_deeper_than_its_limit_is_refused() -> None:
    shallow = child.replace(limits=RunLimits(max_depth=0))
    seen: list[str] = []

    @tool
    async def deep(ctx: ToolContext[None]) -> str:
        """Nest."""
        try:
            await shallow.invoke(None, "help", context=ctx.run)
        except Exception as error:
            seen.append(type(error).__name__)
            raise
        return ""

    model = ScriptedModel([call("deep"), say("done")])
    run = await AgentHarness(model=model, tools=[deep]).invoke(None, "go")
    assert seen == ["SubAgentDepthError"]
    assert "SubAgentDepthError" in run.messages[2].text


@pytest.mark.parametrize("which", ["own", "parent"])
async def test_a_nested_run_hears_its_own_token_and_its_parents(which: str) -> None:
    own, parent = CancellationToken(), CancellationToken()
    waiting = anyio.Event()
    ended: list[str] = []

    @tool
    async def wait(ctx: ToolContext[None]) -> str:
        """Wait for the end."""
        waiting.set()
        await ctx.cancellation.wait()
        return ""

    inner = AgentHarness(model=ScriptedModel([call("wait")]), tools=[wait])

    @tool
    async def outer(ctx: ToolContext[None]) -> str:
        """Run inside."""
        try:
            await inner.invoke(None, "go", context=ctx.run, cancellation=own)
        except RunCancelledError:
            ended.append("inner")
        return "went on"

    harness = AgentHarness(model=ScriptedModel([call("outer"), say("done")]), tools=[outer])

    async def stop() -> None:
        await waiting.wait()
        (own if which == "own" else parent).cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stop)
        if which == "own":
            run = await harness.invoke(None, "go", cancellation=parent)
            assert (ended, run.text) == (["inner"], "done")
        else:
            with pytest.raises(RunCancelledError):
                await harness.invoke(None, "go", cancellation=parent)


async def test_nothing_is_recorded_after_the_end_of_a_run() -> None:
    kept: list[ToolContext[None]] = []

    @tool
    async def keep(ctx: ToolContext[None]) -> str:
        """Keep the context."""
        kept.append(ctx)
        return ""

    model = ScriptedModel([call("keep"), say("done")])
    run = await AgentHarness(model=model, tools=[keep]).invoke(None, "go")
    before = len(run.events)
    kept[0].progress("late")
    kept[0].run.emit_custom("late")
    assert len(run.events) == before
