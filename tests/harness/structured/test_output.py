"""The type of an answer: what is refused at once, what the model is shown, and what fits."""

import datetime
import enum
from typing import Any, Optional

import pytest
from pydantic import BaseModel, Field, RootModel

from tinyagents.harness.errors import InvalidRequestError, StructuredOutputError
from tinyagents.harness.model import ModelProfile
from tinyagents.harness.structured import OutputSpec
from tinyagents.harness.text import dump_json

CITY = {
    "title": "City",
    "description": "A place.",
    "type": "object",
    "properties": {"name": {"type": "string"}, "twins": {"type": "array", "items": {"$ref": "#"}}},
    "required": ["name"],
    "additionalProperties": False,
}


class Street(BaseModel):
    """A street."""

    name: str


class Town(BaseModel):
    """A town."""

    name: str
    main: Street
    since: datetime.date = Field(default=datetime.date(1000, 1, 1), strict=True)


class Color(enum.Enum):
    RED = "red"


class Node(BaseModel):
    kids: list["Node"] = []


class Nested(RootModel[list["Nested"]]): ...


class Plain: ...


def errors_of(spec: OutputSpec[Any], text: str) -> tuple[str, ...]:
    with pytest.raises(StructuredOutputError) as caught:
        spec.parse(text)
    assert caught.value.text == text
    assert caught.value.schema_name == spec.name
    return tuple(caught.value.errors)


@pytest.mark.parametrize(
    "ref", ["https://example.com/a.json", "other.json", "#/nowhere", "#/items/a", "#nobody"]
)
def test_a_reference_that_leads_nowhere_is_refused_at_once_and_never_downloaded(ref: str) -> None:
    schema = {"type": "object", "properties": {"a": {"$ref": ref}}}
    with pytest.raises(InvalidRequestError, match=r"`.*` in the output schema leads nowhere"):
        OutputSpec(schema)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "strin"},
        {"type": "object", "properties": []},
        {"pattern": "["},
        {"enum": object()},
        {"$schema": []},
    ],
)
def test_what_is_no_json_schema_is_refused_at_once(schema: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequestError, match="the output schema.*: no JSON Schema"):
        OutputSpec(schema)


def test_a_type_without_a_json_form_is_refused_at_once() -> None:
    with pytest.raises(InvalidRequestError, match="cannot be an output type"):
        OutputSpec(Plain)


def test_the_given_schema_is_not_kept() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}}
    spec = OutputSpec[Any](schema)
    schema["properties"]["a"]["type"] = "integer"
    assert spec.schema["properties"] == {"a": {"type": "string"}}
    assert spec.parse('{"a":"x"}')[0] == {"a": "x"}


def test_a_model_is_shown_a_type_without_titles_and_in_one_piece() -> None:
    spec = OutputSpec(Town)
    assert (spec.name, spec.description) == ("Town", "A town.")
    assert spec.schema == {
        "type": "object",
        "description": "A town.",
        "properties": {
            "name": {"type": "string"},
            "main": {
                "type": "object",
                "description": "A street.",
                "properties": {"name": {"type": "string"}},
                "required": ["name"],
            },
            "since": {"type": "string", "format": "date", "default": "1000-01-01"},
        },
        "required": ["name", "main"],
    }


def test_the_schema_is_shown_as_a_response_format_and_as_a_tool() -> None:
    spec = OutputSpec[Any](CITY)
    form, shown = spec.response_format(), spec.tool_schema()
    assert (form.name, form.description, form.schema) == ("City", "A place.", CITY)
    assert (shown.name, shown.description, shown.parameters) == ("City", "A place.", CITY)
    assert OutputSpec(Node).tool_schema().description.startswith("Give the final answer")


@pytest.mark.parametrize(
    ("profile", "strategy"),
    [
        (ModelProfile(native_structured_output=True), "native"),
        (ModelProfile(native_structured_output=True, json_schema=False), "tool"),
        (ModelProfile(), "tool"),
        (ModelProfile(tool_calling=False), "native"),
    ],
)
def test_the_schema_goes_where_the_model_dependably_keeps_to_it(
    profile: ModelProfile, strategy: str
) -> None:
    assert OutputSpec(Town).strategy_for(profile) == strategy


@pytest.mark.parametrize(
    ("output", "name"),
    [
        (Town, "Town"),
        (list[Town], "list[Town]"),
        (Optional[Town], "Optional[Town]"),  # noqa: UP045 - this is what is tested
        ({"type": "object"}, "output"),
        ({"type": "object", "title": " "}, "output"),
        ({"type": "object", "title": "My city"}, "My city"),
    ],
)
def test_an_output_is_named_as_its_author_named_it(output: Any, name: str) -> None:
    assert OutputSpec(output).name == name


@pytest.mark.parametrize("text", ['{"value":[1,2]}', "[1,2]", "```json\n[1,2]\n```"])
def test_a_type_that_is_no_object_is_asked_for_in_one_and_taken_bare_too(text: str) -> None:
    spec = OutputSpec(list[int])
    assert spec.schema == {
        "type": "object",
        "properties": {"value": {"type": "array", "items": {"type": "integer"}}},
        "required": ["value"],
        "additionalProperties": False,
    }
    assert spec.parse(text)[1] == [1, 2]
    assert OutputSpec(int).parse('{"value":3}')[1] == 3


def test_definitions_stay_where_references_find_them() -> None:
    for key in ("$defs", "definitions"):
        schema = {"type": "array", "items": {"$ref": f"#/{key}/a"}, key: {"a": {"type": "string"}}}
        spec = OutputSpec[Any](schema)
        assert spec.schema[key] == {"a": {"type": "string"}}
        assert spec.parse('{"value":["x"]}')[1] == ["x"]
        assert errors_of(spec, '{"value":[1]}') == (
            "answer.value[0]: string is needed, got integer",
        )


def test_an_answer_comes_back_as_json_and_as_the_value() -> None:
    text = '{"name":"Oslo","main":{"name":"Karl Johan"},"since":"1040-01-01"}'
    value, town = OutputSpec(Town).parse(f"\n```json\n{text}\n```\n")
    assert dump_json(value) == text
    assert town == Town(
        name="Oslo", main=Street(name="Karl Johan"), since=datetime.date(1040, 1, 1)
    )
    assert OutputSpec(Color).parse('"red"')[1] is Color.RED
    assert OutputSpec[Any](CITY).parse('{"name":"Oslo"}')[1] == {"name": "Oslo"}


def test_each_problem_of_a_typed_answer_is_named_with_its_path() -> None:
    assert errors_of(OutputSpec(Town), '{"name":1,"main":{}}') == (
        "answer.name: input should be a valid string, got integer",
        "answer.main.name is missing",
    )


def test_each_problem_of_an_answer_by_schema_is_named_with_its_path() -> None:
    assert errors_of(OutputSpec[Any](CITY), '{"twins":[{"name":1}],"x":1}') == (
        "answer.twins[0].name: string is needed, got integer",
        "answer.name is missing",
        "answer.x is not a property",
    )
    assert errors_of(OutputSpec[Any](CITY), "7") == ("answer: object is needed, got integer",)


def test_a_text_that_is_no_json_is_a_problem_of_its_own() -> None:
    (problem,) = errors_of(OutputSpec(Town), "Oslo")
    assert problem.startswith("not JSON: ")


def test_a_schema_that_refers_to_itself_for_ever_is_a_problem_and_no_crash() -> None:
    (problem,) = errors_of(OutputSpec[Any]({"type": "object", "$ref": "#"}), "{}")
    assert "could not be checked: RecursionError" in problem


def test_a_type_that_contains_itself_is_shown_in_place_at_the_top() -> None:
    shown = OutputSpec(Node).schema
    assert (shown["type"], "$ref" in shown) == ("object", False)
    assert shown["properties"]["kids"]["items"] == {"$ref": "#/$defs/Node"}
    assert OutputSpec(Node).parse('{"kids":[{"kids":[]}]}')[1] == Node(kids=[Node()])


def test_a_type_that_contains_itself_and_is_no_object_is_wrapped() -> None:
    spec = OutputSpec(Nested)
    assert spec.schema["type"] == "object"
    assert spec.parse('{"value":[[],[[]]]}')[1] == Nested.model_validate([[], [[]]])
