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
    from ._dynamic_prompt import DynamicPromptMiddleware, PromptFunction
    from ._dynamic_selection import DynamicToolSelectionMiddleware, ToolSelector
    from ._guardrail import GuardrailMiddleware
    from ._guards import Guard, GuardAction, Guarded, GuardStage, GuardVerdict, model_guard
    from ._handoff import HandoffMiddleware
    from ._human_approval import HumanApprovalMiddleware
    from ._logging import LoggingMiddleware
    from ._message_trim import MessageTrimMiddleware
    from ._model_call_limit import ModelCallLimitMiddleware
    from ._model_fallback import ModelFallbackMiddleware
    from ._model_routing import ModelRoute, ModelRoutingMiddleware, RouteFunction, RoutingContext
    from ._model_selection import ModelToolSelectionMiddleware
    from ._output_compression import OutputCompressionMiddleware
    from ._output_validator import StructuredOutputValidatorMiddleware
    from ._prompt_cache_guard import PromptCacheGuardMiddleware
    from ._rate_limit import RateLimitMiddleware
    from ._redaction import RedactionMiddleware, RedactionStage
    from ._refusal import RefusalMiddleware
    from ._retrieval_compression import RetrievalCompressionMiddleware
    from ._retry import RetryMiddleware
    from ._streaming_delta_compression import DeltaUnit, StreamingDeltaCompressionMiddleware
    from ._summarization import (
        ContextCompressionMiddleware,
        SummarizationMiddleware,
        SummaryFailurePolicy,
    )
    from ._timeout import TimeoutMiddleware
    from ._todo_list import TodoListMiddleware
    from ._tool_allowlist import ToolAllowlistMiddleware
    from ._tool_call_limit import ToolCallLimitMiddleware
    from ._tool_error_policy import ToolErrorPolicyMiddleware, ToolErrorText
    from ._tool_policy import ToolPolicyMiddleware
    from ._tool_retry import ToolRetryMiddleware
    from ._tracing import SpanKind, SpanStatus, TraceRecord, TracingMiddleware
    from ._transcript_compression import TranscriptCompressionMiddleware
    from ._usage_accounting import UsageAccount, UsageAccountingMiddleware

_HOMES = {
    "_dynamic_prompt": (
        "DynamicPromptMiddleware",
        "PromptFunction",
    ),
    "_logging": ("LoggingMiddleware",),
    "_model_routing": (
        "ModelRoute",
        "ModelRoutingMiddleware",
        "RouteFunction",
        "RoutingContext",
    ),
    "_refusal": ("RefusalMiddleware",),
    "_todo_list": ("TodoListMiddleware",),
    "_tracing": (
        "SpanKind",
        "SpanStatus",
        "TraceRecord",
        "TracingMiddleware",
    ),
    "_usage_accounting": (
        "UsageAccount",
        "UsageAccountingMiddleware",
    ),
    "_tool_error_policy": (
        "ToolErrorPolicyMiddleware",
        "ToolErrorText",
    ),
    "_tool_retry": ("ToolRetryMiddleware",),
    "_tool_call_limit": ("ToolCallLimitMiddleware",),
    "_model_call_limit": ("ModelCallLimitMiddleware",),
    "_rate_limit": ("RateLimitMiddleware",),
    "_model_fallback": ("ModelFallbackMiddleware",),
    "_timeout": ("TimeoutMiddleware",),
    "_retry": ("RetryMiddleware",),
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
    "_guardrail": ("GuardrailMiddleware",),
    "_guards": ("Guard", "GuardAction", "GuardStage", "GuardVerdict", "Guarded", "model_guard"),
    "_handoff": ("HandoffMiddleware",),
    "_human_approval": ("HumanApprovalMiddleware",),
    "_model_selection": ("ModelToolSelectionMiddleware",),
    "_output_validator": ("StructuredOutputValidatorMiddleware",),
    "_prompt_cache_guard": ("PromptCacheGuardMiddleware",),
    "_summarization": (
        "ContextCompressionMiddleware",
        "SummarizationMiddleware",
        "SummaryFailurePolicy",
    ),
    "_redaction": ("RedactionMiddleware", "RedactionStage"),
    "_streaming_delta_compression": ("DeltaUnit", "StreamingDeltaCompressionMiddleware"),
    "_tool_allowlist": ("ToolAllowlistMiddleware",),
    "_tool_policy": ("ToolPolicyMiddleware",),
}

__all__ = (
    "ArtifactMiddleware",
    "ContextCompressionMiddleware",
    "ContextEditingMiddleware",
    "ContextWindowMiddleware",
    "ContextualToolSelectionMiddleware",
    "DeltaUnit",
    "DynamicPromptMiddleware",
    "DynamicToolSelectionMiddleware",
    "Guard",
    "GuardAction",
    "GuardStage",
    "GuardVerdict",
    "Guarded",
    "GuardrailMiddleware",
    "HandoffMiddleware",
    "HumanApprovalMiddleware",
    "LoggingMiddleware",
    "MessageTrimMiddleware",
    "ModelCallLimitMiddleware",
    "ModelFallbackMiddleware",
    "ModelRoute",
    "ModelRoutingMiddleware",
    "ModelToolSelectionMiddleware",
    "OutputCompressionMiddleware",
    "PromptCacheGuardMiddleware",
    "PromptFunction",
    "RateLimitMiddleware",
    "RedactionMiddleware",
    "RedactionStage",
    "RefusalMiddleware",
    "RetrievalCompressionMiddleware",
    "RetryMiddleware",
    "RouteFunction",
    "RoutingContext",
    "SpanKind",
    "SpanStatus",
    "StreamingDeltaCompressionMiddleware",
    "StructuredOutputValidatorMiddleware",
    "SummarizationMiddleware",
    "SummaryFailurePolicy",
    "TimeoutMiddleware",
    "TodoListMiddleware",
    "ToolAllowlistMiddleware",
    "ToolCallLimitMiddleware",
    "ToolErrorPolicyMiddleware",
    "ToolErrorText",
    "ToolPolicyMiddleware",
    "ToolPredicate",
    "ToolRetryMiddleware",
    "ToolSelectionContext",
    "ToolSelector",
    "TraceRecord",
    "TracingMiddleware",
    "TranscriptCompressionMiddleware",
    "UsageAccount",
    "UsageAccountingMiddleware",
    "model_guard",
)

if not TYPE_CHECKING:
    __getattr__, __dir__ = _lazy.names(__name__, _HOMES)
