"""The middlewares that come with the library; import them from ``tinyagents.harness.middleware``."""

from typing import TYPE_CHECKING

from ... import _lazy

if TYPE_CHECKING:
    from ._artifacts import ArtifactMiddleware
    from ._contextual_selection import (
        ContextualToolSelectionMiddleware,
        ToolPredicate,
        ToolSelectionContext,
    )
    from ._dynamic_selection import DynamicToolSelectionMiddleware, ToolSelector
    from ._handoff import HandoffMiddleware
    from ._human_approval import HumanApprovalMiddleware
    from ._model_selection import ModelToolSelectionMiddleware
    from ._prompt_cache_guard import PromptCacheGuardMiddleware
    from ._redaction import RedactionMiddleware
    from ._tool_allowlist import ToolAllowlistMiddleware
    from ._tool_policy import ToolPolicyMiddleware

_HOMES = {
    "_artifacts": ("ArtifactMiddleware",),
    "_contextual_selection": (
        "ContextualToolSelectionMiddleware",
        "ToolPredicate",
        "ToolSelectionContext",
    ),
    "_dynamic_selection": ("DynamicToolSelectionMiddleware", "ToolSelector"),
    "_handoff": ("HandoffMiddleware",),
    "_human_approval": ("HumanApprovalMiddleware",),
    "_model_selection": ("ModelToolSelectionMiddleware",),
    "_prompt_cache_guard": ("PromptCacheGuardMiddleware",),
    "_redaction": ("RedactionMiddleware",),
    "_tool_allowlist": ("ToolAllowlistMiddleware",),
    "_tool_policy": ("ToolPolicyMiddleware",),
}

__all__ = (
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

if not TYPE_CHECKING:
    __getattr__, __dir__ = _lazy.names(__name__, _HOMES)
