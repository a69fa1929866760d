"""Suites of tests for implementations of the library's protocols, to be inherited in pytest.

A suite is a class: give it a factory, and pytest runs all of its tests on what that makes. It needs
pytest, which nothing else of the testkit does.
"""

from ._call_counter import CallCounterConformance
from ._chat_model import ChatModelConformance
from ._http_chat_model import HttpChatModelConformance
from ._rate_limiter import RateLimiterConformance
from ._response_cache import ResponseCacheConformance
from ._summarizer import SummarizerConformance
from ._wire import WireAnswer, WireRequest, cut

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
