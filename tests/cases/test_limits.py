"""What a limit leaves behind."""

import pytest

from tinyagents import AgentHarness, RunLimits, RunPolicy, tool
from tinyagents.harness.usage import Usage
from tinyagents.testkit import ScriptedModel, assert_trajectory, call, say

from .wire import is_valid, results

EACH = Usage(input_tokens=10, output_tokens=2)


@tool
async def look(n: int) -> int:
    """Look."""
    return n


def agent(model: ScriptedModel, on_limit: str) -> AgentHarness:
    limits = RunLimits(max_model_calls=2)
    policy = RunPolicy(on_limit=on_limit, limits=limits)  # type: ignore[arg-type]
    return AgentHarness(model=model, tools=[look], policy=policy)


@pytest.mark.parametrize("streamed", [False, True])
async def test_the_turn_limit_keeps_the_messages_and_the_usage_of_both_calls(
    streamed: bool,
) -> None:
    # C05, with the policy to stop.
    script = [call("look", n=n).replace(usage=EACH) for n in (1, 2, 3)]
    harness = agent(model := ScriptedModel(script), "stop_with_partial")
    run = await (harness.stream(None, "go").result() if streamed else harness.invoke(None, "go"))
    assert (run.status, run.reason, model.calls) == ("stopped", "max_model_calls", 2)
    assert [message.role for message in run.messages] == ["user", *("assistant", "tool") * 2]
    assert (run.usage.input_tokens, run.usage.output_tokens) == (20, 4)
    assert is_valid(run)
    assert_trajectory(run, exact=True).model_called().tool_called("look", n=1).model_called() \
        .tool_called("look", n=2).stopped("max_model_calls")  # fmt: skip


@pytest.mark.parametrize("streamed", [False, True])
async def test_the_turn_limit_may_buy_one_last_answer_without_tools(streamed: bool) -> None:
    # C05, with the policy to answer.
    script = [call("look", n=n).replace(usage=EACH) for n in (1, 2)]
    model = ScriptedModel([*script, say("two", usage=EACH), say("never asked for")])
    harness = agent(model, "final_answer")
    run = await (harness.stream(None, "go").result() if streamed else harness.invoke(None, "go"))
    assert (run.text, model.calls) == ("two", 3)
    assert [len(request.tools) for request in model.requests] == [1, 1, 0]
    assert (run.usage.input_tokens, run.usage.output_tokens) == (30, 6)
    assert is_valid(run)


async def test_a_model_that_calls_a_tool_in_its_last_answer_is_not_asked_again() -> None:
    # C05: exactly one more call, whatever comes of it.
    model = ScriptedModel([call("look", n=n) for n in (1, 2, 3, 4)])
    run = await agent(model, "final_answer").invoke(None, "go")
    assert (run.status, model.calls) == ("stopped", 3)
    assert [result.text for result in results(run)][:2] == ["1", "2"]
    assert results(run)[2].outcome == "not_started"
    assert is_valid(run)


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_batch_over_the_tool_limit_stops_with_what_was_run(streamed: bool) -> None:
    # C04, with the policy to stop: the third of three calls is not executed and says so.
    ran: list[int] = []

    @tool
    async def work(n: int) -> int:
        """Work."""
        ran.append(n)
        return n

    model = ScriptedModel([[call("work", n=n) for n in (1, 2, 3)], say("fine")])
    policy = RunPolicy.resilient().with_limits(RunLimits(max_tool_calls=2))
    harness = AgentHarness(model=model, tools=[work], policy=policy)
    run = await (harness.stream(None, "go").result() if streamed else harness.invoke(None, "go"))
    assert (run.status, run.reason, run.tool_calls) == ("stopped", "max_tool_calls", 2)
    assert sorted(ran) == [1, 2]
    first, second, third = results(run)
    assert (first.text, second.text) == ("1", "2")
    assert third.text.startswith("not executed: ")
    assert "limit" in third.text
    again = await harness.invoke(None, [*run.messages, run.messages[0]])
    assert again.text == "fine"
    assert sorted(ran) == [1, 2]
