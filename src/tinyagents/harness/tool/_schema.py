"""JSON Schema as a model should read it: exact, and with nothing in it that says nothing."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, cast

from pydantic import JsonValue, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode

from ..errors import ToolSchemaError
from ..text import JsonObject, clean_json

_SCHEMA_MAPS = ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas")
_SCHEMA_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_SCHEMAS = (
    "items", "additionalProperties", "not", "contains", "propertyNames", "if", "then", "else",
)  # fmt: skip
_ANCHORS = ("$anchor", "$dynamicAnchor")
_DEFS = "#/$defs/"


class _Generator(GenerateJsonSchema):
    # A default without a JSON form stays out of the schema, and still applies.
    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def sort(self, value: Any, parent_key: str | None = None) -> Any:
        return value


def describe(adapter: "TypeAdapter[Any]", mode: JsonSchemaMode = "validation") -> JsonObject:
    """Return the JSON Schema of a type, compact.

    Titles that only repeat a class's name are left out, and what a single place refers to stands
    in that place.
    """
    schema = adapter.json_schema(schema_generator=_Generator, mode=mode)
    return _inlined(cast("JsonObject", schema))


def object_schema(parameters: Mapping[str, Any] | None, tool: str) -> JsonObject:
    """Return a raw schema as the object schema that a tool's parameters must be.

    Raises:
        ToolSchemaError: It describes something else.
    """
    if not parameters:
        return {"type": "object", "properties": {}}
    schema = cast("JsonObject", clean_json(parameters))
    if schema.setdefault("type", "object") != "object":
        raise ToolSchemaError(
            f"the parameters of `{tool}` must be a schema of type `object`, got `{schema['type']}`"
        )
    schema.setdefault("properties", {})
    return schema


def without_properties(schema: JsonObject, names: Mapping[str, Any]) -> JsonObject:
    """Return an object schema without these properties."""
    if not names:
        return schema
    properties = cast("JsonObject", schema.get("properties", {}))
    kept = {name: value for name, value in properties.items() if name not in names}
    changed: JsonObject = {**schema, "properties": kept}
    if isinstance(required := schema.get("required"), list):
        changed["required"] = [name for name in required if name not in names]
    return changed


def referred(root: JsonObject, ref: str) -> JsonValue:
    """Return what a reference within a schema refers to; ``None`` if there is nothing."""
    here: JsonValue = root if ref.startswith("#") else None
    for step in ref.removeprefix("#").split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        match here:
            case dict():
                here = here.get(key)
            case list() if key.isdecimal() and int(key) < len(here):
                here = here[int(key)]
            case _:
                return None
    return here


def dangling_reference(schema: JsonObject) -> str | None:
    """Return a reference that leads out of the schema or to nothing in it, if it has one."""
    parts = list(_all(schema))
    if any("$id" in part for part in parts[1:]):
        return None  # what a reference means then depends on where it stands
    anchors = {f"#{part[key]}" for part in parts for key in _ANCHORS if key in part}
    refs = [ref for part in parts if isinstance(ref := part.get("$ref"), str)]
    return next((r for r in refs if r not in anchors and referred(schema, r) is None), None)


def _all(schema: JsonObject) -> Iterator[JsonObject]:
    yield schema
    for child in _children(schema):
        yield from _all(child)


def _inlined(schema: JsonObject) -> JsonObject:
    definitions = cast("dict[str, JsonObject]", schema.pop("$defs", {}))
    for name, definition in definitions.items():
        if name.endswith(str(definition.get("title", "\0"))):
            del definition["title"]
    uses = Counter(ref for root in (schema, *definitions.values()) for ref in _references(root))
    inline = {
        name: definition
        for name, definition in definitions.items()
        if uses[name] == 1 and not _reaches(name, name, definitions)
    }
    compact = _rebuilt(schema, inline)
    kept = {name: item for name, item in definitions.items() if name not in inline and uses[name]}
    ordered: JsonObject = {}
    for key in ("type", "properties", "required"):
        if key in compact:
            ordered[key] = compact[key]
    ordered.update(compact)
    if kept:
        ordered["$defs"] = {name: _rebuilt(item, inline) for name, item in kept.items()}
    return ordered


def _reaches(start: str, goal: str, definitions: Mapping[str, JsonObject]) -> bool:
    """Whether a definition refers to another, directly or through others."""
    seen: set[str] = set()
    ahead = list(_references(definitions[start]))
    while ahead:
        name = ahead.pop()
        if name == goal:
            return True
        if name not in seen and name in definitions:
            seen.add(name)
            ahead += _references(definitions[name])
    return False


def _references(schema: JsonObject) -> Iterator[str]:
    for each in _all(schema):
        if isinstance(ref := each.get("$ref"), str) and ref.startswith(_DEFS):
            yield ref.removeprefix(_DEFS)


def _children(schema: JsonObject) -> Iterator[JsonObject]:
    for key in _SCHEMA_MAPS:
        if isinstance(found := schema.get(key), dict):
            yield from (child for child in found.values() if isinstance(child, dict))
    for key in _SCHEMA_LISTS:
        if isinstance(found := schema.get(key), list):
            yield from (child for child in found if isinstance(child, dict))
    for key in _SCHEMAS:
        if isinstance(found := schema.get(key), dict):
            yield found


def _rebuilt(schema: JsonObject, inline: Mapping[str, JsonObject]) -> JsonObject:
    """Return a copy with some references replaced by what they refer to."""
    ref = schema.get("$ref")
    if isinstance(ref, str) and (name := ref.removeprefix(_DEFS)) in inline:
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        return _rebuilt({**inline[name], **beside}, inline)
    copy: JsonObject = {}
    for key, value in schema.items():
        copy[key] = _rebuilt_value(key, value, inline)
    # Names of definitions stand in it that may be gone; the variants' constants say the same.
    copy.pop("discriminator", None)
    return copy


def _rebuilt_value(key: str, value: JsonValue, inline: Mapping[str, JsonObject]) -> JsonValue:
    match value:
        case dict() if key in _SCHEMA_MAPS:
            return {
                name: _rebuilt(child, inline) if isinstance(child, dict) else child
                for name, child in value.items()
            }
        case list() if key in _SCHEMA_LISTS:
            return [
                _rebuilt(child, inline) if isinstance(child, dict) else child for child in value
            ]
        case dict() if key in _SCHEMAS:
            return _rebuilt(value, inline)
        case _:
            return value
