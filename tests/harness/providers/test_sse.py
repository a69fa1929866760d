import pytest
from hypothesis import given, settings, strategies as st

from tinyagents.harness.errors import MalformedResponseError

# The parser itself: any cut of any bytes, which no server could send in reasonable time.
from tinyagents.harness.providers._sse import ServerSentEvent, SseParser

STREAM = (
    b"\xef\xbb\xbf: ping\n\n"
    b"event: note\r\ndata: one\r\n\r\n"
    b"data: first\ndata: second\nid: 7\nretry: 10\n\n"
    + "data: na\u00efve \U0001f642\n\n".encode()
    + b"data:no space\r\rdata\n\ndata: last"
)
EVENTS = [
    ServerSentEvent(b"one", b"note"),
    ServerSentEvent(b"first\nsecond"),
    ServerSentEvent("na\u00efve \U0001f642".encode()),
    ServerSentEvent(b"no space"),
    ServerSentEvent(b""),
    ServerSentEvent(b"last"),
]


def parse(*chunks: bytes, limit: int = 1_000) -> list[ServerSentEvent]:
    parser = SseParser(max_event_bytes=limit)
    events = [event for chunk in chunks for event in parser.feed(chunk)]
    return [*events, *parser.finish()]


@pytest.mark.parametrize("place", range(len(STREAM) + 1))
def test_events_are_the_same_wherever_the_bytes_are_cut_in_two(place: int) -> None:
    assert parse(STREAM[:place], STREAM[place:]) == EVENTS


def test_events_are_the_same_when_fed_one_byte_at_a_time() -> None:
    assert parse(*(STREAM[i : i + 1] for i in range(len(STREAM)))) == EVENTS


@given(st.lists(st.integers(0, len(STREAM)), max_size=20).map(sorted))
@settings(max_examples=200, deadline=None)
def test_events_are_the_same_however_often_the_bytes_are_cut(places: list[int]) -> None:
    ends = zip([0, *places], [*places, len(STREAM)], strict=True)
    assert parse(*(STREAM[a:b] for a, b in ends)) == EVENTS


def test_a_line_end_of_two_characters_may_be_cut_between_them() -> None:
    assert parse(b"data: a\r", b"\n\r", b"\ndata: b\r\n", b"\r\n") == [
        ServerSentEvent(b"a"),
        ServerSentEvent(b"b"),
    ]


def test_comments_and_events_without_data_are_no_events() -> None:
    assert parse(b": OPENROUTER PROCESSING\n\nevent: ping\n\nid: 1\n\n") == []


def test_a_name_holds_for_its_own_event_only() -> None:
    assert parse(b"event: error\ndata: a\n\ndata: b\n\n") == [
        ServerSentEvent(b"a", b"error"),
        ServerSentEvent(b"b"),
    ]


def test_a_line_without_end_is_given_up_at_the_bound() -> None:
    parser = SseParser(max_event_bytes=100)
    parser.feed(b"data: " + b"x" * 90)
    with pytest.raises(MalformedResponseError, match="more than 100 bytes.*`max_event_bytes`"):
        parser.feed(b"x" * 10)


def test_an_event_of_ever_more_lines_is_given_up_at_the_bound() -> None:
    with pytest.raises(MalformedResponseError, match="`max_event_bytes`"):
        parse(*[b"data: more\n"] * 100, limit=100)


def test_the_bound_is_for_one_event_and_not_for_the_stream() -> None:
    assert len(parse(*[b"data: " + b"x" * 80 + b"\n\n"] * 50, limit=100)) == 50
