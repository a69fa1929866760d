"""How many calls may be made in a while: bursts, waits in order, and what is given back."""

import threading
from typing import Any

import pytest

from tinyagents.harness.errors import ConfigurationError, LimitExceededError
from tinyagents.harness.retry import TokenBucketRateLimiter


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def bucket(capacity: float, rate: float) -> tuple[TokenBucketRateLimiter, Clock]:
    clock = Clock()
    return TokenBucketRateLimiter(capacity, rate, clock=clock), clock


def test_a_full_bucket_allows_a_burst_and_then_holds_back_in_order() -> None:
    limiter, clock = bucket(2, 0.5)
    assert [limiter.reserve() for _ in range(4)] == [0.0, 0.0, 2.0, 4.0]
    clock.now += 4
    assert limiter.available == 0.0
    assert limiter.reserve() == 2.0


def test_a_bucket_never_holds_more_than_it_can() -> None:
    limiter, clock = bucket(3, 1)
    clock.now += 1_000
    assert limiter.available == 3
    limiter.give_back(5)
    assert limiter.available == 3


def test_what_is_given_back_can_be_taken_again() -> None:
    limiter, _ = bucket(1, 1)
    limiter.reserve()
    assert limiter.reserve() == 1.0
    limiter.give_back()
    assert limiter.reserve() == 1.0


def test_what_can_never_be_had_is_refused_at_once_and_takes_nothing() -> None:
    limiter, _ = bucket(2, 1)
    with pytest.raises(LimitExceededError, match="never") as caught:
        limiter.reserve(3)
    assert (caught.value.limit, caught.value.maximum) == ("rate", 2)
    assert limiter.available == 2
    dry, _ = bucket(1, 0)
    assert dry.reserve() == 0.0
    with pytest.raises(LimitExceededError, match="never"):
        dry.reserve()


def test_a_clock_that_goes_back_takes_nothing_away() -> None:
    limiter, clock = bucket(2, 1)
    limiter.reserve(2)
    clock.now -= 50
    assert limiter.available == 0


def test_threads_never_take_the_same_token() -> None:
    limiter, _ = bucket(100, 1)
    waits: list[float] = []

    def take() -> None:
        waits.extend(limiter.reserve() for _ in range(50))

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(waits) == [0.0] * 100 + [float(n) for n in range(1, 101)]


@pytest.mark.parametrize(
    ("capacity", "rate"), [(0, 1), (-1, 1), (1, -1), (float("nan"), 1), (1, float("inf"))]
)
def test_odd_sizes_are_refused(capacity: float, rate: float) -> None:
    with pytest.raises(ConfigurationError, match="number"):
        TokenBucketRateLimiter(capacity, rate)


@pytest.mark.parametrize("odd", [-1, float("nan")])
def test_odd_amounts_are_refused(odd: Any) -> None:
    with pytest.raises(ConfigurationError, match="0 or more"):
        bucket(1, 1)[0].reserve(odd)
    limiter, _ = bucket(1, 1)
    with pytest.raises(ConfigurationError, match="0 or more"):
        limiter.give_back(odd)
    assert limiter.available == 1


def test_a_wait_without_an_end_is_refused() -> None:
    limiter, _ = bucket(1, 1e-320)
    limiter.reserve()
    with pytest.raises(LimitExceededError, match="never"):
        limiter.reserve()
    assert limiter.available == pytest.approx(0)
