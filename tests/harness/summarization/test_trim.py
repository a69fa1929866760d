"""Keeping a part of a conversation: which part, and that nothing in it has lost its other half."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from tests.harness.summarization.histories import histories
from tinyagents import (
    AssistantMessage,
    ProviderExtensionBlock,
    ReasoningBlock,
    SystemMessage,
    ToolCallBlock,
    ToolMessage,
    UserMessage,
)
from tinyagents.harness.errors import ConfigurationError
from tinyagents.harness.message import Message
from tinyagents.harness.summarization import (
    TrimStrategy,
    exchanges,
    is_well_paired,
    trim_messages,
    trim_to_budget,
)

LAST, ENDS, TOKENS = (
    TrimStrategy.keep_last,
    TrimStrategy.keep_first_and_last,
    TrimStrategy.max_tokens,
)


def system(text: str) -> SystemMessage:
    return SystemMessage(content=text)


def user(text: str) -> UserMessage:
    return UserMessage(content=text)


def says(text: str) -> AssistantMessage:
    return AssistantMessage(content=text)


def calls(*ids: str) -> AssistantMessage:
    return AssistantMessage(content=[ToolCallBlock(id=each, name="f") for each in ids])


def result(call_id: str, text: str = "ok", **facts: Any) -> ToolMessage:
    return ToolMessage(tool_call_id=call_id, content=text, **facts)


def one_each(message: Message) -> int:
    return 1


FOUR_CALLS: list[Message] = [
    user("U1"),
    calls("c1", "c2", "c3", "c4"),
    *(result(f"c{n}") for n in range(1, 5)),
    user("U2"),
    says("A2"),
]


def roles(messages: list[Message]) -> str:
    return "".join(message.role[0] for message in messages)


def test_system_messages_stay_in_front_of_the_last_others() -> None:
    history: list[Message] = [user("1"), system("a"), says("2"), system("b"), user("3")]
    kept = trim_messages(history, LAST(2))
    assert [message.text for message in kept] == ["a", "b", "2", "3"]


def test_a_cut_between_results_moves_back_to_the_answer_that_called() -> None:
    assert roles(trim_messages(FOUR_CALLS, LAST(4))) == "attttua"


def test_a_beginning_never_ends_on_calls_without_their_results() -> None:
    assert roles(trim_messages(FOUR_CALLS, ENDS(3, 1))) == "ua"
    assert roles(trim_messages(FOUR_CALLS, ENDS(6, 1))) == "uatttta"


def test_first_and_last_that_cover_all_keep_all() -> None:
    assert trim_messages(FOUR_CALLS, ENDS(4, 4)) == FOUR_CALLS


def test_results_of_calls_that_are_not_there_are_dropped_unless_they_shall_stay() -> None:
    orphaned: list[Message] = [result("gone"), user("1")]
    assert roles(trim_messages(orphaned, LAST(9))) == "u"
    assert roles(trim_messages(orphaned, LAST(9), repair_tool_pairs=False)) == "tu"


def test_tokens_go_from_the_front_whole_exchanges_at_a_time() -> None:
    def kept(limit: int) -> str:
        return roles(trim_messages([system("s"), *FOUR_CALLS], TOKENS(limit), estimate=one_each))

    assert [kept(n) for n in (9, 8, 7, 3, 2)] == ["suattttua", "sattttua", "sua", "sua", "sa"]


def test_system_messages_go_last_and_the_oldest_first_when_tokens_are_few() -> None:
    history: list[Message] = [system("a"), system("b"), user("1")]
    kept = [trim_messages(history, TOKENS(n), estimate=one_each) for n in (2, 1, 0)]
    assert [[m.text for m in each] for each in kept] == [["a", "b"], ["b"], []]


def test_boundaries_drop_from_the_back_and_then_from_the_front() -> None:
    history: list[Message] = [says("0"), user("1"), says("2"), user("3")]
    kept = trim_messages(history, LAST(4), start_on=["user"], end_on=["assistant"])
    assert [message.text for message in kept] == ["1", "2"]
    assert trim_messages([says("0")], LAST(4), start_on=["user"]) == []


def test_a_kept_part_may_begin_with_the_turn_that_it_is_a_part_of() -> None:
    assert roles(trim_messages(FOUR_CALLS, LAST(4), keep_user_turn=True)) == "uattttua"
    history = [*FOUR_CALLS[:6], calls("d"), result("d")]
    assert roles(trim_messages(history, LAST(2), keep_user_turn=True)) == "uat"
    within = trim_messages(history, TOKENS(3), keep_user_turn=True, estimate=one_each)
    assert [message.text for message in within] == ["U1", "", "ok"]


def test_reasoning_goes_with_the_answer_that_it_led_to() -> None:
    thought = AssistantMessage(content=[ReasoningBlock(signature="s1")])
    history: list[Message] = [user("1"), thought, calls("c"), result("c"), says("2")]
    assert [len(each.messages) for each in exchanges(history)] == [1, 3, 1]
    assert trim_messages(history, LAST(2)) == history[1:]


def test_the_cut_moves_in_steps() -> None:
    history: list[Message] = [user(str(n)) for n in range(20)]

    def firsts(strategy: TrimStrategy) -> list[str]:
        return [
            trim_messages(history[:count], strategy, estimate=one_each)[0].text
            for count in range(3, 13)
        ]

    assert firsts(LAST(3, step=4)) == ["0"] * 4 + ["4"] * 4 + ["8"] * 2
    assert firsts(TOKENS(6, step=4)) == ["0"] * 4 + ["4"] * 4 + ["8"] * 2
    ends = trim_messages(history[:12], ENDS(1, 3, step=4))
    assert [message.text for message in ends] == ["0", "9", "10", "11"]
    assert [m.text for m in trim_messages(history[:3], TOKENS(1, step=4), estimate=one_each)] == [
        "2"
    ]


def test_each_turn_that_a_part_is_kept_of_begins_with_what_the_user_said() -> None:
    history: list[Message] = [
        user("1"), calls("c"), result("c", trusted_verbatim=True),
        user("2"), calls("d"), result("d"), calls("e"), result("e"),
    ]  # fmt: skip
    for strategy in (LAST(2), TOKENS(6)):
        kept = trim_messages(history, strategy, keep_user_turn=True, estimate=one_each)
        assert roles(kept) == "uatuat"
        assert kept[3].text == "2"


def test_a_paused_answer_and_how_it_goes_on_stay_together() -> None:
    paused = AssistantMessage(content=[ProviderExtensionBlock(provider="p", data={"search": 1})])
    history: list[Message] = [user("1"), says("hm"), paused, says("found")]
    told = AssistantMessage(content=[*says("I search.").content, *paused.content])
    for first in (paused, told):
        history[2] = first
        assert [len(each.messages) for each in exchanges(history)] == [1, 1, 2]


def test_a_trusted_result_stays_with_its_call() -> None:
    history: list[Message] = [
        user("1"), calls("c"), result("c", trusted_verbatim=True), user("2"), says("3")
    ]  # fmt: skip
    for strategy in (LAST(1), ENDS(0, 1), TOKENS(1)):
        kept = trim_messages(history, strategy, estimate=one_each)
        assert kept[:2] == history[1:3], strategy


def test_a_budget_keeps_the_order_and_system_messages_only_when_asked() -> None:
    history: list[Message] = [system("s"), user("1"), system("t"), says("2")]
    texts = [m.text for m in trim_to_budget(history, 2, estimate=one_each)]
    assert texts == ["t", "2"]
    kept = trim_to_budget(history, 2, estimate=one_each, preserve_system=True)
    assert [m.text for m in kept] == ["s", "t"]
    orphans: list[Message] = [result("x"), user("1")]
    assert roles(trim_to_budget(orphans, 99)) == "tu"
    assert roles(trim_to_budget(orphans, 99, drop_leading_orphan_tools=True)) == "u"


def test_a_step_of_nothing_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="`step` is 0"):
        LAST(3, step=0)


@pytest.mark.parametrize("odd", [-1, 1.5, None])
def test_counts_are_numbers_of_nothing_or_more(odd: Any) -> None:
    for make in (LAST, TOKENS):
        with pytest.raises(ConfigurationError, match="0 or more"):
            make(odd)


def test_pairs_are_checked() -> None:
    assert is_well_paired(FOUR_CALLS)
    assert not is_well_paired(FOUR_CALLS[:5])
    assert not is_well_paired(FOUR_CALLS[2:])
    assert not is_well_paired([*FOUR_CALLS[:6], result("c4"), user("x")])
    assert not is_well_paired([calls("c"), user("x"), result("c")])


STRATEGIES = st.one_of(
    st.integers(0, 12).map(LAST),
    st.tuples(st.integers(0, 6), st.integers(0, 6)).map(lambda ends: ENDS(*ends)),
    st.integers(0, 600).map(TOKENS),
    st.tuples(st.integers(0, 12), st.integers(1, 9)).map(lambda n: LAST(n[0], step=n[1])),
    st.tuples(st.integers(0, 600), st.integers(1, 9)).map(lambda n: TOKENS(n[0], step=n[1])),
)


@settings(max_examples=200, deadline=None)
@given(histories(), STRATEGIES, st.booleans())
def test_no_strategy_ever_parts_a_call_and_its_result(
    history: list[Message], strategy: TrimStrategy, keep_user_turn: bool
) -> None:
    kept = trim_messages(history, strategy, keep_user_turn=keep_user_turn)
    assert is_well_paired(kept)
    rest = [message for message in kept if message.role != "system"]
    if keep_user_turn and rest:
        assert rest[0].role == "user"
    followed = {id(before): after for before, after in pairwise(history)}
    for before, after in pairwise(rest):
        if before.role == "assistant" and before.content[0].type == "reasoning":
            assert after is followed[id(before)]
    if strategy.step == 1:
        assert trim_messages(kept, strategy, keep_user_turn=keep_user_turn) == kept


@settings(max_examples=100, deadline=None)
@given(histories(), st.integers(0, 12), st.integers(0, 600))
def test_a_kept_part_is_the_newest_and_within_what_was_asked_for(
    history: list[Message], count: int, limit: int
) -> None:
    rest = [message for message in history if message.role != "system"]
    kept = [m for m in trim_messages(history, LAST(count)) if m.role != "system"]
    assert len(kept) >= min(count, len(rest))
    assert kept == rest[len(rest) - len(kept) :]
    assert sum(len(m.text) for m in trim_messages(history, TOKENS(limit))) <= limit * 4


@settings(max_examples=50, deadline=None)
@given(histories(trusted=True), STRATEGIES)
def test_trusted_results_are_always_kept(history: list[Message], strategy: TrimStrategy) -> None:
    kept = trim_messages(history, strategy)
    for message in history:
        if message.role == "tool" and message.trusted_verbatim:
            assert any(message is each for each in kept)


@settings(max_examples=100, deadline=None)
@given(histories(trusted=True), STRATEGIES)
def test_with_its_turn_a_part_of_one_is_never_without_what_the_user_said(
    history: list[Message], strategy: TrimStrategy
) -> None:
    kept = trim_messages(history, strategy, keep_user_turn=True)
    known = {id(message) for message in kept}
    asked: Message | None = None
    for message in history:
        if message.role == "user":
            asked = message
        elif message.role != "system" and id(message) in known:
            assert id(asked) in known
    assert is_well_paired(kept)


@settings(max_examples=50, deadline=None)
@given(histories())
def test_exchanges_joined_are_the_messages_again(history: list[Message]) -> None:
    cut = exchanges(history)
    assert [message for each in cut for message in each.messages] == history
    assert [each.start for each in cut] == [0, *(each.end for each in cut[:-1])]
