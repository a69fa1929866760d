"""Approvals: what a call that needs consent asks for, and what a person may answer.

A request is stored in a run's snapshot and sent to whoever decides; a decision comes back from
there. Both are data.
"""

from ._decisions import (
    ALL_DECISIONS,
    Approve,
    Decision,
    DecisionKind,
    Edit,
    Reject,
    Respond,
    parse_decision,
)
from ._needs import ApprovalNeed, Approver
from ._requests import (
    ApprovalRequest,
    ExternalCallRequest,
    Request,
    arguments_hash,
    check_decision,
    parse_request,
)

__all__ = (
    "ALL_DECISIONS",
    "ApprovalNeed",
    "ApprovalRequest",
    "Approve",
    "Approver",
    "Decision",
    "DecisionKind",
    "Edit",
    "ExternalCallRequest",
    "Reject",
    "Request",
    "Respond",
    "arguments_hash",
    "check_decision",
    "parse_decision",
    "parse_request",
)
