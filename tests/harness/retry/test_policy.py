import pytest
from hypothesis import given, strategies as st

from tinyagents.harness.errors import (
    BadRequestError,
    InvalidRequestError,
    NetworkError,
    RateLimitError,
    ServerError,
)
from tinyagents.harness.retry import FallbackPolicy, RetryPolicy, is_retryable


def test_an_error_says_itself_whether_it_is_worth_another_call() -> None:
    assert is_retryable(NetworkError("broke"))
    assert not is_retryable(BadRequestError("no"))
    assert not is_retryable(RateLimitError("quota used up", retryable=False))
    assert is_retryable(BadRequestError("odd gateway", retryable=True))
    assert not is_retryable(RuntimeError("unknown"))
    assert not is_retryable(KeyboardInterrupt())


def test_calls_are_made_again_until_there_were_as_many_as_allowed() -> None:
    policy = RetryPolicy(max_attempts=3)
    error = ServerError("busy")
    assert [policy.should_retry(error, attempt) for attempt in (1, 2, 3)] == [True, True, False]


def test_a_policy_of_one_attempt_never_retries() -> None:
    assert not RetryPolicy(max_attempts=1).should_retry(ServerError("busy"), 1)


def test_a_predicate_replaces_the_classification_but_not_the_limit() -> None:
    policy = RetryPolicy(retry_on=lambda error: isinstance(error, InvalidRequestError))
    assert policy.should_retry(InvalidRequestError("odd"), 1)
    assert not policy.should_retry(ServerError("busy"), 1)
    assert not policy.should_retry(InvalidRequestError("odd"), policy.max_attempts)


def test_waits_double_up_to_the_longest() -> None:
    policy = RetryPolicy(initial_backoff=0.5, max_backoff=3.0)
    assert [policy.delay_after(attempt) for attempt in (1, 2, 3, 4)] == [0.5, 1.0, 2.0, 3.0]


def test_a_wait_after_very_many_attempts_is_still_the_longest() -> None:
    assert RetryPolicy().delay_after(100_000) == 30.0


def test_the_provider_can_only_make_a_wait_longer() -> None:
    policy = RetryPolicy(initial_backoff=2.0)
    assert policy.delay_after(1, RateLimitError("busy", retry_after=7)) == 7
    assert policy.delay_after(1, RateLimitError("busy", retry_after=0)) == 2.0
    assert policy.delay_after(1, RateLimitError("busy")) == 2.0


def test_the_provider_may_ask_for_more_than_the_longest_backoff_up_to_a_cap() -> None:
    policy = RetryPolicy(max_backoff=1.0, max_retry_after=60.0)
    assert policy.delay_after(1, RateLimitError("busy", retry_after=45)) == 45
    assert policy.delay_after(1, RateLimitError("busy", retry_after=3600)) == 60


def test_jitter_is_applied_before_the_cap() -> None:
    policy = RetryPolicy(initial_backoff=4.0, max_backoff=4.5, jitter=0.25)
    assert policy.delay_after(1, uniform=lambda low, high: high) == 4.5
    assert policy.delay_after(1, uniform=lambda low, high: low) == 3.0


@given(st.integers(1, 50), st.floats(0, 2))
def test_a_wait_with_jitter_stays_within_its_part_and_the_cap(attempt: int, jitter: float) -> None:
    plain = RetryPolicy().delay_after(attempt)
    varied = RetryPolicy(jitter=jitter).delay_after(attempt)
    assert 0 <= varied <= 30.0
    if plain < 30.0:
        assert plain * (1 - jitter) - 1e-9 <= varied <= plain * (1 + jitter) + 1e-9


@pytest.mark.parametrize(
    ("current", "following"), [("a", "b"), ("b", "c"), ("c", None), ("x", None)]
)
def test_next_after_is_the_entry_behind_the_named_one(current: str, following: str | None) -> None:
    assert FallbackPolicy(models=("a", "b", "c")).next_after(current) == following


def test_next_after_goes_by_the_first_of_a_repeated_entry() -> None:
    assert FallbackPolicy(models=("a", "b", "a", "c")).next_after("a") == "b"


@pytest.mark.parametrize(("failed", "other"), [("x", "a"), ("a", "b"), ("b", None)])
def test_the_successor_of_a_model_outside_the_chain_is_its_first(
    failed: str, other: str | None
) -> None:
    assert FallbackPolicy(models=("a", "b")).successor(failed) == other


def test_an_empty_chain_has_no_successor() -> None:
    assert FallbackPolicy().successor("a") is None
    assert FallbackPolicy().next_after("a") is None
