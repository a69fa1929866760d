"""The middlewares that come with the library; import them from ``tinyagents.harness.middleware``."""

from ._human_approval import HumanApprovalMiddleware

__all__ = ("HumanApprovalMiddleware",)
