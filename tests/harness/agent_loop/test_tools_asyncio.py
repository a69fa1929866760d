"""What tools meet on asyncio alone."""

import asyncio

import pytest

from tinyagents import AgentHarness, ToolMessage, tool
from tinyagents.testkit import ScriptedModel, call, say


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_a_tool_that_awaits_what_somebody_else_cancelled_fails_alone() -> None:
    @tool
    async def waits() -> str:
        """Wait for a task that is cancelled."""
        task = asyncio.ensure_future(asyncio.sleep(30))
        task.cancel()
        await task
        return "never"

    @tool
    async def look() -> str:
        """Look."""
        return "here"

    model = ScriptedModel([[call("waits"), call("look")], say("done")])
    run = await AgentHarness(model=model, tools=[waits, look]).invoke(None, "go")
    texts = [message.text for message in run.messages if isinstance(message, ToolMessage)]
    assert run.status == "completed"
    assert "something that it waited for was cancelled" in texts[0]
    assert texts[1] == "here"
