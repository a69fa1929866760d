"""Policies as data."""

import pytest

from tinyagents import RunLimits, RunPolicy
from tinyagents.harness.policy import PayloadCapture, ToolTimeoutSettings, UnknownToolPolicy


def test_the_defaults_are_the_strict_policy() -> None:
    assert RunPolicy() == RunPolicy.strict()
    policy = RunPolicy.strict()
    assert (policy.on_limit, policy.on_wall_clock) == ("error", "error")
    assert policy.unknown_tool == UnknownToolPolicy.fail()
    assert policy.invalid_args == "return_tool_error"
    assert policy.refused_tools == "fail"
    assert policy.truncated_empty_retries == 1
    assert not policy.error_on_empty_response
    assert policy.capture.is_disabled()


def test_the_resilient_policy_goes_on_where_it_can() -> None:
    policy = RunPolicy.resilient()
    assert (policy.on_limit, policy.on_wall_clock) == ("stop_with_partial", "stop_with_partial")
    assert policy.unknown_tool.action == "return_tool_error"
    assert policy.invalid_args == "normalize_then_return_tool_error"
    assert policy.refused_tools == "return_to_model"


def test_limits_are_replaced_in_a_copy() -> None:
    policy = RunPolicy()
    assert policy.with_limits(RunLimits(max_depth=1)).limits.max_depth == 1
    assert policy.limits.max_depth == 8


def test_everything_can_be_captured() -> None:
    assert PayloadCapture.all() == PayloadCapture(model_io=True, tool_io=True)
    assert not PayloadCapture(tool_io=True).is_disabled()


@pytest.mark.parametrize(
    ("own", "seconds"),
    [("inherit", 7.0), (None, None), (0.0, 1.5), (5.0, 5.5), (100.0, 10.5)],
)
def test_a_tool_timeout_is_held_between_the_bounds(own: object, seconds: float | None) -> None:
    settings = ToolTimeoutSettings(inherited=7.0, minimum=1.0, maximum=10.0, grace=0.5)
    assert settings.resolve(own) == seconds  # type: ignore[arg-type]


def test_an_unknown_tool_policy_says_where_to() -> None:
    assert UnknownToolPolicy.rewrite("search").tool_name == "search"
