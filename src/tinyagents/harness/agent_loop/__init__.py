"""The loop: one explicit state machine that every way of running an agent drives."""

from typing import TYPE_CHECKING

from .. import _lazy
from ._drive import drive, step
from ._result import AgentRun
from ._run import AgentSpec, LoopRun, SystemFunction
from ._snapshot import (
    SNAPSHOT_VERSION,
    ApprovalRule,
    Clearance,
    Counters,
    InterruptRequest,
    NestedRun,
    PendingCall,
    Phase,
    Repeats,
    RunSnapshot,
)

if TYPE_CHECKING:
    from ._approvals import check_answers

__all__ = (
    "SNAPSHOT_VERSION",
    "AgentRun",
    "AgentSpec",
    "ApprovalRule",
    "Clearance",
    "Counters",
    "InterruptRequest",
    "LoopRun",
    "NestedRun",
    "PendingCall",
    "Phase",
    "Repeats",
    "RunSnapshot",
    "SystemFunction",
    "check_answers",
    "drive",
    "step",
)

if not TYPE_CHECKING:
    # Most runs need no approval, and load nothing for it.
    __getattr__, __dir__ = _lazy.names(__name__, {"_approvals": ("check_answers",)})
