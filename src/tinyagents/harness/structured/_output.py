"""The type that an answer must have: its schema for the model, and the check of what came back."""

import re
from collections.abc import Mapping
from typing import Any, Generic, Literal, TypeAlias, TypeGuard, TypeVar, get_args

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python

from ..errors import InvalidRequestError, StructuredOutputError
from ..model import JsonSchemaFormat, ModelProfile, ToolSchema
from ..text import JsonObject, dump_json, parse_json

T = TypeVar("T")

StructuredStrategy: TypeAlias = Literal["native", "tool"]
"""Have the provider hold the answer to the schema, or offer the schema as a tool to call."""

_FENCE = re.compile(r"^\s*```[a-zA-Z]*\s*\n(.*?)\n?\s*```\s*$", re.DOTALL)
_NAME = re.compile(r"[^a-zA-Z0-9_-]+")


class OutputSpec(Generic[T]):
    """A type, or a JSON schema, that the final answer must fit.

    Args:
        output: Anything that pydantic can describe, or a JSON schema as a mapping.

    Raises:
        InvalidRequestError: It cannot be described as JSON.
    """

    def __init__(self, output: type[T] | Mapping[str, Any]) -> None:
        self._adapter: TypeAdapter[T] | None = None
        self._wrapped = False
        self.name: str
        """What the model and errors call the type."""
        if isinstance(output, Mapping):
            self.schema: JsonObject = dict(output)
            title = output.get("title")
            self.name = _safe_name(title if isinstance(title, str) else "output")
        else:
            self._adapter, self.schema = _describe(output)
            self.name = _safe_name(_type_name(output))
        self._own_schema = self.schema
        description = self.schema.get("description")
        self.description: str | None = description if isinstance(description, str) else None
        if self.schema.get("type") != "object" and "$ref" not in self.schema:
            # Providers take object schemas only, at the top.
            self._wrapped = True
            inner = dict(self.schema)
            defs = inner.pop("$defs", None)
            self.schema = {
                "type": "object",
                "properties": {"value": inner},
                "required": ["value"],
                "additionalProperties": False,
                **({"$defs": defs} if defs is not None else {}),
            }

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
        fenced = _FENCE.match(text)
        try:
            value = parse_json(fenced.group(1) if fenced else text.strip())
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
        if self._wrapped and _is_wrapping(value):
            value = value["value"]
        if self._adapter is None:
            problems = _schema_problems(value, self._own_schema)
            if not problems:
                typed: T = value
                return typed
        else:
            try:
                # From JSON text: strict types take dates and enums in their JSON form alone.
                return self._adapter.validate_json(dump_json(value))
            except ValidationError as exc:
                problems = [
                    f"{'.'.join(map(str, error['loc'])) or 'answer'}: {error['msg']}"
                    for error in exc.errors(include_url=False, include_input=False)
                ]
        raise StructuredOutputError(
            f"the answer does not fit `{self.name}`: {'; '.join(problems)}",
            schema_name=self.name,
            text=text or str(to_jsonable_python(value)),
            errors=problems,
        )


def _describe(output: type[T]) -> tuple[TypeAdapter[T], JsonObject]:
    try:
        adapter: TypeAdapter[T] = TypeAdapter(output)
        return adapter, adapter.json_schema()
    except Exception as exc:
        raise InvalidRequestError(f"`{output!r}` cannot be an output type: {exc}") from exc


def _schema_problems(value: Any, schema: JsonObject) -> list[str]:
    from jsonschema.validators import validator_for

    validator = validator_for(schema)(schema)
    return [
        f"{error.json_path.removeprefix('$.') or 'answer'}: {error.message}"
        for error in validator.iter_errors(value)
    ]


def _is_wrapping(value: Any) -> TypeGuard[dict[str, Any]]:
    # A model that answers without the wrapping is understood all the same.
    return isinstance(value, dict) and "value" in value


def _type_name(output: Any) -> str:
    """Return ``City`` for a class, and something like ``list_City`` for ``list[City]``."""
    if get_args(output) or not isinstance(output, type):
        return re.sub(r"(\w+\.)+", "", str(output))
    return output.__name__


def _safe_name(name: str) -> str:
    return _NAME.sub("_", name).strip("_")[:64] or "output"
