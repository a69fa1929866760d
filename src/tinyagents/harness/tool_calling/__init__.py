"""Tool calls that a provider does not hand over ready made.

Repairs the arguments that models write, and lets models without tool calls use tools: as text, in
a dialect that says how tools, calls and results are written. :class:`PromptGuidedModel` puts that
around a model; :func:`guided_request`, :func:`guided_response` and :func:`guided_stream` are its parts.

The dialects are loaded at their first use: adapters need the repair of arguments alone.
"""

from typing import TYPE_CHECKING

from .. import _lazy
from ._relaxed import relaxed_object, relaxed_parts
from ._repair import repair_arguments, strip_template_markers

if TYPE_CHECKING:
    from ._dialect import ReplyPiece, ReplyReader, TextCall, ToolDialect
    from ._guided import guided_response, guided_stream
    from ._markers import neutralized
    from ._model import PromptGuidedModel
    from ._pformat import PFormatDialect
    from ._reader import MAX_CALL_CHARACTERS, MAX_CALLS, TagReader
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
    "relaxed_parts",
    "repair_arguments",
    "strip_template_markers",
)

if not TYPE_CHECKING:
    _HOMES = {
        "_dialect": ("ReplyPiece", "ReplyReader", "TextCall", "ToolDialect"),
        "_guided": ("guided_response", "guided_stream"),
        "_markers": ("neutralized",),
        "_model": ("PromptGuidedModel",),
        "_pformat": ("PFormatDialect",),
        "_reader": ("MAX_CALLS", "MAX_CALL_CHARACTERS", "TagReader"),
        "_replay": ("guided_request",),
        "_xml": ("XmlDialect",),
    }
    __getattr__, __dir__ = _lazy.names(__name__, _HOMES)
