"""JSON Schema as a model should read it: exact, and with nothing in it that says nothing."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, cast

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode

from ..errors import InvalidRequestError
from ..text import JsonObject, clean_json
from ._walk import parts, rebuilt, rooted

_DEFS = "#/$defs/"


class _Generator(GenerateJsonSchema):
    # A default without a JSON form stays out of the schema, and still applies.
    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def sort(self, value: Any, parent_key: str | None = None) -> Any:
        return value

    def dataclass_schema(self, schema: Any) -> dict[str, Any]:
        described = super().dataclass_schema(schema)
        # What is around a dataclass may close it; pydantic says so since 2.13 only.
        if schema.get("config", {}).get("extra_fields_behavior") == "forbid":
            described.setdefault("additionalProperties", False)
        return described


def describe(adapter: "TypeAdapter[Any]", mode: JsonSchemaMode = "validation") -> JsonObject:
    """Return the JSON Schema of a type, compact.

    Titles that only repeat a class's name are left out, and what a single place refers to stands
    in that place. A type that contains itself is described in place at the top too.
    """
    schema = cast("JsonObject", adapter.json_schema(schema_generator=_Generator, mode=mode))
    schema.pop("title", None)
    return rooted(_inlined(schema))


def object_schema(
    schema: Mapping[str, Any] | None,
    what: str,
    error: type[InvalidRequestError] = InvalidRequestError,
) -> JsonObject:
    """Return a copy of a schema, completed to one of an object; ``None`` is that of an empty one.

    Args:
        schema: The schema; it is not changed.
        what: What it is, for messages: "the parameters of ..."
        error: The class of the error.

    Raises:
        InvalidRequestError: It describes something else, or is no JSON; it is an ``error``.
    """
    if not schema:
        return {"type": "object", "properties": {}}
    try:
        copy = rooted(cast("JsonObject", clean_json(schema)))
    except (TypeError, ValueError) as exc:
        raise error(f"{what}: no JSON Schema: {exc}") from exc
    if copy.setdefault("type", "object") != "object":
        raise error(f"{what} must be a schema of type `object`, got `{copy['type']}`")
    copy.setdefault("properties", {})
    return copy


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
    compact = _with_inlined(schema, inline)
    kept = {name: item for name, item in definitions.items() if name not in inline and uses[name]}
    ordered: JsonObject = {}
    for key in ("type", "properties", "required"):
        if key in compact:
            ordered[key] = compact[key]
    ordered.update(compact)
    if kept:
        ordered["$defs"] = {name: _with_inlined(item, inline) for name, item in kept.items()}
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
    for each in parts(schema):
        if isinstance(ref := each.get("$ref"), str) and ref.startswith(_DEFS):
            yield ref.removeprefix(_DEFS)


def _with_inlined(schema: JsonObject, inline: Mapping[str, JsonObject]) -> JsonObject:
    """Return a copy with some references replaced by what they refer to."""
    ref = schema.get("$ref")
    if isinstance(ref, str) and (name := ref.removeprefix(_DEFS)) in inline:
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        return _with_inlined({**inline[name], **beside}, inline)
    copy = rebuilt(schema, lambda _, child: _with_inlined(child, inline))
    # Names of definitions stand in it that may be gone; the variants' constants say the same.
    copy.pop("discriminator", None)
    return copy
