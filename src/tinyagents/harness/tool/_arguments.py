"""How the arguments of a call become the values that a function gets."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

import orjson
from pydantic import ConfigDict, PydanticUserError, TypeAdapter, ValidationError
from pydantic.errors import PydanticUndefinedAnnotation
from pydantic_core import ErrorDetails, SchemaError
from typing_extensions import TypedDict

from ..errors import ToolSchemaError
from ..text import JsonObject, copied_json, dump_json
from ._schema import dangling_reference, describe, object_schema

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

_MOST_ERRORS = 20
"""A model that got more than that wrong is not helped by a longer list."""


class ArgumentsInvalid(Exception):
    """The arguments do not fit."""

    def __init__(self, errors: Sequence[str]) -> None:
        super().__init__("; ".join(errors))
        self.errors = tuple(errors)


class Arguments(Protocol):
    """The parameters of one tool: their schema, and the check that is compiled from it."""

    @property
    def parameters(self) -> JsonObject:
        """JSON Schema of the arguments: an object schema."""
        ...

    def check(self, arguments: Any, /) -> dict[str, Any]:
        """Return the values for the function, by the name of the parameter.

        Raises:
            ArgumentsInvalid: The arguments do not fit.
        """
        ...


class TypedArguments:
    """Checked by pydantic, by the rules of JSON: a text is no number, and a boolean is none."""

    __slots__ = ("_validate", "parameters")

    def __init__(self, adapter: "TypeAdapter[Any]", parameters: JsonObject) -> None:
        self.parameters = parameters
        self._validate: Callable[..., Any] = adapter.validator.validate_json

    def check(self, arguments: Any, /) -> Any:
        try:
            text: bytes | str = orjson.dumps(arguments)
        except (orjson.JSONEncodeError, UnicodeEncodeError):
            text = _dumped(arguments)
        try:
            # From JSON text, as only from there strict mode takes dates, enums and such. Writing
            # the text costs less than any conversion in Python.
            return self._validate(text, strict=True)
        except ValidationError as exc:
            raise ArgumentsInvalid(_explain(exc, arguments)) from None
        except Exception as exc:
            raise ArgumentsInvalid([_unexpected(exc)]) from exc


class WholeArguments:
    """Checked by pydantic against one model, whose instance is the only argument."""

    __slots__ = ("_name", "_typed", "parameters")

    def __init__(self, name: str, typed: TypedArguments) -> None:
        self.parameters = typed.parameters
        self._name = name
        self._typed = typed

    def check(self, arguments: Any, /) -> dict[str, Any]:
        return {self._name: self._typed.check(arguments)}


class RawArguments:
    """Checked by jsonschema against a schema that was given as such, and handed on unchanged."""

    __slots__ = ("_validator", "parameters")

    def __init__(self, parameters: JsonObject, tool: str) -> None:
        self.parameters = parameters
        self._validator = _compiled(parameters, tool)

    def check(self, arguments: Any, /) -> dict[str, Any]:
        try:
            found = list(self._validator.iter_errors(arguments))
        except Exception as exc:
            raise ArgumentsInvalid([_unexpected(exc)]) from exc
        errors = list(dict.fromkeys(said for error in found for said in _said(error)))
        if errors:
            raise ArgumentsInvalid(errors[:_MOST_ERRORS])
        # The handler may change what it gets; the transcript holds the other copy.
        return cast("dict[str, Any]", copied_json(arguments))


def _dumped(arguments: Any) -> str:
    try:
        return dump_json(arguments)
    except (TypeError, ValueError) as exc:
        raise ArgumentsInvalid([f"arguments: {exc}"]) from None


def _unexpected(error: Exception) -> str:
    """Return what to say of an error that a check is not meant to raise, such as a validator's."""
    return f"arguments: they could not be checked: {type(error).__name__}: {error}"


def typed_arguments(fields: Mapping[str, Any], tool: str, module: str) -> TypedArguments:
    """Compile the parameters of a function.

    Args:
        fields: The annotation of each parameter, with its description and default inside.
        tool: The function's name, for messages.
        module: Where the function stands.

    Raises:
        ToolSchemaError: A parameter's type has no JSON Schema; the message names both.
    """
    try:
        adapter = _adapter(fields, module)
        return TypedArguments(adapter, _described(adapter, tool))
    except _UNDESCRIBABLE as exc:
        for name, annotation in fields.items():
            try:
                _described(_adapter({name: annotation}, module), tool)
            except _UNDESCRIBABLE as cause:
                raise ToolSchemaError(
                    f"`{name}` of `{tool}` cannot be described to a model: {_first_line(cause)}"
                ) from cause
        raise ToolSchemaError(f"`{tool}` cannot be described: {_first_line(exc)}") from exc


def model_arguments(model: Any, parameter: str, tool: str) -> WholeArguments:
    """Compile a pydantic model, a dataclass or a ``TypedDict`` as the arguments of a tool.

    Raises:
        ToolSchemaError: It has no JSON Schema, or that of something else than an object.
    """
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(model)
        described = _described(adapter, tool)
    except _UNDESCRIBABLE as exc:
        raise ToolSchemaError(f"`{tool}` cannot be described: {_first_line(exc)}") from exc
    described.pop("description", None)  # it is the tool's
    return WholeArguments(parameter, TypedArguments(adapter, described))


_UNDESCRIBABLE = (PydanticUserError, PydanticUndefinedAnnotation, SchemaError, TypeError)


def _adapter(fields: Mapping[str, Any], module: str) -> "TypeAdapter[Any]":
    create: Any = TypedDict  # type checkers want to see the keys
    typed: Any = create("Arguments", dict(fields))
    typed.__module__ = module
    typed.__pydantic_config__ = ConfigDict(extra="forbid")
    return TypeAdapter(typed)


def _described(adapter: "TypeAdapter[Any]", tool: str) -> JsonObject:
    described = object_schema(describe(adapter), tool)
    described.pop("title", None)
    return described


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def _explain(error: ValidationError, arguments: Any) -> list[str]:
    """Return one sentence for each problem, with the path to it."""
    details = error.errors(include_url=False, include_context=False)
    return [_problem(detail, arguments) for detail in details[:_MOST_ERRORS]]


def _problem(detail: ErrorDetails, arguments: Any) -> str:
    path = _path(detail, arguments)
    match detail["type"]:
        case "missing" | "missing_argument":
            return f"{path} is missing"
        case "extra_forbidden":
            return f"{path} is not a parameter"
        case _:
            said = detail["msg"]
            return f"{path}: {said[:1].lower()}{said[1:]}, got {_kind(detail['input'])}"


def _path(detail: ErrorDetails, arguments: Any) -> str:
    """Return the path, without the labels of union members that pydantic puts in."""
    path = "arguments"
    here = arguments
    for step in detail["loc"]:
        try:
            here = here[step]
        except (LookupError, TypeError):
            if detail["type"] != "missing" or step != detail["loc"][-1]:
                continue
        path += f"[{step}]" if isinstance(step, int) else f".{step}"
    return path


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case Mapping():
            return "object"
        case list():
            return "array"
        case _:
            return type(value).__name__


def _compiled(schema: JsonObject, tool: str) -> "Validator":
    # Here and not above: loading it costs 0.1 s, and most applications need none of it.
    from jsonschema import SchemaError as InvalidSchema
    from jsonschema.validators import Draft202012Validator, validator_for
    from referencing.jsonschema import EMPTY_REGISTRY

    kind = validator_for(schema, default=Draft202012Validator)
    try:
        kind.check_schema(schema)
    except InvalidSchema as exc:
        where = "".join(f"[{step!r}]" for step in exc.absolute_path)
        raise ToolSchemaError(
            f"the parameters of `{tool}`{where} are no JSON Schema: {exc.message}"
        ) from exc
    if ref := dangling_reference(schema):
        raise ToolSchemaError(f"the reference `{ref}` in the parameters of `{tool}` leads nowhere")
    # With a registry of its own, a reference to another document is an error and not a download.
    return kind(schema, registry=EMPTY_REGISTRY)


def _said(error: Any) -> Iterator[str]:
    """Yield the sentences about one problem that jsonschema found."""
    path = "arguments" + "".join(
        f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.absolute_path
    )
    value: Any = error.validator_value
    got: Any = error.instance
    match error.validator:
        case "type":
            wanted = value if isinstance(value, str) else " or ".join(value)
            yield f"{path}: {wanted} is needed, got {_kind(got)}"
        case "enum":
            yield f"{path}: must be one of {dump_json(value)}, got {_kind(got)}"
        case "required":
            yield from (f"{path}.{name} is missing" for name in value if name not in got)
        case "additionalProperties" if value is False and "patternProperties" not in error.schema:
            known = error.schema.get("properties", {})
            yield from (f"{path}.{name} is not a parameter" for name in got if name not in known)
        case _:
            yield f"{path}: {error.message}"
