"""Adapters that speak to providers over HTTP, what is known of each provider, and a mock.

Names are resolved at first use, and httpx is imported by the first call that opens a connection, so
importing this package costs next to nothing.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._mock import MockModel
    from ._openai_chat import OpenAIChatModel
    from ._presets import PROVIDERS, ProviderPreset, ReasoningStyle, infer_provider
    from ._resolve import resolve_model
    from ._transport import HttpClient, Timeouts

__all__ = (
    "PROVIDERS",
    "HttpClient",
    "MockModel",
    "OpenAIChatModel",
    "ProviderPreset",
    "ReasoningStyle",
    "Timeouts",
    "infer_provider",
    "resolve_model",
)

_HOMES = {
    "PROVIDERS": "_presets",
    "HttpClient": "_transport",
    "MockModel": "_mock",
    "OpenAIChatModel": "_openai_chat",
    "ProviderPreset": "_presets",
    "ReasoningStyle": "_presets",
    "Timeouts": "_transport",
    "infer_provider": "_presets",
    "resolve_model": "_resolve",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
