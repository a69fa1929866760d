"""A changed copy of an agent, beside the one that it was made of."""

import pytest

from tinyagents import AgentHarness, RunLimits, RunPolicy, tool
from tinyagents.harness.errors import ServerError
from tinyagents.harness.retry import FallbackPolicy
from tinyagents.testkit import FakeSleep, ScriptedModel, fail, say


@tool
async def look() -> str:
    """Look."""
    return "here"


def echo(text: str) -> ScriptedModel:
    return ScriptedModel([say(text)] * 3)


async def test_a_copy_may_use_another_of_its_models_by_name() -> None:
    agent = AgentHarness(models={"small": echo("small"), "large": echo("large")})
    changed = agent.replace(model="large")
    assert (await changed.invoke(None, "hi")).text == "large"
    assert changed.models.names == ("large", "small")
    assert (await agent.invoke(None, "hi")).text == "small"


async def test_a_copy_with_another_model_keeps_the_fallbacks() -> None:
    broken = ScriptedModel([fail(ServerError("down", retryable=False))])
    policy = RunPolicy(fallback=FallbackPolicy(models=("spare",)))
    agent = AgentHarness(model=echo("first"), models={"spare": echo("spare")}, policy=policy)
    changed = agent.replace(model=broken, sleep=FakeSleep())
    assert (await changed.invoke(None, "hi")).text == "spare"
    assert (await agent.invoke(None, "hi")).text == "first"


async def test_models_that_are_given_stand_in_the_place_of_all() -> None:
    agent = AgentHarness(model=echo("old"), models={"other": echo("other")})
    changed = agent.replace(models={"new": echo("new")})
    assert changed.models.names == ("new",)
    assert (await changed.invoke(None, "hi")).text == "new"


def test_what_is_not_given_stays_and_the_agent_is_not_changed() -> None:
    agent = AgentHarness(
        model=echo("x"), tools=[look], name="a", limits=RunLimits(max_model_calls=3)
    )
    changed = agent.replace(name="b")
    assert (changed.name, changed.tools, changed.models) == ("b", agent.tools, agent.models)
    assert changed.policy == agent.policy
    assert agent.replace(tools=[]).tools.names == ()
    assert (agent.name, agent.tools.names) == ("a", ("look",))


@pytest.mark.parametrize("name", ["name", "models", "tools", "policy", "middleware"])
def test_an_agent_cannot_be_changed(name: str) -> None:
    with pytest.raises(AttributeError):
        setattr(AgentHarness(model=echo("x")), name, None)
