"""Wherever a run is broken off, by a cancellation or a failure, it leaves nothing behind."""

from collections.abc import AsyncIterator
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from tinyagents import AgentHarness, AgentRun, Middleware, RunContext, tool
from tinyagents.harness.errors import TinyAgentsError
from tinyagents.harness.message import repair_messages
from tinyagents.harness.model import ModelRequest
from tinyagents.testkit import (
    EventRecorder,
    ScriptedModel,
    assert_event_grammar,
    call,
    delay,
    say,
    think,
)
from tinyagents.testkit.checkpoints import CheckpointOutcome, for_every_checkpoint


@tool
async def slow(n: int) -> int:
    """Wait a little."""
    await anyio.lowlevel.checkpoint()
    return n


@tool
async def chatty(n: int) -> AsyncIterator[str | list[int]]:
    """Report and wait."""
    yield "half"
    await anyio.lowlevel.checkpoint()
    yield [n]


@tool(timeout=30)
async def timed(n: int) -> int:
    """Wait under a deadline."""
    await anyio.lowlevel.checkpoint()
    return n


class Waiting(Middleware[Any]):
    """Waits in every hook, and keeps the run as the last hook saw it."""

    def __init__(self) -> None:
        self.run: AgentRun[Any, Any] | None = None

    async def before_agent(self, ctx: RunContext[Any]) -> None:
        await anyio.lowlevel.checkpoint()

    async def before_model(self, ctx: RunContext[Any], request: ModelRequest) -> None:
        await anyio.lowlevel.checkpoint()

    async def after_model(self, ctx: RunContext[Any], response: Any) -> None:
        await anyio.lowlevel.checkpoint()

    async def after_tool(self, ctx: RunContext[Any], call: Any, result: Any) -> None:
        await anyio.lowlevel.checkpoint()

    async def after_agent(self, ctx: RunContext[Any], run: AgentRun[Any, Any]) -> None:
        self.run = run
        await anyio.lowlevel.checkpoint()

    async def on_error(self, ctx: RunContext[Any], error: BaseException) -> None:
        self.run = getattr(error, "run", None)
        await anyio.lowlevel.checkpoint()


class Scenario:
    """One run with parallel tools, hooks and a streaming model, made anew for each point."""

    def __init__(self, *, streamed: bool) -> None:
        self.streamed = streamed

    def __call__(self) -> Any:
        self.recorder = EventRecorder()
        self.hooks = Waiting()
        turn = [call("slow", n=1), call("chatty", n=2), call("timed", n=3)]
        model = ScriptedModel(
            [delay(0, think("hm") + turn[0] + turn[1] + turn[2]), delay(0, say("a", "b", "c"))]
        )
        harness = AgentHarness(
            model=model,
            tools=[slow, chatty, timed],
            middleware=[self.hooks],
            listeners=[self.recorder],
        )
        return self.read(harness) if self.streamed else harness.invoke(None, "go")

    async def read(self, harness: AgentHarness) -> AgentRun[None, None]:
        async with harness.stream(None, "go") as stream:
            async for _ in stream:
                pass
            return await stream.result()

    def check(self, outcome: CheckpointOutcome[Any]) -> None:
        events = self.recorder.events
        if not events:
            assert outcome.error is not None  # it was over before it began
            return
        assert_event_grammar(events)
        run = self.hooks.run
        assert run is not None
        assert not repair_messages(run.messages).changed
        # Whoever reads a stream may be broken off when the run has ended well.
        assert run.status in ("completed", "cancelled", "failed")
        assert events[-1].kind == ("run.completed" if run.status == "completed" else "run.failed")
        if outcome.error is None:
            assert outcome.result is not None
            assert outcome.result.messages == run.messages


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_cancellation_at_any_point_leaves_a_valid_history_and_no_task(
    streamed: bool,
) -> None:
    scenario = Scenario(streamed=streamed)
    points = await for_every_checkpoint(scenario, check=scenario.check)
    assert points > 10


# On trio an error cannot be put into a task that waits for its children.
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("streamed", [False, True])
async def test_a_failure_at_any_point_leaves_a_valid_history_and_no_task(streamed: bool) -> None:
    scenario = Scenario(streamed=streamed)

    def check(outcome: CheckpointOutcome[Any]) -> None:
        if outcome.error is not None:
            assert isinstance(outcome.error, TinyAgentsError | OSError)
        scenario.check(outcome)

    points = await for_every_checkpoint(scenario, check=check, error=OSError("injected"))
    assert points > 10
