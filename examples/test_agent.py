"""Tests of an agent, offline: ``pytest examples/test_agent.py``, or run as a script."""

from dataclasses import dataclass, field

import anyio

from tinyagents import AgentHarness, RunLimits, ToolContext, ToolError, tool
from tinyagents.harness.errors import LimitExceededError, RateLimitError
from tinyagents.testkit import (
    FakeSleep,
    FakeTool,
    ScriptedModel,
    assert_event_grammar,
    assert_trajectory,
    call,
    say,
)


@dataclass
class Shop:
    """What the agent under test works with; a test gives it one of its own."""

    prices: dict[str, float] = field(default_factory=dict[str, float])


@tool
async def price(item: str, ctx: ToolContext[Shop]) -> float:
    """Price of an item in euros."""
    if item not in ctx.data.prices:
        raise ToolError(f"there is no item {item}")
    return ctx.data.prices[item]


agent = AgentHarness(models={"default": ScriptedModel([])}, tools=[price])
"""The agent of the application. Each test replaces its model, for the run alone."""


def test_it_looks_a_price_up() -> None:
    with ScriptedModel([call("price", item="tea"), say("It costs 4.50.")]) as model:
        run = agent.invoke_sync(None, "Tea?", model=model, data=Shop({"tea": 4.5}))
    assert run.text == "It costs 4.50."
    assert_trajectory(run).tool_called("price", item="tea").completed()
    # What the model was sent with its second call: the result of the tool.
    assert model.requests[1].messages[-1].text == "4.5"


def test_the_model_is_told_of_an_item_that_there_is_not() -> None:
    model = ScriptedModel([call("price", item="gold"), say("We have no gold.")])
    run = agent.invoke_sync(None, "Gold?", model=model, data=Shop())
    assert_trajectory(run).tool_failed("price", "error").completed()
    assert run.messages[2].text == "there is no item gold"


def test_a_busy_provider_is_asked_again_after_the_time_it_gives() -> None:
    sleep = FakeSleep()
    model = ScriptedModel([RateLimitError("busy", retry_after=7), say("Hello.")])
    run = agent.replace(sleep=sleep).invoke_sync(None, "Hi!", model=model)
    assert run.text == "Hello."
    assert sleep.delays == [7]


def test_a_loop_without_end_is_stopped_by_its_limit() -> None:
    lookup = FakeTool.returning("nothing", name="lookup")
    limited = agent.replace(limits=RunLimits(max_model_calls=3))
    model = ScriptedModel([call("lookup")] * 4)
    try:
        limited.invoke_sync(None, "Find it.", model=model, tools=[lookup])
    except LimitExceededError as error:
        run = error.run
    else:
        raise AssertionError("the limit did not hold")
    assert run is not None
    assert len(lookup.calls) == 3
    assert_trajectory(run).failed("limit_exceeded")


def test_events_come_in_order_when_streamed() -> None:
    async def check() -> None:
        model = ScriptedModel([call("price", item="tea"), say("It costs 4.50.")])
        stream = agent.stream(None, "Tea?", model=model, data=Shop({"tea": 4.5}))
        types = [chunk.type async for chunk in stream]
        assert types[-1] == "final"
        assert "tool_completed" in types
        assert_event_grammar((await stream.result()).events)

    anyio.run(check)


if __name__ == "__main__":
    for name, test in sorted(globals().items()):
        if name.startswith("test_"):
            test()
            print(f"passed: {name}")
