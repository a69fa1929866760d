"""Suites of tests for implementations of the library's protocols: see there for how."""

from ..harness.testkit.conformance import (
    ChatModelConformance,
    HttpChatModelConformance,
    ResponseCacheConformance,
    SummarizerConformance,
    WireAnswer,
    WireRequest,
    cut,
)

__all__ = (
    "ChatModelConformance",
    "HttpChatModelConformance",
    "ResponseCacheConformance",
    "SummarizerConformance",
    "WireAnswer",
    "WireRequest",
    "cut",
)
