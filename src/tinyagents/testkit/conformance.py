"""Suites of tests for implementations of the library's protocols: see there for how."""

from ..harness.testkit.conformance import (
    ChatModelConformance,
    HttpChatModelConformance,
    SummarizerConformance,
    WireAnswer,
    WireRequest,
    cut,
)

__all__ = (
    "ChatModelConformance",
    "HttpChatModelConformance",
    "SummarizerConformance",
    "WireAnswer",
    "WireRequest",
    "cut",
)
