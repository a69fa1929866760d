from typing import Any

import pytest

from tinyagents.harness.model import CapabilitySet, ModelProfile

FLAGS = [
    "tool_calling",
    "parallel_tool_calls",
    "streaming",
    "streaming_tool_chunks",
    "native_structured_output",
    "json_schema",
    "reasoning",
]


def test_no_demands_are_met_by_a_model_of_which_nothing_is_known() -> None:
    assert ModelProfile().satisfies(CapabilitySet())


@pytest.mark.parametrize("flag", FLAGS)
def test_a_demanded_ability_must_be_known_to_be_there(flag: str) -> None:
    demands = CapabilitySet.model_validate({flag: True})
    having: dict[str, Any] = {flag: True}
    lacking: dict[str, Any] = {flag: False}
    assert ModelProfile(**having).satisfies(demands)
    assert ModelProfile(**lacking).missing(demands) == [flag]
    assert ModelProfile().missing(demands) == [flag]


def test_every_ability_that_can_be_demanded_is_checked() -> None:
    flags = [name for name, field in CapabilitySet.model_fields.items() if field.default is False]
    assert flags == FLAGS


def test_each_demanded_modality_must_be_there() -> None:
    profile = ModelProfile(input_modalities=frozenset({"text", "image"}))
    assert profile.satisfies(CapabilitySet(input_modalities=frozenset({"image"})))
    assert profile.missing(
        CapabilitySet(
            input_modalities=frozenset({"audio", "image", "file"}),
            output_modalities=frozenset({"audio"}),
        )
    ) == ["input_modalities: audio", "input_modalities: file", "output_modalities: audio"]


@pytest.mark.parametrize(
    ("capacity", "enough"), [(None, False), (99_999, False), (100_000, True), (200_000, True)]
)
def test_a_demanded_size_fails_where_the_capacity_is_smaller_or_not_known(
    capacity: int | None, enough: bool
) -> None:
    profile = ModelProfile(max_input_tokens=capacity, max_output_tokens=capacity)
    for demands in (
        CapabilitySet(min_input_tokens=100_000),
        CapabilitySet(min_output_tokens=100_000),
    ):
        assert profile.satisfies(demands) is enough


def test_a_profile_round_trips_through_json() -> None:
    profile = ModelProfile(
        provider="openai", model="m", tool_calling=True, input_modalities=frozenset({"text"})
    )
    assert ModelProfile.model_validate_json(profile.model_dump_json()) == profile


def test_a_permissive_profile_meets_every_demand_but_that_of_a_size() -> None:
    profile = ModelProfile.permissive("local", "any")
    assert (profile.provider, profile.model) == ("local", "any")
    demands = CapabilitySet(
        tool_calling=True,
        parallel_tool_calls=True,
        streaming=True,
        streaming_tool_chunks=True,
        native_structured_output=True,
        json_schema=True,
        reasoning=True,
        input_modalities=frozenset({"text", "image", "audio", "file"}),
        min_input_tokens=1,
    )
    assert profile.missing(demands) == ["min_input_tokens: 1"]
