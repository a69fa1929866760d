"""The loop: one explicit state machine that every way of running an agent drives."""

from ._drive import drive, step
from ._result import AgentRun
from ._run import AgentSpec, LoopRun, SystemFunction
from ._snapshot import (
    SNAPSHOT_VERSION,
    Counters,
    InterruptRequest,
    PendingCall,
    Phase,
    Repeats,
    RunSnapshot,
)

__all__ = (
    "SNAPSHOT_VERSION",
    "AgentRun",
    "AgentSpec",
    "Counters",
    "InterruptRequest",
    "LoopRun",
    "PendingCall",
    "Phase",
    "Repeats",
    "RunSnapshot",
    "SystemFunction",
    "drive",
    "step",
)
