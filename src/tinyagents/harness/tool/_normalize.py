"""Arguments that do not fit, read as the model most likely meant them."""

from collections.abc import Iterator
from typing import cast

from pydantic import JsonValue

from ..errors import ToolArgumentsError
from ..json_schema import kind_of, variants
from ..text import JsonObject, parse_json, unfenced
from ._tool import Tool

_ENVELOPES = ("properties", "arguments", "args", "parameters", "params", "param", "input")
_EVERY_KIND = frozenset(("null", "boolean", "integer", "number", "string", "array", "object"))


def normalize_arguments(raw: JsonValue, tool: Tool) -> JsonObject | None:
    """Return what a model most likely meant by arguments that do not fit; ``None`` if nobody knows.

    - A text is decoded as JSON, in a code fence or not, and kept decoded even if it does not fit.
    - A field that is a text and cannot be one is decoded as JSON once: lists, objects, numbers.
      An integer field with a number such as ``5.0`` gets the integer.
    - An object that fits is taken out of a single envelope such as ``{"arguments": {...}}``, unless
      a parameter of the tool stands there, be it of that name or beside it.
    - Anything that is no object becomes ``{}`` for a tool without required parameters.

    What the tool's schema already accepts is never changed.
    """
    decoded = _decoded(raw) if isinstance(raw, str) else raw
    if not isinstance(decoded, dict):
        return None if tool.schema.parameters.get("required") else {}
    if _fits(decoded, tool):
        return decoded
    for candidate in _candidates(decoded, tool):
        if _fits(candidate, tool):
            return candidate
    return decoded if isinstance(raw, str) else None


def _fits(arguments: JsonObject, tool: Tool) -> bool:
    try:
        tool.validate(arguments)
    except ToolArgumentsError:
        return False
    return True


def _candidates(raw: JsonObject, tool: Tool) -> Iterator[JsonObject]:
    schema = tool.schema.parameters
    reader = _Reader(schema)
    yield reader.read_object(raw)
    if cast("JsonObject", schema["properties"]).keys() & raw.keys():
        return
    for name in _ENVELOPES:
        inner = raw.get(name)
        if isinstance(inner, str):
            inner = _decoded(inner)
        if isinstance(inner, dict):
            yield inner
            yield reader.read_object(inner)


def _decoded(text: str) -> JsonValue:
    """Return the JSON value that a text is, in a code fence or not; the text if it is none."""
    try:
        return parse_json(unfenced(text))
    except ValueError:
        return text


class _Reader:
    """Reads values by a schema. Only what the schema cannot mean is changed."""

    def __init__(self, root: JsonObject) -> None:
        self._root = root

    def read_object(self, value: JsonObject) -> JsonObject:
        """Return the arguments, with each part decoded that is a text, or ``5.0``, by mistake."""
        return cast("JsonObject", self.read(value, self._root))

    def read(self, value: JsonValue, schema: JsonValue) -> JsonValue:
        """Return one value of these arguments, read by its own schema."""
        match value:
            case str() | float():
                return _scalar(value, self._kinds(schema))
            case list():
                items = self._variant("array", schema).get("items", {})
                return [self.read(item, items) for item in value]
            case dict():
                properties = self._variant("object", schema).get("properties", {})
                fields = properties if isinstance(properties, dict) else {}
                return {name: self.read(item, fields.get(name, {})) for name, item in value.items()}
            case _:
                return value

    def _kinds(self, schema: JsonValue) -> frozenset[str]:
        """Return the kinds of JSON value that a schema accepts, as far as it can be seen."""
        kinds: set[str] = set()
        for variant in variants(self._root, schema):
            values = [variant["const"]] if "const" in variant else variant.get("enum")
            match variant.get("type"), values:
                case str(kind), _:
                    kinds.add(kind)
                case list(several), _:
                    kinds.update(str(kind) for kind in several)
                case _, list(values):
                    kinds.update(map(kind_of, values))
                case _:
                    return _EVERY_KIND
        return frozenset(kinds)

    def _variant(self, kind: str, schema: JsonValue) -> JsonObject:
        """Return the one variant for a kind of value; where there are several nobody can tell."""
        found = [each for each in variants(self._root, schema) if each.get("type") == kind]
        return found[0] if len(found) == 1 else {}


def _scalar(value: str | float, kinds: frozenset[str]) -> JsonValue:
    if isinstance(value, str) and "string" in kinds:
        return value
    read = _decoded(value) if isinstance(value, str) else value
    if isinstance(read, float) and "number" not in kinds and read.is_integer():
        read = int(read)
    kind = kind_of(read)
    return read if kind in kinds or (kind == "integer" and "number" in kinds) else value
