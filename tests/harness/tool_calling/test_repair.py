import time

import pytest
from hypothesis import given, strategies as st

from tinyagents.harness.text import dump_json
from tinyagents.harness.tool_calling import repair_arguments


@pytest.mark.parametrize(
    "raw",
    [
        '{"city": "Paris"}<|im_end|>',
        '<|tool_call_begin|>{"city": "Paris"}<|tool_call_end|>',
        '{"city": "Paris"}</tool_call>',
        '<tool_call>{"city": "Paris"}',
        '[TOOL_CALLS]{"city": "Paris"}',
        '{"city": "Paris"}<\uff5ctool\u2581call\u2581end\uff5c>',
        '```json\n{"city": "Paris"}\n```',
        '{"city": "Paris"}{"city": "Paris"}',
        '{"city": "Paris"}]',
        '{"city": "Paris"}}',
        '{}{"city": "Paris"}',
        '"{\\"city\\": \\"Paris\\"}"',
        '"{\\"city\\": \\"Paris\\"}"<|im_end|>',
    ],
)
def test_arguments_with_leaked_markers_or_something_behind_them_are_repaired(raw: str) -> None:
    assert repair_arguments(raw) == ({"city": "Paris"}, None)


@pytest.mark.parametrize("raw", ["", "   ", "null", "{}"])
def test_no_arguments_stay_no_arguments(raw: str) -> None:
    assert repair_arguments(raw) == ({}, None)


@pytest.mark.parametrize(
    "raw", ["[1]", '"x"', '""', '"{"', '"[1]"', "7", "true", '{"body":"abc', "<|im_end|>", "hello"]
)
def test_what_is_no_object_stays_invalid_with_its_text(raw: str) -> None:
    arguments, invalid = repair_arguments(raw)
    assert arguments == {}
    assert invalid is not None
    assert invalid.raw == raw


def test_what_is_nested_too_deep_to_be_read_stays_invalid() -> None:
    raw = '{"a":' * 100_000
    arguments, invalid = repair_arguments(raw)
    assert arguments == {}
    assert invalid is not None
    assert invalid.raw == raw


def test_valid_arguments_that_hold_a_marker_are_not_touched() -> None:
    raw = '{"text": "write <|im_end|> and </tool_call> here"}'
    assert repair_arguments(raw)[0] == {"text": "write <|im_end|> and </tool_call> here"}


def test_a_marker_inside_a_text_survives_the_removal_of_one_outside() -> None:
    raw = '{"text": "keep <|im_end|> \\" this"}<|im_end|>'
    assert repair_arguments(raw)[0] == {"text": 'keep <|im_end|> " this'}


def test_a_marker_that_a_model_repeats_for_ever_is_removed_each_time() -> None:
    raw = '{"text": "keep <|im_end|>"}' + "<|im_end|>" * 20_000
    assert repair_arguments(raw) == ({"text": "keep <|im_end|>"}, None)


@given(
    st.dictionaries(
        st.text(alphabet='abc<|{"', max_size=5),
        st.text(alphabet='<|>{}"\\/im_endtool call', max_size=30),
        max_size=3,
    )
)
def test_any_valid_object_comes_back_as_it_is(value: dict[str, str]) -> None:
    assert repair_arguments(dump_json(value)) == (value, None)


@pytest.mark.parametrize(
    "raw",
    [
        '{city: "Paris"}',
        '{ city : "Paris" }',
        '{city:<|"|>Paris<|"|>}',
        '{<|"|>city<|"|>:<|"|>Paris<|"|>}',
        '{"city": "<|"|>Paris<|"|>"}',
        '{{"city": "Paris"}}',
        '{ {"city": "Paris"} }',
        '{{{city: "Paris"}',
        "{" * 17 + '"city": "Paris"' + "}" * 17,
        '{{city:<|"|>Paris<|"|>}}<|im_end|>',
        '```json\n{city: "Paris"}\n```',
        '{city: "Paris"}{city: "Paris"}',
    ],
)
def test_relaxed_json_is_read(raw: str) -> None:
    assert repair_arguments(raw) == ({"city": "Paris"}, None)


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (
            '{a: "b, c: d", e: [{f: 1}, {g-h: null}]}',
            {"a": "b, c: d", "e": [{"f": 1}, {"g-h": None}]},
        ),
        ('{a: "{x: 1}\\", y: 2"}', {"a": '{x: 1}", y: 2'}),
        ('{a:<|"|>say "hi", b: 1\n<|"|>,b:2}', {"a": 'say "hi", b: 1\n', "b": 2}),
        ('{a:<|"|>one\\ntwo<|"|>}', {"a": "one\ntwo"}),
        ('{a:<|"|>C:\\q<|"|>}', {"a": "C:\\q"}),
        ('{a:<|"|><|"|>}', {"a": ""}),
        ("{{}}", {}),
    ],
)
def test_what_strings_hold_survives_the_reading_of_relaxed_json(
    raw: str, value: dict[str, object]
) -> None:
    assert repair_arguments(raw) == (value, None)


@pytest.mark.parametrize(
    "raw",
    [
        "{" * 18 + '"a": 1' + "}" * 18,
        '{{"a": 1}, {"b": 2}}',
        "{a: b}",
        "{a b: 1}",
        "{'a': 1}",
        "{1: 2}",
        '{a: <|"|>x}',
        '{a: "x',
        'a: "x"',
        "[{a: 1}]",
    ],
)
def test_what_relaxed_json_does_not_cover_stays_invalid_with_its_text(raw: str) -> None:
    arguments, invalid = repair_arguments(raw)
    assert arguments == {}
    assert invalid is not None
    assert invalid.raw == raw


@pytest.mark.parametrize(
    "raw",
    [
        '{a:"' + '\\"' * 200_000,
        '{a:<|"|>' + '<|"|' * 100_000,
        "{a" + " " * 400_000 + "}",
        "{" * 400_000,
        "{, " * 200_000,
        "{a:" + "\\" * 400_001,
    ],
)
def test_a_long_garbled_text_is_given_up_on_at_once(raw: str) -> None:
    began = time.process_time()
    assert repair_arguments(raw)[1] is not None
    assert time.process_time() - began < 5
