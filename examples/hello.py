"""The smallest agent, on a model that answers from a script."""

import anyio

from tinyagents import AgentHarness
from tinyagents.testkit import ScriptedModel, say


async def main() -> None:
    agent = AgentHarness(model=ScriptedModel([say("Hello!")]))
    run = await agent.invoke(None, "hello")
    print(run.text)


anyio.run(main)
