"""Adapters that speak to providers over HTTP, what is known of each provider, and a mock.

Names are resolved at first use, and httpx is imported by the first call that opens a connection, so
importing this package costs next to nothing.
"""

from typing import TYPE_CHECKING

from .. import _lazy

if TYPE_CHECKING:
    from ._anthropic import AnthropicModel
    from ._anthropic_models import MESSAGES_PROVIDERS, MessagesPreset
    from ._gemini import GeminiModel
    from ._http import HttpClient, Timeouts
    from ._local import LocalRuntime
    from ._mock import MockModel
    from ._ollama import OllamaModel
    from ._openai_chat import OpenAIChatModel
    from ._openai_responses import OpenAIResponsesModel
    from ._presets import PROVIDERS, ProviderPreset, ReasoningStyle
    from ._profile_table import KnownModel, ProfileTable, load_profiles
    from ._provider_names import infer_provider
    from ._resolve import resolve_model
    from ._responses_presets import RESPONSES_PROVIDERS, ResponsesPreset
    from ._shapes import Adaptation

_HOMES = {
    "_anthropic": ("AnthropicModel",),
    "_anthropic_models": ("MESSAGES_PROVIDERS", "MessagesPreset"),
    "_gemini": ("GeminiModel",),
    "_http": ("HttpClient", "Timeouts"),
    "_local": ("LocalRuntime",),
    "_mock": ("MockModel",),
    "_ollama": ("OllamaModel",),
    "_openai_chat": ("OpenAIChatModel",),
    "_openai_responses": ("OpenAIResponsesModel",),
    "_presets": ("PROVIDERS", "ProviderPreset", "ReasoningStyle"),
    "_profile_table": ("KnownModel", "ProfileTable", "load_profiles"),
    "_provider_names": ("infer_provider",),
    "_resolve": ("resolve_model",),
    "_responses_presets": ("RESPONSES_PROVIDERS", "ResponsesPreset"),
    "_shapes": ("Adaptation",),
}

__all__ = (
    "MESSAGES_PROVIDERS",
    "PROVIDERS",
    "RESPONSES_PROVIDERS",
    "Adaptation",
    "AnthropicModel",
    "GeminiModel",
    "HttpClient",
    "KnownModel",
    "LocalRuntime",
    "MessagesPreset",
    "MockModel",
    "OllamaModel",
    "OpenAIChatModel",
    "OpenAIResponsesModel",
    "ProfileTable",
    "ProviderPreset",
    "ReasoningStyle",
    "ResponsesPreset",
    "Timeouts",
    "infer_provider",
    "load_profiles",
    "resolve_model",
)

if not TYPE_CHECKING:
    __getattr__, __dir__ = _lazy.names(__name__, _HOMES)
