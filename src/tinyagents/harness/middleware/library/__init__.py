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
    from ._guardrail import GuardrailMiddleware
    from ._guards import Guard, GuardAction, Guarded, GuardStage, GuardVerdict, model_guard
    from ._handoff import HandoffMiddleware
    from ._human_approval import HumanApprovalMiddleware
    from ._model_selection import ModelToolSelectionMiddleware
    from ._prompt_cache_guard import PromptCacheGuardMiddleware
    from ._redaction import RedactionMiddleware, RedactionStage
    from ._streaming_delta_compression import DeltaUnit, StreamingDeltaCompressionMiddleware
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
    "_guardrail": ("GuardrailMiddleware",),
    "_guards": ("Guard", "GuardAction", "GuardStage", "GuardVerdict", "Guarded", "model_guard"),
    "_handoff": ("HandoffMiddleware",),
    "_human_approval": ("HumanApprovalMiddleware",),
    "_model_selection": ("ModelToolSelectionMiddleware",),
    "_prompt_cache_guard": ("PromptCacheGuardMiddleware",),
    "_redaction": ("RedactionMiddleware", "RedactionStage"),
    "_streaming_delta_compression": ("DeltaUnit", "StreamingDeltaCompressionMiddleware"),
    "_tool_allowlist": ("ToolAllowlistMiddleware",),
    "_tool_policy": ("ToolPolicyMiddleware",),
}

__all__ = (
    "ArtifactMiddleware",
    "ContextualToolSelectionMiddleware",
    "DeltaUnit",
    "DynamicToolSelectionMiddleware",
    "Guard",
    "GuardAction",
    "GuardStage",
    "GuardVerdict",
    "Guarded",
    "GuardrailMiddleware",
    "HandoffMiddleware",
    "HumanApprovalMiddleware",
    "ModelToolSelectionMiddleware",
    "PromptCacheGuardMiddleware",
    "RedactionMiddleware",
    "RedactionStage",
    "StreamingDeltaCompressionMiddleware",
    "ToolAllowlistMiddleware",
    "ToolPolicyMiddleware",
    "ToolPredicate",
    "ToolSelectionContext",
    "ToolSelector",
    "model_guard",
)

if not TYPE_CHECKING:
    __getattr__, __dir__ = _lazy.names(__name__, _HOMES)
