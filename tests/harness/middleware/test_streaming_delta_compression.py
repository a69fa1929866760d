"""Fewer, larger pieces of a stream."""

from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from tinyagents import AgentHarness
from tinyagents.harness.errors import ConfigurationError
from tinyagents.harness.middleware import StreamingDeltaCompressionMiddleware
from tinyagents.harness.model import MessageDelta, StreamMerger, ToolCallDelta
from tinyagents.harness.stream import ReasoningDelta, TextDelta
from tinyagents.testkit import FakeTool, ScriptedModel, call, say, think


def pieces(middleware: StreamingDeltaCompressionMiddleware, deltas: list[Any]) -> list[Any]:
    made = middleware.filter_deltas(None)  # type: ignore[arg-type]
    shown = [out for delta in deltas for out in made.push(delta)]
    return [*shown, *made.flush()]


def texts(middleware: StreamingDeltaCompressionMiddleware, *given: str) -> list[str]:
    return [each.text for each in pieces(middleware, [MessageDelta(text) for text in given])]


def test_the_first_piece_comes_at_once_and_the_rest_in_larger_ones() -> None:
    assert texts(StreamingDeltaCompressionMiddleware(3), *"abcdefgh") == ["a", "bcd", "efg", "h"]


def test_pieces_end_behind_words_or_sentences_where_they_come_in_time() -> None:
    words = StreamingDeltaCompressionMiddleware(4, unit="words", longest=8)
    assert texts(words, "It", " is", " war", "m no", "w") == ["It", " is ", "warm ", "now"]
    assert texts(words, "a", *"bcdefghijk") == ["a", "bcdefghi", "jk"]
    sentences = StreamingDeltaCompressionMiddleware(2, unit="sentences")
    assert texts(sentences, "A", " b", ". C d", ".", " E") == ["A", " b. ", "C d. ", "E"]


def test_another_kind_ends_the_piece_before() -> None:
    middleware = StreamingDeltaCompressionMiddleware(100)
    shown = pieces(
        middleware,
        [
            MessageDelta(reasoning="a"),
            MessageDelta(reasoning="b"),
            MessageDelta(text="c"),
            MessageDelta(text="d"),
            MessageDelta(reasoning="e"),
        ],
    )
    assert shown == [
        MessageDelta(reasoning="a"),
        MessageDelta(reasoning="b"),
        MessageDelta(text="c"),
        MessageDelta(text="d"),
        MessageDelta(reasoning="e"),
    ]


calls = st.tuples(st.integers(0, 1), st.text("ab", max_size=3)).map(
    lambda t: ToolCallDelta(f"call_{t[0]}", "look", t[1], t[0])
)
words = st.builds(MessageDelta, st.text("a .", max_size=3), st.text("b", max_size=2))


@settings(max_examples=100, deadline=None)
@given(
    deltas=st.lists(words | calls, max_size=30),
    size=st.integers(1, 9),
    unit=st.sampled_from(["characters", "words", "sentences"]),
)
def test_nothing_is_lost_changed_or_moved(deltas: list[Any], size: int, unit: Any) -> None:
    def merged(items: list[Any]) -> object:
        merger = StreamMerger()
        for item in items:
            merger.add(item)
        return merger.message().content

    shown = pieces(StreamingDeltaCompressionMiddleware(size, unit=unit, longest=20), deltas)
    assert merged(shown) == merged(deltas)
    # Each of its kinds once, and what was held of the kind before; what is held last comes at the end.
    assert len(shown) <= 1 + sum(3 if isinstance(d, MessageDelta) else 2 for d in deltas)


async def test_a_run_shows_the_joined_pieces_and_keeps_its_answers() -> None:
    model = ScriptedModel(
        [think("h", "m", "m") + say(*"one two") + call("look", q="x"), say("o", "k")]
    )
    agent = AgentHarness(
        model=model, tools=[FakeTool("look")], middleware=[StreamingDeltaCompressionMiddleware()]
    )
    shown = [
        c.text async for c in agent.stream(None, "go") if isinstance(c, TextDelta | ReasoningDelta)
    ]
    assert shown == ["h", "mm", "o", "ne two", "o", "k"]


@pytest.mark.parametrize("wrong", [{"characters": 0}, {"longest": 1}, {"unit": "lines"}])
def test_a_setting_that_cannot_work_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        StreamingDeltaCompressionMiddleware(**wrong)
