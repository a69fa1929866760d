"""A model from its name alone."""

from collections.abc import Mapping

from ..model import ChatModel, ModelProfile, ModelSettings
from ._gemini import GEMINI_PROVIDERS, GeminiModel
from ._openai_chat import OpenAIChatModel
from ._presets import infer_provider
from ._transport import HttpClient, Timeouts

_GEMINI_PREFIXES = frozenset({"gemini", "google-gla"})


def resolve_model(
    name: str,
    *,
    api_key: str | None = None,
    base_url: str | None = None,
    http_client: HttpClient | None = None,
    headers: Mapping[str, str] | None = None,
    timeout: float | Timeouts | None = None,
    profile: ModelProfile | None = None,
    settings: ModelSettings | None = None,
) -> ChatModel:
    """Return the model that a name means, such as ``groq:llama-3.3-70b-versatile``.

    What stands before the first colon is a name in
    :data:`~tinyagents.harness.providers.PROVIDERS` or an alias of one. Without a colon the
    beginning of the name tells whose model it is (``gpt-5-mini``, ``claude-sonnet-4-5``), and the
    name of a provider alone means its default model. The other arguments are those of the model's
    class: :class:`GeminiModel` for ``gemini:…``, and for the bare name of a Gemini model unless a
    ``base_url`` says that another server has it; else :class:`OpenAIChatModel`.

    Raises:
        ConfigurationError: The name says nothing of a known provider; the message lists them.
    """
    gemini = _gemini_name(name, at_home=base_url is None)
    if gemini is not None:
        return GeminiModel(
            gemini,
            api_key=api_key,
            base_url=base_url,
            http_client=http_client,
            headers=headers,
            timeout=timeout,
            profile=profile,
            settings=settings,
        )
    preset, model = infer_provider(name)
    return OpenAIChatModel(
        model,
        provider=preset,
        api_key=api_key,
        base_url=base_url,
        http_client=http_client,
        headers=headers,
        timeout=timeout,
        profile=profile,
        settings=settings,
    )


def _gemini_name(name: str, *, at_home: bool) -> str | None:
    """Return the model that a name means at Google's own API; ``None`` where it means none."""
    prefix, colon, rest = name.strip().partition(":")
    if prefix.strip().lower() in _GEMINI_PREFIXES:
        return rest.strip() or GEMINI_PROVIDERS["gemini"].default_model
    bare = not colon and prefix.lower().startswith("gemini-")
    return prefix if bare and at_home else None
