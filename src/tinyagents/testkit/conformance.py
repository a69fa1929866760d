"""Suites of tests for implementations of the library's protocols: see there for how."""

from ..harness.testkit.conformance import (
    CallCounterConformance,
    ChatModelConformance,
    HttpChatModelConformance,
    RateLimiterConformance,
    ResponseCacheConformance,
    SummarizerConformance,
    WireAnswer,
    WireRequest,
    cut,
)

__all__ = (
    "CallCounterConformance",
    "ChatModelConformance",
    "HttpChatModelConformance",
    "RateLimiterConformance",
    "ResponseCacheConformance",
    "SummarizerConformance",
    "WireAnswer",
    "WireRequest",
    "cut",
)
