"""JSON Schemas in the forms that providers can read, or hold an answer to."""

import re
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from ..json_schema import Place, kind_of, parts, rebuilt, referred, rooted
from ..text import JsonObject
from ._json import as_list, as_object

_ALLOWED = frozenset(("properties", "$defs", "definitions", "items", "anyOf", "allOf"))
"""Where strict mode allows a schema within another."""
_DEFINITIONS = frozenset(("$defs", "definitions"))
_TELLING = frozenset(("type", "anyOf", "oneOf", "allOf", "$ref"))
"""What tells which values fit; strict mode wants one of them in every schema."""
_ANNOTATIONS: Final = frozenset(
    {
        *("discriminator", "examples", "deprecated", "readOnly", "writeOnly"),
        *("contentEncoding", "contentMediaType", "$comment"),
    }
)
_BEYOND_GRAMMARS: Final = re.compile(r"\(\?(?:[=!]|<[=!])|\\[bB1-9]")
"""What no grammar can hold an answer to: a look around, a word's bounds, a reference back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StrictRules:
    """What a provider's strict mode takes of JSON Schema. It wants every object closed."""

    optional: bool = False
    """Properties may be left out."""
    recursion: bool = True
    """A schema may contain itself."""
    refused: frozenset[str]
    """Keywords that it has no place for."""
    dropped: frozenset[str] = _ANNOTATIONS
    """Keywords that it has no place for, and that say nothing of which values fit."""
    formats: frozenset[str]
    """The formats of texts that it knows."""
    formats_told: bool = False
    """Another format is told in the description; otherwise it is in the way."""
    object_root: bool = False
    """At the top it takes nothing but an object."""


_COMPOSED = frozenset(
    {
        *("not", "if", "then", "else", "dependentRequired", "dependentSchemas", "dependencies"),
        *("patternProperties", "propertyNames", "unevaluatedProperties", "unevaluatedItems"),
        *("prefixItems", "contains", "uniqueItems", "minProperties", "maxProperties"),
    }
)

_FORMATS = frozenset(
    ("date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid")
)

OPENAI_STRICT: Final = StrictRules(
    refused=_COMPOSED | {"allOf"},
    dropped=_ANNOTATIONS | {"default"},
    formats=_FORMATS,
    object_root=True,
)
"""https://developers.openai.com/api/docs/guides/structured-outputs, "Supported schemas"."""

ANTHROPIC_STRICT: Final = StrictRules(
    optional=True,
    recursion=False,
    refused=_COMPOSED - {"uniqueItems", "maxProperties", "minProperties"},
    formats=_FORMATS | {"uri"},
    formats_told=True,
)
"""https://platform.claude.com/docs/en/build-with-claude/structured-outputs, "JSON Schema limitations".

The limits of numbers, texts and lists that it refuses are told in descriptions instead.
"""


class ClosedSchema(NamedTuple):
    """A schema for strict mode, and what is in the way of it."""

    schema: JsonObject
    obstacles: list[str]
    """One sentence each, with the path; empty when strict mode works."""
    optional: list[str]
    """Properties that may be left out, which strict mode does not know: obstacles too."""

    @property
    def all_obstacles(self) -> list[str]:
        """Everything that is in the way."""
        listed = [f"{', '.join(f'`{path}`' for path in self.optional)} may be left out"]
        return [*self.obstacles, *(listed if self.optional else ())]


def close_schema(
    schema: JsonObject, rules: StrictRules, *, require_all: bool = False
) -> ClosedSchema:
    """Return a copy in which every object is closed, and what keeps it from strict mode.

    Closing what was left open says nothing new of what the application expects; making an optional
    property required does, so that is only done when asked for. A schema that contains itself keeps
    its references. ``oneOf`` is read as ``anyOf``, and a pattern that no grammar can hold an answer
    to is told in the description: what came back is checked in any case.

    Args:
        schema: The schema; it is not changed.
        rules: What the provider takes.
        require_all: Make every property required.
    """
    root = rooted(schema)
    closing = _Closing(root, rules, require_all=require_all)
    closed = closing.close(root, "$")
    if rules.object_root and (closed.get("type") != "object" or "anyOf" in closed):
        closing.obstacles.append("`$` is no object")
    return ClosedSchema(closed, closing.obstacles, closing.optional)


_MOST_REPLACED = 500


def without_references(schema: JsonObject) -> JsonObject:
    """Return a copy in which definitions stand where they are referred to.

    It is for servers that show a model what stands in place alone. What contains itself stays a
    reference where it does, and only then the definitions stay too. So do references beyond the
    first 500 that are followed: a short schema can be one without an end.

    Args:
        schema: The schema; it is not changed.
    """
    if not any("$ref" in part for part in parts(schema)):
        return schema
    made = _resolved(schema, schema, (), [_MOST_REPLACED])
    bare = {name: value for name, value in made.items() if name not in _DEFINITIONS}
    return made if any("$ref" in part for part in parts(bare)) else bare


def _resolved(
    root: JsonObject, schema: JsonObject, above: tuple[str, ...], left: list[int]
) -> JsonObject:
    def inner(place: Place, part: JsonObject) -> JsonObject:
        return part if place[0] in _DEFINITIONS else _resolved(root, part, above, left)

    ref = schema.get("$ref")
    if isinstance(ref, str) and ref not in above and left[0] > 0:
        left[0] -= 1
        target = as_object(referred(root, ref))
        if target is not None:
            beside = {name: value for name, value in schema.items() if name != "$ref"}
            return _resolved(root, {**target, **beside}, (*above, ref), left)
    return rebuilt(schema, inner)


def with_told(schema: JsonObject, told: JsonObject) -> JsonObject:
    """Return a schema whose description tells what it has no keywords for."""
    if not told:
        return schema
    words = ", ".join(f"{name}: {value}" for name, value in told.items())
    known = schema.get("description")
    return {**schema, "description": f"{known} ({words})" if known else words}


class _Closing:
    """A schema on its way to strict mode."""

    def __init__(self, root: JsonObject, rules: StrictRules, *, require_all: bool) -> None:
        self._root = root
        self._rules = rules
        self._require_all = require_all
        self.obstacles: list[str] = []
        self.optional: list[str] = []

    def close(self, schema: JsonObject, path: str) -> JsonObject:
        """Return a closed copy of a part, and note what is in the way."""

        def inner(place: Place, part: JsonObject) -> JsonObject:
            return self.close(part, path + step(place)) if place[0] in _ALLOWED else part

        if "oneOf" in schema and "anyOf" not in schema:
            schema = {"anyOf" if name == "oneOf" else name: schema[name] for name in schema}
        made = rebuilt(schema, inner)
        for name in self._rules.dropped & made.keys():
            del made[name]
        self._note_keywords(made, path)
        made = self._typed(self._told(made, path), path)
        kinds = as_list(made.get("type")) or [made.get("type")]
        if "object" in kinds or "properties" in made:
            self._close_object(made, path)
        return self._note_reference(made, path)

    def _note_keywords(self, made: JsonObject, path: str) -> None:
        rules = self._rules
        refused = [
            *(name for name in made if name in rules.refused),
            *(["oneOf"] * ("oneOf" in made)),
        ]
        self.obstacles.extend(f"`{path}` has `{name}`" for name in refused)

    def _told(self, made: JsonObject, path: str) -> JsonObject:
        """Return the part with its description telling the rules that nothing can enforce."""
        told: JsonObject = {}
        kind, pattern = made.get("format"), made.get("pattern")
        if isinstance(kind, str) and kind not in self._rules.formats:
            if self._rules.formats_told:
                told["format"] = made.pop("format")
            else:
                self.obstacles.append(f"`{path}` has the format `{kind}`")
        if isinstance(pattern, str) and _BEYOND_GRAMMARS.search(pattern):
            told["pattern"] = made.pop("pattern")
        return with_told(made, told)

    def _typed(self, made: JsonObject, path: str) -> JsonObject:
        """Return the part with the type that its values have, where it lists them without one."""
        if _TELLING & made.keys():
            return made
        if "properties" in made:
            return {**made, "type": "object"}
        values = [made["const"]] if "const" in made else as_list(made.get("enum"))
        if not values:
            self.obstacles.append(f"`{path}` takes values of any type")
            return made
        sorts: dict[str, list[Any]] = {}
        for value in values:
            sorts.setdefault(kind_of(value), []).append(value)
        if len(sorts) == 1:
            return {**made, "type": next(iter(sorts))}
        beside = {name: value for name, value in made.items() if name not in ("enum", "const")}
        return {**beside, "anyOf": [{"type": kind, "enum": of} for kind, of in sorts.items()]}

    def _note_reference(self, made: JsonObject, path: str) -> JsonObject:
        """Return the part with nothing beside a reference, which strict mode gives no company."""
        ref = made.get("$ref")
        if not isinstance(ref, str):
            return made
        if not self._rules.recursion and _contains_itself(self._root, ref):
            self.obstacles.append(f"`{path}` contains itself")
        if len(made) == 1 or self._rules.optional:
            return made
        beside = {name: value for name, value in made.items() if name != "$ref"}
        return {**beside, "anyOf": [{"$ref": ref}]} if "anyOf" not in beside else made

    def _close_object(self, made: JsonObject, path: str) -> None:
        names: list[Any] = list(as_object(made.get("properties")) or ())
        extra = made.get("additionalProperties", False)
        if extra is not False or (not names and "additionalProperties" not in made):
            self.obstacles.append(f"`{path}` takes properties of any name")
        else:
            made["additionalProperties"] = False
        if self._require_all:
            made["required"] = names
        elif not self._rules.optional:
            given = as_list(made.get("required")) or []
            self.optional.extend(f"{path}.{name}" for name in names if name not in given)


def _contains_itself(root: JsonObject, ref: str) -> bool:
    """Whether what a reference leads to refers to itself, over however many others."""
    seen: set[str] = set()
    waiting = [ref]
    while waiting:
        target = as_object(referred(root, waiting.pop())) or {}
        for part in parts(target):
            other = part.get("$ref")
            if other == ref:
                return True
            if isinstance(other, str) and other not in seen:
                seen.add(other)
                waiting.append(other)
    return False


def step(place: Place) -> str:
    """Return how a path goes on to a schema within another: ``.name``, or ``[]`` into a list."""
    match place:
        case (key, int(position)):
            return f".{key}[{position}]"
        case (key, name) if key in _DEFINITIONS:
            return f".{key}.{name}"
        case (_, name):
            return f".{name}"
        case _:
            return "[]"
