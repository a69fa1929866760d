"""What is known of each provider, as data.

An adapter has no branch on a provider's name: whatever differs is a field here. A caller changes
one with ``dataclasses.replace(PROVIDERS["groq"], json_schema=False)`` and passes the result as
``provider=``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

ReasoningStyle: TypeAlias = Literal["effort", "object", "switch", "budget", "none"]
"""How a request asks for reasoning.

``effort``: ``reasoning_effort``. ``object``: ``reasoning: {effort | max_tokens}``. ``switch``:
``thinking: {type}``. ``budget``: ``thinking: {type, budget_tokens}``. ``none``: not at all.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerPreset:
    """Where a provider's API is and what lets a call in, whichever the API."""

    name: str
    """What errors, profiles and ``provider_data`` call it."""
    base_url: str | None = None
    """``None``: the caller, or ``base_url_env``, has to say."""
    base_url_env: str | None = None
    """An environment variable that replaces ``base_url``."""
    key_env: tuple[str, ...] = ()
    """Environment variables that may hold the key; the first one that is set counts."""
    key_required: bool = True
    default_model: str | None = None
    auth: str = "bearer"
    """``bearer``, ``anthropic``, ``none``, or the name of the header that carries the key."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Sent with every request."""
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    """Sent with every request, unless the base URL ends with ``unversioned``."""
    query_env: Mapping[str, str] = field(default_factory=dict[str, str])
    """Environment variables that replace a query parameter's value, by parameter."""
    unversioned: str | None = None
    """The end of a base URL that takes no query parameters."""
    bare_path: str | None = None
    """The path to the endpoint below a base URL without a path of its own; may hold ``{model}``."""

    local: bool = False
    """A runtime on the user's machine: the URL is completed, and nothing is guessed of the model."""
    local_path: str = "/v1"
    """What a local runtime's base URL ends with; added where it is missing."""
    default_port: int | None = None
    """The port of a local runtime whose address is given without a scheme and without one."""
    missing_model: str | None = None
    """What helps when the server does not have the model; may hold ``{model}``."""
    endpoint_paths: tuple[str, ...] = ()
    """Cut off from the end of a base URL: some give the address of the endpoint whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPreset(ServerPreset):
    """What a provider's models take, whichever of OpenAI's two APIs they are behind."""

    refused_settings: frozenset[str] = frozenset()
    """Settings that the provider rejects or ignores; a request with one of them is refused."""
    no_temperature: tuple[str, ...] = ()
    """Globs of models that must not be sent a temperature: it is left out.

    In lower case; one that begins with ``!`` exempts, and the last one that matches decides.
    """
    default_options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Request fields beneath the caller's own ``provider_options``."""

    tools: bool | None = True
    native_tools: bool = True
    """Otherwise tools are told in the prompt, and their calls read from the text."""
    parallel_tool_calls: bool | None = True
    """``False`` refuses the setting of that name."""
    forced_tool_choice: bool | None = True
    named_tool_choice: bool = True
    """Otherwise a named tool is sent as ``required`` with that tool alone."""
    require_streaming: bool | None = None
    """A plain call is made by reading a stream. ``None``: once a model of this process was told so
    by the server; ``False``: never."""

    json_object: bool | None = True
    """``False`` sends "any JSON object" as a schema that says so."""
    json_schema: bool | None = True
    strict_schema: bool = True
    """Takes ``strict`` in schemas."""
    strict_tools: bool = False
    """Tools that do not say whether they are strict are so, where their schema can be."""
    image_input: bool | None = True
    audio_input: bool | None = None
    file_input: bool | None = None
    file_urls: bool = False
    """Fetches documents by address."""

    reasoning: ReasoningStyle = "effort"

    cache_in_input: bool = True
    """The count of input holds what came from or went to the prompt cache."""
    hidden_output: bool = False
    """Reasoning is part of ``total_tokens`` but of neither count."""

    def refuses_temperature(self, model: str) -> bool:
        """Whether ``model`` must not be sent a temperature."""
        lowered = model.lower()
        for glob in reversed(self.no_temperature):
            if fnmatchcase(lowered, glob.removeprefix("!")):
                return not glob.startswith("!")
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderPreset(ModelPreset):
    """A provider of the Chat Completions API, and where it departs from it."""

    endpoint_paths: tuple[str, ...] = ("/chat/completions",)

    max_tokens_field: str = "max_tokens"
    """Reasoning models of OpenAI always take ``max_completion_tokens`` instead."""
    seed_field: str = "seed"
    fold_system: bool = False
    """System messages become the beginning of the first user message."""
    stream_options: bool = True
    """Usage has to be asked for, with ``stream_options``."""
    tool_call_id: str = r"[A-Za-z0-9_\-.:+/=]+"
    """What an id must match on the wire; others are replaced by one derived from them."""
    tool_images: bool = False
    """Takes images in tool results; otherwise they follow in a user message."""

    replay_reasoning: bool = True
    """Reasoning goes back as it was received, to this provider only."""
    think_tags: bool = True
    """Reasoning may stand in the text between an opening and a closing tag."""
    think_tag: str = "think"
    """The name of that tag."""
    starts_thinking: bool = False
    """The text begins inside of reasoning: the prompt's template has opened the tag."""
    refusal_field: bool = False
    """Takes a past refusal in a field of its own; otherwise it is sent as text."""
    reply_only: frozenset[str] = frozenset()
    """Fields of an answer that are never sent back, although nothing else is known of them."""

    @property
    def data_name(self) -> str:
        """What is kept under ``provider_data`` is called so."""
        # Anthropic's own API, which most of its models are called through, has the plain name.
        return "anthropic_chat" if self.name == "anthropic" else self.name


# The reasoning families answer a temperature other than 1 with status 400; their chat variants not.
_OPENAI_REASONERS = (
    *("o1*", "o3*", "o4*", "gpt-[5-9]*"),
    *("*/o1*", "*/o3*", "*/o4*", "*/gpt-[5-9]*"),
    "!*-chat*",
)

_LOCAL: dict[str, Any] = {
    "local": True,
    "key_required": False,
    "named_tool_choice": False,
    "forced_tool_choice": None,
    "json_object": False,
    "strict_schema": False,
    "image_input": False,
    "parallel_tool_calls": None,
}

OLLAMA_PULL = "`ollama pull {model}` fetches it"

# Base URLs, key variables and default models of the first thirteen: those of the original library.
# Quirks: each provider's own API reference as of 2026, and the recorded traffic of the tests.
_PRESETS = (
    ProviderPreset(
        name="openai",
        base_url="https://api.openai.com/v1",
        base_url_env="OPENAI_BASE_URL",
        key_env=("OPENAI_API_KEY",),
        default_model="gpt-4.1-mini",
        no_temperature=_OPENAI_REASONERS,
        tool_call_id=r"[A-Za-z0-9_\-.:+/=]{1,40}",
        strict_tools=True,
        audio_input=True,
        file_input=True,
        think_tags=False,
        refusal_field=True,
    ),
    # https://platform.claude.com/docs/en/api/openai-sdk: response_format, strict, seed, logprobs,
    # penalties, user and reasoning_effort are ignored, so they are refused here.
    ProviderPreset(
        name="anthropic",
        base_url="https://api.anthropic.com/v1",
        key_env=("ANTHROPIC_API_KEY",),
        default_model="claude-3-5-sonnet-latest",
        refused_settings=frozenset(
            {"seed", "logprobs", "frequency_penalty", "presence_penalty", "user"}
        ),
        tool_call_id=r"[A-Za-z0-9_-]+",
        json_object=False,
        json_schema=False,
        strict_schema=False,
        reasoning="budget",
        # It answers with neither: what bears its name came through the Messages API.
        replay_reasoning=False,
        reply_only=frozenset({"container"}),
        think_tags=False,
    ),
    # https://api-docs.deepseek.com: json_object only; reasoning_content goes back as received.
    ProviderPreset(
        name="deepseek",
        base_url="https://api.deepseek.com/v1",
        key_env=("DEEPSEEK_API_KEY",),
        default_model="deepseek-chat",
        json_schema=False,
        strict_schema=False,
        image_input=False,
        reasoning="switch",
    ),
    # https://console.groq.com/docs/api-reference: json_schema on some models only; annotations and
    # executed_tools come with answers and are rejected in requests.
    ProviderPreset(
        name="groq",
        base_url="https://api.groq.com/openai/v1",
        key_env=("GROQ_API_KEY",),
        default_model="llama-3.3-70b-versatile",
        max_tokens_field="max_completion_tokens",
        json_schema=None,
        reply_only=frozenset({"channel", "executed_tools"}),
    ),
    # https://docs.x.ai/docs/guides/reasoning: reasoning tokens are counted beside the completion.
    ProviderPreset(
        name="xai",
        base_url="https://api.x.ai/v1",
        key_env=("XAI_API_KEY",),
        default_model="grok-2-latest",
    ),
    # https://openrouter.ai/docs: reasoning is an object, documents may be addresses.
    ProviderPreset(
        name="openrouter",
        base_url="https://openrouter.ai/api/v1",
        key_env=("OPENROUTER_API_KEY",),
        default_model="openai/gpt-4o-mini",
        no_temperature=_OPENAI_REASONERS,
        file_input=True,
        file_urls=True,
        reasoning="object",
    ),
    ProviderPreset(
        name="together",
        base_url="https://api.together.xyz/v1",
        key_env=("TOGETHER_API_KEY",),
        default_model="meta-llama/Llama-3.3-70B-Instruct-Turbo",
        strict_schema=False,
    ),
    # https://docs.mistral.ai/api: unknown fields are rejected, ids have nine letters or digits, and
    # streams carry usage unasked.
    ProviderPreset(
        name="mistral",
        base_url="https://api.mistral.ai/v1",
        key_env=("MISTRAL_API_KEY",),
        default_model="mistral-small-latest",
        seed_field="random_seed",
        refused_settings=frozenset({"logprobs", "user"}),
        tool_call_id=r"[A-Za-z0-9]{9}",
        stream_options=False,
    ),
    ProviderPreset(
        name="ollama",
        base_url="http://localhost:11434/v1",
        default_model="llama3.2",
        auth="none",
        missing_model=OLLAMA_PULL,
        **_LOCAL,
    ),
    ProviderPreset(
        name="lmstudio",
        base_url="http://localhost:1234/v1",
        missing_model="`lms get {model}` fetches it, `lms ls` lists what is there",
        **_LOCAL,
    ),
    ProviderPreset(
        name="llama_cpp",
        base_url="http://localhost:8080/v1",
        auth="none",
        missing_model="`llama-server --model FILE --alias {model}` serves it",
        **_LOCAL,
    ),
    ProviderPreset(
        name="vllm",
        base_url="http://localhost:8000/v1",
        missing_model="`vllm serve {model}` serves it, or another under this name with "
        "`--served-model-name`",
        **_LOCAL,
    ),
    # Any other server: nothing is assumed of it, and no key leaves that was not given for it.
    ProviderPreset(name="compatible", key_required=False, json_schema=None),
    # https://inference-docs.cerebras.ai/api-reference/chat-completions
    ProviderPreset(
        name="cerebras",
        base_url="https://api.cerebras.ai/v1",
        key_env=("CEREBRAS_API_KEY",),
        default_model="llama3.1-8b",
        max_tokens_field="max_completion_tokens",
        refused_settings=frozenset({"frequency_penalty", "presence_penalty"}),
        image_input=False,
    ),
    # https://docs.perplexity.ai/api-reference: no tools, usage in every chunk.
    ProviderPreset(
        name="perplexity",
        base_url="https://api.perplexity.ai",
        key_env=("PERPLEXITY_API_KEY",),
        default_model="sonar",
        stream_options=False,
        tools=False,
        parallel_tool_calls=None,
        forced_tool_choice=None,
        json_object=False,
    ),
    ProviderPreset(
        name="fireworks",
        base_url="https://api.fireworks.ai/inference/v1",
        key_env=("FIREWORKS_API_KEY",),
        strict_schema=False,
    ),
    # https://learn.microsoft.com/azure/ai-foundry/openai/reference: `/openai/v1` takes no version,
    # the endpoint alone means a deployment of the model's name.
    ProviderPreset(
        name="azure",
        base_url_env="AZURE_OPENAI_ENDPOINT",
        key_env=("AZURE_OPENAI_API_KEY",),
        auth="api-key",
        query=MappingProxyType({"api-version": "2024-10-21"}),
        query_env=MappingProxyType({"api-version": "OPENAI_API_VERSION"}),
        unversioned="/openai/v1",
        bare_path="openai/deployments/{model}/chat/completions",
        no_temperature=_OPENAI_REASONERS,
        tool_call_id=r"[A-Za-z0-9_\-.:+/=]{1,40}",
        strict_tools=True,
        audio_input=True,
        think_tags=False,
        refusal_field=True,
    ),
    # https://docs.github.com/rest/models/inference
    ProviderPreset(
        name="github",
        base_url="https://models.github.ai/inference",
        key_env=("GITHUB_TOKEN",),
        default_model="openai/gpt-4.1-mini",
        no_temperature=_OPENAI_REASONERS,
        tool_call_id=r"[A-Za-z0-9_\-.:+/=]{1,40}",
    ),
    # https://ai.google.dev/gemini-api/docs/openai: thoughts count in the total alone.
    ProviderPreset(
        name="google",
        base_url="https://generativelanguage.googleapis.com/v1beta/openai",
        key_env=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        default_model="gemini-2.5-flash",
        refused_settings=frozenset({"seed", "logprobs", "user"}),
        parallel_tool_calls=None,
        strict_schema=False,
        audio_input=True,
        think_tags=False,
        hidden_output=True,
    ),
    # https://docs.z.ai/api-reference/llm/chat-completion
    ProviderPreset(
        name="zai",
        base_url="https://api.z.ai/api/paas/v4",
        key_env=("ZAI_API_KEY",),
        default_model="glm-4.6",
        json_schema=False,
        strict_schema=False,
        parallel_tool_calls=None,
        forced_tool_choice=False,
        image_input=None,
        reasoning="switch",
    ),
    # https://platform.moonshot.ai/docs/api/chat
    ProviderPreset(
        name="moonshot",
        base_url="https://api.moonshot.ai/v1",
        key_env=("MOONSHOT_API_KEY",),
        default_model="kimi-k2-0905-preview",
        json_schema=None,
        strict_schema=False,
        image_input=None,
        reasoning="none",
    ),
)

PROVIDERS: Mapping[str, ProviderPreset] = MappingProxyType({p.name: p for p in _PRESETS})
"""The presets by name: what may stand before the colon of ``resolve_model("groq:…")``."""
