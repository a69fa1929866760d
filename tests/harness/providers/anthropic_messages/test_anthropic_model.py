"""The model as a whole: how it is made, named, told apart, and let in."""

import pytest

from tinyagents.harness.errors import ConfigurationError
from tinyagents.harness.model import ChatModel, ModelRequest, ModelSettings
from tinyagents.harness.providers import AnthropicModel, resolve_model


@pytest.mark.parametrize("name", ["anthropic:claude-opus-4-6", "claude-opus-4-6"])
def test_a_name_of_claude_is_resolved_to_the_messages_api(name: str) -> None:
    made = resolve_model(name, api_key="k", base_url="https://host.example")
    assert isinstance(made, AnthropicModel)
    assert isinstance(made, ChatModel)
    assert made.base_url == "https://host.example"
    assert repr(made) == (
        "AnthropicModel('claude-opus-4-6', provider='anthropic', base_url='https://host.example')"
    )


@pytest.mark.parametrize(
    ("name", "native", "reasoning", "temperature", "most"),
    [
        ("claude-3-5-haiku-20241022", False, False, True, 8_192),
        ("claude-3-7-sonnet-20250219", False, True, True, 64_000),
        ("claude-opus-4-20250514", False, True, True, 32_000),
        ("claude-opus-4-1-20250805", True, True, True, 32_000),
        ("claude-haiku-4-5@20251001", True, True, True, 64_000),
        ("anthropic.claude-opus-4-6-v1", True, True, True, 128_000),
        ("claude-opus-4-7", True, True, False, 128_000),
        ("claude-preview", True, True, False, None),
        ("other", None, None, True, None),
    ],
)
def test_the_profile_is_what_the_name_tells(
    name: str, native: bool | None, reasoning: bool | None, temperature: bool, most: int | None
) -> None:
    profile = AnthropicModel(name, api_key="k").profile
    assert (profile.provider, profile.model) == ("anthropic", name)
    assert profile.native_structured_output is native
    assert profile.json_schema is native
    assert profile.reasoning is reasoning
    assert profile.temperature is temperature
    assert profile.max_output_tokens == most
    assert profile.parallel_tool_calls is True


async def test_a_missing_key_names_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    async with AnthropicModel("m") as made:
        with pytest.raises(ConfigurationError, match="ANTHROPIC_API_KEY"):
            await made.invoke(ModelRequest(messages=[]))


def test_a_token_in_a_header_stands_in_for_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    AnthropicModel("m", headers={"Authorization": "Bearer token"}).check()


def test_the_environment_moves_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "https://proxy.example/anthropic")
    assert AnthropicModel("m", api_key="k").base_url == "https://proxy.example/anthropic"


def test_a_compatible_server_needs_an_address_and_no_key() -> None:
    AnthropicModel("m", provider="compatible", base_url="http://localhost:1").check()
    with pytest.raises(ConfigurationError, match="needs a base URL"):
        AnthropicModel("m", provider="compatible")
    with pytest.raises(ConfigurationError, match="known are anthropic, compatible"):
        AnthropicModel("m", provider="groq")


def test_models_that_answer_differently_have_different_identities() -> None:
    made = [
        AnthropicModel("m", api_key="k"),
        AnthropicModel("n", api_key="k"),
        AnthropicModel("m", api_key="other"),
        AnthropicModel("m", api_key="k", betas=["b"]),
        AnthropicModel("m", api_key="k", settings=ModelSettings(max_tokens=1)),
        AnthropicModel("m", api_key="k", base_url="https://host.example"),
    ]
    assert len({each.cache_identity for each in made}) == len(made)
    assert made[0].cache_identity == AnthropicModel("m", api_key="k").cache_identity
