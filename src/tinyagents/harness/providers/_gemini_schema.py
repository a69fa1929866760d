"""JSON Schemas in the subset that the Gemini API takes.

The subset is that of ``responseJsonSchema`` (https://ai.google.dev/api/generate-content). What it has no
keyword for is told to the model in the description instead, so that nothing is lost without a sign.
"""

from collections.abc import Mapping
from typing import Any, Final

from pydantic import JsonValue

from ..text import JsonObject, dump_json
from ._json import as_list, as_object

_KEPT: Final = frozenset(
    {
        *("$id", "$anchor", "$ref", "type", "format", "title", "description", "enum"),
        *("minItems", "maxItems", "minimum", "maximum", "required", "propertyOrdering"),
    }
)
_MAPS: Final = frozenset({"properties", "$defs"})
_LISTS: Final = frozenset({"anyOf", "oneOf", "prefixItems"})
_SINGLE: Final = frozenset({"items", "additionalProperties"})
_HINTS: Final = frozenset(
    {
        *("default", "examples", "deprecated", "readOnly", "writeOnly"),
        *("contentEncoding", "contentMediaType"),
    }
)
"""Say nothing of which values fit: to tell them loses nothing."""
_SILENT: Final = frozenset({"$schema", "$comment", "discriminator"})
_UNIONS: Final = ("anyOf", "oneOf", "allOf")
_TEXT_FORMATS: Final = frozenset({"date-time", "date", "time"})
_BOUNDS: Final = {"exclusiveMinimum": ("minimum", 1), "exclusiveMaximum": ("maximum", -1)}


def prepare_schema(schema: JsonObject) -> tuple[JsonObject, list[str]]:
    """Return a copy that the API takes, and what it does not hold the answer to.

    Args:
        schema: The schema; it is not changed.

    Returns:
        The copy, and one sentence for each rule that only its descriptions tell, with its path.
    """
    relaxed: list[str] = []
    return _prepared(schema, "$", relaxed), relaxed


def _prepared(schema: JsonObject, path: str, relaxed: list[str]) -> JsonObject:
    made: JsonObject = {}
    told = _clashing_unions(schema)
    for key, value in schema.items():
        inner = f"{path}.{key}"
        if key in told:
            continue
        if key == "items" and isinstance(value, list):  # how prefixItems was once written
            key = "prefixItems"
        if key in _MAPS or key == "definitions":
            name = "$defs" if key == "definitions" else key
            known = as_object(made.get(name)) or {}
            made[name] = {**known, **_each(as_object(value) or {}, path, relaxed)}
        elif key in _LISTS:
            parts = enumerate(as_list(value) or ())
            if key == "oneOf":
                relaxed.append(f"`{path}`: `oneOf` is read as `anyOf`")
            made[key] = [_inner(part, f"{inner}[{at}]", relaxed) for at, part in parts]
        elif key in _SINGLE:
            made[key] = _inner(value, inner, relaxed, keep_boolean=key != "items")
        elif key == "$ref" and isinstance(value, str):
            made[key] = value.replace("#/definitions/", "#/$defs/")
        elif key in _KEPT:
            made.setdefault(key, value)
        elif key in _BOUNDS:
            _take_bound(made, told, schema, key)
        elif key == "const":
            made["enum"] = [value]
        elif key == "allOf" and len(as_list(value) or ()) == 1:
            made["anyOf"] = [_inner((as_list(value) or [{}])[0], f"{inner}[0]", relaxed)]
        elif key not in _SILENT:
            told[key] = value
    _take_format(made, told)
    made = _with_enum(made, told)
    relaxed.extend(
        f"`{path}`: `{key}` is only described"
        for key in told
        if key not in _HINTS and not key.startswith("x-")
    )
    return _with_reference(_described(made, told))


def _clashing_unions(schema: JsonObject) -> dict[str, Any]:
    """Return the unions beyond the one for which there is room: that of a reference, or the first."""
    unions = [name for name in _UNIONS if name in schema]
    room = 0 if "$ref" in schema else 1
    return {name: schema[name] for name in unions[room:]}


def _each(schemas: Mapping[str, Any], path: str, relaxed: list[str]) -> JsonObject:
    return {name: _inner(part, f"{path}.{name}", relaxed) for name, part in schemas.items()}


def _inner(value: Any, path: str, relaxed: list[str], *, keep_boolean: bool = False) -> Any:
    """Return a schema within another, which JSON Schema allows to be a mere yes or no."""
    document = as_object(value)
    if document is not None:
        return _prepared(document, path, relaxed)
    if keep_boolean:
        return value
    if value is False:
        relaxed.append(f"`{path}`: that nothing fits is only described")
        return {"description": "No value fits: leave it out."}
    return {}


def _take_bound(made: JsonObject, told: dict[str, Any], schema: JsonObject, key: str) -> None:
    """Take an exclusive bound: exactly for whole numbers, else as told beside the inclusive one."""
    name, step = _BOUNDS[key]
    value = schema[key]
    if isinstance(value, bool) or not isinstance(value, int | float):
        told[key] = value
        return
    exact = schema.get("type") == "integer" and isinstance(value, int)
    bound = value + step if exact else value
    if not exact:
        told[key] = value
    if name in schema:
        # Both were given: the narrower one is meant.
        other = schema[name]
        if isinstance(other, int | float):
            bound = max(bound, other) if step > 0 else min(bound, other)
    made[name] = bound


def _take_format(made: JsonObject, told: dict[str, Any]) -> None:
    kinds = as_list(made.get("type")) or [made.get("type")]
    of_text = "string" in kinds or kinds == [None]
    if "format" in made and of_text and made["format"] not in _TEXT_FORMATS:
        told["format"] = made.pop("format")


def _with_enum(made: JsonObject, told: dict[str, Any]) -> JsonObject:
    """Return the schema with an enumeration of texts and numbers, the only ones there are."""
    values = as_list(made.get("enum"))
    if values is None:
        return made
    plain: list[JsonValue] = [
        value
        for value in values
        if isinstance(value, str | int | float) and not isinstance(value, bool)
    ]
    if len(plain) == len(values):
        return made
    rest = {key: value for key, value in made.items() if key != "enum"}
    if not plain and values == [None]:
        return {**rest, "type": "null"}
    if len(plain) < len(values) - values.count(None):
        told["enum"] = values
        yes_or_no = all(isinstance(value, bool) for value in values)
        return {"type": "boolean", **rest} if yes_or_no else rest
    kept = _without_null({**rest, "enum": plain})
    outer: JsonObject = {
        key: kept.pop(key) for key in ("title", "description", "$defs") if key in kept
    }
    return {**outer, "anyOf": [kept, {"type": "null"}]}


def _without_null(schema: JsonObject) -> JsonObject:
    kinds = as_list(schema.get("type"))
    if kinds is None:
        return schema
    left = [kind for kind in kinds if kind != "null"]
    return {**schema, "type": left[0] if len(left) == 1 else left}


def _described(made: JsonObject, told: Mapping[str, Any]) -> JsonObject:
    if not told:
        return made
    words = "; ".join(f"{key}: {dump_json(value)}" for key, value in told.items())
    given = made.get("description")
    described = f"{given} ({words})" if isinstance(given, str) and given else words
    return {**made, "description": described}


def _with_reference(made: JsonObject) -> JsonObject:
    """Return the schema with nothing beside a reference, which the API allows no company."""
    if "$ref" not in made or all(key.startswith("$") for key in made):
        return made
    kept = {key: value for key, value in made.items() if key != "$ref"}
    return {**kept, "anyOf": [{"$ref": made["$ref"]}]}
