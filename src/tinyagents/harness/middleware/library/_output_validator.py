"""Checks the form of every answer, whatever the run does with it."""

from typing import Any

from ...context import RunContext
from ...model import JsonObjectFormat, JsonSchemaFormat, ModelResponse
from ...structured import OutputSpec, StructuredExtractor, output_spec, spec_of_format
from .._base import Middleware


class StructuredOutputValidatorMiddleware(Middleware[Any]):
    """Ends a run with an error when the text of an answer does not have the form it should.

    Hooks: ``after_model``. It sets ``response.structured`` to the typed value, and has no events of
    its own. What does not fit raises ``StructuredOutputError``, and nobody is asked again: a run with
    an ``output`` asks again and needs no middleware.

    Args:
        expected: A type or a response format; ``None`` for free text, which is not checked.
        skip_tool_turns: Leave answers alone that call tools. Otherwise their text must fit too, so
            that only agents without tools can pass.

    Raises:
        InvalidRequestError: It cannot be described as JSON.
    """

    def __init__(self, expected: Any = None, *, skip_tool_turns: bool = False) -> None:
        self._extractor: StructuredExtractor[Any] | None = None
        if expected is not None:
            self._extractor = StructuredExtractor(_spec(expected), strategy="native")
        self._skip_tool_turns = skip_tool_turns

    async def after_model(self, ctx: RunContext[Any], response: ModelResponse) -> None:
        """Check the answer's text."""
        if self._extractor is None or (self._skip_tool_turns and response.message.tool_calls):
            return
        response.structured = self._extractor.extract(response).as_value()


def _spec(expected: Any) -> OutputSpec[Any]:
    if isinstance(expected, JsonObjectFormat | JsonSchemaFormat):
        return spec_of_format(expected)
    return output_spec(expected)
