"""JSON out of what models write: each way by its name, and nothing that is only a guess."""

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from tinyagents.harness.structured import LADDER, read_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("text", "value", "step"),
    [
        ('{"a":1}', {"a": 1}, "strict"),
        (" [1, 2]\n", [1, 2], "strict"),
        ("7", 7, "strict"),
        ('```json\n{"a":1}\n```', {"a": 1}, "code_fence"),
        ('Here it is:\n```\n{"a":1}\n```\nDone.', {"a": 1}, "code_fence"),
        ('Say `x`:\n```py\nx\n```\n```json\r\n{"a":1}\n```', {"a": 1}, "code_fence"),
        ('```json\n{"md":"```py\\nx\\n```"}\n```', {"md": "```py\nx\n```"}, "code_fence"),
        ('Sure! {"a":"}"} I hope that helps.', {"a": "}"}, "slice"),
        ("The cities: [1, 2].", [1, 2], "slice"),
        ('See [above] {"a":1}', {"a": 1}, "slice"),
        ("{a: 1, b_c: 2}", {"a": 1, "b_c": 2}, "relaxed"),
        ('{{"a":1}}', {"a": 1}, "relaxed"),
        ('{"a":<|"|>x<|"|>}', {"a": "x"}, "relaxed"),
        ("Sure: {a: 1}.", {"a": 1}, "relaxed"),
        ('{"a":1', {"a": 1}, "closed"),
        ('{"a":[1,{"b":"x', {"a": [1, {"b": "x"}]}, "closed"),
        ('{"a":1,"b', {"a": 1}, "closed"),
        ('{"a":"[{\\"', {"a": '[{"'}, "closed"),
        ('It is [1, 2, {"a": "x\\', [1, 2, {"a": "x"}], "closed"),
    ],
)
def test_the_first_way_that_reads_a_text_is_named(text: str, value: Any, step: str) -> None:
    assert read_json(text, may_close=True) == (value, step)


def test_the_ways_stand_in_the_order_in_which_they_are_tried() -> None:
    assert LADDER == ("strict", "code_fence", "slice", "relaxed", "closed")


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n",
        "Plain prose.",
        "A brace { in prose",
        '{"a":1}}',
        '{"a":1}]',
        '[{"a":1]',
        '{"a":1} {"a":2}',
        "{a: 1} {a: 2}",
        "{",
        "```\nno\n```",
        '{"a":NaN}',
    ],
)
def test_what_is_no_json_is_not_guessed(text: str) -> None:
    with pytest.raises(ValueError, match="."):
        read_json(text)


@pytest.mark.parametrize("text", ["Plain prose.", '{"a":1}}', '[{"a":1]', "A brace } first {"])
def test_prose_and_unbalanced_brackets_are_not_closed_either(text: str) -> None:
    with pytest.raises(ValueError, match="."):
        read_json(text, may_close=True)


def test_nothing_is_closed_unless_it_is_allowed() -> None:
    with pytest.raises(ValueError, match="."):
        read_json('{"items":["a"')


def test_at_most_64_characters_are_left_out_to_close_a_text() -> None:
    assert read_json('{"a":1,"' + "b" * 60, may_close=True) == ({"a": 1}, "closed")
    with pytest.raises(ValueError, match="."):
        read_json('{"a":1,"' + "b" * 70, may_close=True)


def test_the_error_is_about_the_text_as_it_stands() -> None:
    with pytest.raises(ValueError, match="it is empty"):
        read_json("")
    with pytest.raises(ValueError, match="line 1 column 1"):
        read_json("no")


@given(VALUES)
def test_strict_json_is_read_as_it_is(value: Any) -> None:
    assert read_json(json.dumps(value))[1] == "strict"


@given(VALUES, st.integers(0, 200))
def test_a_text_that_was_cut_anywhere_is_read_or_refused_and_never_crashes(
    value: Any, cut: int
) -> None:
    text = json.dumps({"value": value})[: cut + 1]
    try:
        found, _ = read_json(text, may_close=True)
    except ValueError:
        return
    assert isinstance(found, dict | list)


def test_long_texts_of_brackets_are_read_in_time() -> None:
    for text in ("{" * 200_000, '["' * 100_000, "```\n" * 100_000, '{"a":' * 100_000):
        with pytest.raises(ValueError, match="."):
            read_json(text, may_close=True)
