"""Arguments that are written as bare text, read as their schema says."""

import math

from pydantic import JsonValue

from ..json_schema import kind_of, variants
from ..model import ToolSchema
from ..text import dump_json, parse_json

_TRUE = frozenset(("true", "yes", "1"))
_FALSE = frozenset(("false", "no", "0"))


def parameter_names(tool: ToolSchema) -> list[str]:
    """Return the names of a tool's parameters in the order of their declaration."""
    properties = tool.parameters.get("properties")
    return list(properties) if isinstance(properties, dict) else []


def types_of(tool: ToolSchema, parameter: str) -> frozenset[str]:
    """Return the JSON types that a parameter takes; none where its schema does not say."""
    properties = tool.parameters.get("properties")
    schema = properties.get(parameter) if isinstance(properties, dict) else None
    types: set[str] = set()
    for variant in variants(tool.parameters, schema):
        match variant.get("type"):
            case str(one):
                types.add(one)
            case list(several):
                types.update(each for each in several if isinstance(each, str))
            case _:
                types.update(map(kind_of, _allowed(variant)))
    return frozenset(types)


def value_of(text: str, types: frozenset[str]) -> JsonValue:
    """Return what a text stands for in a parameter of these types; the text where it is none.

    A parameter that takes strings gets the text as it is. ``yes`` and ``1`` are true for one that
    takes booleans and no numbers, ``no`` and ``0`` false. Without any type the text is JSON, if it is.
    """
    if "string" in types:
        return text
    word = text.strip()
    if "boolean" in types and not types & {"integer", "number"}:
        if word.lower() in _TRUE:
            return True
        if word.lower() in _FALSE:
            return False
    try:
        value = parse_json(word)
    except ValueError:
        return _number_of(word, text) if types & {"integer", "number"} else text
    if not types or kind_of(value) in types:
        return value
    return _as_number(value, types, text)


def text_of(value: JsonValue) -> str:
    """Return a value as bare text: a string as it is, anything else as JSON."""
    return value if isinstance(value, str) else dump_json(value)


def _allowed(schema: dict[str, JsonValue]) -> list[JsonValue]:
    if "const" in schema:
        return [schema["const"]]
    values = schema.get("enum")
    return values if isinstance(values, list) else []


def _as_number(value: JsonValue, types: frozenset[str], text: str) -> JsonValue:
    if isinstance(value, int) and not isinstance(value, bool) and "number" in types:
        return value
    if isinstance(value, float) and "integer" in types and value.is_integer():
        return int(value)
    return text


def _number_of(word: str, text: str) -> JsonValue:
    """Read a number as people write one: ``+5``, ``.5``, ``05``."""
    if not word.isascii() or "_" in word or len(word) > 64:
        return text
    try:
        return int(word)
    except ValueError:
        pass
    try:
        number = float(word)
    except ValueError:
        return text
    return number if math.isfinite(number) else text
