"""One type that an answer may have: what the model is shown of it, and the check of what came back."""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import UnionType
from typing import Annotated, Any, TypeAlias, TypeGuard, Union, cast, get_args, get_origin

from pydantic import JsonValue, TypeAdapter, ValidationError

from ..errors import InvalidRequestError, ToolArgumentsError
from ..json_schema import SchemaCheck, describe, explain_errors, rooted, unexpected_problem
from ..text import JsonObject, clean_json, encode_json
from ..tool import Tool, as_tool

WRAPPER = "value"
"""The property of an object that holds an answer that is none."""
_MEMBER = "property"
_DEFINITIONS = ("$defs", "definitions")


class MisfitError(Exception):
    """A value does not fit; ``problems`` says where, a sentence each."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)


Check: TypeAlias = "Callable[[JsonValue, str], tuple[Any, OutputMember]]"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class OutputMember:
    """One type that an answer may have, compiled once."""

    name: str
    """What errors call it, and the model too, as far as its provider takes the name."""
    description: str | None
    schema: JsonObject
    """What the model is shown; always an object at the top."""
    inner: JsonObject
    """The schema of the answer itself, which may be no object."""
    wrapped: bool
    """Whether the answer stands in the object's only property."""
    kind: Any = None
    """The type itself, where it is one."""
    adapter: "TypeAdapter[Any] | None" = None
    """What validates it, where that is pydantic."""
    function: Tool | None = None
    """What is called with it."""
    among: "tuple[OutputMember, ...]" = ()
    """What it may be one of."""
    _schema_check: SchemaCheck | None = None

    def check(self, value: JsonValue, root: str = "answer") -> "tuple[Any, OutputMember]":
        """Return the typed value of a decoded answer, and of which type it is.

        Raises:
            MisfitError: It does not fit.
        """
        value, root = self.unwrapped(value, root)
        if self.adapter is not None:
            return _validated(self.adapter, value, root), self
        if self.function is not None:
            return _arguments(self.function, value, root), self
        if self._schema_check is not None:
            if problems := self._schema_check.problems(value, root, member=_MEMBER):
                raise MisfitError(problems)
            return value, self
        return self._first_that_fits(value, root)

    def unwrapped(self, value: Any, root: str = "answer") -> tuple[Any, str]:
        """Return the answer itself, and its path."""
        # A model that answers without the wrapping is understood all the same.
        if self.wrapped and _is_wrapping(value):
            return value[WRAPPER], f"{root}.{WRAPPER}"
        return value, root

    def _first_that_fits(self, value: JsonValue, root: str) -> "tuple[Any, OutputMember]":
        problems: list[str] = []
        for member in self.among:
            try:
                return member.check(value, root)
            except MisfitError as misfit:
                problems += (f"as `{member.name}`: {problem}" for problem in misfit.problems)
        raise MisfitError(problems)


def union_members(output: Any) -> tuple[OutputMember, ...]:
    """Return the types of a union whose members are all objects; nothing for what is none.

    Raises:
        InvalidRequestError: One cannot be described.
    """
    if get_origin(output) not in (Union, UnionType):
        return ()
    members = tuple(member_of(part) for part in get_args(output))
    return () if any(member.wrapped for member in members) else members


def member_of(
    output: Any, *, name: str | None = None, description: str | None = None
) -> OutputMember:
    """Compile one type, JSON schema or function.

    Raises:
        InvalidRequestError: It cannot be described as JSON, or the schema is none, or a reference
            in it leads out of it or to nothing: nothing is downloaded.
    """
    if is_function(output):
        return _function_member(output, name, description)
    adapter: TypeAdapter[Any] | None = None
    schema_check: SchemaCheck | None = None
    if isinstance(output, Mapping):
        inner = _schema_of(cast("Mapping[str, Any]", output))
        schema_check = SchemaCheck(inner, "the output schema")
        title = inner.get("title")
        name = name or (title.strip() if isinstance(title, str) else "") or "output"
    else:
        adapter, inner = _described(output)
        name = name or _type_name(output)
    said = inner.get("description")
    return replace(
        _shown(name, description or (said if isinstance(said, str) else None), inner),
        kind=output if adapter is not None else None,
        adapter=adapter,
        _schema_check=schema_check,
    )


def one_of(
    members: tuple[OutputMember, ...], *, name: str | None = None, description: str | None = None
) -> OutputMember:
    """Return what stands for several types where the model gives its answer as text.

    Types alone become one union, of which pydantic chooses the member that fits best; of others the
    first counts that fits.
    """
    name = name or " | ".join(member.name for member in members)
    if all(member.adapter is not None for member in members):
        kinds = tuple(member.kind for member in members)
        adapter, inner = _described(Union[kinds])  # noqa: UP007 - of types known at run time only
        return replace(_shown(name, description, inner), adapter=adapter)
    shared: JsonObject = {}
    choices: list[JsonValue] = []
    for member in members:
        definitions, choice = _apart(member.inner)
        for key, parts in definitions.items():
            known = cast("JsonObject", shared.setdefault(key, {}))
            for each, part in cast("JsonObject", parts).items():
                if known.setdefault(each, part) != part:
                    raise InvalidRequestError(
                        f"two of the output types define `{each}`, and not the same: rename one"
                    )
        choices.append(choice)
    return replace(_shown(name, description, {"anyOf": choices, **shared}), among=members)


def is_function(output: Any) -> TypeGuard[Callable[..., Any]]:
    """Whether an output is a function to call, and no type."""
    return (
        inspect.isroutine(output)
        or isinstance(output, partial | Tool)
        or (
            callable(output)
            and not isinstance(output, type)
            and get_origin(output) is None
            and type(output).__module__ not in ("typing", "types", "typing_extensions")
        )
    )


def _function_member(function: Any, name: str | None, description: str | None) -> OutputMember:
    tool = as_tool(function)
    if tool.is_gated:
        raise InvalidRequestError(
            f"the tool `{tool.name}` cannot be an output: somebody outside the run has a say in its "
            "calls, and nobody would be asked"
        )
    schema = replace(
        tool.schema,
        name=name or tool.name,
        description=description or tool.description,
    )
    tool = replace(tool, schema=schema)
    return OutputMember(
        name=tool.name,
        description=tool.description or None,
        schema=schema.parameters,
        inner=schema.parameters,
        wrapped=False,
        function=tool,
    )


def _shown(name: str, description: str | None, inner: JsonObject) -> OutputMember:
    inner = rooted(inner)
    wrapped = inner.get("type") != "object"  # providers take object schemas only, at the top
    schema = _wrapping(inner) if wrapped else inner
    return OutputMember(
        name=name, description=description, schema=schema, inner=inner, wrapped=wrapped
    )


def _described(output: Any) -> tuple["TypeAdapter[Any]", JsonObject]:
    if isinstance(output, str):
        # pydantic takes one for the name of a type, and finds others by it than was meant.
        raise InvalidRequestError(
            f"{output!r} is a text and no output type: pass the type itself, or a schema as a mapping"
        )
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(output)
        return adapter, describe(adapter)
    except Exception as exc:
        # The first sentence: what follows is advice for those who write types for pydantic.
        why = str(exc).partition("\n")[0].partition(". ")[0].rstrip(".")
        raise InvalidRequestError(
            f"{output!r} cannot be an output type: {why}. Pass a class, another type that pydantic "
            "describes, a function, or a JSON schema as a mapping"
        ) from exc


def _schema_of(output: Mapping[str, Any]) -> JsonObject:
    try:
        return cast("JsonObject", clean_json(output))
    except (TypeError, ValueError) as exc:
        raise InvalidRequestError(f"the output schema: no JSON Schema: {exc}") from exc


def _validated(adapter: "TypeAdapter[Any]", value: JsonValue, root: str) -> Any:
    try:
        text = encode_json(value)
    except (TypeError, ValueError) as exc:
        raise MisfitError([f"{root}: {exc}"]) from None
    try:
        # From JSON text: strict types take dates and enums in their JSON form alone.
        return adapter.validate_json(text)
    except ValidationError as exc:
        raise MisfitError(explain_errors(exc, value, root, member=_MEMBER)) from exc
    except RecursionError as exc:
        raise MisfitError([unexpected_problem(exc, root)]) from exc


def _arguments(function: Tool, value: JsonValue, root: str) -> Any:
    try:
        return function.validate(value)
    except ToolArgumentsError as exc:
        raise MisfitError([_renamed(problem, root) for problem in exc.errors]) from exc


def _renamed(problem: str, root: str) -> str:
    return f"{root}{problem.removeprefix('arguments')}"


def _apart(schema: JsonObject) -> tuple[JsonObject, JsonObject]:
    """Return the definitions of a schema, and the rest of it."""
    definitions = {key: schema[key] for key in _DEFINITIONS if key in schema}
    return definitions, {key: value for key, value in schema.items() if key not in definitions}


def _wrapping(schema: JsonObject) -> JsonObject:
    """Return an object schema with the schema as its only property."""
    shared, inner = _apart(schema)
    return {
        "type": "object",
        "properties": {WRAPPER: inner},
        "required": [WRAPPER],
        "additionalProperties": False,
        **shared,
    }


def _type_name(output: Any) -> str:
    """Return ``City`` for a class, and ``list[City]`` for a list of it."""
    if get_origin(output) is Annotated:
        return _type_name(get_args(output)[0])
    if get_args(output) or not isinstance(output, type):
        return re.sub(r"(\w+\.)+", "", str(output))
    return output.__name__


def _is_wrapping(value: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict) and WRAPPER in value
