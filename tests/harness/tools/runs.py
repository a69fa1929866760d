"""A run of one or more tool calls, without a model that thinks."""

from collections.abc import Sequence
from typing import Any

from tinyagents import AgentHarness, AgentRun, Middleware, RunConfig, ToolMessage
from tinyagents.harness.clock import Clock, SystemClock
from tinyagents.harness.tool import ToolLike
from tinyagents.testkit import ScriptedModel, assert_event_grammar, call, say


async def run_calls(
    tools: Sequence[ToolLike],
    *calls: tuple[str, dict[str, Any]],
    middleware: Sequence[Middleware[Any]] = (),
    clock: Clock | None = None,
    config: RunConfig | None = None,
) -> AgentRun[Any, Any]:
    """Run the calls, each in a turn of its own."""
    model = ScriptedModel([*(call(name, **arguments) for name, arguments in calls), say("done")])
    agent = AgentHarness(
        model=model, tools=tools, middleware=middleware, clock=clock or SystemClock()
    )
    run = await agent.invoke(None, "go", config=config)
    assert run.text == "done"
    assert_event_grammar(run.events)
    return run


def results(run: AgentRun[Any, Any]) -> list[ToolMessage]:
    """The results of a run's calls, in their order."""
    return [message for message in run.messages if message.role == "tool"]


async def result_of(
    tools: Sequence[ToolLike], name: str, *, clock: Clock | None = None, **arguments: Any
) -> ToolMessage:
    """The result of one call."""
    return results(await run_calls(tools, (name, arguments), clock=clock))[-1]
