"""Typed answers with tools beside them, cut answers and refusals: C40 and C41."""

from typing import Any

import pytest
from pydantic import BaseModel

from tinyagents import (
    AgentHarness,
    AgentRun,
    NativeOutput,
    Output,
    PromptedOutput,
    ToolOutput,
    tool,
)
from tinyagents.harness.errors import (
    OutputRefusedError,
    OutputTruncatedError,
    StructuredOutputError,
)
from tinyagents.harness.message import repair_messages
from tinyagents.harness.model import ModelProfile
from tinyagents.testkit import ScriptedModel, assert_event_grammar, call, calls, refuse, say

PROFILE = ModelProfile.permissive()
both_ways = pytest.mark.parametrize("streamed", [False, True], ids=["plain", "streamed"])


class Report(BaseModel):
    title: str


class Items(BaseModel):
    items: list[str]


async def run_of(agent: AgentHarness, output: Any, streamed: bool) -> AgentRun[None, Any]:
    run: AgentRun[None, Any]
    if streamed:
        run = await agent.stream(None, "go", output=output).result()
    else:
        run = await agent.invoke(None, "go", output=output)
    return run


@both_ways
@pytest.mark.parametrize(
    "wanted", [NativeOutput(Report), ToolOutput(Report), PromptedOutput(Report)]
)
async def test_every_strategy_leaves_the_same_value_and_the_same_history(
    wanted: Output[Report], streamed: bool
) -> None:
    # C40
    looked: list[str] = []

    @tool
    async def lookup(key: str) -> str:
        """Look up."""
        looked.append(key)
        return "found"

    by_tool = wanted.strategy == "tool"
    last = call("Report", title="T") if by_tool else say('{"title":"T"}')
    model = ScriptedModel([call("lookup", key="k"), last], profile=PROFILE)
    run = await run_of(AgentHarness(model=model, tools=[lookup]), wanted, streamed)
    assert run.output == Report(title="T")
    assert looked == ["k"]
    assert [message.role for message in run.messages] == ["user", "assistant", "tool", "assistant"]
    assert [[block.type for block in message.content] for message in run.messages] == [
        ["text"],
        ["tool_call"],
        ["text"],
        ["text"],
    ]
    assert run.text == '{"title":"T"}'
    assert run.tool_calls == 1
    assert not repair_messages(run.messages).changed
    assert_event_grammar(run)


@both_ways
@pytest.mark.parametrize("text", ['{"items":["a"]}', '{"items":["a"'])
async def test_a_cut_answer_is_truncated_and_never_a_value(text: str, streamed: bool) -> None:
    # C41: whether what is there happens to parse or could be closed makes no difference.
    model = ScriptedModel([say(text, finish_reason="length")], profile=PROFILE)
    with pytest.raises(OutputTruncatedError) as caught:
        await run_of(AgentHarness(model=model), Items, streamed)
    assert caught.value.text == text
    assert model.calls == 1
    assert caught.value.run is not None
    assert (caught.value.run.output, caught.value.run.text) == (None, text)
    assert caught.value.answer == caught.value.run.messages[-1]
    assert "output.invalid" not in [event.kind for event in caught.value.run.events]


@both_ways
async def test_a_cut_call_of_the_output_is_truncated_too(streamed: bool) -> None:
    # C41, where the answer is a tool call.
    cut = calls(call("Items", raw='{"items":["a"'), finish_reason="length")
    model = ScriptedModel([cut], profile=PROFILE)
    with pytest.raises(OutputTruncatedError) as caught:
        await run_of(AgentHarness(model=model), ToolOutput(Items), streamed)
    assert caught.value.text == '{"items":["a"'
    assert model.calls == 1
    assert caught.value.run is not None
    assert not repair_messages(caught.value.run.messages).changed


@both_ways
@pytest.mark.parametrize("said", [say("No.", finish_reason="refusal"), refuse("No.")])
async def test_a_refusal_is_an_outcome_of_its_own(said: Any, streamed: bool) -> None:
    # C41
    model = ScriptedModel([said], profile=PROFILE)
    with pytest.raises(OutputRefusedError) as caught:
        await run_of(AgentHarness(model=model), Items, streamed)
    assert caught.value.text == "No."
    assert isinstance(caught.value, StructuredOutputError)
    assert caught.value.errors == ()
    assert model.calls == 1
