"""Adapters that speak to providers over HTTP, what is known of each provider, and a mock.

Names are resolved at first use, and httpx is imported by the first call that opens a connection, so
importing this package costs next to nothing.
"""

from typing import TYPE_CHECKING

from .. import _lazy

if TYPE_CHECKING:
    from ._gemini import GeminiModel
    from ._mock import MockModel
    from ._ollama import OllamaModel
    from ._openai_chat import OpenAIChatModel
    from ._presets import PROVIDERS, ProviderPreset, ReasoningStyle, infer_provider
    from ._resolve import resolve_model
    from ._transport import HttpClient, Timeouts

_HOMES = {
    "_gemini": ("GeminiModel",),
    "_mock": ("MockModel",),
    "_ollama": ("OllamaModel",),
    "_openai_chat": ("OpenAIChatModel",),
    "_presets": ("PROVIDERS", "ProviderPreset", "ReasoningStyle", "infer_provider"),
    "_resolve": ("resolve_model",),
    "_transport": ("HttpClient", "Timeouts"),
}

__all__ = (
    "PROVIDERS",
    "GeminiModel",
    "HttpClient",
    "MockModel",
    "OllamaModel",
    "OpenAIChatModel",
    "ProviderPreset",
    "ReasoningStyle",
    "Timeouts",
    "infer_provider",
    "resolve_model",
)

if not TYPE_CHECKING:
    __getattr__, __dir__ = _lazy.names(__name__, _HOMES)
