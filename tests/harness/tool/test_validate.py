"""What is taken as arguments, and what a model is told about the rest."""

import datetime
import enum
import ipaddress
import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, NamedTuple

import pytest
from hypothesis import given, strategies as st
from pydantic import AfterValidator, BaseModel, Field, JsonValue
from typing_extensions import TypedDict

from tinyagents.harness.errors import ToolArgumentsError
from tinyagents.harness.text import clean_json
from tinyagents.harness.tool import Tool, tool


class Level(enum.IntEnum):
    LOW = 1


class Color(enum.Enum):
    RED = "red"


class Item(BaseModel):
    count: int


class Leaf(BaseModel):
    name: str
    leaves: "list[Leaf]" = []


@dataclass
class Point:
    x: float


class Options(TypedDict):
    deep: bool


class Pair(NamedTuple):
    left: int
    right: str


@tool
async def add(a: int, b: int) -> int:
    return a + b


@tool
async def lookup(city: str) -> str:
    return city


@tool
async def ping() -> str:
    return "pong"


def taking(annotation: Any) -> Tool:
    def f(value: Any) -> None: ...

    f.__annotations__ = {"value": annotation}
    return tool(f)


def errors_of(made: Tool, arguments: Any) -> tuple[str, ...]:
    with pytest.raises(ToolArgumentsError) as caught:
        made.validate(arguments)
    return caught.value.errors


@pytest.mark.parametrize(
    ("annotation", "given", "value"),
    [
        (int, 5, 5),
        (int, 2**80, 2**80),
        (float, 5, 5.0),
        (bool, True, True),
        (str, "5", "5"),
        (str, "a\ud83d", "a\ufffd"),
        (int | str, "5", "5"),
        (int | str, 5, 5),
        (Color, "red", Color.RED),
        (Level, 1, Level.LOW),
        (Literal["a", 1], 1, 1),
        (Item, {"count": 1}, Item(count=1)),
        (Item | Point, {"x": 1}, Point(1.0)),
        (list[Item], [{"count": 1}], [Item(count=1)]),
        (dict[str, Item], {"a": {"count": 1}}, {"a": Item(count=1)}),
        (Point, {"x": 1}, Point(1.0)),
        (Options, {"deep": True}, {"deep": True}),
        (Pair, [1, "a"], Pair(1, "a")),
        (set[int], [1, 2], {1, 2}),
        (tuple[int, str], [1, "a"], (1, "a")),
        (dict[int, str], {"1": "a"}, {1: "a"}),
        (Leaf, {"name": "a", "leaves": [{"name": "b"}]}, Leaf(name="a", leaves=[Leaf(name="b")])),
        (datetime.date, "2026-01-02", datetime.date(2026, 1, 2)),
        (datetime.timedelta, "PT90S", datetime.timedelta(seconds=90)),
        (uuid.UUID, "12345678-1234-4234-8234-123456789012", uuid.UUID(int=0)),
        (Decimal, "1.50", Decimal("1.50")),
        (Path, "/tmp", Path("/tmp")),
        (bytes, "abc", b"abc"),
        (ipaddress.IPv4Address, "10.0.0.1", ipaddress.IPv4Address("10.0.0.1")),
        (dict[str, Any], {"a": [1, None]}, {"a": [1, None]}),
        (Any, None, None),
    ],
    ids=repr,
)
def test_a_function_gets_typed_values(annotation: Any, given: JsonValue, value: Any) -> None:
    found = taking(annotation).validate({"value": given}).arguments["value"]
    if isinstance(value, uuid.UUID):
        value = uuid.UUID(str(given))
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("annotation", "given", "got"),
    [
        (int, True, "boolean"),
        (int, 1.5, "number"),
        (int, 5.0, "number"),
        (int, "5", "string"),
        (float, "5", "string"),
        (float, True, "boolean"),
        (bool, 1, "integer"),
        (bool, "yes", "string"),
        (str, 5, "integer"),
        (str, None, "null"),
        (list[int], "[1]", "string"),
        (Item, "{}", "string"),
        (dict[str, int], [1], "array"),
        (datetime.date, 20260102, "integer"),
    ],
    ids=repr,
)
def test_one_kind_of_json_value_is_not_taken_for_another(
    annotation: Any, given: JsonValue, got: str
) -> None:
    (error,) = errors_of(taking(annotation), {"value": given})
    assert error.startswith("arguments.value: ")
    assert error.endswith(f", got {got}")


def test_each_problem_is_one_sentence_with_its_path() -> None:
    @tool
    def order(items: list[Item], note: Annotated[str, Field(max_length=3)] = "") -> None: ...

    arguments: Any = {"items": [{"count": 1}, {"count": "x"}, {}], "note": "long", "extra": 1}
    assert errors_of(order, arguments) == (
        "arguments.items[1].count: input should be a valid integer, got string",
        "arguments.items[2].count is missing",
        "arguments.note: string should have at most 3 characters, got string",
        "arguments.extra is not a parameter",
    )


def test_a_path_has_no_labels_of_union_members_in_it() -> None:
    errors = errors_of(taking(list[int] | Item), {"value": {"count": "x"}})
    assert "arguments.value.count: input should be a valid integer, got string" in errors
    assert all(error.startswith("arguments.value") and "[int]" not in error for error in errors)


def test_the_message_holds_the_detail_and_the_expected_schema() -> None:
    with pytest.raises(ToolArgumentsError) as caught:
        lookup.validate({"city": 5})
    error = caught.value
    assert error.tool == "lookup"
    assert "arguments.city: input should be a valid string, got integer" in error.message
    schema = error.message.partition("JSON Schema: ")[2]
    assert json.loads(schema) == lookup.schema.parameters
    assert ": " not in schema


def test_a_tool_without_parameters_takes_no_arguments() -> None:
    assert ping.validate({}).arguments == {}
    assert errors_of(lookup, {}) == ("arguments.city is missing",)


@pytest.mark.parametrize("arguments", [[1], "x", 7, True, None], ids=repr)
def test_arguments_that_are_no_object_are_refused(arguments: JsonValue) -> None:
    for made in (ping, lookup):
        (error,) = errors_of(made, arguments)
        assert error.startswith("arguments: ")


def test_a_validator_that_breaks_makes_the_arguments_invalid() -> None:
    def broken(value: int) -> int:
        raise KeyError("rates")

    @tool
    def f(value: Annotated[int, AfterValidator(broken)]) -> None: ...

    with pytest.raises(ToolArgumentsError, match="KeyError: 'rates'") as caught:
        f.validate({"value": 1})
    assert isinstance(caught.value.__cause__, KeyError)


def test_a_long_list_of_problems_is_cut() -> None:
    assert len(errors_of(taking(list[int]), {"value": ["x"] * 500})) == 20


def test_the_arguments_of_the_call_are_not_changed() -> None:
    @tool
    def f(found: list[int]) -> None: ...

    call: dict[str, JsonValue] = {"found": [1]}
    f.validate(call).arguments["found"].append(2)
    assert call == {"found": [1]}


def test_any_mapping_will_do() -> None:
    arguments: Mapping[str, JsonValue] = MappingProxyType({"a": 1, "b": 2})
    assert add.validate(arguments).arguments == {"a": 1, "b": 2}


def test_arguments_nested_too_deep_are_refused() -> None:
    deep: Any = []
    for _ in range(5000):
        deep = [deep]
    (error,) = errors_of(taking(Any), {"value": deep})
    assert error.startswith("arguments: ")


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda children: st.lists(children) | st.dictionaries(st.text(), children),
    max_leaves=10,
)


@tool
async def keep(value: dict[str, JsonValue] | list[JsonValue] | str | int | None) -> None: ...


@given(json_values)
def test_any_json_value_arrives_as_it_was_sent_or_is_refused(value: Any) -> None:
    try:
        found = keep.validate({"value": value}).arguments["value"]
    except ToolArgumentsError:
        assert isinstance(value, bool | float)
    else:
        assert found in (value, clean_json(value))
