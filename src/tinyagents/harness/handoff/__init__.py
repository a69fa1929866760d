"""Tool results that are too large for the context: held back, and searched for what is needed.

The model gets a placeholder in the place of the result, with its size, its beginning and an id;
with the tool of :func:`extract_from_result_tool` it asks for the parts that matter. The texts are
kept for the run by a :class:`HandoffStore`;
:class:`~tinyagents.harness.middleware.HandoffMiddleware` puts them there.
"""

from ._chunks import best_chunks, split_text
from ._extract import EXTRACT_TAG, extract_from_result_tool
from ._placeholder import HANDOFF_MARKER, cleaned, placeholder, token_estimate
from ._store import HandoffStore, InMemoryHandoffStore

__all__ = (
    "EXTRACT_TAG",
    "HANDOFF_MARKER",
    "HandoffStore",
    "InMemoryHandoffStore",
    "best_chunks",
    "cleaned",
    "extract_from_result_tool",
    "placeholder",
    "split_text",
    "token_estimate",
)
