"""What a model reads of the values that tools return."""

import base64
import datetime
import enum
import math
import uuid
from collections import OrderedDict, deque
from dataclasses import dataclass
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import orjson
import pytest
from hypothesis import given, strategies as st
from pydantic import BaseModel, Field, SecretStr

from tinyagents.harness.message import (
    FileBlock,
    ImageBlock,
    JsonBlock,
    TextBlock,
    ToolCallBlock,
    ToolMessage,
)
from tinyagents.harness.text import MAX_JSON_DEPTH
from tinyagents.harness.tool import ToolError, ToolResult, as_result

from .calls import only_text


class Color(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    LOW = 1


class Mode(enum.StrEnum):
    FAST = "fast"


class City(BaseModel):
    name: str
    population: int | None = None


class Aliased(BaseModel):
    from_: str = Field(serialization_alias="from")


@dataclass
class Sighting:
    at: datetime.datetime
    cities: list[City]


class Pair(NamedTuple):
    left: int
    right: str


class Ticket(str):
    __slots__ = ()


NOON = datetime.datetime(2026, 1, 2, 12, 0, tzinfo=datetime.UTC)
KEY = uuid.UUID("12345678-1234-4234-8234-123456789012")
IMAGE = ImageBlock.from_bytes(b"png", "image/png")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("sunny", "sunny"),
        ("", ""),
        ("na\u00efve \U0001f642", "na\u00efve \U0001f642"),
        ("a\ud83d", "a\ufffd"),
        (Ticket("t1"), "t1"),
        (None, "null"),
        (True, "true"),
        (3, "3"),
        (2**80, "1208925819614629174706176"),
        (1.5, "1.5"),
        (math.nan, "null"),
        (-math.inf, "null"),
        (Decimal("1.50"), "1.50"),
        (Color.RED, "red"),
        (Level.LOW, "1"),
        (Mode.FAST, "fast"),
        (NOON, "2026-01-02T12:00:00Z"),
        (NOON.date(), "2026-01-02"),
        (datetime.timedelta(seconds=90), "PT1M30S"),
        (KEY, str(KEY)),
        (PurePosixPath("/tmp/a"), "/tmp/a"),
        (SecretStr("hidden"), "**********"),
        ([], "[]"),
        ({}, "{}"),
        ([1, "a", None], '[1,"a",null]'),
        ({"a": [1.5, math.nan]}, '{"a":[1.5,null]}'),
        ({1: "a", None: "b", Color.RED: "c"}, '{"1":"a","None":"b","red":"c"}'),
        ({"big": 2**80}, '{"big":1208925819614629174706176}'),
        ({"a": "b\ud83d"}, '{"a":"b\ufffd"}'),
        ((1, 2), "[1,2]"),
        ({7}, "[7]"),
        (frozenset({7}), "[7]"),
        (deque([1, 2]), "[1,2]"),
        (OrderedDict(b=1, a=2), '{"b":1,"a":2}'),
        (Pair(1, "a"), '[1,"a"]'),
        (range(3), "[0,1,2]"),
        (City(name="Oslo"), '{"name":"Oslo","population":null}'),
        (City(name="Os\ud83dlo"), '{"name":"Os\ufffdlo","population":null}'),
        ([City(name="Oslo", population=7)], '[{"name":"Oslo","population":7}]'),
        (Aliased(from_="a"), '{"from":"a"}'),
        (
            Sighting(NOON, [City(name="Oslo")]),
            '{"at":"2026-01-02T12:00:00Z","cities":[{"name":"Oslo","population":null}]}',
        ),
        ({"price": Decimal("1.50"), "at": NOON}, '{"price":"1.50","at":"2026-01-02T12:00:00Z"}'),
        ({"data": b"\xff\x00"}, '{"data":"_wA="}'),
    ],
    ids=repr,
)
def test_a_value_has_one_documented_text(value: Any, text: str) -> None:
    result = as_result(value)
    assert only_text(result.content) == text
    assert not result.is_error
    assert result.value is None


@pytest.mark.parametrize("value", [b"\xff\x00", bytearray(b"\xff\x00"), memoryview(b"\xff\x00")])
def test_bytes_are_a_file(value: Any) -> None:
    (block,) = as_result(value).content
    assert isinstance(block, FileBlock)
    assert block.media_type == "application/octet-stream"
    assert block.decode() == b"\xff\x00"
    assert block.data == base64.b64encode(b"\xff\x00").decode()


@pytest.mark.parametrize("block", [TextBlock(text="a"), IMAGE, JsonBlock(value=[1])])
def test_a_block_is_handed_on_as_it_is(block: Any) -> None:
    assert as_result(block).content == [block]


def test_a_list_that_holds_a_block_is_a_list_of_parts() -> None:
    result = as_result(["a map:", IMAGE, {"x": 1}])
    assert result.content == [TextBlock(text="a map:"), IMAGE, TextBlock(text='{"x":1}')]


def test_a_result_is_handed_on_as_it_is() -> None:
    result = ToolResult.text("a")
    assert as_result(result) is result


class Handle:
    pass


@pytest.mark.parametrize("value", [Handle(), [Handle()], {"a": {"b": Handle()}}, object, len])
def test_a_value_without_a_json_form_is_an_error_that_names_the_type(value: Any) -> None:
    with pytest.raises(ToolError, match="Handle|type|builtin_function_or_method"):
        as_result(value)


def test_a_value_inside_itself_is_an_error() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(ToolError, match="list"):
        as_result(loop)


def test_a_value_nested_too_deep_is_an_error() -> None:
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(ToolError, match="list"):
        as_result(deep)


scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters())
    | st.text(st.characters(categories=["Cs"]))
    | st.binary()
    | st.decimals()
    | st.datetimes(timezones=st.just(datetime.UTC))
    | st.uuids()
    | st.builds(City, name=st.text())
)
values = st.recursive(
    scalars,
    lambda children: (
        st.lists(children)
        | st.dictionaries(st.text() | st.integers(), children)
        | st.tuples(children, children)
    ),
    max_leaves=8,
)


@given(st.lists(values))
def test_the_text_of_a_structure_is_strict_json(value: list[Any]) -> None:
    orjson.loads(only_text(as_result(value).content))


def test_a_structured_value_stands_beside_the_text() -> None:
    result = ToolResult.text("7 degrees", value=City(name="Oslo"), summary="It is cold")
    assert result.value == {"name": "Oslo", "population": None}
    assert only_text(result.content) == "7 degrees"
    assert result.summary == "It is cold"


def test_without_a_content_models_read_the_value() -> None:
    assert only_text(ToolResult(value=[City(name="Oslo")]).content) == (
        '[{"name":"Oslo","population":null}]'
    )
    assert only_text(ToolResult().content) == "null"
    assert only_text(ToolResult(value=Decimal("1.50")).content) == "1.50"


def test_the_content_can_be_blocks() -> None:
    assert ToolResult(IMAGE).content == [IMAGE]
    assert ToolResult([TextBlock(text="a"), IMAGE]).content == [TextBlock(text="a"), IMAGE]
    assert ToolResult([]).content == []


def test_an_error_is_never_empty() -> None:
    assert ToolResult.error("no such city").is_error
    assert only_text(ToolResult.error("no such city").content) == "no such city"
    assert only_text(ToolResult.error("  ").content).strip()


def test_a_value_without_a_json_form_is_refused_where_it_is_given() -> None:
    with pytest.raises(ToolError, match="Handle"):
        ToolResult("a", value=Handle())


def test_the_text_of_a_result_leaves_out_what_is_no_text() -> None:
    result = ToolResult([TextBlock(text="a"), IMAGE, JsonBlock(value={"b": 1})])
    assert result.joined_text() == 'a\n{"b":1}'


def test_a_result_fits_into_a_message() -> None:
    result = ToolResult("", value={"a": math.nan}, trusted_verbatim=True)
    message = ToolMessage(tool_call_id="k1", content=result.content, artifact=result.value)
    assert message.content == [TextBlock(text="")]
    assert message.artifact == {"a": None}


def test_results_are_equal_by_what_they_hold() -> None:
    assert ToolResult.text("a") == ToolResult("a")
    assert ToolResult.text("a") != ToolResult.error("a")
    assert ToolResult.text("a") != "a"
    assert repr(ToolResult.error("a")) == "ToolResult.error(text)"


def test_a_value_that_no_message_can_hold_is_refused_where_it_is_given() -> None:
    deep: list[Any] = []
    for _ in range(MAX_JSON_DEPTH + 1):
        deep = [deep]
    with pytest.raises(ToolError, match="nested"):
        ToolResult("a", value=deep)


@pytest.mark.parametrize(
    "content", [["a"], {"a": 1}, [ToolCallBlock(id="k1", name="f")], [TextBlock(text="a"), 1]]
)
def test_content_that_is_no_text_and_no_blocks_is_refused_where_it_is_given(content: Any) -> None:
    with pytest.raises(TypeError, match="value="):
        ToolResult(content)
