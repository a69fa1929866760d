"""When a failed call is made again, which model takes over, and how many calls may be made in a while."""

from ._policy import FallbackPolicy, RetryPolicy, is_retryable
from ._rate_limit import RateLimiter, TokenBucketRateLimiter

__all__ = (
    "FallbackPolicy",
    "RateLimiter",
    "RetryPolicy",
    "TokenBucketRateLimiter",
    "is_retryable",
)
