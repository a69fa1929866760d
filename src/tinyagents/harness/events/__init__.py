"""Events: what happened in a run, in order, for streams, journals, metrics and tests.

The classes of the kinds are loaded when one is first used: a run that nobody observes needs none.
"""

from typing import TYPE_CHECKING

from ._sink import EventListener, EventLog, EventOrigin, EventSink, EventStamp, ListenerLike

if TYPE_CHECKING:
    from ._kinds import (
        AgentEvent,
        BudgetExceeded,
        BudgetReconciled,
        BudgetReserved,
        BudgetWarning,
        CacheHit,
        CacheMiss,
        Compressed,
        ControlApplied,
        CostRecorded,
        Custom,
        FallbackSelected,
        FallbackSkipped,
        InjectedArgsDropped,
        InvalidToolArgs,
        LimitReached,
        MemoryLoaded,
        MemorySaved,
        MessagesRepaired,
        MiddlewareCompleted,
        MiddlewareFailed,
        MiddlewareStarted,
        ModelCancelled,
        ModelCompleted,
        ModelDelta,
        ModelFailed,
        ModelOverrideSkipped,
        ModelStarted,
        RateLimitWaited,
        RetryScheduled,
        RouteSelected,
        RunCompleted,
        RunFailed,
        RunInterrupted,
        RunPaused,
        RunStarted,
        StateUpdated,
        Steered,
        StreamClosed,
        SubAgentCompleted,
        SubAgentFailed,
        SubAgentReused,
        SubAgentStarted,
        ToolCancelled,
        ToolCompleted,
        ToolFailed,
        ToolInterrupted,
        ToolProgress,
        ToolsFiltered,
        ToolStarted,
        UnknownToolCall,
        UsageRecorded,
        WorkspaceCleanup,
        WorkspacePrepared,
        WorkspaceViolation,
        event_class,
        event_kinds,
        load_event,
    )
    from ._status import ExecutionStatus, HarnessRunStatus

__all__ = (
    "AgentEvent",
    "BudgetExceeded",
    "BudgetReconciled",
    "BudgetReserved",
    "BudgetWarning",
    "CacheHit",
    "CacheMiss",
    "Compressed",
    "ControlApplied",
    "CostRecorded",
    "Custom",
    "EventListener",
    "EventLog",
    "EventOrigin",
    "EventSink",
    "EventStamp",
    "ExecutionStatus",
    "FallbackSelected",
    "FallbackSkipped",
    "HarnessRunStatus",
    "InjectedArgsDropped",
    "InvalidToolArgs",
    "LimitReached",
    "ListenerLike",
    "MemoryLoaded",
    "MemorySaved",
    "MessagesRepaired",
    "MiddlewareCompleted",
    "MiddlewareFailed",
    "MiddlewareStarted",
    "ModelCancelled",
    "ModelCompleted",
    "ModelDelta",
    "ModelFailed",
    "ModelOverrideSkipped",
    "ModelStarted",
    "RateLimitWaited",
    "RetryScheduled",
    "RouteSelected",
    "RunCompleted",
    "RunFailed",
    "RunInterrupted",
    "RunPaused",
    "RunStarted",
    "StateUpdated",
    "Steered",
    "StreamClosed",
    "SubAgentCompleted",
    "SubAgentFailed",
    "SubAgentReused",
    "SubAgentStarted",
    "ToolCancelled",
    "ToolCompleted",
    "ToolFailed",
    "ToolInterrupted",
    "ToolProgress",
    "ToolStarted",
    "ToolsFiltered",
    "UnknownToolCall",
    "UsageRecorded",
    "WorkspaceCleanup",
    "WorkspacePrepared",
    "WorkspaceViolation",
    "event_class",
    "event_kinds",
    "load_event",
)


def __getattr__(name: str) -> object:
    if name in ("ExecutionStatus", "HarnessRunStatus"):
        from . import _status

        return getattr(_status, name)
    if name in __all__:
        from . import _kinds

        return getattr(_kinds, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
