"""Arguments that do not fit, read as the model most likely meant them."""

import json
from typing import Any, Literal

import pytest
from hypothesis import given, strategies as st
from pydantic import BaseModel

from tinyagents.harness.errors import ToolArgumentsError
from tinyagents.harness.tool import Tool, normalize_arguments, tool


class Item(BaseModel):
    sku: str
    count: int = 1


class Node(BaseModel):
    name: str
    kids: list["Node"] = []


@tool
async def search(query: str, limit: int = 10) -> None: ...


@tool
async def ping(loud: bool = False) -> None: ...


@tool
async def order(
    items: list[Item],
    address: dict[str, str] | None = None,
    weight: float = 0.0,
    urgent: bool = False,
    size: Literal[1, 2] = 1,
    note: str = "",
    tag: str | int = "",
) -> None: ...


@tool
async def wrap(properties: dict[str, str], mode: str) -> None: ...


ITEM = {"sku": "a", "count": 2}


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ('{"query": "moss"}', {"query": "moss"}),
        ('```json\n{"query": "moss"}\n```', {"query": "moss"}),
        ('  ```\n{"query": "moss"}```  ', {"query": "moss"}),
        ('{"query": "moss", "limit": "5"}', {"query": "moss", "limit": 5}),
        ('{"arguments": {"query": "moss"}}', {"query": "moss"}),
    ],
)
def test_a_text_is_decoded(given: str, meant: Any) -> None:
    assert normalize_arguments(given, search) == meant


def test_a_decoded_text_stays_decoded_even_if_it_does_not_fit() -> None:
    assert normalize_arguments('{"query": 5}', search) == {"query": 5}


@pytest.mark.parametrize(
    "name", ["properties", "arguments", "args", "parameters", "params", "param", "input"]
)
def test_an_envelope_is_unwrapped(name: str) -> None:
    assert normalize_arguments({name: {"query": "moss"}}, search) == {"query": "moss"}
    assert normalize_arguments({name: '{"query": "moss"}'}, search) == {"query": "moss"}
    assert normalize_arguments({name: {"query": "moss", "limit": "3"}}, search) == {
        "query": "moss",
        "limit": 3,
    }


def test_an_envelope_may_repeat_the_tools_name() -> None:
    given: Any = {"name": "search", "arguments": {"query": "moss"}}
    assert normalize_arguments(given, search) == {"query": "moss"}


def test_only_one_envelope_is_unwrapped() -> None:
    given: Any = {"arguments": {"input": {"query": "moss"}}}
    assert normalize_arguments(given, search) is None


def test_an_envelope_beside_a_parameter_is_none() -> None:
    given: Any = {"arguments": {"query": "moss"}, "limit": 3}
    assert normalize_arguments(given, search) is None


def test_a_tool_that_declares_the_envelopes_name_keeps_it() -> None:
    fits: Any = {"properties": {"a": "b"}, "mode": "x"}
    assert normalize_arguments(fits, wrap) is fits
    assert normalize_arguments({"properties": {"properties": {}, "mode": "x"}}, wrap) is None


def test_an_envelope_whose_inside_does_not_fit_is_left() -> None:
    assert normalize_arguments({"arguments": {"query": 5}}, search) is None


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ({"items": json.dumps([ITEM])}, {"items": [ITEM]}),
        ({"items": [json.dumps(ITEM)]}, {"items": [ITEM]}),
        ({"items": [{"sku": "a", "count": "2"}]}, {"items": [ITEM]}),
        ({"items": [{"sku": "a", "count": 2.0}]}, {"items": [ITEM]}),
        ({"items": [], "address": '{"city": "Oslo"}'}, {"items": [], "address": {"city": "Oslo"}}),
        ({"items": [], "address": "null"}, {"items": [], "address": None}),
        ({"items": [], "weight": "1.5"}, {"items": [], "weight": 1.5}),
        ({"items": [], "weight": "2"}, {"items": [], "weight": 2}),
        ({"items": [], "urgent": "true"}, {"items": [], "urgent": True}),
        ({"items": [], "size": "2"}, {"items": [], "size": 2}),
        ({"items": [], "size": "2.0"}, {"items": [], "size": 2}),
    ],
)
def test_a_field_that_cannot_be_a_text_is_decoded_once(given: Any, meant: Any) -> None:
    assert normalize_arguments(given, order) == meant


@pytest.mark.parametrize("name", ["note", "tag"])
def test_a_field_that_can_be_a_text_is_never_touched(name: str) -> None:
    given: Any = {"items": "[]", name: '{"a": 1}'}
    assert normalize_arguments(given, order) == {"items": [], name: '{"a": 1}'}


@pytest.mark.parametrize(
    "given",
    [
        {"items": "many"},
        {"items": '"[]"'},
        {"items": [], "weight": "heavy"},
        {"items": [], "size": 2.5},
    ],
)
def test_what_does_not_decode_to_what_is_needed_is_left(given: Any) -> None:
    assert normalize_arguments(given, order) is None


def test_fields_of_a_recursive_model_are_decoded() -> None:
    @tool
    def f(root: Node) -> None: ...

    given: Any = {"root": {"name": "a", "kids": '[{"name": "b"}]'}}
    assert normalize_arguments(given, f) == {"root": {"name": "a", "kids": [{"name": "b"}]}}


def test_a_nested_object_is_never_invented() -> None:
    assert normalize_arguments({"items": [{}]}, order) is None


@pytest.mark.parametrize("given", [None, 5, True, [], "", "do it", "[1]"], ids=repr)
def test_no_object_at_all_means_no_arguments_where_none_are_required(given: Any) -> None:
    assert normalize_arguments(given, ping) == {}
    assert normalize_arguments(given, search) is None


def test_a_marker_inside_of_valid_arguments_does_not_matter() -> None:
    given: Any = {"query": "```json\n{}\n``` <tool_call> arguments"}
    assert normalize_arguments(given, search) is given


async def handle(arguments: dict[str, Any]) -> None: ...


def test_a_raw_schema_is_read_as_well() -> None:
    made = Tool.from_schema(
        handle,
        name="raw",
        parameters={
            "properties": {
                "a": {"$ref": "#/definitions/list"},
                "b": {"enum": [1, 2]},
                "c": {"const": True},
                "d": {"type": ["integer", "null"]},
                "e": {"$ref": "#/$defs/missing"},
                "f": {"oneOf": [{"type": "array"}, {"type": "object"}]},
            },
            "definitions": {"list": {"type": "array", "items": {"type": "number"}}},
            "$defs": {"missing": {}},
        },
    )
    given: Any = {"a": '["1"]', "b": "2", "c": "true", "d": "null", "e": "5", "f": '{"x": 1}'}
    assert normalize_arguments({**given, "a": ["1"]}, made) == {
        "a": [1], "b": 2, "c": True, "d": None, "e": "5", "f": {"x": 1},
    }  # fmt: skip


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda children: st.lists(children) | st.dictionaries(st.text(), children),
    max_leaves=6,
)


@given(json_values)
def test_any_value_at_all_can_be_given(value: Any) -> None:
    for made in (search, ping, order, wrap):
        meant = normalize_arguments(value, made)
        try:
            made.validate(value)
        except ToolArgumentsError:
            assert meant is None or isinstance(meant, dict)
        else:
            assert meant is value
