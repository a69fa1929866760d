"""How the arguments of a call become the values that a function gets."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, cast

from pydantic import ConfigDict, PydanticUserError, TypeAdapter, ValidationError
from pydantic.errors import PydanticUndefinedAnnotation
from pydantic_core import SchemaError
from typing_extensions import TypedDict

from ..errors import ToolSchemaError
from ..json_schema import (
    SchemaCheck,
    describe,
    explain_errors,
    object_schema,
    unexpected_problem,
)
from ..text import JsonObject, copied_json, encode_json

_ROOT = "arguments"
"""What the path of a problem begins with."""


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
            text = encode_json(arguments)
        except (TypeError, ValueError) as exc:
            raise ArgumentsInvalid([f"{_ROOT}: {exc}"]) from None
        try:
            # From JSON text, as only from there strict mode takes dates, enums and such. Writing
            # the text costs less than any conversion in Python.
            return self._validate(text, strict=True)
        except ValidationError as exc:
            raise ArgumentsInvalid(explain_errors(exc, arguments, _ROOT)) from None
        except Exception as exc:
            raise ArgumentsInvalid([unexpected_problem(exc, _ROOT)]) from exc


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

    __slots__ = ("_schema", "parameters")

    def __init__(self, parameters: JsonObject, tool: str) -> None:
        self.parameters = parameters
        self._schema = SchemaCheck(parameters, parameters_of(tool), ToolSchemaError)

    def check(self, arguments: Any, /) -> dict[str, Any]:
        if problems := self._schema.problems(arguments, _ROOT):
            raise ArgumentsInvalid(problems)
        # The handler may change what it gets; the transcript holds the other copy.
        return cast("dict[str, Any]", copied_json(arguments))


def parameters_of(tool: str) -> str:
    """Return what messages call the parameters of a tool."""
    return f"the parameters of `{tool}`"


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
    return object_schema(describe(adapter), parameters_of(tool), ToolSchemaError)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
