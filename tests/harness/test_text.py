import json
import math
from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, strategies as st

from tinyagents.harness.text import (
    MAX_JSON_DEPTH,
    clean_json,
    clean_text,
    defused,
    dump_json,
    encode_json,
    json_spans,
    parse_json,
    unfenced,
    window,
)

ANY_TEXT = st.text(st.characters(codec=None), max_size=20)
"""Lone surrogates and NUL included."""

JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANY_TEXT, inner, max_size=4),
    max_leaves=20,
)


@pytest.mark.parametrize(
    ("given_text", "cleaned"),
    [
        ("", ""),
        ("plain", "plain"),
        ("grüße 😀", "grüße 😀"),
        ("a\0b", "a\ufffdb"),
        ("\ud83d\ude00", "😀"),
        ("a\ud83db", "a\ufffdb"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("é\0\ud83d", "é\ufffd\ufffd"),
    ],
)
def test_cleaning_joins_surrogate_pairs_and_replaces_what_no_encoder_takes(
    given_text: str, cleaned: str
) -> None:
    assert clean_text(given_text) == cleaned


@given(ANY_TEXT)
def test_clean_text_is_valid_utf8_without_nul_and_cleaning_again_changes_nothing(
    text: str,
) -> None:
    cleaned = clean_text(text)
    assert "\0" not in cleaned
    assert cleaned.encode().decode() == cleaned
    assert clean_text(cleaned) == cleaned


def test_text_that_is_clean_is_returned_as_it_is() -> None:
    text = "grüße"
    assert clean_text(text) is text


def test_keys_and_values_at_every_depth_are_cleaned() -> None:
    assert clean_json({"a\0": ["\ud83d", {"\ud83d\ude00": "x\0"}]}) == {
        "a\ufffd": ["\ufffd", {"😀": "x\ufffd"}]
    }


def test_nan_and_the_infinities_become_null() -> None:
    assert clean_json([math.nan, math.inf, -math.inf, 1.5]) == [None, None, None, 1.5]


def test_tuples_mappings_and_subclasses_become_plain_json_values() -> None:
    class Colour(StrEnum):
        RED = "red"

    cleaned = clean_json(MappingProxyType({"a": (1, 2), "b": Colour.RED, 3: None, True: 0}))
    assert cleaned == {"a": [1, 2], "b": "red", "3": None, "true": 0}
    assert isinstance(cleaned, dict)
    assert type(cleaned["b"]) is str


def test_numbers_of_a_subclass_become_plain_ones() -> None:
    class Level(IntEnum):
        HIGH = 3

    class Celsius(float):
        pass

    cleaned = clean_json([Level.HIGH, Celsius(1.5), Celsius("nan")])
    assert cleaned == [3, 1.5, None]
    assert isinstance(cleaned, list)
    assert [type(item) for item in cleaned] == [int, float, type(None)]


def test_cleaning_never_returns_a_container_of_the_caller() -> None:
    value: dict[str, Any] = {"a": [1]}
    cleaned = clean_json(value)
    value["a"].append(2)
    assert cleaned == {"a": [1]}


@pytest.mark.parametrize("value", [b"ab", bytearray(b"ab"), object(), {1, 2}, {"a": b""}])
def test_what_json_has_no_form_for_is_refused(value: object) -> None:
    with pytest.raises(TypeError, match="is not a JSON value"):
        clean_json(value)


def test_a_key_that_json_has_no_form_for_is_refused() -> None:
    with pytest.raises(TypeError, match="is not a key"):
        clean_json({(1, 2): 3})


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def test_nesting_is_allowed_up_to_the_limit_and_refused_beyond() -> None:
    assert clean_json(nested(MAX_JSON_DEPTH)) == nested(MAX_JSON_DEPTH)
    with pytest.raises(ValueError, match="nested deeper"):
        clean_json(nested(MAX_JSON_DEPTH + 1))


def test_a_value_within_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(ValueError, match="nested deeper"):
        clean_json(loop)


@given(JSON_VALUES)
def test_json_round_trips_but_for_its_cleaned_text(value: Any) -> None:
    assert parse_json(dump_json(value)) == clean_json(value)


@given(JSON_VALUES)
def test_bytes_and_text_decode_alike(value: Any) -> None:
    text = json.dumps(value)  # escapes lone surrogates and NUL
    assert parse_json(text) == parse_json(text.encode()) == clean_json(value)


@pytest.mark.parametrize(
    "number", [2**63 - 1, -(2**63), 2**64 - 1, 2**64, -(2**63) - 1, 10**40, 12345678901234567890123]
)
def test_integers_of_any_size_are_exact(number: int) -> None:
    assert parse_json(f'{{"n":{number}}}') == {"n": number}
    assert dump_json({"n": number}) == f'{{"n":{number}}}'


def test_the_last_of_a_repeated_key_stands_on_the_fast_way_and_the_slow_one() -> None:
    assert parse_json('{"a":1,"a":2}') == {"a": 2}
    assert parse_json('{"a":1,"a":2,"s":"\\ud83d"}') == {"a": 2, "s": "\ufffd"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "NaN",
        "[Infinity]",
        '["\\ud83d",NaN]',
        "1e999",
        '["\\ud83d",1e999]',
        '{"a":1,}',
        "[1] 2",
        "\ufeff{}",
        "[" * 100_000,
        '["\\ud83d",' + "[" * 100_000,
        "9" * 5000,
        b'"\xff"',
        b'"\\u0041\xff"',
        b'"\\ud83d\xed\xa0\x80"',
        '"\\ud83d'.encode("utf-16"),
    ],
)
def test_what_is_not_strict_json_in_utf8_is_a_value_error(text: str | bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        parse_json(text)


def test_escaped_and_raw_halves_of_characters_are_joined_or_replaced() -> None:
    assert parse_json('"\\ud83d\\ude00"') == "😀"
    assert parse_json('["\\ud83d"]') == ["\ufffd"]
    assert parse_json('["\ud83d\ude00", "\ud83d"]') == ["😀", "\ufffd"]
    assert parse_json('{"\\u0000":"\\u0000"}') == {"\ufffd": "\ufffd"}
    assert parse_json(b'{"\\u0000":"\\u0000"}') == {"\ufffd": "\ufffd"}


def test_dumping_is_compact_and_sorts_on_request() -> None:
    value = {"b": [1, 2.5, None], "a": "é"}
    assert dump_json(value) == '{"b":[1,2.5,null],"a":"é"}'
    assert dump_json(value, sort_keys=True) == '{"a":"é","b":[1,2.5,null]}'
    assert dump_json(value | {"n": 2**70}, sort_keys=True) == (
        f'{{"a":"é","b":[1,2.5,null],"n":{2**70}}}'
    )


def test_dumping_makes_nan_null_and_text_clean_however_it_encodes() -> None:
    assert dump_json([math.nan]) == "[null]"
    assert dump_json([math.nan, 2**70, "\ud83d"]) == f'[null,{2**70},"\ufffd"]'


def test_dumping_what_json_has_no_form_for_is_a_type_error() -> None:
    for value in (object(), [object(), 2**70]):
        with pytest.raises(TypeError):
            dump_json(value)


@given(JSON_VALUES)
def test_encoding_gives_the_bytes_of_what_dumping_gives(value: Any) -> None:
    assert encode_json(value) == dump_json(value).encode()


@pytest.mark.parametrize(
    "fenced",
    ["x", " x\n", "```\nx\n```", "\n```json\nx\n```\n", "```json-5 \n\n x\n  ```", "```\nx```"],
)
def test_a_fence_around_all_of_a_text_is_taken_off(fenced: str) -> None:
    assert unfenced(fenced) == "x"


@pytest.mark.parametrize(
    "text",
    ["```x```", "```", "``````", "```json\nx", "x\n```", "see:\n```\nx\n```", "```a b\nx\n```"],
)
def test_a_fence_that_is_not_around_all_of_a_text_stays(text: str) -> None:
    assert unfenced(text) == text


def test_an_empty_fence_holds_nothing() -> None:
    assert unfenced("```\n```") == ""


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("", []),
        ("x{}", []),
        (' {"a": "}"} ', ['{"a": "}"}']),
        ("{}[1]\n2 x 3", ["{}", "[1]", "2"]),
        ("[" * 100_000, []),
    ],
)
def test_the_values_that_a_text_begins_with_are_told_apart(text: str, values: list[str]) -> None:
    assert [text[start:end] for start, end in json_spans(text)] == values


def test_others_text_has_no_marker_of_ours_in_it() -> None:
    assert defused("a [artifact] b\n[artifact]", "[artifact]") == "a [ artifact] b\n[ artifact]"
    assert defused("[[artifact]artifact]", "[artifact]") == "[[ artifact]artifact]"


@pytest.mark.parametrize(
    ("start", "size", "shown"),
    [
        (0, 5, "äbcde"),
        (0, 2, "äb\n[characters 0 to 2 of 5; go on with start=2]"),
        (3, 9, "de\n[characters 3 to 5 of 5]"),
        (5, 9, "[there is nothing at 5: the text has 5 characters]"),
    ],
)
def test_a_window_says_what_is_beyond_it(start: int, size: int, shown: str) -> None:
    assert window("äbcde", start, size) == shown
