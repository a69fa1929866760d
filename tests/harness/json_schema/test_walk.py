"""Looking into schemas: what stands in them, and what a value may fit."""

from typing import Any

from tinyagents.harness.json_schema import Place, kind_of, parts, rebuilt, rooted, variants
from tinyagents.harness.text import JsonObject

SCHEMA: dict[str, Any] = {
    "properties": {"a": {"type": "string"}, "b": True},
    "items": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/c"}]},
    "additionalProperties": False,
    "$defs": {"c": {"not": {"const": {"type": "array"}}}},
    "default": {"type": "object"},
}


def test_the_parts_of_a_schema_are_the_schemas_in_it() -> None:
    assert list(parts(SCHEMA)) == [
        SCHEMA,
        {"type": "string"},
        {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/c"}]},
        {"type": "null"},
        {"$ref": "#/$defs/c"},
        {"not": {"const": {"type": "array"}}},
        {"const": {"type": "array"}},
    ]


def test_a_schema_is_rebuilt_from_the_schemas_directly_in_it() -> None:
    places: list[Place] = []

    def change(place: Place, part: JsonObject) -> JsonObject:
        places.append(place)
        return {"title": str(len(places))}

    made = rebuilt({**SCHEMA, "allOf": [{}, {}]}, change)
    assert places == [
        ("properties", "a"),
        ("items",),
        ("$defs", "c"),
        ("allOf", 0),
        ("allOf", 1),
    ]
    assert made == {
        "properties": {"a": {"title": "1"}, "b": True},
        "items": {"title": "2"},
        "additionalProperties": False,
        "$defs": {"c": {"title": "3"}},
        "default": {"type": "object"},
        "allOf": [{"title": "4"}, {"title": "5"}],
    }
    assert SCHEMA["properties"]["a"] == {"type": "string"}


def test_variants_are_the_members_of_unions_behind_references() -> None:
    root: JsonObject = {"$defs": {"u": {"oneOf": [{"type": "null"}, {"$ref": "#/$defs/n"}]}}}
    root["$defs"]["n"] = {"type": "number"}  # type: ignore[index, call-overload]
    assert list(variants(root, {"$ref": "#/$defs/u"})) == [{"type": "null"}, {"type": "number"}]
    assert list(variants(root, {"type": "string"})) == [{"type": "string"}]


def test_a_reference_in_a_circle_or_to_nothing_has_no_variants() -> None:
    root: JsonObject = {"$defs": {"a": {"$ref": "#/$defs/a"}}}
    assert list(variants(root, {"$ref": "#/$defs/a"})) == []
    assert list(variants(root, {"$ref": "#/$defs/b"})) == []
    assert list(variants(root, {"$ref": "https://example.com/a.json"})) == []
    assert list(variants(root, True)) == []


def test_kinds_have_the_names_of_json_schema() -> None:
    values: list[object] = [None, True, 1, 1.5, "x", {}, []]
    assert [kind_of(value) for value in values] == [
        *("null", "boolean", "integer", "number", "string", "object", "array"),
    ]


def test_a_reference_at_the_top_gives_way_to_what_it_leads_to() -> None:
    defs: JsonObject = {
        "a": {"$ref": "#/$defs/b", "title": "A"},
        "b": {"type": "object", "title": "B"},
    }
    assert rooted({"$ref": "#/$defs/a", "$defs": defs}) == {
        "type": "object",
        "title": "A",
        "$defs": defs,
    }


def test_a_reference_at_the_top_stays_where_other_rules_stand_beside_it() -> None:
    target: JsonObject = {"type": "object", "required": ["x"]}
    both: JsonObject = {"$ref": "#/$defs/a", "required": ["y"], "$defs": {"a": target}}
    assert rooted(both) == both


def test_a_reference_at_the_top_to_nothing_or_in_a_circle_stays() -> None:
    for schema in ({"$ref": "#"}, {"$ref": "#/$defs/none"}, {"$ref": "https://example.com/a"}):
        assert rooted(dict(schema)) == schema
