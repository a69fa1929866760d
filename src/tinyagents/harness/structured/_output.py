"""The answer that a run must end with: how models are asked for it, and how it is read and checked."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, TypeGuard, TypeVar, cast, overload

from pydantic import JsonValue
from pydantic_core import to_jsonable_python

from ..errors import StructuredOutputError
from ..message import SystemMessage, ToolCallBlock
from ..model import (
    JsonObjectFormat,
    JsonSchemaFormat,
    ModelProfile,
    ResponseFormat,
    ToolSchema,
    schema_instruction,
)
from ..text import dump_json
from ._given import as_wrapper, given_members, given_strategy, is_wrapper
from ._ladder import LadderStep, read_json
from ._member import MisfitError, OutputMember, one_of
from ._validators import OutputValidator
from ._wrappers import (
    NativeOutput,
    OutputType,
    PromptedOutput,
    StructuredStrategy,
)

T = TypeVar("T")

ANY_OBJECT = JsonObjectFormat()
"""The form of an answer that the prompt asks for, where the model takes it."""


@dataclass(frozen=True, slots=True)
class FoundAnswer:
    """An answer that fits: read and checked, before functions and validators see it."""

    json: JsonValue
    value: Any
    """The typed value; of a function, its arguments."""
    member: OutputMember
    """Which of the types it is of."""
    step: LadderStep = "strict"
    """How it was read out of the text."""


class OutputSpec(Generic[T]):
    """What the final answer must be, compiled once and then only read.

    Args:
        output: Anything that pydantic can describe; a JSON schema as a mapping, by default in the
            dialect of 2020-12; a function; a list of these; or one of them in an :class:`Output`.

    Raises:
        InvalidRequestError: It cannot be described as JSON, or the schema is none, or a reference
            in it leads out of it or to nothing: nothing is downloaded. Or two of several types
            share a name.
    """

    @overload
    def __init__(self, output: Callable[..., Awaitable[T]]) -> None: ...
    @overload
    def __init__(self, output: OutputType[T]) -> None: ...
    @overload
    def __init__(self, output: Any) -> None: ...
    def __init__(self, output: Any) -> None:
        given = as_wrapper(output)
        self.strategy: StructuredStrategy | None = given_strategy(given)
        """How every model is asked; ``None`` where its profile decides."""
        self.members: tuple[OutputMember, ...] = given_members(given)
        """The types of which the model chooses one."""
        self.validators: tuple[OutputValidator, ...] = given.validators
        self._whole = (
            self.members[0]
            if len(self.members) == 1
            else one_of(self.members, name=given.name, description=given.description)
        )
        self._strict = given.strict
        self.schema: dict[str, Any] = self._whole.schema
        """What the model is shown; always an object at the top."""
        self.name: str = self._whole.name
        """What errors call the type, and the model too, as far as its provider takes the name."""
        self.description: str | None = self._whole.description
        self.format: ResponseFormat = self.response_format()
        """The form of an answer that is held to it natively."""
        self.tool_names: tuple[str, ...] = tuple(member.name for member in self.members)
        """The tools that take the answer, where the model gives it by a call."""
        self._given = given
        self._tools: tuple[ToolSchema, ...] | None = None
        self._instruction: SystemMessage | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    @property
    def is_plain(self) -> bool:
        """Whether an answer that fits is the output, without a function to call or a validator."""
        return not self.validators and all(member.function is None for member in self.members)

    def retry_message(self, error: StructuredOutputError) -> str:
        """Return what the model is told of an answer that was not accepted."""
        own = self._given.retry_message
        return error.message if own is None else own.replace("{errors}", "; ".join(error.errors))

    def strategy_for(self, profile: ModelProfile) -> StructuredStrategy:
        """Choose how to ask a model.

        As the output says; else natively where that is dependable, by tool call where the model
        is not known to call none, and natively or in the prompt where it is.
        """
        if self.strategy is not None:
            return self.strategy
        if profile.native_structured_output and profile.json_schema is not False:
            return "native"
        if profile.tool_calling is not False:
            return "tool"
        return "native" if profile.json_schema is not False else "prompted"

    def response_format(self) -> JsonSchemaFormat:
        """Return the schema as a response format."""
        return JsonSchemaFormat(
            name=self.name, schema=self.schema, description=self.description, strict=self._strict
        )

    def tool_schema(self) -> ToolSchema:
        """Return the schema as a tool that the model calls to give its answer."""
        return self._tool(self._whole)

    @property
    def tool_schemas(self) -> tuple[ToolSchema, ...]:
        """The schema as tools, one for each type."""
        if self._tools is None:
            self._tools = tuple(self._tool(member) for member in self.members)
        return self._tools

    @property
    def instruction_if_told(self) -> SystemMessage | None:
        """The same message, if :attr:`instruction` was ever asked for."""
        return self._instruction

    @property
    def instruction(self) -> SystemMessage:
        """The schema in words for the prompt."""
        if self._instruction is None:
            given = self._given
            own = None
            if isinstance(given, PromptedOutput):
                own = cast("PromptedOutput[T]", given).instruction(dump_json(self.schema))
            self._instruction = SystemMessage(content=own or schema_instruction(self.schema))
        return self._instruction

    def parse(self, text: str) -> tuple[Any, T]:
        """Decode and check an answer's text, as leniently as :func:`read_json` does.

        Returns:
            The answer as JSON, and as the typed value.

        Raises:
            StructuredOutputError: There is no JSON in the text, or it does not fit.
        """
        found = self.find(text)
        return found.json, found.value

    def check(self, value: Any, text: str = "") -> T:
        """Return the typed value of a decoded answer.

        Raises:
            StructuredOutputError: It does not fit; ``errors`` says where.
        """
        return cast("T", self.take(value, text=text).value)

    def find(self, text: str, *, may_close: bool = False) -> FoundAnswer:
        """Find the answer in a text, and check it.

        Args:
            text: What the model wrote.
            may_close: Whether the text may lack its end: see :func:`read_json`.

        Raises:
            StructuredOutputError: There is no JSON in the text, or it does not fit.
        """
        return self._find(text, self._whole, may_close)

    def find_in_call(self, call: ToolCallBlock, *, may_close: bool = False) -> FoundAnswer:
        """Find the answer in the arguments of a call of one of the output's tools, and check it.

        Raises:
            StructuredOutputError: They are no JSON, or do not fit.
        """
        member = self.member(call.name)
        if call.invalid is not None:
            return self._find(call.invalid.raw, member, may_close)
        return self.take(call.arguments, member=member)

    def take(
        self, value: JsonValue, *, member: OutputMember | None = None, text: str = ""
    ) -> FoundAnswer:
        """Check a decoded answer.

        Args:
            value: The answer as JSON.
            member: Which of the types it is said to be of.
            text: What it was decoded from, for the error.

        Raises:
            StructuredOutputError: It does not fit; ``errors`` says where.
        """
        wanted = member or self._whole
        try:
            checked, of = wanted.check(value)
        except MisfitError as misfit:
            raise StructuredOutputError(
                f"the answer does not fit `{wanted.name}`: {misfit}",
                schema_name=wanted.name,
                text=text or str(to_jsonable_python(value)),
                errors=misfit.problems,
            ) from misfit.__cause__
        return FoundAnswer(value, checked, of)

    def member(self, name: str) -> OutputMember:
        """Return the type of that name; what stands for all where there is none."""
        return next((member for member in self.members if member.name == name), self._whole)

    def _find(self, text: str, member: OutputMember, may_close: bool) -> FoundAnswer:
        try:
            value, step = read_json(text, may_close=may_close)
        except ValueError as exc:
            raise StructuredOutputError(
                f"the answer is not JSON, as `{member.name}` needs it: {exc}",
                schema_name=member.name,
                text=text,
                errors=[f"not JSON: {exc}"],
            ) from exc
        found = self.take(value, member=member, text=text)
        return FoundAnswer(found.json, found.value, found.member, step)

    def _tool(self, member: OutputMember) -> ToolSchema:
        return ToolSchema(
            name=member.name,
            description=member.description or "Give the final answer by calling this tool.",
            parameters=member.schema,
            strict=self._strict,
        )


def output_spec(output: Any) -> OutputSpec[Any]:
    """Return what was given as an output in its compiled form; a class and a wrapper keep theirs."""
    if _is_spec(output):
        return output
    if is_wrapper(output):
        if output.compiled is None:
            output.compiled = OutputSpec[Any](output)
        return cast("OutputSpec[Any]", output.compiled)
    return _spec_of_class(output) if isinstance(output, type) else OutputSpec(output)


def spec_of_format(wanted: ResponseFormat) -> OutputSpec[Any]:
    """Return the output that a response format asks for, always natively.

    Raises:
        InvalidRequestError: Its schema is none.
    """
    if isinstance(wanted, JsonObjectFormat):
        spec = OutputSpec[Any](NativeOutput({"type": "object"}))
        spec.format = wanted
        return spec
    return OutputSpec[Any](
        NativeOutput(
            wanted.schema,
            name=wanted.name,
            description=wanted.description,
            strict=wanted.strict,
        )
    )


@lru_cache(maxsize=128)
def _spec_of_class(output: type[Any]) -> OutputSpec[Any]:
    # An application has few, and compiling one costs more than all else that a run does.
    return OutputSpec(output)


def _is_spec(output: Any) -> TypeGuard[OutputSpec[Any]]:
    return isinstance(output, OutputSpec)
