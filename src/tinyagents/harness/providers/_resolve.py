"""A model from its name alone."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

from ..model import ChatModel, ModelProfile, ModelSettings
from ._http import HttpClient, Timeouts
from ._ollama_profile import OLLAMA_PREFIXES, OLLAMA_SERVERS
from ._openai_chat import OpenAIChatModel
from ._profile_table import ProfileTable
from ._provider_names import infer_provider
from ._responses_presets import infer_responses

if TYPE_CHECKING:
    from ._anthropic import AnthropicModel
    from ._gemini import GeminiModel
    from ._ollama import OllamaModel
    from ._openai_responses import OpenAIResponsesModel

    _Adapter: TypeAlias = (
        type[OpenAIChatModel]
        | type[OpenAIResponsesModel]
        | type[AnthropicModel]
        | type[GeminiModel]
        | type[OllamaModel]
    )

_GEMINI_PREFIXES = frozenset({"gemini", "google-gla"})
_OTHER_APIS = ("gemini", "ollama_cloud", "ollama_native", "openai_responses")
"""What an error names beside the providers of Chat Completions."""


def resolve_model(
    name: str,
    *,
    api_key: str | None = None,
    base_url: str | None = None,
    http_client: HttpClient | None = None,
    headers: Mapping[str, str] | None = None,
    timeout: float | Timeouts | None = None,
    profile: ModelProfile | None = None,
    profiles: ProfileTable | None = None,
    settings: ModelSettings | None = None,
    adapt: bool = True,
) -> ChatModel:
    """Return the model that a name means, such as ``groq:llama-3.3-70b-versatile``.

    What stands before the first colon is a name in
    :data:`~tinyagents.harness.providers.PROVIDERS` or an alias of one; ``anthropic:…`` is called
    through its own API, the others through Chat Completions. Without a colon the
    beginning of the name tells whose model it is (``gpt-5-mini``, ``claude-sonnet-4-5``), and the
    name of a provider alone means its default model. ``google:…`` and ``ollama:…`` are the Chat
    Completions surfaces of those; their own APIs are ``gemini:…``, also meant by the bare name of a
    Gemini model unless a ``base_url`` says that another server has it, ``ollama_native:…`` and
    ``ollama_cloud:…``. A name of :data:`~tinyagents.harness.providers.RESPONSES_PROVIDERS` with
    ``_responses`` behind it, such as ``openai_responses:gpt-5-mini``, means the Responses API. The
    other arguments are those of the model's class.

    Raises:
        ConfigurationError: The name says nothing of a known provider; the message lists them.
    """
    adapter, provider, model = _meant(name, at_home=base_url is None)
    return adapter(
        model,
        provider=provider,
        api_key=api_key,
        base_url=base_url,
        http_client=http_client,
        headers=headers,
        timeout=timeout,
        profile=profile,
        profiles=profiles,
        settings=settings,
        adapt=adapt,
    )


def _meant(name: str, *, at_home: bool) -> "tuple[_Adapter, str, str]":
    """Return the class, the provider and the model that a name means."""
    # Imported here and not above: a program that speaks to one API needs none of the others.
    prefix, colon, rest = name.strip().partition(":")
    key, model = prefix.strip().lower(), rest.strip()
    if native := OLLAMA_PREFIXES.get(key):
        from ._ollama import OllamaModel

        return OllamaModel, native, model or OLLAMA_SERVERS[native].default_model or ""
    bare_gemini = not colon and at_home and key.startswith("gemini-")
    if key in _GEMINI_PREFIXES or bare_gemini:
        from ._gemini import GEMINI_PROVIDERS, GeminiModel

        if bare_gemini:
            return GeminiModel, "gemini", prefix
        return GeminiModel, "gemini", model or GEMINI_PROVIDERS["gemini"].default_model or ""
    if (responses := infer_responses(name)) is not None:
        from ._openai_responses import OpenAIResponsesModel

        return OpenAIResponsesModel, responses[0].name, responses[1]
    preset, model = infer_provider(name, beside=_OTHER_APIS)
    if preset.name == "anthropic":
        from ._anthropic import AnthropicModel

        return AnthropicModel, preset.name, model
    return OpenAIChatModel, preset.name, model
