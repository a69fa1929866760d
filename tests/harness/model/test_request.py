import pytest
from pydantic import ValidationError

from tinyagents.harness.message import UserMessage
from tinyagents.harness.model import ModelRequest, ModelSettings, ReasoningConfig


def test_a_request_asks_for_nothing_in_particular_unless_told() -> None:
    request = ModelRequest(messages=[UserMessage(content="hi")])
    assert request.settings == ModelSettings()
    assert (request.tools, request.tool_choice, request.response_format) == ((), "auto", None)
    assert (request.model, request.reuse_previous_model, request.cache) == (None, False, None)


def test_requests_do_not_share_their_metadata() -> None:
    first, second = ModelRequest(messages=[]), ModelRequest(messages=[])
    assert first.metadata is not second.metadata


def test_settings_laid_over_others_replace_those_that_they_set() -> None:
    base = ModelSettings(temperature=0.5, max_tokens=100)
    over = ModelSettings(temperature=0.0, seed=7)
    assert base.merged(over) == ModelSettings(temperature=0.0, max_tokens=100, seed=7)
    assert base.temperature == 0.5


def test_a_setting_that_is_set_to_none_gives_the_choice_back_to_the_provider() -> None:
    merged = ModelSettings(temperature=0.5).merged(ModelSettings(temperature=None))
    assert merged.temperature is None
    assert ModelSettings(temperature=0.5).merged(ModelSettings()).temperature == 0.5


def test_settings_without_others_over_them_are_themselves() -> None:
    settings = ModelSettings(temperature=0.5)
    assert settings.merged(None) is settings
    assert settings.merged(ModelSettings()) is settings


def test_headers_and_options_are_merged_key_by_key() -> None:
    base = ModelSettings(extra_headers={"a": "1", "b": "1"}, provider_options={"x": 1})
    over = ModelSettings(extra_headers={"b": "2"}, provider_options={"y": 2})
    merged = base.merged(over)
    assert merged.extra_headers == {"a": "1", "b": "2"}
    assert merged.provider_options == {"x": 1, "y": 2}
    assert base.extra_headers == {"a": "1", "b": "1"}


def test_merging_goes_on_from_what_was_merged() -> None:
    layers = [
        ModelSettings(max_tokens=1),
        ModelSettings(temperature=0.5),
        ModelSettings(reasoning=ReasoningConfig(effort="low")),
    ]
    settings = ModelSettings()
    for layer in layers:
        settings = settings.merged(layer)
    assert ModelSettings(seed=1).merged(settings) == ModelSettings(
        seed=1, max_tokens=1, temperature=0.5, reasoning=ReasoningConfig(effort="low")
    )


def test_headers_are_not_shown_in_a_repr() -> None:
    settings = ModelSettings(extra_headers={"Authorization": "Bearer sk-1"})
    assert "sk-1" not in repr(settings)
    assert "sk-1" not in repr(ModelRequest(messages=[], settings=settings))


def test_settings_are_frozen_and_unknown_ones_refused() -> None:
    with pytest.raises(ValidationError):
        ModelSettings.model_validate({"temprature": 1})
    with pytest.raises(ValidationError, match="frozen"):
        ModelSettings().temperature = 1.0  # type: ignore[misc]


def test_settings_round_trip_through_json() -> None:
    settings = ModelSettings(
        stop=("a", "b"), extra_headers={"a": "1"}, reasoning=ReasoningConfig(budget_tokens=9)
    )
    assert ModelSettings.model_validate_json(settings.model_dump_json()) == settings
