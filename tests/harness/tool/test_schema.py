"""What a model sees of a function's parameters."""

from __future__ import annotations

import datetime
import enum
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, Optional

import pytest
from pydantic import BaseModel, Field
from typing_extensions import Doc, TypedDict

from tinyagents.harness.context import RunContext
from tinyagents.harness.errors import ToolSchemaError
from tinyagents.harness.text import JsonObject, dump_json
from tinyagents.harness.tool import FunctionTool, Tool, ToolContext, tool


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Item(BaseModel):
    """One line of an order."""

    sku: str
    count: int = 1


@dataclass
class Point:
    x: float
    y: float = 0.0


ORIGIN = Point(1)


class Options(TypedDict, total=False):
    deep: bool


class Node(BaseModel):
    name: str
    kids: list[Node] = []


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]


def properties(made: Tool) -> dict[str, Any]:
    return dict(made.schema.parameters["properties"])  # type: ignore[arg-type]


def test_the_signature_forms_of_postponed_annotations() -> None:
    @tool
    async def f(
        ctx: RunContext[Any],
        a: int,
        b: str | None,
        c: Literal["x", "y"] = "x",
        d: Annotated[float, "metres"] = 1.0,
    ) -> None: ...

    assert f.schema.parameters == {
        "type": "object",
        "properties": {
            "a": {"type": "integer"},
            "b": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "c": {"type": "string", "enum": ["x", "y"], "default": "x"},
            "d": {"type": "number", "default": 1.0, "description": "metres"},
        },
        "required": ["a", "b"],
        "additionalProperties": False,
    }


def test_optional_and_a_union_with_none_are_the_same() -> None:
    @tool
    def old(b: Optional[str]) -> None: ...  # noqa: UP045 - this is what is tested

    @tool
    def new(b: str | None) -> None: ...

    assert old.schema.parameters == new.schema.parameters


def test_null_and_required_are_independent() -> None:
    @tool
    def f(a: int | None, b: int = 1, c: int | None = None) -> None: ...

    assert f.schema.parameters["required"] == ["a"]
    assert [f.validate({"a": None}).arguments[name] for name in "abc"] == [None, 1, None]


def test_parameters_keep_the_order_of_their_declaration() -> None:
    @tool
    def f(zebra: int, apple: int, *, mango: int) -> None: ...

    assert list(properties(f)) == ["zebra", "apple", "mango"]
    assert list(f.schema.parameters) == ["type", "properties", "required", "additionalProperties"]


def test_a_tool_without_parameters_has_an_empty_object_schema() -> None:
    @tool
    def ping() -> None: ...

    assert ping.schema.parameters == {
        "type": "object",
        "properties": {},
        "additionalProperties": False,
    }


def test_what_a_single_place_refers_to_stands_in_that_place() -> None:
    @tool
    def f(color: Color, item: Item, at: Point = ORIGIN, options: Options | None = None) -> None: ...

    assert f.schema.parameters == {
        "type": "object",
        "properties": {
            "color": {"type": "string", "enum": ["red", "blue"]},
            "item": {
                "type": "object",
                "description": "One line of an order.",
                "properties": {
                    "sku": {"type": "string"},
                    "count": {"type": "integer", "default": 1},
                },
                "required": ["sku"],
            },
            "at": {
                "type": "object",
                "properties": {"x": {"type": "number"}, "y": {"type": "number", "default": 0.0}},
                "required": ["x"],
                "additionalProperties": False,
                "default": {"x": 1, "y": 0.0},
            },
            "options": {
                "anyOf": [
                    {
                        "type": "object",
                        "properties": {"deep": {"type": "boolean"}},
                        "additionalProperties": False,
                    },
                    {"type": "null"},
                ],
                "default": None,
            },
        },
        "required": ["color", "item"],
        "additionalProperties": False,
    }


def test_what_several_places_share_is_defined_once() -> None:
    @tool
    def f(first: Item, second: Item) -> None: ...

    assert properties(f) == {
        "first": {"$ref": "#/$defs/Item"},
        "second": {"$ref": "#/$defs/Item"},
    }
    assert list(definitions(f)) == ["Item"]


def test_a_recursive_model_stays_a_reference() -> None:
    @tool
    def f(tree: Node) -> None: ...

    assert properties(f) == {"tree": {"$ref": "#/$defs/Node"}}
    assert definitions(f) == {
        "Node": {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "kids": {"type": "array", "items": {"$ref": "#/$defs/Node"}, "default": []},
            },
            "required": ["name"],
        }
    }
    bound = f.validate({"tree": {"name": "a", "kids": [{"name": "b"}]}})
    assert bound.arguments == {"tree": Node(name="a", kids=[Node(name="b")])}


def test_an_open_recursive_model_with_a_mapping_can_be_described() -> None:
    class N(BaseModel, extra="allow"):
        kids: list[N]
        tags: dict[str, int]

    @tool
    def f(n: N) -> None: ...

    described = definitions(f)["N"]
    assert described["additionalProperties"] is True
    assert described["properties"]["tags"]["additionalProperties"] == {"type": "integer"}


def test_a_tagged_union_holds_no_names_of_definitions_that_are_gone() -> None:
    @tool
    def f(pet: Annotated[Cat | Dog, Field(discriminator="kind")]) -> None: ...

    assert "discriminator" not in dump_json(f.schema.parameters)
    assert "$" not in dump_json(f.schema.parameters)
    assert f.validate({"pet": {"kind": "dog"}}).arguments == {"pet": Dog(kind="dog")}


def test_no_title_repeats_a_name_and_a_title_of_ones_own_stays() -> None:
    @tool
    def f(item: Item, title: str, width: Annotated[int, Field(title="Width in px")]) -> None: ...

    assert properties(f)["width"] == {"type": "integer", "title": "Width in px"}
    assert dump_json(f.schema.parameters).count('"title"') == 3  # it, and a property, required


def test_texts_of_a_default_are_not_taken_for_schema_words() -> None:
    @tool
    def f(a: dict[str, Any] = {"title": "a", "discriminator": "b"}) -> None: ...  # noqa: B006

    assert properties(f)["a"]["default"] == {"title": "a", "discriminator": "b"}


def test_values_that_are_json_texts_have_their_formats() -> None:
    @tool
    def f(at: datetime.datetime, key: uuid.UUID, path: Path, price: Decimal) -> None: ...

    assert properties(f)["at"] == {"type": "string", "format": "date-time"}
    assert properties(f)["key"] == {"type": "string", "format": "uuid"}
    assert properties(f)["path"] == {"type": "string", "format": "path"}
    assert {"type": "number"} in properties(f)["price"]["anyOf"]


def test_constraints_of_a_field_are_in_the_schema() -> None:
    @tool
    def f(n: Annotated[int, Field(gt=0, le=9)], name: str = Field("a", max_length=3)) -> None: ...

    assert properties(f) == {
        "n": {"type": "integer", "exclusiveMinimum": 0, "maximum": 9},
        "name": {"type": "string", "maxLength": 3, "default": "a"},
    }
    assert f.schema.parameters["required"] == ["n"]


def test_an_alias_is_the_name_that_models_use() -> None:
    @tool
    def f(from_: Annotated[str, Field(alias="from")]) -> None: ...

    assert list(properties(f)) == ["from"]
    assert f.validate({"from": "a"}).arguments == {"from_": "a"}


def test_the_most_specific_description_wins() -> None:
    @tool
    def f(
        a: Annotated[int, "text", Field(description="field")],
        b: Annotated[int, Doc("doc")],
        c: Annotated[int, "text"],
        d: int,
        e: Annotated[int, "text"] = Field(1, description="field"),
    ) -> None:
        """Do it.

        Args:
            a: docs
            b: docs
            c: docs
            d: docs
            e: docs
        """

    described = {name: schema["description"] for name, schema in properties(f).items()}
    assert described == {"a": "field", "b": "doc", "c": "text", "d": "docs", "e": "field"}


def test_a_parameter_without_an_annotation_takes_any_json() -> None:
    def f(a, b=1):  # type: ignore[no-untyped-def]
        return [a, b]

    made: FunctionTool[Any, Any] = tool(f)
    assert properties(made) == {"a": {}, "b": {"default": 1}}


def test_a_default_without_a_json_form_applies_unseen() -> None:
    marker = object()

    @tool
    def f(a: Any = marker) -> None: ...

    assert properties(f) == {"a": {}}
    assert f.validate({}).arguments == {"a": marker}


def test_a_mutable_default_is_not_shared_between_calls() -> None:
    @tool
    def f(found: list[int] = []) -> None: ...  # noqa: B006

    f.validate({}).arguments["found"].append(1)
    assert f.validate({}).arguments == {"found": []}


def test_an_iterable_arrives_checked_as_a_list() -> None:
    @tool
    def f(names: Iterable[str]) -> None: ...

    assert f.validate({"names": ["a"]}).arguments == {"names": ["a"]}


def test_a_keyword_bag_is_refused_by_its_name() -> None:
    def g(x: int, **opts: int) -> None: ...

    with pytest.raises(ToolSchemaError, match=r"`\*\*opts` of `g`"):
        tool(g)


def test_a_positional_bag_is_refused_by_its_name() -> None:
    def g(*numbers: int) -> None: ...

    with pytest.raises(ToolSchemaError, match=r"`\*numbers` of `g`"):
        tool(g)


def test_names_that_are_local_to_a_function_resolve() -> None:
    class Local(BaseModel):
        n: int

    class Toolbox:
        class Inner(BaseModel):
            m: int

        @tool
        def f(self, a: Local, b: Inner) -> None: ...

    assert Toolbox().f.validate({"a": {"n": 1}, "b": {"m": 2}}).arguments == {
        "a": Local(n=1),
        "b": Toolbox.Inner(m=2),
    }


def test_an_annotation_that_cannot_be_resolved_is_named() -> None:
    def f(a: Missing) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(ToolSchemaError, match="annotation `Missing` of `a` of `f`"):
        tool(f)


def test_a_return_annotation_that_cannot_be_resolved_is_no_error() -> None:
    def f() -> Missing: ...  # type: ignore[name-defined]  # noqa: F821

    assert tool(f).output_schema is None


class Handle:
    """Nothing that JSON knows."""


def test_a_type_without_a_json_form_is_named() -> None:
    def f(a: int, handle: Handle) -> None: ...

    with pytest.raises(ToolSchemaError, match="`handle` of `f`.*Handle"):
        tool(f)


def test_a_name_that_models_use_for_themselves_can_be_a_parameter() -> None:
    @tool
    def f(schema: int, model_config: int, _hidden: int, copy: int) -> None: ...

    assert list(properties(f)) == ["schema", "model_config", "_hidden", "copy"]
    arguments = {"schema": 1, "model_config": 2, "_hidden": 3, "copy": 4}
    assert f.validate(dict(arguments)).arguments == arguments


def test_the_output_schema_is_that_of_the_return_type() -> None:
    @tool
    async def found() -> list[Item]:
        return []

    @tool(output=Point)
    async def other(): ...  # type: ignore[no-untyped-def]

    @tool
    async def silent(): ...  # type: ignore[no-untyped-def]

    assert found.output_schema is not None
    assert found.output_schema["type"] == "array"
    assert other.output_schema is not None
    assert list(other.output_schema["properties"]) == ["x", "y"]  # type: ignore[arg-type]
    assert silent.output_schema is None


def test_a_context_is_hidden_wherever_it_stands() -> None:
    @tool
    def f(a: int, *, ctx: ToolContext[None] | None = None) -> None: ...

    assert list(properties(f)) == ["a"]
    assert list(f.declared_parameters["properties"]) == ["a"]  # type: ignore[arg-type]


@dataclass
class Deep:
    items: list[Deep] = field(default_factory=list["Deep"])


def test_a_recursive_dataclass_is_described_and_built() -> None:
    @tool
    def f(deep: Deep) -> None: ...

    assert f.validate({"deep": {"items": [{}]}}).arguments == {"deep": Deep([Deep()])}


def definitions(made: Tool) -> dict[str, Any]:
    found: JsonObject = made.schema.parameters["$defs"]  # type: ignore[assignment]
    return dict(found)
