"""Options that cannot work are refused when something is built, with the value and what to pass."""

import math
from typing import Any

import pytest

from tinyagents import AgentHarness, tool
from tinyagents.harness.errors import ConfigurationError
from tinyagents.harness.middleware import (
    MessageTrimMiddleware,
    RetryMiddleware,
    ToolCallLimitMiddleware,
    ToolRetryMiddleware,
)
from tinyagents.harness.options import (
    check_above_zero,
    check_at_least,
    check_choice,
    check_kind,
    names_of,
)
from tinyagents.harness.retry import RetryPolicy
from tinyagents.harness.summarization import TrimStrategy
from tinyagents.testkit import FakeChatModel

ODD: list[Any] = ["3", True, math.nan, math.inf, [1]]


@pytest.mark.parametrize("value", [-1, *ODD])
def test_a_number_below_the_least_is_refused(value: Any) -> None:
    with pytest.raises(ConfigurationError, match="`b` is .*: it is a number of 0 or more"):
        check_at_least(0, a=None, b=value)
    check_at_least(0, a=None, b=0)


@pytest.mark.parametrize("value", [0, -0.5, *ODD])
def test_a_number_that_is_not_above_0_is_refused(value: Any) -> None:
    with pytest.raises(ConfigurationError, match="`b` is .*: it is a number above 0"):
        check_above_zero(a=0.5, b=value)


def test_a_word_that_is_no_choice_is_refused_and_the_choices_are_named() -> None:
    check_choice("mode", "wait", ("wait", "error"))
    with pytest.raises(ConfigurationError, match="`mode` is 'x'; it may be 'a', 'b' or 'c'"):
        check_choice("mode", "x", ("a", "b", "c"))


def test_a_value_of_another_class_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"`n` is 'x': pass a `int`, such as `3`"):
        check_kind("n", "x", int, like="3")


def test_names_are_a_set_and_never_the_letters_of_one() -> None:
    assert names_of("tools", ["a", "b", "a"]) == {"a", "b"}
    assert names_of("tools", None) is None
    with pytest.raises(ConfigurationError, match=r"`tools` holds names: pass \['look'\]"):
        names_of("tools", "look")


@tool
async def look() -> str:
    """Look."""
    return ""


def wrong(value: object) -> Any:
    """What a user without a type checker passes."""
    return value


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: RetryMiddleware(wrong(3)), r"`policy` is 3: pass a `RetryPolicy`, such as"),
        (lambda: ToolRetryMiddleware(wrong(3)), r"`policy` is 3: pass a `RetryPolicy`, such as"),
        (lambda: MessageTrimMiddleware(wrong(20)), r"such as `TrimStrategy\.keep_last\(20\)`"),
        (
            lambda: MessageTrimMiddleware(TrimStrategy.keep_last(2), start_on=wrong("user")),
            r"`start_on` holds names: pass \['user'\]",
        ),
        (
            lambda: MessageTrimMiddleware(TrimStrategy.keep_last(2), end_on=[wrong("human")]),
            "`end_on` is 'human'; it may be 'system', 'user', 'assistant' or 'tool'",
        ),
        (
            lambda: ToolCallLimitMiddleware(wrong(["a", "b"]), run_limit=1),
            "register a limit for each tool",
        ),
        (
            lambda: AgentHarness(FakeChatModel("hi"), tools=wrong(look)),
            "`tools` takes a list: pass",
        ),
    ],
)
def test_what_would_fail_in_the_middle_of_a_run_is_refused_before(make: Any, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        make()


def test_what_fits_is_taken() -> None:
    RetryMiddleware(RetryPolicy(max_attempts=2))
    MessageTrimMiddleware(TrimStrategy.keep_last(2), start_on=["user"], end_on={"user", "tool"})
