"""Structured output: a typed value instead of text, checked before anybody uses it."""

from ._complete import complete_output, restored_output, stored_output
from ._extractor import StructuredExtractor, StructuredOutput, response_format_for_strategy
from ._ladder import LADDER, LadderStep, read_json
from ._member import OutputMember
from ._outcome import is_whole, raise_for_outcome, truncated
from ._output import ANY_OBJECT, FoundAnswer, OutputSpec, output_spec, spec_of_format
from ._partial import PartialAnswer, PartialReader
from ._validators import OutputValidator, check_validators
from ._wrappers import (
    NativeOutput,
    Output,
    OutputOptions,
    OutputType,
    PromptedOutput,
    StructuredStrategy,
    ToolOutput,
)

__all__ = (
    "ANY_OBJECT",
    "LADDER",
    "FoundAnswer",
    "LadderStep",
    "NativeOutput",
    "Output",
    "OutputMember",
    "OutputOptions",
    "OutputSpec",
    "OutputType",
    "OutputValidator",
    "PartialAnswer",
    "PartialReader",
    "PromptedOutput",
    "StructuredExtractor",
    "StructuredOutput",
    "StructuredStrategy",
    "ToolOutput",
    "check_validators",
    "complete_output",
    "is_whole",
    "output_spec",
    "raise_for_outcome",
    "read_json",
    "response_format_for_strategy",
    "restored_output",
    "spec_of_format",
    "stored_output",
    "truncated",
)
