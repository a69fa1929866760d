"""The table of known models: its data, and what a caller adds to it."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tinyagents.harness.errors import ConfigurationError, ModelNotFoundError
from tinyagents.harness.model import CapabilitySet, ModelProfile, ModelRegistry, ModelRequest
from tinyagents.harness.providers import (
    AnthropicModel,
    GeminiModel,
    KnownModel,
    OllamaModel,
    OpenAIChatModel,
    OpenAIResponsesModel,
    ProfileTable,
    load_profiles,
    resolve_model,
)

BUILT_IN = ProfileTable.built_in()


def written(folder: Path, *rows: dict[str, Any]) -> Path:
    path = folder / "models.json"
    path.write_text(json.dumps({"models": rows}))
    return path


@pytest.mark.parametrize("row", BUILT_IN.models, ids=lambda row: row.match[0])
def test_every_row_says_where_its_facts_are_from_and_when(row: KnownModel) -> None:
    assert row.source.startswith("https://")
    assert row.as_of is not None
    if row.pricing is not None:
        assert row.priced_at
        assert 0 < row.pricing.input <= row.pricing.output
        assert row.pricing.cache_read is None or row.pricing.cache_read < row.pricing.input


@pytest.mark.parametrize(
    ("name", "provider", "window", "most", "price"),
    [
        ("gpt-4.1-mini", "openai", 1_047_576, 32_768, "0.4"),
        ("gpt-4.1-2025-04-14", "openai", 1_047_576, 32_768, "2"),
        ("gpt-5-nano", "openai", 400_000, 128_000, "0.05"),
        ("openai/gpt-5-nano", "openrouter", 400_000, 128_000, None),
        ("gpt-6-luna", "openai", 922_000, 128_000, "0.1"),
        ("claude-sonnet-4-20250514", "anthropic", 200_000, 64_000, "3"),
        ("claude-opus-5-5", "anthropic", 1_000_000, 128_000, "4"),
        ("claude-opus-5", "anthropic", 1_000_000, 128_000, "5"),
        ("anthropic/claude-opus-4.5", "openrouter", 200_000, 64_000, None),
        ("gemini-2.5-flash", "gemini", 1_048_576, 65_536, "0.3"),
        ("grok-4.5", "xai", 500_000, None, "2"),
    ],
)
def test_the_special_row_counts_and_a_price_only_where_it_is_asked(
    name: str, provider: str, window: int, most: int | None, price: str | None
) -> None:
    facts = BUILT_IN.facts(name, provider)
    assert facts["max_input_tokens"] == window
    assert facts.get("max_output_tokens") == most
    paid = facts.get("pricing")
    assert (paid.input if paid else None) == (Decimal(price) if price else None)


def test_a_file_stands_above_the_built_in_table_field_by_field(tmp_path: Path) -> None:
    row = {"match": "gpt-5-nano*", "max_output_tokens": 9, "pricing": {"input": "7", "output": "8"}}
    model = OpenAIChatModel("gpt-5-nano", profiles=load_profiles(written(tmp_path, row)))
    assert model.profile.max_output_tokens == 9
    assert model.profile.pricing is not None
    assert model.profile.pricing.output == 8
    assert model.profile.max_input_tokens == 400_000
    assert OpenAIChatModel("gpt-5-nano").profile.max_output_tokens == 128_000


def test_tables_can_be_stacked_and_made_in_code(tmp_path: Path) -> None:
    lower = load_profiles(
        written(tmp_path, {"match": ["x-1"], "max_input_tokens": 1, "status": "preview"})
    )
    upper = lower.with_models(KnownModel(match=("x-*",), provider="groq", max_input_tokens=2))
    assert upper.facts("X-1", "groq") == {"max_input_tokens": 2, "status": "preview"}
    assert upper.facts("x-1", "other") == {"max_input_tokens": 1, "status": "preview"}
    assert lower.facts("x-2") == {}


@pytest.mark.parametrize(
    "make",
    [
        lambda table: OpenAIChatModel("x-1", provider="groq", profiles=table),
        lambda table: OpenAIResponsesModel("x-1", profiles=table),
        lambda table: AnthropicModel("x-1", profiles=table),
        lambda table: GeminiModel("x-1", profiles=table),
        lambda table: OllamaModel("x-1", profiles=table),
        lambda table: resolve_model("vllm:x-1", profiles=table),
    ],
    ids=["chat", "responses", "anthropic", "gemini", "ollama", "resolved"],
)
def test_every_adapter_looks_its_model_up(make: Any) -> None:
    table = BUILT_IN.with_models(
        KnownModel(
            match=("x-*",),
            max_input_tokens=77,
            input_modalities=frozenset({"text"}),
            reasoning=True,
        )
    )
    profile: ModelProfile = make(table).profile
    assert (profile.known, profile.max_input_tokens, profile.reasoning) == (True, 77, True)
    assert profile.refused_inputs == {"image", "audio", "file"}
    assert not make(None).profile.known


def test_what_a_provider_has_no_form_for_stays_refused() -> None:
    table = BUILT_IN.with_models(
        KnownModel(match=("x",), json_schema=True, input_modalities=frozenset({"text", "image"}))
    )
    profile = OpenAIChatModel("x", provider="deepseek", profiles=table, api_key="k").profile
    assert profile.json_schema is False
    assert profile.input_modalities == {"text"}


def test_of_an_unknown_model_no_more_is_claimed_than_its_api_does() -> None:
    profile = OpenAIChatModel("of-tomorrow", api_key="k").profile
    assert profile.known is False
    assert profile.tool_calling
    assert (profile.max_input_tokens, profile.max_output_tokens, profile.pricing) == (None,) * 3
    assert (profile.native_structured_output, profile.reasoning) == (None, None)
    assert profile.refused_inputs == frozenset()
    assert "audio" not in profile.input_modalities


def test_a_demand_on_an_unknown_model_is_answered_with_where_to_declare_it() -> None:
    registry = ModelRegistry({"it": OpenAIChatModel("of-tomorrow", api_key="k")})
    request = ModelRequest([], required_capabilities=CapabilitySet(min_input_tokens=1_000))
    with pytest.raises(ModelNotFoundError, match="`of-tomorrow` is not in the table of known"):
        registry.resolve(request)


def test_a_name_is_matched_whole_or_behind_its_last_slash() -> None:
    table = ProfileTable([KnownModel(match=("Llama-*",), max_input_tokens=5)])
    assert table.find("meta/llama-9") is not None
    assert table.find("my-llama-9") is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "are wrong at `the file`"),
        ('{"models": [{"match": "a"}, {"match": "b", "max_input": 5}]}', r"`models\.1\.max_input`"),
        ('{"models": [{"max_input_tokens": 5}]}', r"`models\.0\.match`: Field required"),
        ('{"models": [{"match": []}]}', r"`models\.0\.match`"),
        ('{"models": [{"match": "a", "max_input_tokens": 0}]}', r"`models\.0\.max_input_tokens`"),
        (
            '{"models": [{"match": "a", "max_output_tokens": -1}]}',
            r"`models\.0\.max_output_tokens`",
        ),
    ],
)
def test_a_wrong_file_is_refused_with_the_place(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=f"bad.json.*{words}"):
        load_profiles(path)


def test_a_file_that_is_not_there_or_far_too_large_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read"):
        load_profiles(tmp_path / "none.json")
    (tmp_path / "huge.json").write_bytes(b" " * (8 * 1024 * 1024 + 1))
    with pytest.raises(ConfigurationError, match="more than 8 MiB"):
        load_profiles(tmp_path / "huge.json")
