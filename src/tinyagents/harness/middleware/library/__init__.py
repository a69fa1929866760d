"""The middlewares that come with the library; import them from ``tinyagents.harness.middleware``."""

from typing import TYPE_CHECKING

from ... import _lazy

if TYPE_CHECKING:
    from ._artifacts import ArtifactMiddleware
    from ._handoff import HandoffMiddleware
    from ._human_approval import HumanApprovalMiddleware

_HOMES = {
    "_artifacts": ("ArtifactMiddleware",),
    "_handoff": ("HandoffMiddleware",),
    "_human_approval": ("HumanApprovalMiddleware",),
}

__all__ = (
    "ArtifactMiddleware",
    "HandoffMiddleware",
    "HumanApprovalMiddleware",
)

if not TYPE_CHECKING:
    __getattr__, __dir__ = _lazy.names(__name__, _HOMES)
