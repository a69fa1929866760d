"""Limits as data: what lowers what."""

import pytest
from pydantic import ValidationError

from tinyagents import AgentHarness, RunConfig, RunLimits, RunSnapshot


def test_the_defaults_are_those_of_the_documentation() -> None:
    limits = RunLimits()
    assert (limits.max_model_calls, limits.max_tool_calls) == (25, 50)
    assert (limits.max_retries_per_call, limits.max_depth) == (3, 8)
    assert limits.wall_clock is limits.model_timeout is limits.max_output_tokens is None


def test_only_what_is_set_and_lower_tightens() -> None:
    mine = RunLimits(max_model_calls=100, wall_clock=30)
    assert mine.tightened(None) is mine
    assert mine.tightened(RunLimits()) is mine
    other = RunLimits(max_model_calls=200, max_tool_calls=2, wall_clock=10, max_output_tokens=64)
    assert mine.tightened(other) == RunLimits(
        max_model_calls=100, max_tool_calls=2, wall_clock=10, max_output_tokens=64
    )


def test_an_unset_limit_does_not_lift_one_that_is_set() -> None:
    assert RunLimits(wall_clock=5).tightened(RunLimits(wall_clock=None)).wall_clock == 5


@pytest.mark.parametrize("wrong", [{"max_model_calls": -1}, {"wall_clock": 0}, {"calls": 3}])
def test_nonsense_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValidationError):
        RunLimits(**wrong)


def test_a_config_that_was_stored_lowers_no_more_than_before() -> None:
    config = RunConfig(run_id="r", limits=RunLimits(wall_clock=30))
    loaded = RunConfig.model_validate_json(config.model_dump_json())
    assert loaded == config
    wide = RunLimits(max_model_calls=100)
    assert loaded.limits is not None
    assert wide.tightened(loaded.limits).max_model_calls == 100


def test_a_snapshot_that_was_stored_keeps_the_limits_of_its_run() -> None:
    harness = AgentHarness(model="ollama:x", limits=RunLimits(max_model_calls=100))
    config = RunConfig(limits=RunLimits(max_tool_calls=3))
    stored = harness.snapshot("hi", config=config).model_dump_json()
    loaded = RunSnapshot.model_validate_json(stored).config.limits
    assert loaded is not None
    assert loaded.model_fields_set == {"max_tool_calls"}
