"""Which provider a name or an address means."""

from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from types import MappingProxyType
from typing import TypeVar
from urllib.parse import urlsplit

from ..errors import ConfigurationError
from ._presets import PROVIDERS, ProviderPreset, ServerPreset

_Preset = TypeVar("_Preset", bound=ServerPreset)

ALIASES: Mapping[str, str] = MappingProxyType(
    {
        "azure_openai": "azure",
        "gemini": "google",
        "github_models": "github",
        "google-gla": "google",
        "grok": "xai",
        "kimi": "moonshot",
        "llama-cpp": "llama_cpp",
        "llamacpp": "llama_cpp",
        "llamaserver": "llama_cpp",
        "lm-studio": "lmstudio",
        "lm_studio": "lmstudio",
        "mistralai": "mistral",
        "openai_chat": "openai",
        "zhipu": "zai",
    }
)

# Names that say whose model they are, by their beginning.
_FAMILIES = (
    ("gpt-", "openai"),
    ("chatgpt-", "openai"),
    ("o1", "openai"),
    ("o3", "openai"),
    ("o4", "openai"),
    ("ft:", "openai"),
    ("claude", "anthropic"),
    ("deepseek", "deepseek"),
    ("grok", "xai"),
    ("mistral", "mistral"),
    ("mixtral", "mistral"),
    ("gemini", "google"),
)


def infer_provider(name: str, *, beside: Collection[str] = ()) -> tuple[ProviderPreset, str]:
    """Return the preset and the model that a name such as ``groq:llama-3.3-70b-versatile`` means.

    What stands before the first colon wins; without one the beginning of the name decides, as for
    ``gpt-5-mini``; a provider's name alone, with or without the colon, means its default model.

    Args:
        name: What an application calls the model.
        beside: Names of other APIs that the caller knows as well, for the message of the error.

    Raises:
        ConfigurationError: The name says nothing of a provider that is known; the message lists
            those that are.
    """
    text = name.strip()
    prefix, colon, rest = text.partition(":")
    kind = prefix.strip().lower()
    preset = PROVIDERS.get(ALIASES.get(kind, kind))
    if preset is not None:
        model = rest.strip() or preset.default_model
        if not model:
            raise ConfigurationError(
                f"`{name}` names no model, and `{preset.name}` has no default: "
                f"write `{preset.name}:MODEL`"
            )
        return preset, model
    lowered = text.lower()
    family = next((owner for start, owner in _FAMILIES if lowered.startswith(start)), None)
    if family is not None and (not colon or kind == "ft"):
        return PROVIDERS[family], text
    known = sorted({*PROVIDERS, *beside})
    if colon:
        raise _unknown_provider(prefix, known)
    raise ConfigurationError(
        f"it is not known whose model `{name}` is: write `PROVIDER:{name or 'MODEL'}`, "
        f"with one of {', '.join(known)}"
    )


def choose_preset(
    provider: str | _Preset | None,
    base_url: str | None,
    known: Mapping[str, _Preset],
    *,
    default: str,
) -> _Preset:
    """Return the preset that a constructor's arguments mean.

    Args:
        provider: Its name or an alias of it, or the preset itself.
        base_url: Tells by its host where ``provider`` is not given.
        known: The presets of one API, by name.
        default: The name of the one that any other host is taken to be like.

    Raises:
        ConfigurationError: ``provider`` is none of the names.
    """
    if provider is None:
        return (find_preset(base_url, known) if base_url else None) or known[default]
    if not isinstance(provider, str):
        return provider
    preset = known.get(provider) or known.get(ALIASES.get(provider, provider))
    if preset is None:
        raise _unknown_provider(provider, sorted(known))
    return preset


def _unknown_provider(given: str, known: Sequence[str]) -> ConfigurationError:
    near = get_close_matches(given.strip().lower(), known, n=1)
    guess = f" (did you mean `{near[0]}`?)" if near else ""
    return ConfigurationError(
        f"`{given}` is no known provider; known are {', '.join(known)}{guess}"
    )


def find_preset(base_url: str, known: Mapping[str, _Preset]) -> _Preset | None:
    """Return the hosted preset that a base URL belongs to, by its host."""
    host = urlsplit(base_url).hostname
    for preset in known.values():
        if preset.base_url and not preset.local and urlsplit(preset.base_url).hostname == host:
            return preset
    return None


def is_at_home(preset: ServerPreset, base_url: str) -> bool:
    """Whether a base URL is of the provider's own servers; of a server without any, it always is."""
    if preset.base_url is None or preset.local:
        return True
    return urlsplit(base_url).hostname == urlsplit(preset.base_url).hostname
