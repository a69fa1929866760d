"""Tool calls that a provider does not hand over ready made.

Repairs the arguments that models write, and lets models without tool calls use tools: as text, in
a dialect that says how tools, calls and results are written. :class:`PromptGuidedModel` puts that
around a model; :func:`guided_request`, :func:`guided_response` and :func:`guided_stream` are its parts.
"""

from ._dialect import ReplyPiece, ReplyReader, TextCall, ToolDialect
from ._guided import guided_response, guided_stream
from ._markers import neutralized
from ._model import PromptGuidedModel
from ._pformat import PFormatDialect
from ._reader import MAX_CALL_CHARACTERS, MAX_CALLS, TagReader
from ._relaxed import relaxed_object
from ._repair import repair_arguments, strip_template_markers
from ._replay import guided_request
from ._xml import XmlDialect

__all__ = (
    "MAX_CALLS",
    "MAX_CALL_CHARACTERS",
    "PFormatDialect",
    "PromptGuidedModel",
    "ReplyPiece",
    "ReplyReader",
    "TagReader",
    "TextCall",
    "ToolDialect",
    "XmlDialect",
    "guided_request",
    "guided_response",
    "guided_stream",
    "neutralized",
    "relaxed_object",
    "repair_arguments",
    "strip_template_markers",
)
