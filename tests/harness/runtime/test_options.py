"""What the ways of running an agent refuse at once."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tinyagents import AgentHarness
from tinyagents.testkit import ScriptedModel, say

Call = Callable[[Any], Awaitable[object] | object]


@pytest.mark.parametrize(
    "begin",
    [
        lambda agent: agent.invoke(None, "hi", dta=1),
        lambda agent: agent.stream(None, "hi", dta=1),
        lambda agent: agent.start(None, "hi", dta=1),
        lambda agent: agent.resume(agent.snapshot("hi"), None, dta=1),
        lambda agent: agent.step(agent.snapshot("hi"), None, dta=1),
        lambda agent: agent.invoke_model("hi", dta=1),
    ],
    ids=["invoke", "stream", "start", "resume", "step", "invoke_model"],
)
async def test_a_misspelt_option_is_refused_and_not_passed_over(begin: Call) -> None:
    model = ScriptedModel([say("never")])

    async def called() -> None:
        begun = begin(AgentHarness(model=model))
        if isinstance(begun, Awaitable):
            await begun

    with pytest.raises(TypeError, match=r"no option `dta`; there are .*data"):
        await called()
    assert model.calls == 0
