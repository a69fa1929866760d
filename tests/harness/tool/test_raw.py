"""Tools from a JSON Schema or a model instead of a signature."""

import subprocess
import sys
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from tinyagents.harness.errors import ToolArgumentsError, ToolSchemaError
from tinyagents.harness.tool import (
    Injected,
    Tool,
    ToolContext,
    ToolPolicy,
    ToolRuntime,
    normalize_arguments,
)

from .calls import context, execute, only_text, text_of

SCHEMA = {
    "type": "object",
    "properties": {
        "q": {"type": "string", "pattern": "^[a-z]+$"},
        "n": {"type": "integer", "minimum": 1},
        "tenant": {"type": "string"},
    },
    "required": ["q", "tenant"],
    "additionalProperties": False,
}


async def echo(arguments: dict[str, Any]) -> dict[str, Any]:
    return arguments


def errors_of(made: Tool, arguments: Any) -> tuple[str, ...]:
    with pytest.raises(ToolArgumentsError) as caught:
        made.validate(arguments)
    return caught.value.errors


async def test_a_handler_gets_the_arguments_as_one_dict() -> None:
    made = Tool.from_schema(
        name="echo", description="Echo.", parameters=SCHEMA, handler=echo, tags=["a"]
    )
    assert (made.name, made.description) == ("echo", "Echo.")
    assert made.tags == {"a"}
    assert made.schema.parameters == SCHEMA
    assert await text_of(made, q="moss", tenant="acme") == '{"q":"moss","tenant":"acme"}'


async def test_a_handler_can_have_its_context_too() -> None:
    def handler(arguments: dict[str, Any], *, ctx: ToolContext[Any]) -> list[Any]:
        return [arguments, ctx.call_id]

    made = Tool.from_schema(handler, name="echo")
    assert await text_of(made) == '[{},"k1"]'


def test_each_problem_is_named_with_its_path() -> None:
    made = Tool.from_schema(echo, name="echo", parameters=SCHEMA)
    assert errors_of(made, {"q": 5, "n": True, "tenant": "a"}) == (
        "arguments.q: string is needed, got integer",
        "arguments.n: integer is needed, got boolean",
    )
    assert errors_of(made, {"n": 1, "x": 1}) == (
        "arguments.q is missing",
        "arguments.tenant is missing",
        "arguments.x is not a parameter",
    )
    assert errors_of(made, [1]) == ("arguments: object is needed, got array",)


def test_nested_problems_have_the_whole_path() -> None:
    schema = {"properties": {"a": {"properties": {"b": {"items": {"type": ["string", "null"]}}}}}}
    made = Tool.from_schema(echo, name="echo", parameters=schema)
    assert errors_of(made, {"a": {"b": ["x", 1]}}) == (
        "arguments.a.b[1]: string or null is needed, got integer",
    )


def test_an_enum_says_what_is_possible() -> None:
    made = Tool.from_schema(echo, name="echo", parameters={"properties": {"a": {"enum": [1, "b"]}}})
    assert errors_of(made, {"a": "c"}) == ('arguments.a: must be one of [1,"b"], got string',)


async def test_the_application_can_fill_properties_that_no_model_sees() -> None:
    made = Tool.from_schema(
        echo,
        name="echo",
        parameters=SCHEMA,
        injected={"tenant": Injected(configurable="tenant")},
    )
    assert list(made.schema.parameters["properties"]) == ["q", "n"]  # type: ignore[arg-type]
    assert made.schema.parameters["required"] == ["q"]
    assert made.declared_parameters == SCHEMA
    bound = made.validate({"q": "moss", "tenant": "evil"})
    assert bound.dropped == ("tenant",)
    result = await made.execute(bound, context(configurable={"tenant": "acme"}))
    assert only_text(result.content) == '{"q":"moss","tenant":"acme"}'


@pytest.mark.parametrize("parameters", [None, {}])
def test_no_schema_means_no_parameters(parameters: Any) -> None:
    made = Tool.from_schema(echo, name="echo", parameters=parameters)
    assert made.schema.parameters == {"type": "object", "properties": {}}


def test_a_missing_type_is_that_of_an_object() -> None:
    made = Tool.from_schema(echo, name="echo", parameters={"required": ["a"]})
    assert made.schema.parameters == {"type": "object", "required": ["a"], "properties": {}}
    assert errors_of(made, {}) == ("arguments.a is missing",)


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"type": "array"}, "type `object`, got `array`"),
        ({"properties": {"a": {"type": "strin"}}}, r"\['properties'\]\['a'\]\['type'\]"),
        ({"properties": []}, "no JSON Schema"),
    ],
)
def test_a_schema_that_cannot_work_is_refused_at_once(parameters: Any, said: str) -> None:
    with pytest.raises(ToolSchemaError, match=said):
        Tool.from_schema(echo, name="echo", parameters=parameters)


@pytest.mark.parametrize("ref", ["https://example.com/a.json", "#/$defs/b", "other.json"])
def test_a_reference_that_leads_nowhere_is_refused_at_once(ref: str) -> None:
    with pytest.raises(ToolSchemaError, match="leads nowhere"):
        Tool.from_schema(echo, name="echo", parameters={"properties": {"a": {"$ref": ref}}})


def test_a_handler_with_a_parameter_that_nobody_fills_is_refused() -> None:
    def handler(arguments: dict[str, Any], session: str) -> None: ...

    with pytest.raises(ToolSchemaError, match="nobody fills `session`"):
        Tool.from_schema(handler, name="f")


def test_the_given_schema_is_not_kept() -> None:
    parameters: dict[str, Any] = {"properties": {"a": {"type": "string"}}}
    made = Tool.from_schema(echo, name="echo", parameters=parameters)
    parameters["properties"]["a"]["type"] = "integer"
    assert made.schema.parameters["properties"] == {"a": {"type": "string"}}


def test_jsonschema_is_loaded_for_raw_schemas_only() -> None:
    code = (
        "import sys\n"
        "from tinyagents.harness.tool import Tool, tool\n"
        "tool(name='f')(lambda: 1).validate({})\n"
        "assert 'jsonschema' not in sys.modules and 'httpx' not in sys.modules\n"
        "Tool.from_schema(len, name='g')\n"
        "assert 'jsonschema' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


class Booking(BaseModel):
    """Book a room."""

    room: Annotated[int, Field(ge=1)]
    guests: list[str] = []


@dataclass
class Move:
    x: float
    y: float = 0.0


class Options(TypedDict):
    deep: bool


async def book(booking: Booking) -> str:
    return f"{booking.room}: {', '.join(booking.guests)}"


async def test_a_handler_gets_the_instance_of_a_model() -> None:
    made = Tool.from_model(Booking, book)
    assert (made.name, made.description) == ("book", "Book a room.")
    assert made.schema.parameters == {
        "type": "object",
        "properties": {
            "room": {"type": "integer", "minimum": 1},
            "guests": {"type": "array", "items": {"type": "string"}, "default": []},
        },
        "required": ["room"],
    }
    assert made.validate({"room": 1}).arguments == {"booking": Booking(room=1)}
    assert await text_of(made, room=7, guests=["Ada", "Bo"]) == "7: Ada, Bo"
    assert errors_of(made, {"room": 0}) == (
        "arguments.room: input should be greater than or equal to 1, got integer",
    )


async def test_a_handler_gets_the_instance_of_a_dataclass() -> None:
    def go(move: Move, ctx: ToolContext[Any]) -> str:
        """Go there."""
        return f"{move.x + move.y} {ctx.call_id}"

    policy = ToolPolicy(runtime=ToolRuntime(timeout=3))
    made = Tool.from_model(Move, go, name="move", policy=policy)
    assert (made.name, made.description, made.timeout) == ("move", "Go there.", 3)
    assert await text_of(made, x=1) == "1.0 k1"


async def test_a_handler_gets_a_typed_dict() -> None:
    async def look(options: Options) -> bool:
        return options["deep"]

    assert await text_of(Tool.from_model(Options, look), deep=True) == "true"


class Branch(BaseModel):
    name: str
    kids: list["Branch"] = []


def test_a_model_that_contains_itself_shows_its_fields_at_the_top() -> None:
    async def grow(branch: Branch) -> str:
        return branch.name

    shown = Tool.from_model(Branch, grow).schema.parameters
    assert "$ref" not in shown  # which no provider takes at the top
    assert shown["type"] == "object"
    kids: dict[str, Any] = {
        "type": "array",
        "items": {"$ref": "#/$defs/Branch"},
        "default": [],
    }
    assert shown["properties"] == {"name": {"type": "string"}, "kids": kids}


def test_a_schema_that_begins_with_a_reference_shows_what_it_leads_to() -> None:
    defs = {"A": {"$ref": "#/$defs/B"}, "B": {"properties": {"x": {"type": "integer"}}}}
    made = Tool.from_schema(
        echo, name="echo", parameters={"$ref": "#/$defs/A", "required": ["x"], "$defs": defs}
    )
    assert made.schema.parameters == {
        "type": "object",
        "properties": {"x": {"type": "integer"}},
        "required": ["x"],
        "$defs": defs,
    }
    assert errors_of(made, {}) == ("arguments.x is missing",)


def test_a_model_that_is_no_object_is_refused() -> None:
    async def handler(value: int) -> None: ...

    with pytest.raises(ToolSchemaError, match="`object`"):
        Tool.from_model(int, handler)


async def test_tools_from_schemas_raise_what_their_handler_raises() -> None:
    async def handler(arguments: dict[str, Any]) -> None:
        raise RuntimeError("disk")

    with pytest.raises(RuntimeError, match="disk"):
        await execute(Tool.from_schema(handler, name="f"))


def test_what_a_handler_does_to_its_arguments_stays_with_it() -> None:
    tool = Tool.from_schema(len, name="count", parameters={"type": "object"})
    given: dict[str, Any] = {"items": [1, {"a": 2}]}
    bound = tool.validate(given)
    bound.arguments["items"][1]["a"] = 3
    bound.arguments["items"].append(4)
    assert given == {"items": [1, {"a": 2}]}


@pytest.mark.parametrize("keyword", ["allOf", "anyOf"])
@pytest.mark.parametrize("extra", [{}, {"$schema": "https://json-schema.org/draft/2020-12/schema"}])
def test_a_schema_whose_references_multiply_does_not_hold_up_the_process(
    keyword: str, extra: dict[str, str]
) -> None:
    # 60 short definitions that stand for 2**60: whoever serves a tool may send them.
    definitions: dict[str, Any] = {
        f"d{n}": {**extra, keyword: [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(60)
    }
    definitions["d60"] = {"type": "integer"}
    parameters = {
        "type": "object",
        "properties": {"x": {"$ref": "#/$defs/d0"}},
        "$defs": definitions,
    }
    made = Tool.from_schema(echo, name="bomb", description="", parameters=parameters)
    with pytest.raises(ToolArgumentsError, match="more than 10000 references"):
        made.validate({"x": "1"})
    assert normalize_arguments({"x": "1"}, made) in (None, {"x": 1})


def test_a_schema_that_refers_to_itself_is_checked_all_the_same() -> None:
    parameters = {
        "type": "object",
        "properties": {"n": {"type": "integer"}, "inner": {"$ref": "#"}},
        "required": ["n"],
    }
    made = Tool.from_schema(echo, name="nested", description="", parameters=parameters)
    made.validate({"n": 1, "inner": {"n": 2, "inner": {"n": 3}}})
    with pytest.raises(ToolArgumentsError, match="inner"):
        made.validate({"n": 1, "inner": {"n": 2, "inner": {"n": "3"}}})
