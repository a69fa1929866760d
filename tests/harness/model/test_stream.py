from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any, Self

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given, strategies as st

from tinyagents.harness.errors import ModelError, NetworkError, ServerError
from tinyagents.harness.message import (
    AssistantMessage,
    ReasoningBlock,
    RefusalBlock,
    TextBlock,
    ToolCallBlock,
)
from tinyagents.harness.model import (
    MessageDelta,
    ModelResponse,
    ModelStreamItem,
    StreamCompleted,
    StreamFailed,
    StreamMerger,
    StreamStarted,
    ToolCallAssembler,
    ToolCallDelta,
    UsageDelta,
    drain,
    merge_stream,
    parse_arguments,
)
from tinyagents.harness.text import dump_json
from tinyagents.harness.usage import Usage


def merged(*items: ModelStreamItem) -> AssistantMessage:
    return merge_stream(items).message


# Arguments


@pytest.mark.parametrize("raw", ["", "null", "   ", "{}", " { } ", "\n"])
def test_blank_null_and_an_empty_object_are_no_arguments(raw: str) -> None:
    assert parse_arguments(raw) == ({}, None)  # C10


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        ("[1]", "an array"),
        ('"x"', "a string"),
        ("7", "a number"),
        ("1.5", "a number"),
        ("true", "a boolean"),
    ],
)
def test_json_that_is_no_object_is_kept_as_invalid_with_the_reason(raw: str, kind: str) -> None:
    arguments, invalid = parse_arguments(raw)  # C11
    assert arguments == {}
    assert invalid is not None
    assert invalid.raw == raw
    assert invalid.reason == f"the arguments must be a JSON object, not {kind}"


@pytest.mark.parametrize("raw", ['{"a":', "{a:1}", "hello", '{"a":NaN}', '{"a":1}}', "[" * 9000])
def test_what_is_not_json_is_kept_as_invalid_with_the_reason(raw: str) -> None:
    arguments, invalid = parse_arguments(raw)
    assert arguments == {}
    assert invalid is not None
    assert invalid.raw == raw
    assert "not JSON" in invalid.reason


def test_arguments_nested_too_deep_for_a_block_are_invalid_and_no_exception() -> None:
    raw = '{"a":' * 300 + "1" + "}" * 300
    message = merged(ToolCallDelta(call_id="k", name="f", arguments=raw))
    (call,) = message.tool_calls
    assert call.invalid is not None
    assert "nested deeper" in call.invalid.reason


def test_many_brackets_that_are_not_nested_are_no_problem() -> None:
    arguments = {"rows": [[i] for i in range(1000)], "text": "{" * 500}
    assert parse_arguments(dump_json(arguments)) == (arguments, None)


def test_arguments_are_cleaned_keys_too() -> None:
    assert parse_arguments('{"\\u0000k":"\\ud83d"}') == ({"\ufffdk": "\ufffd"}, None)
    assert parse_arguments('{"k":"\ud83d\ude00"}') == ({"k": "😀"}, None)


def test_big_integers_in_arguments_are_exact() -> None:
    assert parse_arguments(f'{{"n":{2**70}}}') == ({"n": 2**70}, None)


# Putting calls together


def test_a_call_may_begin_at_any_index() -> None:
    message = merged(  # C13
        ToolCallDelta(index=1, call_id="t1", name="add", arguments='{"a"'),
        ToolCallDelta(index=1, arguments=':1,"b":2}'),
    )
    assert message.content == [ToolCallBlock(id="t1", name="add", arguments={"a": 1, "b": 2})]


def test_another_id_at_the_same_index_is_another_call() -> None:
    message = merged(  # C14
        ToolCallDelta(index=0, call_id="u1", name="f", arguments='{"x":1}'),
        ToolCallDelta(index=0, call_id="u2", name="f", arguments='{"x":'),
        ToolCallDelta(index=0, arguments="2}"),
    )
    assert [(call.id, call.arguments) for call in message.tool_calls] == [
        ("u1", {"x": 1}),
        ("u2", {"x": 2}),
    ]


SUMMARIES = {
    "whole": ['{"q":"moss"}'],
    "in pieces": ['{"q"', ':"moss"}'],
    "written differently": ['{ "q" : "moss" }'],
    "twice": ['{"q":"moss"}', '{"q":"moss"}'],
}


@pytest.mark.parametrize("summary", SUMMARIES.values(), ids=SUMMARIES.keys())
def test_arguments_that_are_sent_once_more_after_the_pieces_count_once(summary: list[str]) -> None:
    pieces = ['{"q"', ':"mo', 'ss"}', *summary]  # C16
    message = merged(*(ToolCallDelta(call_id="w1", name="s", arguments=piece) for piece in pieces))
    assert message.content == [ToolCallBlock(id="w1", name="s", arguments={"q": "moss"})]


def test_two_different_objects_in_one_call_are_invalid() -> None:
    (call,) = merged(
        ToolCallDelta(call_id="w1", name="s", arguments='{"q":1}'),
        ToolCallDelta(call_id="w1", arguments='{"q":2}'),
    ).tool_calls
    assert call.invalid is not None
    assert call.invalid.raw == '{"q":1}{"q":2}'


def test_pieces_that_happen_to_be_equal_are_all_kept() -> None:
    pieces = ['{"q":"', "ha", "ha", "haha", '"}']
    (call,) = merged(*(ToolCallDelta(call_id="w1", arguments=piece) for piece in pieces)).tool_calls
    assert call.arguments == {"q": "hahahaha"}


def test_calls_of_one_index_may_take_turns() -> None:
    ids, pieces = ["u1", "u2", "u1", "u2"], ['{"x":', '{"x":', "1}", "2}"]
    message = merged(
        *(
            ToolCallDelta(index=0, call_id=id, name="f", arguments=piece)
            for id, piece in zip(ids, pieces, strict=True)
        )
    )
    assert [call.arguments for call in message.tool_calls] == [{"x": 1}, {"x": 2}]


def test_calls_of_one_id_are_told_apart_by_their_index() -> None:
    message = merged(
        ToolCallDelta(index=0, call_id="f", name="f", arguments='{"x":1}'),
        ToolCallDelta(index=1, call_id="f", name="f", arguments='{"x":'),
        ToolCallDelta(index=1, call_id="f", arguments="2}"),
    )
    assert [(call.id, call.arguments) for call in message.tool_calls] == [
        ("f", {"x": 1}),
        ("f", {"x": 2}),
    ]


def test_a_call_that_began_without_an_index_may_get_one() -> None:
    message = merged(
        ToolCallDelta(call_id="a", name="f", arguments="{"),
        ToolCallDelta(index=0, call_id="a", arguments="}"),
    )
    assert message.content == [ToolCallBlock(id="a", name="f")]


def test_an_index_as_text_and_as_number_is_the_same() -> None:
    (call,) = merged(
        ToolCallDelta(index=0, call_id="a", name="f", arguments="{"),
        ToolCallDelta(index="0", arguments="}"),
    ).tool_calls
    assert call.invalid is None


def test_pieces_without_index_go_by_id_and_without_id_to_the_last_call() -> None:
    message = merged(
        ToolCallDelta(call_id="a", name="f", arguments='{"x":'),
        ToolCallDelta(call_id="b", name="g", arguments='{"y":'),
        ToolCallDelta(call_id="a", arguments="1}"),
        ToolCallDelta(arguments="2}"),
    )
    assert [(call.name, call.arguments) for call in message.tool_calls] == [
        ("f", {"x": 1}),
        ("g", {"y": 2}),
    ]


def test_whole_calls_without_index_and_id_are_told_apart() -> None:
    message = merged(
        ToolCallDelta(name="f", arguments='{"x":1}'),
        ToolCallDelta(name="f", arguments='{"x":2}'),
        ToolCallDelta(name="g", arguments='{"x":3}'),
    )
    assert [(call.id, call.name, call.arguments) for call in message.tool_calls] == [
        ("call_0", "f", {"x": 1}),
        ("call_1", "f", {"x": 2}),
        ("call_2", "g", {"x": 3}),
    ]


def test_a_name_that_is_repeated_on_each_piece_does_not_begin_a_call() -> None:
    pieces = ['{"x"', ":{}", "}", ""]
    message = merged(*(ToolCallDelta(name="f", arguments=piece) for piece in pieces))
    assert [call.arguments for call in message.tool_calls] == [{"x": {}}]


def test_empty_and_later_names_and_ids_never_replace_known_ones() -> None:
    message = merged(
        ToolCallDelta(index=0, arguments="{"),
        ToolCallDelta(index=0, call_id="a", name="f"),
        ToolCallDelta(index=0, call_id="", name=""),
        ToolCallDelta(index=0, call_id="a", name="other", arguments="}"),
    )
    assert message.content == [ToolCallBlock(id="a", name="f")]


def test_a_call_without_name_and_arguments_is_left_out() -> None:
    assert merged(ToolCallDelta(index=0, call_id="a"), MessageDelta(text="hi")).content == [
        TextBlock(text="hi")
    ]


def test_there_may_be_very_many_calls_of_very_many_pieces() -> None:
    assembler = ToolCallAssembler()
    for index in range(5_000):
        assembler.add(ToolCallDelta(index=index, call_id=f"k{index}", name="f", arguments="{"))
    positions = [assembler.add(ToolCallDelta(index=7, arguments=" ")) for _ in range(20_000)]
    assert set(positions) == {7}
    assert assembler.id_of(7) == "k7"
    assert len(assembler.blocks()) == len(assembler) == 5_000


# Blocks


def test_blocks_stand_in_the_order_in_which_they_began() -> None:
    message = merged(
        MessageDelta(reasoning="hm"),
        MessageDelta(text="a"),
        ToolCallDelta(index=0, call_id="k", name="f"),
        MessageDelta(text="b"),
        MessageDelta(refusal="no"),
    )
    assert message.content == [
        ReasoningBlock(text="hm"),
        TextBlock(text="a"),
        ToolCallBlock(id="k", name="f"),
        TextBlock(text="b"),
        RefusalBlock(text="no"),
    ]


def test_a_further_piece_of_a_known_call_does_not_cut_the_text_around_it() -> None:
    message = merged(
        ToolCallDelta(index=0, call_id="k", name="f", arguments="{"),
        MessageDelta(text="a"),
        ToolCallDelta(index=0, arguments="}"),
        MessageDelta(text="b"),
    )
    assert message.content == [ToolCallBlock(id="k", name="f"), TextBlock(text="ab")]


def test_a_piece_of_a_call_that_says_nothing_does_not_cut_the_text_around_it() -> None:
    message = merged(MessageDelta(text="a"), ToolCallDelta(index=0), MessageDelta(text="b"))
    assert message.content == [TextBlock(text="ab")]


def test_a_character_that_was_cut_in_two_is_joined() -> None:
    assert merged(MessageDelta(text="\ud83d"), MessageDelta(text="\ude00")).text == "😀"


def test_looking_at_the_message_on_the_way_changes_nothing() -> None:
    merger = StreamMerger()
    for piece in "abc":
        merger.add(MessageDelta(text=piece))
        merger.message(partial=True)
    assert merger.message().content == [TextBlock(text="abc")]


def test_a_partial_message_keeps_text_and_usage_and_leaves_out_its_calls() -> None:
    merger = StreamMerger()  # C32
    merger.add(UsageDelta(usage=Usage(input_tokens=10)))
    for piece in ("a", "b", "c"):
        merger.add(MessageDelta(text=piece))
    merger.add(ToolCallDelta(call_id="k", name="f", arguments='{"x"'))
    message = merger.message(partial=True)
    assert message.content == [TextBlock(text="abc")]
    assert (message.state, message.usage) == ("partial", Usage(input_tokens=10))


def test_characters_of_every_kind_are_counted_for_an_estimate() -> None:
    merger = StreamMerger()
    assert (merger.empty, merger.characters) == (True, 0)
    merger.add(StreamStarted())
    merger.add(UsageDelta(usage=Usage()))
    assert merger.empty
    merger.add(MessageDelta(reasoning="hm", text="abc"))
    merger.add(ToolCallDelta(call_id="k", name="f", arguments='{"x"'))
    merger.add(MessageDelta(refusal="no"))
    assert (merger.empty, merger.characters) == (False, 2 + 3 + 1 + 4 + 2)


def test_a_stream_of_calls_alone_is_not_empty() -> None:
    merger = StreamMerger()
    merger.add(ToolCallDelta(call_id="k"))
    assert not merger.empty


# Usage and completion


def test_cumulative_usage_is_replaced_and_never_added_up() -> None:
    message = merged(  # C28
        UsageDelta(usage=Usage(input_tokens=100, cache_read_tokens=90)),
        MessageDelta(text="hi"),
        UsageDelta(usage=Usage(input_tokens=100, cache_read_tokens=90, output_tokens=7)),
    )
    assert message.usage == Usage(input_tokens=100, cache_read_tokens=90, output_tokens=7)


def test_usage_that_the_last_report_does_not_repeat_stays_known() -> None:
    message = merged(
        UsageDelta(usage=Usage(input_tokens=100, cache_read_tokens=90)),
        UsageDelta(usage=Usage(output_tokens=7)),
    )
    assert message.usage == Usage(input_tokens=100, cache_read_tokens=90, output_tokens=7)


def test_without_usage_there_is_none_rather_than_zero() -> None:
    assert merged(MessageDelta(text="hi")).usage is None


def test_a_completed_answer_has_the_last_word() -> None:
    whole = ModelResponse(message=AssistantMessage(content="whole"), finish_reason="stop")
    assert merge_stream([MessageDelta(text="pieces"), StreamCompleted(response=whole)]) is whole


def test_a_completed_answer_without_usage_takes_the_streams_and_is_not_changed_itself() -> None:
    whole = ModelResponse(message=AssistantMessage(content="whole"), finish_reason="stop")
    usage = Usage(input_tokens=3)
    response = merge_stream([UsageDelta(usage=usage), StreamCompleted(response=whole)])
    assert response.usage == response.message.usage == usage
    assert response.finish_reason == "stop"
    assert whole.usage is None


def test_the_usage_of_a_completed_answer_wins_over_the_streams() -> None:
    own = Usage(input_tokens=5)
    whole = ModelResponse(message=AssistantMessage(content="whole", usage=own))
    response = merge_stream(
        [UsageDelta(usage=Usage(input_tokens=3)), StreamCompleted(response=whole)]
    )
    assert response.usage == own


def test_a_stream_that_just_ends_gives_what_came_without_a_finish_reason() -> None:
    response = merge_stream([StreamStarted(response_id="r1", model="m"), MessageDelta(text="hi")])
    assert (response.text, response.finish_reason) == ("hi", None)
    assert (response.response_id, response.model) == ("r1", "m")


def test_an_empty_stream_gives_an_empty_message() -> None:
    response = merge_stream([])
    assert response.message == AssistantMessage(content=[])
    assert (response.text, response.refusal, response.usage) == ("", None, None)


@pytest.mark.parametrize("failure_comes_first", [True, False])
def test_a_failure_outranks_a_completion(failure_comes_first: bool) -> None:
    failed = StreamFailed(error=ServerError("overloaded"))
    whole = StreamCompleted(response=ModelResponse(message=AssistantMessage(content="whole")))
    items: list[ModelStreamItem] = [failed, whole] if failure_comes_first else [whole, failed]
    with pytest.raises(ServerError, match="overloaded"):
        merge_stream(items)


# Draining


class Source:
    """A stream that notes how it ended."""

    def __init__(self, *items: ModelStreamItem, then: Callable[[], Any] | None = None) -> None:
        self.items = items
        self.then = then
        self.closed = False

    async def __call__(self) -> AsyncGenerator[ModelStreamItem]:
        try:
            for item in self.items:
                yield item
            if self.then is not None:
                await self.then()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.lowlevel.checkpoint()
            self.closed = True


async def test_draining_a_stream_gives_what_merging_it_does() -> None:
    items: Sequence[ModelStreamItem] = [MessageDelta(text="a"), MessageDelta(text="b")]
    source = Source(*items)
    assert await drain(source()) == merge_stream(items)
    assert source.closed


async def test_a_stream_that_fails_is_closed() -> None:
    source = Source(StreamFailed(error=NetworkError("broke")), MessageDelta(text="never read"))
    with pytest.raises(ModelError, match="broke"):
        await drain(source())
    assert source.closed


async def test_a_stream_whose_reader_is_cancelled_is_closed() -> None:
    source = Source(MessageDelta(text="a"), then=anyio.sleep_forever)
    with anyio.move_on_after(0.01) as scope:
        await drain(source())
    assert scope.cancelled_caught
    assert source.closed


async def test_an_iterator_that_cannot_be_closed_is_drained_all_the_same() -> None:
    class Items:
        def __aiter__(self) -> Self:
            return self

        async def __anext__(self) -> ModelStreamItem:
            raise ServerError("overloaded")

    with pytest.raises(ServerError, match="overloaded"):
        await drain(Items())


# However a stream is cut, the same message results

PLAIN = st.text('ab{}é😀"\\ ', min_size=1, max_size=12)
ARGUMENTS = st.dictionaries(
    PLAIN, st.integers() | PLAIN | st.lists(st.booleans(), max_size=2), max_size=3
)


@st.composite
def cuts(draw: st.DrawFn, text: str) -> list[str]:
    """The text in pieces, some of them empty."""
    places = sorted(draw(st.lists(st.integers(0, len(text)), max_size=5)))
    return [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]


def deltas(kind: str, piece: str) -> MessageDelta:
    match kind:
        case "text":
            return MessageDelta(text=piece)
        case "reasoning":
            return MessageDelta(reasoning=piece)
        case _:
            return MessageDelta(refusal=piece)


KINDS = st.sampled_from(["text", "reasoning", "refusal"])


@given(st.data(), st.lists(st.tuples(KINDS, PLAIN), max_size=6))
def test_text_cut_anywhere_gives_the_same_message(
    data: st.DataObject, parts: list[tuple[str, str]]
) -> None:
    whole = [deltas(kind, text) for kind, text in parts]
    pieces = [deltas(kind, piece) for kind, text in parts for piece in data.draw(cuts(text))]
    assert merged(*pieces) == merged(*whole)


def addressed(by: str, number: int, *, first: bool) -> dict[str, Any]:
    """How a provider marks a piece of call number ``number``."""
    id = f"k{number}"
    match by:
        case "index":
            return {"index": number + 1} | ({"call_id": id} if first else {})
        case "id":
            return {"call_id": id}
        case "one index":
            return {"index": 0, "call_id": id}
        case _:
            return {"index": str(number), "call_id": id}


@given(
    st.data(),
    st.lists(st.tuples(st.sampled_from(["f", "g"]), ARGUMENTS), min_size=1, max_size=4),
    st.sampled_from(["index", "id", "one index", "both"]),
)
def test_parallel_calls_cut_and_interleaved_anyhow_give_the_same_message(
    data: st.DataObject, wanted: list[tuple[str, dict[str, Any]]], by: str
) -> None:
    queues = [data.draw(cuts(dump_json(arguments))) for _, arguments in wanted]
    # Each call begins in its turn; from then on the pieces come in any order.
    items: list[ModelStreamItem] = []
    for number, (name, _) in enumerate(wanted):
        mark = addressed(by, number, first=True)
        items.append(ToolCallDelta(**mark, name=name, arguments=queues[number].pop(0)))
        for other in data.draw(st.lists(st.integers(0, number), max_size=3)):
            if queues[other]:
                piece = queues[other].pop(0)
                items.append(ToolCallDelta(**addressed(by, other, first=False), arguments=piece))
    for number, queue in enumerate(queues):
        for piece in queue:
            items.append(ToolCallDelta(**addressed(by, number, first=False), arguments=piece))
    assert merged(*items).content == [
        ToolCallBlock(id=f"k{number}", name=name, arguments=arguments)
        for number, (name, arguments) in enumerate(wanted)
    ]


@given(st.data(), PLAIN, ARGUMENTS, PLAIN)
def test_text_call_and_text_cut_anywhere_give_the_same_message(
    data: st.DataObject, before: str, arguments: dict[str, Any], after: str
) -> None:
    items: list[ModelStreamItem] = [MessageDelta(text=piece) for piece in data.draw(cuts(before))]
    items.append(ToolCallDelta(index=0, call_id="k", name="f"))
    late = data.draw(cuts(after))
    for piece in data.draw(cuts(dump_json(arguments))):
        items.append(ToolCallDelta(index=0, arguments=piece))
        now = data.draw(st.integers(0, len(late)))
        items += [MessageDelta(text=text) for text in late[:now]]
        late = late[now:]
    items += [MessageDelta(text=text) for text in late]
    message = merged(*items)
    assert message.content == [
        TextBlock(text=before),
        ToolCallBlock(id="k", name="f", arguments=arguments),
        TextBlock(text=after),
    ]


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=5))
def test_cumulative_usage_reported_at_any_points_ends_at_the_last(counts: list[int]) -> None:
    reports = [Usage(input_tokens=9, output_tokens=count) for count in sorted(counts)]
    items: list[ModelStreamItem] = []
    for usage in reports:
        items += [MessageDelta(text="x"), UsageDelta(usage=usage)]
    assert merged(*items).usage == reports[-1]
