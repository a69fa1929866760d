"""JSON Schemas in the forms that providers can read, or hold an answer to."""

from typing import Any, NamedTuple

from ..json_schema import Place, parts, rebuilt, referred
from ..text import JsonObject
from ._json import as_list, as_object

_ALLOWED = frozenset(
    ("properties", "$defs", "definitions", "items", "prefixItems", "anyOf", "allOf", "oneOf")
)
"""Where strict mode allows a schema within another."""
_DEFINITIONS = frozenset(("$defs", "definitions"))


class _Rules(NamedTuple):
    require_all: bool
    optional: bool


def close_schema(
    schema: JsonObject, *, require_all: bool = False, optional: bool = False
) -> tuple[JsonObject, list[str]]:
    """Return a copy in which every object is closed, and what keeps it from strict mode.

    Strict mode wants each object closed and each of its properties required. Closing what was left
    open says nothing new of what the application expects; making an optional property required
    does, so that is only done when asked for.

    Args:
        schema: The schema; it is not changed.
        require_all: Make every property required.
        optional: Properties may be left out: that is no obstacle for this provider.

    Returns:
        The schema, and one sentence for each obstacle, with its path: empty when strict mode works.
    """
    obstacles: list[str] = []
    closed = _closed(schema, "$", _Rules(require_all, optional), obstacles)
    return closed, obstacles


def without_references(schema: JsonObject) -> JsonObject:
    """Return a copy in which definitions stand where they are referred to.

    It is for servers that show a model what stands in place alone. What contains itself stays a
    reference where it does, and only then the definitions stay too.

    Args:
        schema: The schema; it is not changed.
    """
    if not any("$ref" in part for part in parts(schema)):
        return schema
    made = _resolved(schema, schema, ())
    bare = {name: value for name, value in made.items() if name not in _DEFINITIONS}
    return made if any("$ref" in part for part in parts(bare)) else bare


def _resolved(root: JsonObject, schema: JsonObject, above: tuple[str, ...]) -> JsonObject:
    def inner(place: Place, part: JsonObject) -> JsonObject:
        return part if place[0] in _DEFINITIONS else _resolved(root, part, above)

    ref = schema.get("$ref")
    if isinstance(ref, str) and ref not in above:
        target = as_object(referred(root, ref))
        if target is not None:
            beside = {name: value for name, value in schema.items() if name != "$ref"}
            return _resolved(root, {**target, **beside}, (*above, ref))
    return rebuilt(schema, inner)


def _closed(schema: JsonObject, path: str, rules: _Rules, obstacles: list[str]) -> JsonObject:
    def inner(place: Place, part: JsonObject) -> JsonObject:
        if place[0] not in _ALLOWED:
            return part
        return _closed(part, path + _step(place), rules, obstacles)

    made = rebuilt(schema, inner)
    kinds = as_list(schema.get("type")) or [schema.get("type")]
    if "object" in kinds or "properties" in schema:
        _close_object(made, path, rules, obstacles)
    return made


def _step(place: Place) -> str:
    match place:
        case (key, int(position)):
            return f".{key}[{position}]"
        case (_, name):
            return f".{name}"
        case _:
            return "[]"


def _close_object(made: JsonObject, path: str, rules: _Rules, obstacles: list[str]) -> None:
    names: list[Any] = list(as_object(made.get("properties")) or ())
    extra = made.get("additionalProperties", False)
    if extra is not False or (not names and "additionalProperties" not in made):
        obstacles.append(f"`{path}` takes properties of any name")
    else:
        made["additionalProperties"] = False
    if rules.require_all:
        made["required"] = names
    if rules.require_all or rules.optional:
        return
    given = as_list(made.get("required")) or []
    optional = [name for name in names if name not in given]
    if optional:
        listed = ", ".join(f"`{path}.{name}`" for name in optional)
        obstacles.append(f"{listed} may be left out")
