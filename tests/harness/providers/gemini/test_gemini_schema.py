"""Schemas in the subset that Gemini takes: what is exact, and what is only described."""

import copy
from typing import Any

import pytest

from tinyagents.harness.providers._gemini_schema import prepare_schema

EXACT: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    (
        "keywords of the subset stay",
        {
            "$defs": {"A": {"type": "integer", "minimum": 1, "maximum": 3}},
            "type": "object",
            "title": "T",
            "properties": {
                "a": {"$ref": "#/$defs/A"},
                "b": {"type": "array", "items": {"type": ["string", "null"]}, "minItems": 1},
                "c": {"anyOf": [{"type": "number"}, {"enum": ["x", 1]}]},
                "d": {"type": "array", "prefixItems": [{"type": "string", "format": "date"}]},
            },
            "required": ["a"],
            "additionalProperties": False,
        },
        {},
    ),
    ("a dialect says nothing", {"$schema": "s", "type": "object"}, {"type": "object"}),
    ("a constant is an enumeration", {"const": "a"}, {"enum": ["a"]}),
    ("nothing but null is a type", {"const": None}, {"type": "null"}),
    (
        "null leaves an enumeration",
        {"type": ["string", "null"], "enum": ["a", None], "description": "D"},
        {"description": "D", "anyOf": [{"type": "string", "enum": ["a"]}, {"type": "null"}]},
    ),
    (
        "bounds of whole numbers become inclusive",
        {"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 10},
        {"type": "integer", "minimum": 1, "maximum": 9},
    ),
    (
        "the narrower of two bounds counts",
        {"type": "integer", "exclusiveMinimum": 0, "minimum": 5},
        {"type": "integer", "minimum": 5},
    ),
    (
        "the narrower of two bounds counts in any order",
        {"type": "integer", "minimum": 0, "exclusiveMinimum": 4, "maximum": 9},
        {"type": "integer", "minimum": 5, "maximum": 9},
    ),
    (
        "a list of items is a prefix",
        {"type": "array", "items": [{"type": "string"}, {"const": 1}]},
        {"type": "array", "prefixItems": [{"type": "string"}, {"enum": [1]}]},
    ),
    ("an extension says nothing of values", {"x-a": 1}, {"description": "x-a: 1"}),
    (
        "a reference has no company",
        {"$ref": "#/definitions/A", "description": "D", "definitions": {"A": {"type": "null"}}},
        {"description": "D", "$defs": {"A": {"type": "null"}}, "anyOf": [{"$ref": "#/$defs/A"}]},
    ),
    (
        "an intersection of one is a union of one",
        {"allOf": [{"$ref": "#/$defs/A"}], "title": "T"},
        {"anyOf": [{"$ref": "#/$defs/A"}], "title": "T"},
    ),
    (
        "a mere yes takes anything",
        {"items": True, "properties": {"a": True}, "additionalProperties": True},
        {"items": {}, "properties": {"a": {}}, "additionalProperties": True},
    ),
    (
        "defaults and examples are told",
        {"type": "string", "default": "x", "description": "D"},
        {"type": "string", "description": 'D (default: "x")'},
    ),
    (
        "a property may have the name of a keyword",
        {"type": "object", "properties": {"pattern": {"type": "string"}, "const": {}}},
        {},
    ),
]

RELAXED: list[tuple[dict[str, Any], dict[str, Any], list[str]]] = [
    (
        {"type": "string", "pattern": "a+", "maxLength": 3},
        {"type": "string", "description": 'pattern: "a+"; maxLength: 3'},
        ["`$`: `pattern` is only described", "`$`: `maxLength` is only described"],
    ),
    (
        {"type": "string", "format": "email"},
        {"type": "string", "description": 'format: "email"'},
        ["`$`: `format` is only described"],
    ),
    (
        {"type": "number", "exclusiveMinimum": 0},
        {"type": "number", "minimum": 0, "description": "exclusiveMinimum: 0"},
        ["`$`: `exclusiveMinimum` is only described"],
    ),
    (
        {"const": True},
        {"type": "boolean", "description": "enum: [true]"},
        ["`$`: `enum` is only described"],
    ),
    (
        {"oneOf": [{"type": "string"}]},
        {"oneOf": [{"type": "string"}]},
        ["`$`: `oneOf` is read as `anyOf`"],
    ),
    (
        {"$ref": "#/$defs/A", "anyOf": [{"type": "null"}]},
        {"anyOf": [{"$ref": "#/$defs/A"}], "description": 'anyOf: [{"type":"null"}]'},
        ["`$`: `anyOf` is only described"],
    ),
    (
        {"properties": {"a": {"items": {"not": {"type": "null"}}}, "b": False}},
        {
            "properties": {
                "a": {"items": {"description": 'not: {"type":"null"}'}},
                "b": {"description": "No value fits: leave it out."},
            }
        },
        ["`$.a.items`: `not` is only described", "`$.b`: that nothing fits is only described"],
    ),
]


@pytest.mark.parametrize(
    ("given", "made"), [case[1:] for case in EXACT], ids=[case[0] for case in EXACT]
)
def test_what_the_api_can_say_is_said_exactly(given: dict[str, Any], made: dict[str, Any]) -> None:
    before = copy.deepcopy(given)
    assert prepare_schema(given) == (made or given, [])
    assert given == before


@pytest.mark.parametrize(("given", "made", "relaxed"), RELAXED)
def test_what_it_cannot_say_is_described_and_reported(
    given: dict[str, Any], made: dict[str, Any], relaxed: list[str]
) -> None:
    assert prepare_schema(given) == (made, relaxed)


@pytest.mark.parametrize("case", [*(case[1] for case in EXACT), *(case[0] for case in RELAXED)])
def test_a_prepared_schema_is_not_prepared_further(case: dict[str, Any]) -> None:
    made, _ = prepare_schema(case)
    assert prepare_schema(made)[0] == made
