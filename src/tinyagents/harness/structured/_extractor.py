"""Reading a typed value out of one response, without a run around it."""

from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast, overload

from pydantic import JsonValue

from ..errors import StructuredOutputError
from ..message import AssistantMessage
from ..model import FinishReason, ModelResponse, ResponseFormat
from ._ladder import LadderStep
from ._outcome import is_whole, raise_for_outcome
from ._output import ANY_OBJECT, FoundAnswer, OutputSpec, output_spec
from ._wrappers import OutputType, StructuredStrategy

T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True, slots=True, kw_only=True)
class StructuredOutput(Generic[T]):
    """What a response gave for a typed answer: a value or an error, and the response in any case."""

    response: ModelResponse
    """The response as it came."""
    value: T | None = None
    """The typed value; ``None`` where there is none."""
    json: JsonValue = None
    """The value as JSON."""
    step: LadderStep | None = None
    """How it was read out of the text; ``None`` where there is none."""
    error: StructuredOutputError | None = None
    """Why there is no value."""

    def as_value(self) -> T:
        """Return the typed value.

        Raises:
            StructuredOutputError: There is none; it is :attr:`error`.
        """
        if self.error is not None:
            raise self.error
        return cast("T", self.value)

    def parse(self, type: type[U]) -> U:
        """Return the value as another type.

        Raises:
            StructuredOutputError: There is none, or it does not fit.
        """
        self.as_value()
        return cast("U", output_spec(type).check(self.json))


class StructuredExtractor(Generic[T]):
    """Reads typed values out of responses, as a run does. It asks no model and calls no function.

    Args:
        output: What the answer must be: see :class:`OutputSpec`.
        strategy: How the model was asked; that of the output, or else ``native``, by default.
            Answers in text are read for ``native`` and ``prompted``, and calls for ``tool``.
    """

    @overload
    def __init__(
        self, output: OutputType[T], *, strategy: StructuredStrategy | None = None
    ) -> None: ...
    @overload
    def __init__(self, output: Any, *, strategy: StructuredStrategy | None = None) -> None: ...
    def __init__(self, output: Any, *, strategy: StructuredStrategy | None = None) -> None:
        self.spec: OutputSpec[T] = output_spec(output)
        self.strategy: StructuredStrategy = strategy or self.spec.strategy or "native"

    def extract(self, response: ModelResponse) -> StructuredOutput[T]:
        """Return the value, or the error in its place; the response is kept with both."""
        message, reason = response.message, response.finish_reason
        try:
            raise_for_outcome(self.spec, message, reason)
            found = self._found(message, reason)
        except StructuredOutputError as error:
            error.answer = message
            return StructuredOutput(response=response, error=error)
        return StructuredOutput(
            response=response, value=found.value, json=found.json, step=found.step
        )

    def _found(self, message: AssistantMessage, reason: FinishReason | None) -> FoundAnswer:
        spec, may_close = self.spec, is_whole(reason)
        if self.strategy != "tool":
            return spec.find(message.text, may_close=may_close)
        for call in message.tool_calls:
            if call.name in spec.tool_names:
                return spec.find_in_call(call, may_close=may_close)
        raise StructuredOutputError(
            f"the answer holds no call of `{spec.name}`", schema_name=spec.name, text=message.text
        )


def response_format_for_strategy(
    strategy: StructuredStrategy, output: Any
) -> ResponseFormat | None:
    """Return the response format that asks for an output; ``None`` where a tool call does.

    Raises:
        InvalidRequestError: The output cannot be described.
    """
    match strategy:
        case "native":
            return output_spec(output).format
        case "prompted":
            return ANY_OBJECT
        case "tool":
            return None
