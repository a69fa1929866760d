"""The middlewares that come with the library; import them from ``tinyagents.harness.middleware``."""

from typing import TYPE_CHECKING

from ... import _lazy

if TYPE_CHECKING:
    from ._artifacts import ArtifactMiddleware
    from ._context_editing import ContextEditingMiddleware
    from ._context_window import ContextWindowMiddleware
    from ._contextual_selection import (
        ContextualToolSelectionMiddleware,
        ToolPredicate,
        ToolSelectionContext,
    )
    from ._dynamic_selection import DynamicToolSelectionMiddleware, ToolSelector
    from ._handoff import HandoffMiddleware
    from ._human_approval import HumanApprovalMiddleware
    from ._message_trim import MessageTrimMiddleware
    from ._model_selection import ModelToolSelectionMiddleware
    from ._output_compression import OutputCompressionMiddleware
    from ._prompt_cache_guard import PromptCacheGuardMiddleware
    from ._retrieval_compression import RetrievalCompressionMiddleware
    from ._summarization import (
        ContextCompressionMiddleware,
        SummarizationMiddleware,
        SummaryFailurePolicy,
    )
    from ._tool_allowlist import ToolAllowlistMiddleware
    from ._tool_policy import ToolPolicyMiddleware
    from ._transcript_compression import TranscriptCompressionMiddleware

_HOMES = {
    "_output_compression": ("OutputCompressionMiddleware",),
    "_retrieval_compression": ("RetrievalCompressionMiddleware",),
    "_transcript_compression": ("TranscriptCompressionMiddleware",),
    "_context_editing": ("ContextEditingMiddleware",),
    "_message_trim": ("MessageTrimMiddleware",),
    "_artifacts": ("ArtifactMiddleware",),
    "_contextual_selection": (
        "ContextualToolSelectionMiddleware",
        "ToolPredicate",
        "ToolSelectionContext",
    ),
    "_context_window": ("ContextWindowMiddleware",),
    "_dynamic_selection": ("DynamicToolSelectionMiddleware", "ToolSelector"),
    "_handoff": ("HandoffMiddleware",),
    "_human_approval": ("HumanApprovalMiddleware",),
    "_model_selection": ("ModelToolSelectionMiddleware",),
    "_prompt_cache_guard": ("PromptCacheGuardMiddleware",),
    "_summarization": (
        "ContextCompressionMiddleware",
        "SummarizationMiddleware",
        "SummaryFailurePolicy",
    ),
    "_tool_allowlist": ("ToolAllowlistMiddleware",),
    "_tool_policy": ("ToolPolicyMiddleware",),
}

__all__ = (
    "ArtifactMiddleware",
    "ContextCompressionMiddleware",
    "ContextEditingMiddleware",
    "ContextWindowMiddleware",
    "ContextualToolSelectionMiddleware",
    "DynamicToolSelectionMiddleware",
    "HandoffMiddleware",
    "HumanApprovalMiddleware",
    "MessageTrimMiddleware",
    "ModelToolSelectionMiddleware",
    "OutputCompressionMiddleware",
    "PromptCacheGuardMiddleware",
    "RetrievalCompressionMiddleware",
    "SummarizationMiddleware",
    "SummaryFailurePolicy",
    "ToolAllowlistMiddleware",
    "ToolPolicyMiddleware",
    "ToolPredicate",
    "ToolSelectionContext",
    "ToolSelector",
    "TranscriptCompressionMiddleware",
)

if not TYPE_CHECKING:
    __getattr__, __dir__ = _lazy.names(__name__, _HOMES)
