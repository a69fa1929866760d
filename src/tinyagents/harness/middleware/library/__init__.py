"""The middlewares that come with the library; import them from ``tinyagents.harness.middleware``."""

from ._human_approval import HumanApprovalMiddleware
from ._prompt_cache_guard import PromptCacheGuardMiddleware

__all__ = ("HumanApprovalMiddleware", "PromptCacheGuardMiddleware")
