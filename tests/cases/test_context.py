"""Cases of users: cutting inside an exchange, one giant result, and estimates that leave things out."""

from itertools import pairwise

import pytest
from hypothesis import given, settings, strategies as st

from tests.harness.summarization.histories import histories
from tinyagents import (
    AgentHarness,
    AssistantMessage,
    ImageBlock,
    ReasoningBlock,
    ToolCallBlock,
    ToolMessage,
    Usage,
    UserMessage,
)
from tinyagents.harness.message import Message
from tinyagents.harness.middleware import MessageTrimMiddleware
from tinyagents.harness.model import ToolSchema
from tinyagents.harness.summarization import (
    TrimStrategy,
    is_well_paired,
    trim_messages,
    trim_results,
)
from tinyagents.harness.token_estimation import TokenEstimator, estimate_tokens
from tinyagents.testkit import ScriptedModel, say


async def test_a_cut_inside_an_exchange_takes_none_of_it_apart() -> None:
    ids = ["c1", "c2", "c3", "c4"]
    history: list[Message] = [
        UserMessage(content="U1"),
        AssistantMessage(content=[ToolCallBlock(id=each, name="f") for each in ids]),
        *(ToolMessage(tool_call_id=each, content=f"T {each}") for each in ids),
        UserMessage(content="U2"),
        AssistantMessage(content="A2"),
        UserMessage(content="U3"),
    ]
    model = ScriptedModel([say("ok")])
    trim = MessageTrimMiddleware(TrimStrategy.keep_last(5))
    await AgentHarness(model=model, middleware=[trim]).invoke(None, history)
    kept = model.requests[0].messages
    assert is_well_paired(kept)
    assert kept == history


@settings(max_examples=200, deadline=None)
@given(histories(), st.integers(1, 12))
def test_no_cut_of_random_histories_takes_an_exchange_apart(
    history: list[Message], count: int
) -> None:
    strategy = TrimStrategy.keep_last(count)
    kept = trim_messages(history, strategy, keep_user_turn=True)
    rest = [message for message in kept if message.role != "system"]
    assert is_well_paired(rest)
    assert rest[0].role == "user"
    followed = {id(before): after for before, after in pairwise(history)}
    for before, after in pairwise([*rest, None]):
        assert before is not None
        if any(block.type == "reasoning" for block in before.content):
            assert after is followed.get(id(before))


def test_one_giant_result_is_trimmed_and_a_small_one_is_not() -> None:
    history: list[Message] = [
        UserMessage(content="U1"),
        AssistantMessage(content=[ToolCallBlock(id="c0", name="f")]),
        ToolMessage(tool_call_id="c0", content="small"),
        AssistantMessage(content=[ToolCallBlock(id="c1", name="f")]),
        ToolMessage(tool_call_id="c1", content="x" * 200_000),
    ]
    trimmed = trim_results(history, 10_000)
    assert trimmed.tokens <= 10_000
    assert trimmed.messages[2] == history[2]
    assert "200000" in trimmed.messages[4].text


def test_estimates_leave_nothing_out_and_never_fall_below_what_was_used() -> None:
    assert estimate_tokens("漢" * 400) >= 2 * estimate_tokens("a" * 400)
    estimator = TokenEstimator()
    parts = [
        ImageBlock(url="https://x.test/a.png"),
        ToolCallBlock(id="c", name="f", arguments={"body": "x" * 2_000}),
        ReasoningBlock(text="because"),
    ]
    empty = estimator.message(AssistantMessage(content=[]))
    assert all(estimator.message(AssistantMessage(content=[part])) > empty for part in parts)
    tools = [ToolSchema(name=f"t{n}", description="d", parameters={}) for n in range(10)]
    assert estimator.tools(tools) >= 10
    used = AssistantMessage(content="ok", usage=Usage(input_tokens=900, output_tokens=100))
    assert estimator.prompt([UserMessage(content="hi"), used]).total == pytest.approx(1_000)
