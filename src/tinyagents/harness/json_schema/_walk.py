"""The schemas inside of a schema."""

from collections.abc import Callable, Iterator
from typing import TypeAlias

from pydantic import JsonValue

from ..text import JsonObject

_MAPS = frozenset(
    ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas", "dependencies")
)
_LISTS = frozenset(("anyOf", "oneOf", "allOf", "prefixItems", "items"))
_SINGLE = frozenset(
    (
        *("items", "additionalItems", "unevaluatedItems", "contains", "additionalProperties"),
        *("unevaluatedProperties", "propertyNames", "not", "if", "then", "else", "contentSchema"),
    )
)
_WORDS = frozenset(
    (
        "title",
        "description",
        "default",
        "examples",
        "$comment",
        "$schema",
        "$id",
        "$defs",
        "definitions",
    )
)
"""What says nothing of which values fit."""
_DEEPEST = 32
"""References within references that are followed before a schema is taken to be circular."""

Place: TypeAlias = tuple[str] | tuple[str, str | int]
"""Where a schema stands in another: the keyword, and the name or the position under it."""


def parts(schema: JsonObject) -> Iterator[JsonObject]:
    """Yield a schema and all that stand in it, without following references."""
    yield schema
    for child in _children(schema):
        yield from parts(child)


def rebuilt(schema: JsonObject, change: Callable[[Place, JsonObject], JsonObject]) -> JsonObject:
    """Return a copy with each schema that stands directly in it replaced.

    Args:
        schema: The schema; it is not changed.
        change: Gets the place and the schema there, and returns what shall stand there.
    """

    def changed(place: Place, child: JsonValue) -> JsonValue:
        return change(place, child) if isinstance(child, dict) else child

    copy: JsonObject = {}
    for key, value in schema.items():
        match value:
            case dict() if key in _MAPS:
                copy[key] = {name: changed((key, name), child) for name, child in value.items()}
            case list() if key in _LISTS:
                copy[key] = [changed((key, at), child) for at, child in enumerate(value)]
            case dict() if key in _SINGLE:
                copy[key] = changed((key,), value)
            case _:
                copy[key] = value
    return copy


def variants(root: JsonObject, schema: JsonValue) -> Iterator[JsonObject]:
    """Yield the schemas that a value may fit, with references and unions resolved.

    A reference that leads nowhere, or in a circle, has none; one that is met again has no more.

    Args:
        root: The whole schema, which references start from.
        schema: A part of it.
    """
    yield from _variants(root, schema, 0, set())


def _variants(
    root: JsonObject, schema: JsonValue, depth: int, seen: set[str]
) -> Iterator[JsonObject]:
    if not isinstance(schema, dict) or depth > _DEEPEST:
        return
    if isinstance(ref := schema.get("$ref"), str):
        # Once each: two references to the next one, so many times, would have no end.
        if ref not in seen:
            seen.add(ref)
            yield from _variants(root, referred(root, ref), depth + 1, seen)
        return
    for union in (schema.get("anyOf"), schema.get("oneOf")):
        if isinstance(union, list):
            for member in union:
                yield from _variants(root, member, depth + 1, seen)
            return
    yield schema


def referred(root: JsonObject, ref: str) -> JsonValue:
    """Return what a reference within a schema leads to; ``None`` when it leads nowhere."""
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


def rooted(schema: JsonObject) -> JsonObject:
    """Return a schema that does not begin with a reference: at the top providers want an object.

    The words beside the reference count above those of what it leads to. A reference stays that
    leads nowhere or in a circle, and one with rules beside it that are not those that it leads to.
    """
    made = schema
    for _ in range(_DEEPEST):
        ref = made.get("$ref")
        target = referred(schema, ref) if isinstance(ref, str) else None
        if not isinstance(target, dict):
            return made
        beside = {name: value for name, value in made.items() if name != "$ref"}
        shared = (target.keys() & beside.keys()) - _WORDS
        if any(target[name] != beside[name] for name in shared):
            return schema
        made = {**target, **beside}
    return schema


def _children(schema: JsonObject) -> Iterator[JsonObject]:
    for key, value in schema.items():
        inside: list[JsonValue] = []
        match value:
            case dict() if key in _MAPS:
                inside = list(value.values())
            case list() if key in _LISTS:
                inside = value
            case dict() if key in _SINGLE:
                inside = [value]
            case _:
                continue
        yield from (child for child in inside if isinstance(child, dict))
