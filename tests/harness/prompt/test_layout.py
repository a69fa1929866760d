"""What two prompts have in common."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, strategies as st
from pydantic import ValidationError

from tinyagents import AssistantMessage, Message, SystemMessage, TextBlock, UserMessage
from tinyagents.harness.model import ModelRequest, PromptSegment, ToolSchema
from tinyagents.harness.prompt import (
    LayoutChange,
    PromptBuilder,
    PromptCacheLayout,
    prompt_fingerprint,
)

SEARCH = ToolSchema(name="search", description="Search.", parameters={"type": "object"})
HI, HELLO = UserMessage(content="hi"), AssistantMessage(content="hello")
STABLE = (
    PromptBuilder().push_system("You help.").push_tools_segment([SEARCH]).push_instructions("Cite.")
)
IDS = ("system", "tools", "instructions")


def compared(before: ModelRequest, after: ModelRequest) -> LayoutChange:
    return PromptCacheLayout.of(before).compare(PromptCacheLayout.of(after))


BEFORE = STABLE.push_history([HI, HELLO]).push_volatile("Monday").build("one?")


def test_a_prompt_is_itself_again() -> None:
    assert compared(BEFORE, BEFORE) == LayoutChange(
        verdict="layout_preserved", before=IDS, after=IDS
    )


@pytest.mark.parametrize(
    "after",
    [
        STABLE.push_history([HI, HELLO, HI]).push_volatile("Monday").build("one?"),
        STABLE.push_history([HI]).push_volatile("Monday").build("one?"),
        STABLE.push_history([HI, HELLO]).push_volatile("Tuesday").build("one?"),
        STABLE.push_history([HI, HELLO]).push_volatile("Monday").build("two?"),
        STABLE.push_history([HI, HELLO]).push_volatile("Monday").build([HI, HI]),
        STABLE.push_history([HI, HELLO]).build("two?"),
    ],
)
def test_growth_volatile_parts_and_the_tail_leave_it_alone(after: ModelRequest) -> None:
    assert compared(BEFORE, after).verdict == "layout_preserved"


def edited(**changes: str) -> PromptBuilder:
    system = changes.get("system", "You help.")
    tool = replace(SEARCH, description=changes.get("tool", "Search."))
    return (
        PromptBuilder()
        .push_system(system)
        .push_tools_segment([tool])
        .push_instructions(changes.get("instructions", "Cite."))
        .push_history([UserMessage(content=changes.get("history", "hi")), HELLO])
        .push_volatile("Monday")
    )


@pytest.mark.parametrize(
    ("after", "reason", "segment", "message"),
    [
        (edited(system="You guess."), "messages", "system", 0),
        (edited(tool="Find."), "tools", "tools", None),
        (edited(instructions="Do not."), "messages", "instructions", 1),
        (edited(history="bye"), "messages", "history", 2),
    ],
)
def test_an_edit_of_what_was_sent_before_is_told_with_its_place(
    after: PromptBuilder, reason: str, segment: str, message: int | None
) -> None:
    change = compared(BEFORE, after.build("one?"))
    assert not change.is_preserved
    assert (change.verdict, change.reason) == ("prefix_invalidated", reason)
    assert (change.segment, change.message) == (segment, message)
    assert (change.before, change.after) == (IDS, IDS)


def test_a_schema_and_the_order_of_tools_count() -> None:
    other = replace(SEARCH, name="fetch")
    before = ModelRequest([HI], (SEARCH, other))
    assert compared(before, ModelRequest([HI], (other, SEARCH))).reason == "tools"
    strict = replace(SEARCH, parameters={"type": "object", "properties": {}})
    assert compared(before, ModelRequest([HI], (strict, other))).reason == "tools"
    assert compared(before, ModelRequest([HI], (replace(SEARCH), other))).is_preserved


def test_a_segment_that_is_gone_or_in_between_invalidates() -> None:
    gone = (
        PromptBuilder().push_tools_segment([SEARCH]).push_instructions("Cite.").push_history([HI])
    )
    change = compared(BEFORE, gone.build())
    assert (change.verdict, change.reason, change.segment, change.message) == (
        *("prefix_invalidated", "segments", "system", 0),
    )
    more = STABLE.push_instructions("Be kind.").push_history([HI]).build()
    change = compared(BEFORE, more)
    assert (change.reason, change.segment, change.message) == ("segments", "instructions-2", 2)


def test_a_segment_behind_everything_that_was_sent_changes_the_layout_only() -> None:
    change = compared(STABLE.build(), STABLE.push_instructions("Be kind.").build())
    assert change == LayoutChange(
        verdict="layout_changed",
        before=IDS,
        after=(*IDS, "instructions-2"),
        reason="segments",
    )
    assert change.is_preserved


def test_a_stable_segment_that_grew_or_shrank_is_told_though_nothing_follows_it() -> None:
    one = PromptBuilder().push_system([SystemMessage(content="a")])
    two = PromptBuilder().push_system([SystemMessage(content="a"), SystemMessage(content="b")])
    for before, after in ((one, two), (two, one)):
        change = compared(before.build(), after.build())
        assert (change.verdict, change.segment, change.message) == (
            *("prefix_invalidated", "system", 1),
        )


def test_cacheable_history_may_grow() -> None:
    def laid_out(*messages: Message) -> ModelRequest:
        past = PromptSegment(id="past", role="history", cacheable=True, messages=len(messages))
        return ModelRequest(list(messages), segments=[past])

    assert compared(laid_out(HI), laid_out(HI, HELLO)).verdict == "layout_preserved"
    assert not compared(laid_out(HI, HELLO), laid_out(HELLO, HELLO)).is_preserved


def test_without_segments_all_messages_are_compared() -> None:
    assert compared(ModelRequest([HI]), ModelRequest([HI, HELLO, HI])).is_preserved
    change = compared(ModelRequest([HI, HELLO]), ModelRequest([HELLO, HELLO]))
    assert (change.reason, change.segment, change.message) == ("messages", None, 0)


def test_the_event_names_ids_and_places_and_no_content() -> None:
    kind, payload = compared(BEFORE, edited(history="a secret").build()).event()
    assert kind == "cache.prefix_invalidated"
    assert payload == {
        "before": IDS,
        "after": IDS,
        "reason": "messages",
        "segment": "history",
        "message": 2,
    }


MESSAGES = st.lists(st.sampled_from([HI, HELLO, UserMessage(content="x")]), max_size=6)


@given(MESSAGES, MESSAGES)
def test_digests_taken_over_from_a_layout_are_those_computed_anew(
    first: list[Message], second: list[Message]
) -> None:
    before = PromptCacheLayout.of(ModelRequest(first, (SEARCH,)))
    request = ModelRequest(second, (replace(SEARCH),))
    assert PromptCacheLayout.of(request, previous=before) == PromptCacheLayout.of(request)


def test_a_block_that_is_appended_to_a_message_in_place_is_noticed() -> None:
    request = ModelRequest([UserMessage(content="hi")])
    before = PromptCacheLayout.of(request)
    request.messages[0].content.append(TextBlock(text="!"))
    after = PromptCacheLayout.of(request, previous=before)
    assert before.compare(after).message == 0


@given(MESSAGES, MESSAGES)
def test_only_a_continuation_is_preserved(first: list[Message], second: list[Message]) -> None:
    shorter = min(len(first), len(second))
    continues = first[:shorter] == second[:shorter]
    assert compared(ModelRequest(first), ModelRequest(second)).is_preserved is continues


@given(MESSAGES)
def test_a_layout_that_was_kept_as_json_is_the_same(messages: list[Message]) -> None:
    layout = PromptCacheLayout.of(STABLE.push_history(messages).push_volatile("now").build("?"))
    assert PromptCacheLayout.load(json.loads(json.dumps(layout.dump()))) == layout


@pytest.mark.parametrize(
    "data",
    [None, [], {}, {"segments": [], "tools": "", "messages": [1]}, {"segments": [{"id": "a"}]}],
)
def test_what_is_no_layout_is_refused(data: Any) -> None:
    with pytest.raises(ValidationError):
        PromptCacheLayout.load(data)


def test_a_layout_keeps_no_content() -> None:
    layout = PromptCacheLayout.of(PromptBuilder().push_system("a secret").build("another secret"))
    for shown in (repr(layout), json.dumps(layout.dump())):
        assert "secret" not in shown


def test_counts_beyond_the_messages_are_no_failure() -> None:
    long = PromptSegment(id="past", role="history", cacheable=True, messages=9)
    request = ModelRequest([HI], segments=[long])
    assert compared(request, request).is_preserved
    assert prompt_fingerprint(request)
