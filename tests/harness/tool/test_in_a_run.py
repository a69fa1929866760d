"""Tools inside of a run: what reaches the model and the events."""

from collections.abc import AsyncGenerator
from typing import Annotated, Any

import anyio
import pytest

from tinyagents import (
    AgentHarness,
    AgentRun,
    Injected,
    RunConfig,
    RunPolicy,
    ToolContext,
    ToolMessage,
    ToolResult,
    tool,
)
from tinyagents.harness.events import ToolProgress
from tinyagents.harness.policy import PayloadCapture
from tinyagents.testkit import FakeSleep, ScriptedModel, assert_event_grammar, call, calls, say

NAMES = ["files.read/v2", "a.b", "a_b", "n" * 90]


def results(run: AgentRun[Any, Any]) -> list[ToolMessage]:
    return [message for message in run.messages if message.role == "tool"]


def kinds(run: AgentRun[Any, Any]) -> list[str]:
    return [event.kind for event in run.events if event.kind.startswith(("tool.", "retry."))]


@pytest.mark.parametrize("name", NAMES)
async def test_events_and_messages_show_the_applications_name(name: str) -> None:
    tools = [tool(name=each)(lambda each=each: each) for each in NAMES]
    model = ScriptedModel([call(name), say("ok")])
    run = await AgentHarness(model=model, tools=tools).invoke(None, "go")
    (result,) = results(run)
    assert (result.text, result.name) == (name, name)
    named = [getattr(event, "tool_name", name) for event in run.events]
    assert set(named) == {name}


async def test_arguments_are_read_as_they_were_meant_where_the_policy_says_so() -> None:
    @tool
    async def add(numbers: list[int]) -> int:
        return sum(numbers)

    script = [call("add", numbers="[1, 2]"), say("ok")]
    resilient = AgentHarness(model=ScriptedModel(script), tools=[add], policy=RunPolicy.resilient())
    run = await resilient.invoke(None, "go")
    assert results(run)[0].text == "3"
    strict = AgentHarness(model=ScriptedModel(script), tools=[add])
    run = await strict.invoke(None, "go")
    assert results(run)[0].is_error
    assert "arguments.numbers: input should be a valid array" in results(run)[0].text


async def test_a_value_for_an_injected_parameter_is_dropped_and_reported() -> None:
    @tool
    async def who(tenant: Annotated[str, Injected(configurable="tenant")]) -> str:
        return tenant

    model = ScriptedModel([call("who", tenant="evil"), say("ok")])
    harness = AgentHarness(model=model, tools=[who])
    config = RunConfig(configurable={"tenant": "acme"})
    run = await harness.invoke(None, "go", config=config)
    assert results(run)[0].text == "acme"
    assert kinds(run) == ["tool.injected_dropped", "tool.started", "tool.completed"]


async def test_a_tool_out_of_time_is_an_error_result_that_names_its_budget() -> None:
    @tool(timeout=0.02)
    async def slow() -> None:
        await anyio.sleep_forever()

    model = ScriptedModel([call("slow"), say("ok")])
    run = await AgentHarness(model=model, tools=[slow]).invoke(None, "go")
    (result,) = results(run)
    assert result.is_error
    assert "`slow`" in result.text
    assert "20 ms" in result.text


async def test_the_retry_of_a_tool_follows_the_grammar_of_events() -> None:
    @tool(retries=1, idempotent=True)
    async def flaky(ctx: ToolContext[None]) -> str:
        if ctx.attempt == 1:
            raise ConnectionResetError("reset")
        return "done"

    model = ScriptedModel([call("flaky"), say("ok")])
    run = await AgentHarness(model=model, tools=[flaky], sleep=FakeSleep()).invoke(None, "go")
    assert results(run)[0].text == "done"
    assert kinds(run) == ["tool.started", "retry.scheduled", "tool.completed"]
    assert_event_grammar(run.events)


async def test_progress_of_every_kind_of_tool_is_an_event_of_its_call() -> None:
    @tool
    async def steps() -> AsyncGenerator[str]:
        yield "one"
        yield "two"

    @tool
    def blocking(ctx: ToolContext[None]) -> str:
        ctx.progress("half")
        return "done"

    model = ScriptedModel([calls(call("steps"), call("blocking")), say("ok")])
    policy = RunPolicy(capture=PayloadCapture(tool_io=True))
    agent = AgentHarness(model=model, tools=[steps, blocking], policy=policy)
    run = await agent.invoke(None, "go")
    assert [result.text for result in results(run)] == ["two", "done"]
    said = [(e.tool_name, e.message) for e in run.events if isinstance(e, ToolProgress)]
    assert sorted(said) == [("blocking", "half"), ("steps", "one"), ("steps", "two")]
    assert_event_grammar(run.events)


async def test_the_value_of_a_result_stays_in_the_transcript_unseen_by_the_model() -> None:
    @tool
    async def measure() -> ToolResult:
        return ToolResult("7 degrees", value={"celsius": 7})

    model = ScriptedModel([call("measure"), say("ok")])
    run = await AgentHarness(model=model, tools=[measure]).invoke(None, "go")
    assert results(run)[0].artifact == {"celsius": 7}
    assert results(run)[0].text == "7 degrees"
