import pytest

from tinyagents.harness.errors import MalformedResponseError
from tinyagents.harness.providers._sse import JsonLineParser

STREAM = '{"a": "naïve"}\n{"b": 2}\r\n\n  {"c": 3}\n{"last": true}'.encode()
LINES = ['{"a": "naïve"}'.encode(), b'{"b": 2}', b'{"c": 3}', b'{"last": true}']


def lines(*chunks: bytes, limit: int = 1_000) -> list[bytes]:
    parser = JsonLineParser(max_event_bytes=limit)
    events = [event for chunk in chunks for event in parser.feed(chunk)]
    return [event.data for event in [*events, *parser.finish()]]


@pytest.mark.parametrize("place", range(len(STREAM) + 1))
def test_lines_are_the_same_wherever_the_bytes_are_cut_in_two(place: int) -> None:
    assert lines(STREAM[:place], STREAM[place:]) == LINES


def test_lines_are_the_same_when_fed_one_byte_at_a_time() -> None:
    assert lines(*(STREAM[i : i + 1] for i in range(len(STREAM)))) == LINES


@pytest.mark.parametrize("chunks", [[b"x" * 60, b"x" * 60], [b"x" * 60, b"x" * 60 + b"\n"]])
def test_a_line_larger_than_the_bound_is_given_up(chunks: list[bytes]) -> None:
    with pytest.raises(MalformedResponseError, match="more than 100 bytes.*`max_event_bytes`"):
        lines(*chunks, limit=100)


def test_the_bound_is_for_one_line_and_not_for_the_stream() -> None:
    assert len(lines(*[b"x" * 80 + b"\n"] * 50, limit=100)) == 50
