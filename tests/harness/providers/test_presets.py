import subprocess
import sys
from dataclasses import replace

import pytest

from tinyagents.harness.errors import ConfigurationError
from tinyagents.harness.model import ChatModel, ModelProfile
from tinyagents.harness.providers import (
    PROVIDERS,
    OpenAIChatModel,
    infer_provider,
    resolve_model,
)


@pytest.mark.parametrize(
    ("name", "provider", "model"),
    [
        ("openai:gpt-5-mini", "openai", "gpt-5-mini"),
        ("groq:llama-3.3-70b-versatile", "groq", "llama-3.3-70b-versatile"),
        ("openrouter:meta/llama:free", "openrouter", "meta/llama:free"),
        ("LM_Studio:qwen", "lmstudio", "qwen"),
        ("lm-studio:qwen", "lmstudio", "qwen"),
        ("llamacpp:x", "llama_cpp", "x"),
        ("llama-cpp:x", "llama_cpp", "x"),
        ("llamaserver:x", "llama_cpp", "x"),
        ("mistralai:x", "mistral", "x"),
        ("gpt-5-mini", "openai", "gpt-5-mini"),
        ("o3", "openai", "o3"),
        ("o4-mini", "openai", "o4-mini"),
        ("ft:gpt-4o-mini:org::id", "openai", "ft:gpt-4o-mini:org::id"),
        ("claude-sonnet-4-5", "anthropic", "claude-sonnet-4-5"),
        ("deepseek-chat", "deepseek", "deepseek-chat"),
        ("grok-4", "xai", "grok-4"),
        ("mistral-small-latest", "mistral", "mistral-small-latest"),
        ("mixtral-8x7b", "mistral", "mixtral-8x7b"),
        ("openai", "openai", "gpt-4.1-mini"),
        ("groq:", "groq", "llama-3.3-70b-versatile"),
    ],
)
def test_a_name_tells_the_provider_and_the_model(name: str, provider: str, model: str) -> None:
    preset, found = infer_provider(name)
    assert (preset.name, found) == (provider, model)


@pytest.mark.parametrize("name", ["foo:bar", "llama-3", "", "gpt-4:x"])
def test_a_name_of_nobody_is_refused_with_the_names_that_are_known(name: str) -> None:
    with pytest.raises(ConfigurationError, match="anthropic, azure, cerebras"):
        infer_provider(name)


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("antropic:claude-sonnet-4-5", "anthropic"),
        ("OpenIA:gpt-5", "openai"),
        ("ollama_natve:qwen3", "ollama_native"),
        ("openai_response:gpt-5", "openai_responses"),
    ],
)
def test_a_slip_in_a_providers_name_is_answered_with_the_nearest_one(name: str, near: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"did you mean `{near}`\?"):
        resolve_model(name)


def test_an_alias_means_the_same_before_a_colon_and_as_an_argument() -> None:
    assert "provider='xai'" in repr(resolve_model("grok:grok-4", api_key="k"))
    assert "provider='xai'" in repr(OpenAIChatModel("grok-4", provider="grok", api_key="k"))


def test_a_name_that_is_like_no_other_is_not_guessed_at() -> None:
    with pytest.raises(ConfigurationError, match="gemini, .*ollama_native, .*zai$"):
        resolve_model("nobody:m")


def test_a_provider_without_a_default_model_asks_for_one() -> None:
    with pytest.raises(ConfigurationError, match="`lmstudio:MODEL`"):
        infer_provider("lmstudio")


def test_a_resolved_name_is_a_chat_model() -> None:
    made = resolve_model("groq:m", api_key="k")
    assert isinstance(made, ChatModel)
    assert isinstance(made, OpenAIChatModel)
    assert repr(made) == (
        "OpenAIChatModel('m', provider='groq', base_url='https://api.groq.com/openai/v1')"
    )


def test_a_compatible_server_needs_its_address() -> None:
    with pytest.raises(ConfigurationError, match="compatible needs a base URL"):
        resolve_model("compatible:m")
    assert "https://h/v1" in repr(resolve_model("compatible:m", base_url="https://h/v1"))


def test_an_unknown_provider_is_refused_with_the_names_that_are_known() -> None:
    with pytest.raises(ConfigurationError, match="`nobody` is no known provider; known are anth"):
        OpenAIChatModel("m", provider="nobody")
    with pytest.raises(ConfigurationError, match="model is empty"):
        OpenAIChatModel(" ")


def test_the_host_of_a_base_url_tells_the_provider() -> None:
    assert OpenAIChatModel("m", base_url="https://api.groq.com/openai/v1").preset.name == "groq"
    other = OpenAIChatModel("m", base_url="https://host.example/v1")
    assert (other.preset.name, other.preset.think_tags) == ("openai", True)
    assert not OpenAIChatModel("m").preset.think_tags


def test_the_environment_may_move_the_base_url(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1/")
    assert OpenAIChatModel("m").base_url == "http://127.0.0.1:9/v1"


@pytest.mark.parametrize("name", PROVIDERS)
def test_every_preset_makes_a_model(name: str) -> None:
    preset = PROVIDERS[name]
    made = OpenAIChatModel("m", provider=name, base_url=preset.base_url or "https://h", api_key="k")
    made.check()
    assert made.profile.provider == name
    assert preset.key_env or not preset.key_required


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("", "http://localhost:1234/v1"),
        ("localhost:5000", "http://localhost:5000/v1"),
        ("http://h:1/", "http://h:1/v1"),
        ("http://h:1/v1", "http://h:1/v1"),
        ("http://h:1/v1/chat/completions", "http://h:1/v1"),
        ("https://h/v1/models/?a=b#c", "https://h/v1"),
        ("h/api", "http://h/api/v1"),
    ],
)
def test_a_local_runtimes_url_is_completed(given: str, url: str) -> None:
    assert OpenAIChatModel("m", provider="lmstudio", base_url=given).base_url == url


def test_a_hosted_url_keeps_its_path() -> None:
    assert OpenAIChatModel("m", base_url="https://h/models/").base_url == "https://h/models"
    full = "https://h/v1/chat/completions?v=1"
    assert OpenAIChatModel("m", base_url=full).base_url == "https://h/v1"


@pytest.mark.parametrize("url", ["ftp://h/v1", "h/v1", "https://", "http://"])
def test_what_is_no_http_address_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError, match="is no base URL"):
        OpenAIChatModel("m", base_url=url)


def test_a_url_that_is_refused_is_told_without_its_credentials() -> None:
    with pytest.raises(ConfigurationError, match="`ftp://h:1/v1` is no base URL"):
        OpenAIChatModel("m", base_url="ftp://u:p@h:1/v1?key=s#f")


# Profiles


@pytest.mark.parametrize(
    ("name", "tokens"),
    [
        ("claude-haiku-4-5", 200_000),
        ("claude-3-5-sonnet-latest", 200_000),
        ("gpt-5-mini", 400_000),
        ("gpt-4.1-nano", 1_047_576),
        ("GPT-4o", 128_000),
        ("gpt-4-turbo", 128_000),
        ("gpt-3.5-turbo", 16_385),
        ("o1", 200_000),
        ("openai/o3-mini", 200_000),
        ("solo1x", None),
        ("deepseek-chat", 128_000),
        ("gemma-2", 8_192),
        ("llama-3.3-70b", 128_000),
        ("llama3.2", 128_000),
        ("grok-4", 256_000),
        ("grok-4-fast", 2_000_000),
        ("nobody-knows", None),
    ],
)
def test_the_context_of_known_models_is_known(name: str, tokens: int | None) -> None:
    assert profile(name).max_input_tokens == tokens


def profile(name: str, provider: str = "openai") -> ModelProfile:
    return OpenAIChatModel(name, provider=provider).profile


def test_a_reasoning_model_is_known_by_its_name() -> None:
    for name in ("o1", "o3-mini", "o4-mini", "gpt-5", "gpt-5.2", "openai/gpt-5-mini"):
        made = profile(name)
        assert (made.reasoning, made.reasoning_effort, made.temperature) == (True, True, False)
        assert made.native_structured_output
    for name in ("gpt-4o", "gpt-5-chat-latest", "gpt-4.1"):
        made = profile(name)
        assert (made.reasoning, made.reasoning_effort, made.temperature) == (False, False, True)


def test_a_hosted_model_is_taken_to_do_what_its_api_does() -> None:
    made = profile("gpt-4o")
    assert made.tool_calling
    assert made.parallel_tool_calls
    assert made.streaming
    assert made.streaming_tool_chunks
    assert made.json_schema
    assert made.native_structured_output
    assert "image" in made.input_modalities
    assert made.max_input_tokens == 128_000
    assert profile("gpt-3.5-turbo").native_structured_output is None


def test_nothing_is_guessed_of_a_local_model() -> None:
    made = profile("llama3.2", "ollama")
    assert made.max_input_tokens is None
    assert made.input_modalities == {"text"}
    assert made.forced_tool_choice is None
    assert made.native_structured_output is None


def test_a_profile_of_the_callers_own_counts() -> None:
    own = ModelProfile(provider="p", model="m", max_input_tokens=5)
    assert OpenAIChatModel("m", profile=own).profile is own


def test_a_preset_can_be_changed_by_its_fields() -> None:
    preset = replace(PROVIDERS["groq"], json_schema=True, image_input=False)
    made = OpenAIChatModel("m", provider=preset).profile
    assert made.json_schema
    assert made.input_modalities == {"text"}


# Imports


def test_the_package_is_light_and_its_names_come_when_they_are_used() -> None:
    code = (
        "import sys, tinyagents.harness.providers as p\n"
        "heavy = {'httpx', 'httpcore', 'pydantic', 'anyio', 'jsonschema'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "p.OpenAIChatModel('m', api_key='k'), p.resolve_model('gpt-5'), p.MockModel()\n"
        "assert not {'httpx', 'httpcore', 'jsonschema', 'trio'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": ":".join(sys.path)})
