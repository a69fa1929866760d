"""A typed answer while it is written: what there is, never more, at a cost in proportion."""

from typing import Any

import pytest
from hypothesis import given, strategies as st
from pydantic import BaseModel, field_validator
from typing_extensions import TypedDict

from tinyagents.harness.model import MessageDelta, ToolCallDelta
from tinyagents.harness.structured import OutputSpec, PartialReader
from tinyagents.harness.text import dump_json, parse_json


class Report(BaseModel):
    title: str
    body: str = ""


class Note(TypedDict, total=False):
    title: str
    size: int


def read(output: Any, text: str, size: int = 1) -> list[tuple[Any, Any]]:
    reader = PartialReader(OutputSpec(output), by_tool=False)
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    found = [reader.take(MessageDelta(text=piece)) for piece in pieces] + [reader.end()]
    return [(each.json, each.value) for each in found if each is not None]


def test_what_is_there_is_shown_and_typed_where_it_suffices() -> None:
    found = read(Report, '{"title": "A title that is long", "body": "Short."}')
    assert found[0] == ({}, None)
    assert all(isinstance(value, Report) for _, value in found[1:])
    assert found[-1] == (
        {"title": "A title that is long", "body": "Short."},
        Report(title="A title that is long", body="Short."),
    )
    titles = [json["title"] for json, _ in found[1:]]
    assert all("A title that is long".startswith(title) for title in titles)


@pytest.mark.parametrize(
    ("output", "text", "json", "value"),
    [
        (list[int], '{"value": [1, 2, 3]}', [1, 2, 3], [1, 2, 3]),
        (Note, '{"title": "x"}', {"title": "x"}, {"title": "x"}),
        (Report, 'So:\n```json\n{"body": "x"', {"body": "x"}, None),
        ({"type": "object"}, '{"a": 1}', {"a": 1}, None),
    ],
)
def test_the_last_piece_is_always_shown(output: Any, text: str, json: Any, value: Any) -> None:
    assert read(output, text)[-1] == (json, value)


@pytest.mark.parametrize("text", ["", "prose", "{no json}", '{"title": 1, "title', "}{", '["a"]'])
def test_what_is_no_answer_is_not_typed_and_raises_nothing(text: str) -> None:
    assert all(value is None for _, value in read(Report, text))


def test_an_applications_own_validator_may_raise_whatever_it_likes() -> None:
    class Picky(BaseModel):
        title: str

        @field_validator("title")
        @classmethod
        def check(cls, title: str) -> str:
            raise RuntimeError(title)

    assert read(Picky, '{"title": "x"}')[-1] == ({"title": "x"}, None)


def test_the_arguments_of_the_outputs_calls_are_read_and_no_others() -> None:
    reader = PartialReader(OutputSpec(Report), by_tool=True)
    pieces: list[MessageDelta | ToolCallDelta] = [
        MessageDelta(text='{"title": "not this"}'),
        ToolCallDelta(index=0, call_id="a", name="lookup", arguments='{"title": "nor this"}'),
        ToolCallDelta(index=1, call_id="b", name="Report"),
        ToolCallDelta(index=1, arguments='{"title": '),
        ToolCallDelta(index=0, arguments=" "),
        ToolCallDelta(index=1, arguments='"this one"}'),
    ]
    found = [reader.take(piece) for piece in pieces] + [reader.end()]
    assert [each.json for each in found if each is not None] == [{}, {"title": "this one"}]


def test_reading_takes_time_in_proportion_to_the_answer() -> None:
    # However small the pieces are, what is read adds up to less than ten times the whole.
    text = dump_json({"title": "x", "body": "y" * 100_000})
    found = read(Report, text)
    assert sum(len(dump_json(json)) for json, _ in found) < 10 * len(text)


@given(st.dictionaries(st.text(max_size=5), st.text() | st.integers()), st.integers(1, 9))
def test_the_end_is_what_a_whole_text_says_however_it_is_cut(
    value: dict[str, Any], size: int
) -> None:
    found = read({"type": "object"}, dump_json(value), size)
    if found:
        assert found[-1][0] == parse_json(dump_json(value))
