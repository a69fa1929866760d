"""Middlewares that watch and steer, together in a run that is cancelled wherever it waits."""

from collections import Counter
from typing import Any

import anyio
import pytest

from tinyagents import AgentHarness, AgentRun, RunContext, tool
from tinyagents.harness.middleware import (
    DynamicPromptMiddleware,
    LoggingMiddleware,
    ModelRoutingMiddleware,
    RefusalMiddleware,
    RoutingContext,
    TodoListMiddleware,
    TracingMiddleware,
    UsageAccountingMiddleware,
)
from tinyagents.harness.model import ModelRequest
from tinyagents.testkit import ScriptedModel, call, delay, refuse, say
from tinyagents.testkit.checkpoints import CheckpointOutcome, for_every_checkpoint


@tool
async def slow(n: int) -> int:
    """Wait a little."""
    await anyio.lowlevel.checkpoint()
    return n


async def prompt(ctx: RunContext[Any], request: ModelRequest) -> str:
    await anyio.lowlevel.checkpoint()
    return "Be brief."


async def route(context: RoutingContext) -> str:
    await anyio.lowlevel.checkpoint()
    return "main"


class Scenario:
    def __init__(self, *, streamed: bool) -> None:
        self.streamed = streamed

    def __call__(self) -> Any:
        self.tracer, self.usage = TracingMiddleware(), UsageAccountingMiddleware()
        main = [
            delay(0, call("slow", n=1) + call("slow", n=2)),
            delay(0, call("write_todos", todos=[{"content": "look"}])),
            delay(0, refuse("No.")),
        ]
        agent = AgentHarness(
            models={
                "main": ScriptedModel(main),
                "other": ScriptedModel([delay(0, say("Yes."))]),
            },
            tools=[slow],
            middleware=[
                self.tracer,
                LoggingMiddleware(),
                self.usage,
                ModelRoutingMiddleware(route),
                DynamicPromptMiddleware(prompt, placement="end"),
                RefusalMiddleware(fallback="other"),
                TodoListMiddleware(),
            ],
        )
        return self.streaming(agent) if self.streamed else agent.invoke(None, "Go.")

    async def streaming(self, agent: AgentHarness) -> AgentRun[Any, Any]:
        async with agent.stream(None, "Go.") as stream:
            return await stream.result()

    def check(self, outcome: CheckpointOutcome[AgentRun[Any, Any]]) -> None:
        phases = Counter((record.span_id, record.phase) for record in self.tracer.records)
        begun = {span for span, phase in phases if phase == "begin"}
        assert set(phases.values()) <= {1}
        assert {span for span, phase in phases if phase == "end"} == begun
        assert outcome.cancelled or outcome.error is None
        if not outcome.reached:
            assert outcome.result is not None
            assert outcome.result.text == "Yes."
            assert self.usage.account().total.calls == 3


@pytest.mark.parametrize("streamed", [False, True], ids=["plain", "streamed"])
async def test_wherever_a_run_is_cancelled_each_span_that_began_has_ended(streamed: bool) -> None:
    scenario = Scenario(streamed=streamed)
    assert await for_every_checkpoint(scenario, check=scenario.check) > 8
