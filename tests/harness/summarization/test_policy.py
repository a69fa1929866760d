"""When a conversation is summarised, and where it is cut."""

from typing import Any

import pytest
from hypothesis import given, strategies as st

from tests.harness.summarization.summaries import talk
from tinyagents import AssistantMessage, SystemMessage, UserMessage
from tinyagents.harness.errors import ConfigurationError
from tinyagents.harness.message import ToolCallBlock
from tinyagents.harness.model import ModelProfile
from tinyagents.harness.summarization import (
    AllOf,
    AnyOf,
    ContextSize,
    MessagesAbove,
    SummarizationPolicy,
    TokensAbove,
    WindowFraction,
    is_well_paired,
)

FULL = ContextSize(tokens=900, messages=10, window=1_000)


@pytest.mark.parametrize(
    ("trigger", "fires"),
    [
        (TokensAbove(899), True),
        (TokensAbove(900), False),
        (MessagesAbove(9), True),
        (MessagesAbove(10), False),
        (WindowFraction(0.9), True),
        (WindowFraction(0.91), False),
        (TokensAbove(900) | MessagesAbove(9), True),
        (TokensAbove(899) & MessagesAbove(10), False),
        (TokensAbove(899) & (MessagesAbove(10) | WindowFraction(0.5)), True),
        (AnyOf(TokensAbove(900), MessagesAbove(10), WindowFraction(0.9)), True),
        (AllOf(TokensAbove(899), MessagesAbove(9), WindowFraction(0.9)), True),
    ],
)
def test_triggers_look_at_one_thing_each_and_combine(trigger: Any, fires: bool) -> None:
    assert trigger.fires(FULL) is fires


def test_a_share_of_an_unknown_window_is_never_reached() -> None:
    size = ContextSize(tokens=10**9, messages=1)
    assert not WindowFraction(0.1).fires(size)
    assert WindowFraction(0.1).needs_window
    assert not (WindowFraction(0.1) | TokensAbove(5)).needs_window
    assert (WindowFraction(0.1) & TokensAbove(5)).needs_window


def test_a_budget_is_where_nothing_fires_any_more() -> None:
    assert WindowFraction(0.9).budget(1_000) == 899
    assert WindowFraction(0.9).budget(None) is None
    assert (TokensAbove(500) | WindowFraction(0.9)).budget(1_000) == 500
    assert MessagesAbove(3).budget(1_000) is None


def test_equal_triggers_are_equal_and_say_what_they_are() -> None:
    trigger = TokensAbove(5) | MessagesAbove(3)
    assert trigger == AnyOf(TokensAbove(5), MessagesAbove(3))
    assert hash(trigger) == hash(AnyOf(TokensAbove(5), MessagesAbove(3)))
    assert trigger != AllOf(TokensAbove(5), MessagesAbove(3))
    assert repr(trigger) == "AnyOf(TokensAbove(limit=5), MessagesAbove(limit=3))"


@pytest.mark.parametrize(
    "make",
    [
        lambda: TokensAbove(-1),
        lambda: MessagesAbove(-1),
        lambda: WindowFraction(0),
        lambda: WindowFraction(1.1),
        AnyOf,
        lambda: SummarizationPolicy(keep_last=-1),
        lambda: SummarizationPolicy(trigger_tokens=-1),
        lambda: SummarizationPolicy(context_window=0),
        lambda: SummarizationPolicy(threshold_fraction=2),
    ],
)
def test_what_cannot_work_is_refused(make: Any) -> None:
    with pytest.raises(ConfigurationError):
        make()


def test_with_a_window_a_share_of_it_decides_and_without_the_tokens_do() -> None:
    # ME-089
    messages = [UserMessage(content="x" * 400)]  # 104 tokens
    assert SummarizationPolicy(trigger_tokens=100).should_summarize(messages)
    assert not SummarizationPolicy(trigger_tokens=104).should_summarize(messages)
    policy = SummarizationPolicy(trigger_tokens=10_000, context_window=115)
    assert policy.should_summarize(messages)
    assert not policy.with_context_window(200).should_summarize(messages)
    assert not SummarizationPolicy().should_summarize([])


def test_a_profile_gives_its_window() -> None:
    # ME-090
    profile = ModelProfile(max_input_tokens=8_000)
    policy = SummarizationPolicy.from_profile(profile, keep_last=3)
    assert (policy.context_window, policy.keep_last) == (8_000, 3)
    assert SummarizationPolicy.from_profile(ModelProfile()).context_window is None


def test_an_own_trigger_takes_the_place_of_both() -> None:
    policy = SummarizationPolicy(
        trigger=MessagesAbove(2) & WindowFraction(0.5), context_window=1_000
    )
    assert not policy.should_summarize(talk("u", "a", "u"))
    assert policy.triggers(ContextSize(tokens=600, messages=3))


def test_an_answer_with_calls_only_counts_towards_the_trigger() -> None:
    # ME-096
    block = ToolCallBlock(id="c", name="look", arguments={"query": "x" * 2_000})
    calls_only = AssistantMessage(content=[block])
    assert SummarizationPolicy(trigger_tokens=400).should_summarize([calls_only])


def test_the_older_part_is_what_system_and_the_last_messages_leave() -> None:
    # ME-091
    messages = talk("s", "u", "a", "u", "a")
    plan = SummarizationPolicy(keep_last=2).plan(messages)
    assert [m.text for m in plan.system] == ["s0"]
    assert [m.text for m in plan.older] == ["u1", "a2"]
    assert [m.text for m in plan.recent] == ["u3", "a4"]


@pytest.mark.parametrize("keep", [4, 5, 100])
def test_nothing_is_older_where_there_are_no_more_messages_than_are_kept(keep: int) -> None:
    # ME-092
    plan = SummarizationPolicy(keep_last=keep).plan(talk("s", "u", "a", "u", "a"))
    assert plan.is_empty
    assert plan.kept == tuple(talk("s", "u", "a", "u", "a"))


def test_a_cut_inside_an_exchange_moves_to_the_front_of_it() -> None:
    plan = SummarizationPolicy(keep_last=2).plan(talk("u", "c", "u"))
    assert [m.role for m in plan.recent] == ["assistant", "tool", "user"]


def test_trusted_results_are_held() -> None:
    plan = SummarizationPolicy(keep_last=1).plan(talk("u", "t", "c", "u"))
    assert [m.text for m in plan.older] == ["u0", "", "r2"]
    assert [m.text for m in plan.held] == ["", "r1"]


def test_a_summary_that_no_user_turn_follows_is_one_itself() -> None:
    # P054
    summary = SystemMessage(content="so far", id="summary-1")
    before_user = SummarizationPolicy(keep_last=2).plan(talk("s", "u", "a", "u", "a"))
    assert before_user.with_summary(summary)[1] is summary
    before_answer = SummarizationPolicy(keep_last=1).plan(talk("s", "u", "a", "u", "a"))
    placed = before_answer.with_summary(summary)[1]
    assert (placed.role, placed.text, placed.id) == ("user", "so far", "summary-1")


@given(
    st.lists(st.sampled_from("suact"), max_size=14),
    st.integers(min_value=0, max_value=16),
)
def test_no_exchange_is_ever_cut(roles: list[str], keep_last: int) -> None:
    # P053, ME-106
    messages = talk(*roles)
    plan = SummarizationPolicy(keep_last=keep_last).plan(messages)
    parts = [*plan.system, *plan.older, *plan.held, *plan.recent]
    assert sorted(m.text for m in parts) == sorted(m.text for m in messages)
    assert is_well_paired(plan.older)
    assert is_well_paired(plan.with_summary(UserMessage(content="s", id="summary-1")))
    others = [m for m in messages if m.role != "system"]
    assert len(plan.recent) >= min(keep_last, len(others))
    assert list(plan.recent) == others[len(others) - len(plan.recent) :]
