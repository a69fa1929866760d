import sys
from collections.abc import Collection, Sequence
from typing import Any

import pytest
from hypothesis import given, strategies as st

from tinyagents.harness.message import (
    AssistantMessage,
    InvalidArguments,
    Message,
    SystemMessage,
    TextBlock,
    ToolCallBlock,
    ToolMessage,
    ToolResultBlock,
    UserMessage,
    dump_messages,
    repair_messages,
    unanswered_calls,
)


def calls(*ids: str) -> AssistantMessage:
    return AssistantMessage(content=[ToolCallBlock(id=id, name="ping") for id in ids])


def result(id: str, text: str = "ok") -> ToolMessage:
    return ToolMessage(tool_call_id=id, name="ping", content=text)


HELLO = UserMessage(content="hello")
DONE = AssistantMessage(content="done")


def shape(messages: Sequence[Message]) -> list[str]:
    """A word for each message: its role, or the call and the text of a result."""
    return [
        f"{message.tool_call_id}={'lost' if message.is_error else message.text}"
        if message.role == "tool"
        else message.role
        for message in messages
    ]


def is_valid(messages: Sequence[Message], waiting: Collection[str] = ()) -> bool:
    """Whether each call has one result, after its message and in call order; told step by step."""
    last = max((i for i, message in enumerate(messages) if message.role == "assistant"), default=-1)
    due: list[str] = []
    may_wait: Collection[str] = ()
    for position, message in enumerate(messages):
        if message.role == "tool":
            while due and due[0] != message.tool_call_id and due[0] in may_wait:
                del due[0]
            if not due or due.pop(0) != message.tool_call_id:
                return False
        else:
            if not set(due) <= set(may_wait):
                return False
            due = [call.id for call in message.tool_calls] if message.role == "assistant" else []
            may_wait = waiting if position == last else ()
    return set(due) <= set(may_wait)


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [HELLO],
        [HELLO, DONE],
        [SystemMessage(content="s"), HELLO, calls("a", "b"), result("a"), result("b"), DONE],
        [HELLO, calls("a"), result("a"), calls("a"), result("a"), HELLO],
        [HELLO, calls("a", "a"), result("a", "1"), result("a", "2")],
        [HELLO, AssistantMessage(content=[]), HELLO],
        [HELLO, calls("a"), ToolMessage(tool_call_id="a", content=[])],
    ],
)
def test_a_well_formed_history_is_kept_as_it_is(messages: list[Message]) -> None:
    repair = repair_messages(messages)
    assert not repair.changed
    assert len(repair.messages) == len(messages)
    assert all(kept is given for kept, given in zip(repair.messages, messages, strict=True))
    assert unanswered_calls(messages) == []


def test_the_repaired_list_is_never_the_one_that_was_passed() -> None:
    messages: list[Message] = [HELLO]
    repair_messages(messages).messages.append(DONE)
    assert messages == [HELLO]


def test_a_call_without_a_result_gets_one_that_says_it_was_lost() -> None:
    repair = repair_messages([HELLO, calls("k1"), UserMessage(content="carry on")])
    assert repair.added == ["k1"]
    filled = repair.messages[2]
    assert isinstance(filled, ToolMessage)
    assert (filled.tool_call_id, filled.name, filled.is_error) == ("k1", "ping", True)
    assert filled.outcome == "interrupted"
    assert "lost" in filled.text
    assert "may have run" in filled.text


def test_the_very_last_message_is_repaired_too() -> None:
    repair = repair_messages([HELLO, calls("a", "b")])
    assert shape(repair.messages) == ["user", "assistant", "a=lost", "b=lost"]


def test_a_gap_between_siblings_is_filled_in_call_order() -> None:
    repair = repair_messages([calls("a", "b", "c"), result("c"), result("a")])
    assert shape(repair.messages) == ["assistant", "a=ok", "b=lost", "c=ok"]
    assert (repair.added, repair.moved) == (["b"], ["a", "c"])


def test_a_call_whose_arguments_could_not_be_read_was_not_started() -> None:
    call = ToolCallBlock(
        id="k1", name="f", invalid=InvalidArguments(raw="{", reason="the arguments are not JSON")
    )
    (_, filled) = repair_messages([AssistantMessage(content=[call])]).messages
    assert isinstance(filled, ToolMessage)
    assert filled.outcome == "not_started"
    assert "the arguments are not JSON" in filled.text


def test_a_call_of_an_answer_that_was_cut_off_was_not_started() -> None:
    call = ToolCallBlock(id="k1", name="f")
    cut = AssistantMessage(content=[call], state="partial")
    filled = repair_messages([cut]).messages[1]
    assert isinstance(filled, ToolMessage)
    assert filled.outcome == "not_started"


def test_a_call_without_a_name_gets_a_result_without_one() -> None:
    message = AssistantMessage(content=[ToolCallBlock(id="", name="")])
    filled = repair_messages([message]).messages[1]
    assert isinstance(filled, ToolMessage)
    assert (filled.tool_call_id, filled.name) == ("", None)


def test_a_second_result_for_a_call_is_dropped() -> None:
    repair = repair_messages([calls("a"), result("a", "1"), result("a", "2"), DONE])
    assert shape(repair.messages) == ["assistant", "a=1", "assistant"]
    assert (repair.dropped, repair.moved) == (["a"], [])


def test_a_result_without_a_call_is_dropped() -> None:
    repair = repair_messages([result("x"), HELLO, calls("a"), result("y"), result("a")])
    assert shape(repair.messages) == ["user", "assistant", "a=ok"]
    assert (repair.dropped, repair.moved) == (["x", "y"], [])


def test_a_result_before_its_call_belongs_to_another_and_is_dropped() -> None:
    repair = repair_messages([result("a", "stale"), calls("a")])
    assert shape(repair.messages) == ["assistant", "a=lost"]


def test_results_out_of_order_are_put_in_call_order() -> None:
    repair = repair_messages([calls("a", "b"), result("b"), result("a")])
    assert shape(repair.messages) == ["assistant", "a=ok", "b=ok"]
    assert repair.moved == ["a", "b"]


def test_what_stands_between_a_call_and_its_result_comes_after_it() -> None:
    system = SystemMessage(content="s")
    messages: list[Message] = [calls("a", "b"), HELLO, result("a"), system, result("b"), DONE]
    repair = repair_messages(messages)
    assert repair.messages == [
        messages[0], result("a"), result("b"), HELLO, system, DONE,
    ]  # fmt: skip
    assert (repair.moved, repair.added, repair.dropped) == (["a", "b"], [], [])


def test_a_late_result_goes_back_to_its_call() -> None:
    repair = repair_messages([calls("a"), HELLO, calls("b"), result("b"), result("a")])
    assert shape(repair.messages) == ["assistant", "a=ok", "user", "assistant", "b=ok"]
    assert repair.moved == ["a"]


def test_ids_that_repeat_from_turn_to_turn_pair_with_their_own_turn() -> None:
    # C08, with the result of the first turn lost.
    messages: list[Message] = [calls("call_0"), HELLO, calls("call_0"), result("call_0", "2")]
    repair = repair_messages(messages)
    assert shape(repair.messages) == [
        "assistant", "call_0=lost", "user", "assistant", "call_0=2",
    ]  # fmt: skip


def test_a_surplus_result_is_never_given_to_an_earlier_turn_of_the_same_id() -> None:
    messages: list[Message] = [
        calls("a"),
        HELLO,
        calls("a"),
        result("a", "2"),
        result("a", "2 again"),
    ]
    repair = repair_messages(messages)
    assert shape(repair.messages) == ["assistant", "a=lost", "user", "assistant", "a=2"]
    assert repair.dropped == ["a"]


def test_ids_that_repeat_within_a_message_pair_first_with_first() -> None:
    messages: list[Message] = [
        calls("a", "b", "a"),
        result("a", "1"),
        result("a", "2"),
        result("b"),
    ]
    repair = repair_messages(messages)
    assert shape(repair.messages) == ["assistant", "a=1", "b=ok", "a=2"]
    short = repair_messages([calls("a", "a"), result("a", "1")])
    assert shape(short.messages) == ["assistant", "a=1", "a=lost"]


def test_calls_that_wait_stay_unanswered_where_they_are_the_last() -> None:
    messages: list[Message] = [HELLO, calls("a", "b"), result("a")]
    repair = repair_messages(messages, waiting={"b"})
    assert repair.messages == messages
    assert not repair.changed
    assert unanswered_calls(repair.messages) == ["b"]


def test_the_answered_siblings_of_waiting_calls_are_put_in_order() -> None:
    repair = repair_messages([calls("a", "b", "c"), result("c"), result("a")], waiting=["b"])
    assert shape(repair.messages) == ["assistant", "a=ok", "c=ok"]
    later = repair_messages([*repair.messages, result("b")])
    assert shape(later.messages) == ["assistant", "a=ok", "b=ok", "c=ok"]


def test_a_sibling_that_does_not_wait_is_filled_beside_one_that_does() -> None:
    repair = repair_messages([calls("a", "b")], waiting=["b"])
    assert shape(repair.messages) == ["assistant", "a=lost"]


def test_a_user_message_does_not_end_the_waiting_but_an_answer_does() -> None:
    assert not repair_messages([calls("a"), HELLO], waiting=["a"]).changed
    assert repair_messages([calls("a"), HELLO, DONE], waiting=["a"]).added == ["a"]


def test_an_earlier_call_of_the_same_id_as_a_waiting_one_is_filled() -> None:
    repair = repair_messages([calls("a"), HELLO, calls("a")], waiting=["a"])
    assert shape(repair.messages) == ["assistant", "a=lost", "user", "assistant"]


def test_a_call_that_the_provider_answered_itself_needs_no_message() -> None:
    message = AssistantMessage(
        content=[
            ToolCallBlock(id="s", name="web_search"),
            ToolResultBlock(tool_call_id="s", content=[TextBlock(text="found")]),
            ToolCallBlock(id="k", name="f"),
        ]
    )
    repair = repair_messages([message, result("k"), HELLO])
    assert not repair.changed
    assert repair.messages == [message, result("k"), HELLO]
    assert unanswered_calls([message]) == ["k"]


def test_unanswered_calls_are_listed_in_order() -> None:
    messages: list[Message] = [calls("a", "b"), result("b"), HELLO, calls("a", "c"), result("a")]
    assert unanswered_calls(messages) == ["a", "c"]


IDS = st.sampled_from(["a", "b", "c"])
HISTORIES: st.SearchStrategy[list[Message]] = st.lists(
    st.one_of(
        st.builds(lambda ids: calls(*ids), st.lists(IDS, max_size=3)),
        st.builds(result, IDS, st.sampled_from(["1", "2", "3"])),
        st.sampled_from([HELLO, DONE, SystemMessage(content="s")]),
    ),
    max_size=12,
)


@given(HISTORIES, st.sets(IDS))
def test_any_history_becomes_valid_and_repairing_it_again_changes_nothing(
    messages: list[Message], waiting: set[str]
) -> None:
    before = dump_messages(messages)
    once = repair_messages(messages, waiting=waiting)
    assert dump_messages(messages) == before
    assert is_valid(once.messages, waiting)
    again = repair_messages(once.messages, waiting=waiting)
    assert not again.changed
    assert all(a is b for a, b in zip(again.messages, once.messages, strict=True))
    if not waiting:
        assert unanswered_calls(once.messages) == []


@given(HISTORIES)
def test_messages_other_than_results_keep_their_order_and_identity(
    messages: list[Message],
) -> None:
    repaired = repair_messages(messages).messages
    assert [id(m) for m in repaired if m.role != "tool"] == [
        id(m) for m in messages if m.role != "tool"
    ]


@given(HISTORIES)
def test_the_report_accounts_for_every_result(messages: list[Message]) -> None:
    repair = repair_messages(messages)
    results = sum(message.role == "tool" for message in messages)
    kept = sum(message.role == "tool" for message in repair.messages) - len(repair.added)
    assert kept == results - len(repair.dropped)
    assert repair.changed == (
        [id(message) for message in repair.messages] != [id(message) for message in messages]
    )


@given(HISTORIES)
def test_the_calls_that_are_listed_as_unanswered_are_the_ones_that_are_filled(
    messages: list[Message],
) -> None:
    assert unanswered_calls(messages) == repair_messages(messages).added


def test_the_work_of_a_repair_grows_with_the_history_and_no_faster() -> None:
    def lines_run(turns: int) -> int:
        messages: list[Message] = []
        for turn in range(turns):
            messages += [HELLO, calls(f"k{turn}", "same"), result("same"), result(f"k{turn}")]
        lines = 0

        def count(frame: object, event: str, arg: object) -> Any:
            nonlocal lines
            lines += event == "line"
            return count

        before = sys.gettrace()
        sys.settrace(count)
        try:
            repair_messages(messages)
        finally:
            sys.settrace(before)
        return lines

    assert lines_run(400) < 11 * lines_run(40)
