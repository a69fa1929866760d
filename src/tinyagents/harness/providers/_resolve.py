"""A model from its name alone."""

from collections.abc import Mapping

from ..model import ChatModel, ModelProfile, ModelSettings
from ._openai_chat import OpenAIChatModel
from ._presets import infer_provider
from ._transport import HttpClient, Timeouts


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
    class.

    Raises:
        ConfigurationError: The name says nothing of a known provider; the message lists them.
    """
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
