"""The type that an answer must have: its schema for the model, and the check of what came back."""

import re
from collections.abc import Mapping
from typing import Any, Generic, Literal, TypeAlias, TypeGuard, TypeVar, cast, get_args

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python

from ..errors import InvalidRequestError, StructuredOutputError
from ..json_schema import SchemaCheck, describe, explain_errors, rooted
from ..model import JsonSchemaFormat, ModelProfile, ToolSchema
from ..text import JsonObject, clean_json, encode_json, parse_json, unfenced

T = TypeVar("T")

StructuredStrategy: TypeAlias = Literal["native", "tool"]
"""Have the provider hold the answer to the schema, or offer the schema as a tool to call."""

_WRAPPER = "value"
"""The property of an object that holds an answer that is none."""
_MEMBER = "property"
_DEFINITIONS = ("$defs", "definitions")


class OutputSpec(Generic[T]):
    """A type, or a JSON schema, that the final answer must fit. Compiled once, and then only read.

    Args:
        output: Anything that pydantic can describe, or a JSON schema as a mapping, by default in
            the dialect of 2020-12.

    Raises:
        InvalidRequestError: It cannot be described as JSON, or the schema is none, or a reference
            in it leads out of it or to nothing: nothing is downloaded.
    """

    def __init__(self, output: type[T] | Mapping[str, Any]) -> None:
        self._checked: TypeAdapter[T] | SchemaCheck
        self._wrapped = False
        self.schema: dict[str, Any]
        """What the model is shown; always an object at the top."""
        self.name: str
        """What errors call the type, and the model too, as far as its provider takes the name."""
        if isinstance(output, Mapping):
            self._checked, self.schema = _compile(output)
            title = self.schema.get("title")
            self.name = (title.strip() if isinstance(title, str) else "") or "output"
        else:
            self._checked, self.schema = _describe(output)
            self.name = _type_name(output)
        description = self.schema.get("description")
        self.description: str | None = description if isinstance(description, str) else None
        self.schema = rooted(self.schema)
        if self.schema.get("type") != "object":
            # Providers take object schemas only, at the top.
            self._wrapped = True
            self.schema = _wrapping(self.schema)

    def strategy_for(self, profile: ModelProfile) -> StructuredStrategy:
        """Choose how to ask a model: natively where it can dependably, else by tool call."""
        if profile.native_structured_output and profile.json_schema is not False:
            return "native"
        return "native" if profile.tool_calling is False else "tool"

    def response_format(self) -> JsonSchemaFormat:
        """Return the schema as a response format."""
        return JsonSchemaFormat(name=self.name, schema=self.schema, description=self.description)

    def tool_schema(self) -> ToolSchema:
        """Return the schema as a tool that the model calls to give its answer."""
        return ToolSchema(
            name=self.name,
            description=self.description or "Give the final answer by calling this tool.",
            parameters=self.schema,
        )

    def parse(self, text: str) -> tuple[Any, T]:
        """Decode and check an answer's text, in a code fence or bare.

        Returns:
            The answer as JSON, and as the typed value.

        Raises:
            StructuredOutputError: The text is not JSON, or does not fit.
        """
        try:
            value = parse_json(unfenced(text))
        except ValueError as exc:
            raise StructuredOutputError(
                f"the answer is not JSON, as `{self.name}` needs it: {exc}",
                schema_name=self.name,
                text=text,
                errors=[f"not JSON: {exc}"],
            ) from exc
        return value, self.check(value, text)

    def check(self, value: Any, text: str = "") -> T:
        """Return the typed value of a decoded answer.

        Raises:
            StructuredOutputError: It does not fit; ``errors`` says where.
        """
        problems: list[str]
        root = "answer"
        if self._wrapped and _is_wrapping(value):
            value, root = value[_WRAPPER], f"{root}.{_WRAPPER}"
        if isinstance(self._checked, SchemaCheck):
            problems = self._checked.problems(value, root, member=_MEMBER)
            if not problems:
                return cast("T", value)
        else:
            try:
                # From JSON text: strict types take dates and enums in their JSON form alone.
                return self._checked.validate_json(encode_json(value))
            except ValidationError as exc:
                problems = explain_errors(exc, value, root, member=_MEMBER)
        raise StructuredOutputError(
            f"the answer does not fit `{self.name}`: {'; '.join(problems)}",
            schema_name=self.name,
            text=text or str(to_jsonable_python(value)),
            errors=problems,
        )


def _describe(output: type[T]) -> tuple[TypeAdapter[T], JsonObject]:
    try:
        adapter: TypeAdapter[T] = TypeAdapter(output)
        return adapter, describe(adapter)
    except Exception as exc:
        raise InvalidRequestError(f"`{output!r}` cannot be an output type: {exc}") from exc


def _compile(output: Mapping[str, Any]) -> tuple[SchemaCheck, JsonObject]:
    try:
        schema = cast("JsonObject", clean_json(output))
    except (TypeError, ValueError) as exc:
        raise InvalidRequestError(f"the output schema: no JSON Schema: {exc}") from exc
    return SchemaCheck(schema, "the output schema"), schema


def _wrapping(schema: JsonObject) -> JsonObject:
    """Return an object schema with the schema as its only property."""
    shared = {key: schema[key] for key in _DEFINITIONS if key in schema}
    inner = {key: value for key, value in schema.items() if key not in shared}
    return {
        "type": "object",
        "properties": {_WRAPPER: inner},
        "required": [_WRAPPER],
        "additionalProperties": False,
        **shared,
    }


def _is_wrapping(value: Any) -> TypeGuard[dict[str, Any]]:
    # A model that answers without the wrapping is understood all the same.
    return isinstance(value, dict) and _WRAPPER in value


def _type_name(output: Any) -> str:
    """Return ``City`` for a class, and ``list[City]`` for a list of it."""
    if get_args(output) or not isinstance(output, type):
        return re.sub(r"(\w+\.)+", "", str(output))
    return output.__name__
