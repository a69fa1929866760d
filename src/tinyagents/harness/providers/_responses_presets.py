"""What is known of the servers of the Responses API, as data."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any, Final

from ..errors import ConfigurationError
from ._presets import PROVIDERS, ModelPreset
from ._provider_names import ALIASES, choose_preset

_SUFFIX: Final = "_responses"

# The API has no such parameters; OpenAI answers one with status 400.
# https://platform.openai.com/docs/api-reference/responses/create
_NO_PARAMETERS: Final = frozenset({"stop", "seed", "frequency_penalty", "presence_penalty"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponsesPreset(ModelPreset):
    """A provider of the Responses API, and where it departs from it."""

    endpoint_paths: tuple[str, ...] = ("/responses",)
    refused_settings: frozenset[str] = _NO_PARAMETERS
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    file_urls: bool = True
    encrypted_reasoning: bool = False
    """Hands its reasoning out encrypted, and needs it back where it stores no answers."""
    instructions: bool = True
    """Takes the first system messages as ``instructions``; otherwise they are items of the input."""
    output_limit: bool = True
    """Takes ``max_output_tokens``; otherwise a limit is left out."""
    continues: bool = True
    """Continues an answer that it has stored, by ``previous_response_id``."""

    @property
    def data_name(self) -> str:
        """What is kept under ``provider_data`` is called so: its chat API knows nothing of it."""
        return f"{self.name}{_SUFFIX}"


def _like_chat(name: str, **changes: Any) -> ResponsesPreset:
    """Return a preset with what is known of the provider's models, and where its servers are."""
    own = {"endpoint_paths", "refused_settings", "query", "query_env", "file_urls", "reasoning"}
    chat = PROVIDERS[name]
    shared = {f.name: getattr(chat, f.name) for f in fields(ModelPreset) if f.name not in own}
    return ResponsesPreset(**{**shared, **changes})


_PRESETS = (
    _like_chat("openai", audio_input=None, encrypted_reasoning=True),
    # https://learn.microsoft.com/azure/ai-foundry/openai/how-to/responses: below `/openai/v1`, which
    # takes no api-version.
    _like_chat(
        "azure",
        bare_path="openai/v1/responses",
        audio_input=None,
        file_input=True,
        encrypted_reasoning=True,
    ),
    # https://docs.x.ai/docs/guides/chat: the system prompt is part of the input; with
    # `previous_response_id` instructions are refused.
    _like_chat("xai", encrypted_reasoning=True, instructions=False),
    # https://openrouter.ai/docs/api/reference/responses/overview: keeps nothing.
    _like_chat("openrouter", encrypted_reasoning=True, continues=False),
    # https://console.groq.com/docs/responses-api: keeps nothing.
    _like_chat("groq", continues=False),
    _like_chat("fireworks"),
    # https://api-docs.deepseek.com/guides/responses_api: reasoning comes in the open, `store` is false.
    _like_chat("deepseek", strict_schema=True, continues=False),
    _like_chat("ollama", continues=False),
    _like_chat("lmstudio"),
    _like_chat("llama_cpp", continues=False),
    _like_chat("vllm"),
    _like_chat("compatible"),
)

RESPONSES_PROVIDERS: Mapping[str, ResponsesPreset] = MappingProxyType({p.name: p for p in _PRESETS})
"""The presets of the Responses API by name: ``resolve_model("openai_responses:gpt-5")``."""


def infer_responses(name: str) -> tuple[ResponsesPreset, str] | None:
    """Return the preset and the model of a name such as ``openai_responses:gpt-5-mini``.

    ``None``: what stands before the colon does not end in ``_responses``.

    Raises:
        ConfigurationError: It is not known for this API, or the name holds no model.
    """
    prefix, _, rest = name.strip().partition(":")
    kind = prefix.strip().lower().replace("-responses", _SUFFIX)
    if not kind.endswith(_SUFFIX):
        return None
    provider = kind.removesuffix(_SUFFIX)
    provider = ALIASES.get(provider, provider)
    preset = choose_preset(provider, None, RESPONSES_PROVIDERS, default="openai")
    model = rest.strip() or preset.default_model
    if not model:
        raise ConfigurationError(
            f"`{name}` names no model, and `{preset.name}` has no default: write `{kind}:MODEL`"
        )
    return preset, model
