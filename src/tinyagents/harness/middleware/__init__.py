"""Middleware: hooks around the agent, each model call and each tool call."""

from typing import TYPE_CHECKING

from .. import _lazy
from ._base import (
    DeltaFilter,
    Middleware,
    ModelDelta,
    ModelHandler,
    Redaction,
    ToolCall,
    ToolDelta,
    ToolHandler,
)
from ._decorators import (
    after_agent,
    after_model,
    after_tool,
    before_agent,
    before_model,
    before_tool,
    compact,
    filter_deltas,
    on_error,
    on_model_delta,
    on_tool_delta,
    wrap_model,
    wrap_tool,
)
from ._hiding import hide_tools
from ._stack import MiddlewareStack, around, run_compact_hooks, run_error_hooks, run_hooks

if TYPE_CHECKING:
    from .library import (
        ArtifactMiddleware,
        ContextualToolSelectionMiddleware,
        DynamicToolSelectionMiddleware,
        HandoffMiddleware,
        HumanApprovalMiddleware,
        ModelToolSelectionMiddleware,
        PromptCacheGuardMiddleware,
        RedactionMiddleware,
        ToolAllowlistMiddleware,
        ToolPolicyMiddleware,
        ToolPredicate,
        ToolSelectionContext,
        ToolSelector,
    )

_LIBRARY = (
    "ArtifactMiddleware",
    "ContextualToolSelectionMiddleware",
    "DynamicToolSelectionMiddleware",
    "HandoffMiddleware",
    "HumanApprovalMiddleware",
    "ModelToolSelectionMiddleware",
    "PromptCacheGuardMiddleware",
    "RedactionMiddleware",
    "ToolAllowlistMiddleware",
    "ToolPolicyMiddleware",
    "ToolPredicate",
    "ToolSelectionContext",
    "ToolSelector",
)
"""What few applications use is loaded at its first use."""

__all__ = (
    "ArtifactMiddleware",
    "ContextualToolSelectionMiddleware",
    "DeltaFilter",
    "DynamicToolSelectionMiddleware",
    "HandoffMiddleware",
    "HumanApprovalMiddleware",
    "Middleware",
    "MiddlewareStack",
    "ModelDelta",
    "ModelHandler",
    "ModelToolSelectionMiddleware",
    "PromptCacheGuardMiddleware",
    "Redaction",
    "RedactionMiddleware",
    "ToolAllowlistMiddleware",
    "ToolCall",
    "ToolDelta",
    "ToolHandler",
    "ToolPolicyMiddleware",
    "ToolPredicate",
    "ToolSelectionContext",
    "ToolSelector",
    "after_agent",
    "after_model",
    "after_tool",
    "around",
    "before_agent",
    "before_model",
    "before_tool",
    "compact",
    "filter_deltas",
    "hide_tools",
    "on_error",
    "on_model_delta",
    "on_tool_delta",
    "run_compact_hooks",
    "run_error_hooks",
    "run_hooks",
    "wrap_model",
    "wrap_tool",
)

if not TYPE_CHECKING:
    __getattr__, __dir__ = _lazy.names(__name__, {"library": _LIBRARY})
