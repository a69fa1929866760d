"""The suites for rate limiters and counters of calls: what is here passes, and what is broken does not."""

import inspect
import threading
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio
import pytest

from tinyagents.harness.call_counter import CallCounter, InMemoryCallCounter
from tinyagents.harness.retry import RateLimiter, TokenBucketRateLimiter
from tinyagents.testkit.conformance import CallCounterConformance, RateLimiterConformance


class TestTokenBucketRateLimiter(RateLimiterConformance):
    def limiter(self, tokens: int) -> RateLimiter:
        return TokenBucketRateLimiter(tokens, 0.001)


class TestInMemoryCallCounter(CallCounterConformance):
    def counter(self) -> CallCounter:
        return InMemoryCallCounter()


class NeverFull(TokenBucketRateLimiter):
    def reserve(self, tokens: float = 1.0, /) -> float:
        return 0.0


class Polled(TokenBucketRateLimiter):
    """Says when there is room for one more, and keeps no place."""

    def reserve(self, tokens: float = 1.0, /) -> float:
        seconds = super().reserve(tokens)
        if seconds:
            super().give_back(tokens)
        return seconds


class Keeping(TokenBucketRateLimiter):
    def give_back(self, tokens: float = 1.0, /) -> None:
        pass


class Growing(TokenBucketRateLimiter):
    def give_back(self, tokens: float = 1.0, /) -> None:
        self.capacity += tokens
        super().give_back(tokens)


class Patient(TokenBucketRateLimiter):
    def reserve(self, tokens: float = 1.0, /) -> float:
        return super().reserve(min(tokens, self.capacity))


class Racing:
    """Looks, and takes later."""

    def __init__(self, tokens: float, _: float) -> None:
        self.left = tokens
        self._pause = threading.Event()

    def reserve(self, tokens: float = 1.0, /) -> float:
        left = self.left
        self._pause.wait(0.0001)
        self.left = left - tokens
        return 0.0 if self.left >= 0 else -self.left

    def give_back(self, tokens: float = 1.0, /) -> None:
        self.left += tokens


@pytest.mark.parametrize(
    ("broken", "caught_by"),
    [
        (NeverFull, "test_who_comes_later_waits_longer"),
        (Polled, "test_who_comes_later_waits_longer"),
        (Keeping, "test_what_is_given_back_may_be_taken_again"),
        (Keeping, "test_a_place_in_the_line_can_be_given_back"),
        (Growing, "test_giving_back_makes_no_room_that_was_not_there"),
        (Patient, "test_what_can_never_be_had_is_refused_and_takes_nothing"),
        (Racing, "test_threads_never_take_the_same_token"),
    ],
)
def test_a_broken_limiter_is_found(broken: Any, caught_by: str) -> None:
    class Suite(RateLimiterConformance):
        def limiter(self, tokens: int) -> RateLimiter:
            made: RateLimiter = broken(tokens, 0.001)
            return made

    with pytest.raises((AssertionError, pytest.fail.Exception)):
        getattr(Suite(), caught_by)()


class Generous(InMemoryCallCounter):
    async def take(self, key: str, wanted: int, maximum: int, /) -> int:
        return wanted


class OneKey(InMemoryCallCounter):
    async def take(self, key: str, wanted: int, maximum: int, /) -> int:
        return await super().take("", wanted, maximum)


class Hurried(InMemoryCallCounter):
    """Looks, and counts later."""

    async def take(self, key: str, wanted: int, maximum: int, /) -> int:
        used = self._used.get(key, 0)
        await anyio.lowlevel.checkpoint()
        allowed = max(0, min(wanted, maximum - used))
        self._used[key] = used + allowed
        return allowed


class Indebted(InMemoryCallCounter):
    async def give_back(self, key: str, count: int, /) -> None:
        self._used[key] = self._used.get(key, 0) - count


class Deaf(InMemoryCallCounter):
    async def give_back(self, key: str, count: int, /) -> None:
        pass


class Negative(InMemoryCallCounter):
    async def take(self, key: str, wanted: int, maximum: int, /) -> int:
        allowed = min(wanted, maximum - self._used.get(key, 0))
        self._used[key] = self._used.get(key, 0) + allowed
        return allowed


@pytest.mark.parametrize(
    ("broken", "caught_by"),
    [
        (Generous, "test_no_more_than_the_maximum_is_ever_allowed"),
        (OneKey, "test_keys_are_counted_apart"),
        (Hurried, "test_calls_at_once_share_what_is_left"),
        (Indebted, "test_the_count_never_falls_below_nothing"),
        (Deaf, "test_what_is_given_back_may_be_taken_again"),
        (Negative, "test_a_maximum_that_was_lowered_allows_nothing"),
    ],
)
async def test_a_broken_counter_is_found(broken: type[InMemoryCallCounter], caught_by: str) -> None:
    class Suite(CallCounterConformance):
        def counter(self) -> CallCounter:
            return broken()

    with pytest.raises(AssertionError):
        await getattr(Suite(), caught_by)()


async def test_a_counter_that_is_opened_is_opened_and_closed_by_each_test() -> None:
    steps: list[str] = []

    class Opened(AbstractAsyncContextManager[CallCounter]):
        async def __aenter__(self) -> CallCounter:
            steps.append("opened")
            return InMemoryCallCounter()

        async def __aexit__(self, *exc: object) -> None:
            steps.append("closed")

    class Suite(CallCounterConformance):
        def counter(self) -> Opened:
            return Opened()

    await Suite().test_keys_are_counted_apart()
    assert steps == ["opened", "closed"]


def test_a_suite_without_a_factory_says_so() -> None:
    for suite, factory in (
        (RateLimiterConformance, "limiter"),
        (CallCounterConformance, "counter"),
    ):
        make = getattr(suite(), factory)
        with pytest.raises(TypeError, match=f"no `{factory}`"):
            make(*(1 for _ in inspect.signature(make).parameters))
