"""The servers that speak Ollama's own API, and what one tells of a model."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from ..model import Modality, ModelProfile
from ._json import as_integer, as_list, as_object, as_text
from ._presets import OLLAMA_PULL, ServerPreset
from ._profile_table import ProfileTable
from ._profiles import with_facts

_ENDPOINTS: Final = (
    *("/v1/chat/completions", "/v1/models"),
    *("/api/chat", "/api/generate", "/api/tags", "/api/show", "/api", "/v1"),
)

# https://docs.ollama.com/api: the server of a machine takes no key, the hosted one does.
_SERVERS = (
    ServerPreset(
        name="ollama",
        base_url="http://localhost:11434",
        base_url_env="OLLAMA_HOST",
        key_required=False,
        default_model="llama3.2",
        local=True,
        local_path="",
        default_port=11434,
        endpoint_paths=_ENDPOINTS,
        missing_model=OLLAMA_PULL,
    ),
    ServerPreset(
        name="ollama_cloud",
        base_url="https://ollama.com",
        key_env=("OLLAMA_API_KEY",),
        default_model="gpt-oss:120b",
        endpoint_paths=_ENDPOINTS,
    ),
)

OLLAMA_SERVERS: Final[Mapping[str, ServerPreset]] = MappingProxyType({p.name: p for p in _SERVERS})

OLLAMA_PREFIXES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "ollama_native": "ollama",
        "ollama-native": "ollama",
        "ollama_cloud": "ollama_cloud",
        "ollama-cloud": "ollama_cloud",
    }
)
"""What may stand before the colon of a model's name for this API; ``ollama:`` alone is the other."""

_CONTEXT_LENGTH = ".context_length"


def basic_profile(
    server: ServerPreset, model: str, profiles: ProfileTable | None, *, num_ctx: int | None
) -> ModelProfile:
    """Return what holds for every model of an Ollama server, and what is known of this one.

    Args:
        server: The server.
        model: Its name for the model.
        profiles: The table of models.
        num_ctx: The context that the model is loaded with, where the caller says so.
    """
    basic = ModelProfile(
        provider=server.name,
        model=model,
        uncertain_inputs=frozenset({"image"}),
        tool_calling=True,
        forced_tool_choice=False,
        streaming=True,
        streaming_tool_chunks=False,
        # The grammar of a format leaves the model no way to write a call.
        native_structured_output=False,
        json_schema=True,
        json_mode=True,
        temperature=True,
    )
    made = with_facts(basic, profiles, local=server.local)
    return made if num_ctx is None else made.model_copy(update={"max_input_tokens": num_ctx})


def told_profile(basic: ModelProfile, shown: Mapping[str, Any]) -> ModelProfile:
    """Return a profile with what ``POST /api/show`` tells of the model.

    Its context is the one that it is loaded with, where that is known, and never more than the one
    that it was trained for.
    """
    changes: dict[str, Any] = {"max_input_tokens": _context(basic.max_input_tokens, shown)}
    capabilities = as_list(shown.get("capabilities"))
    if capabilities is not None:  # older servers say nothing of them
        inputs: list[Modality] = ["text"]
        if "vision" in capabilities:
            inputs.append("image")
        thinks = "thinking" in capabilities
        changes |= {
            "tool_calling": "tools" in capabilities,
            "known": True,
            "input_modalities": frozenset(inputs),
            "uncertain_inputs": frozenset[Modality](),
            "reasoning": thinks,
            "reasoning_effort": thinks,
        }
    return basic.model_copy(update=changes)


def _context(num_ctx: int | None, shown: Mapping[str, Any]) -> int | None:
    facts = as_object(shown.get("model_info")) or {}
    trained = [
        size
        for name, value in facts.items()
        if name.endswith(_CONTEXT_LENGTH) and (size := as_integer(value) or 0) > 0
    ]
    loaded = num_ctx or _parameter(as_text(shown.get("parameters")) or "", "num_ctx")
    return min([*trained, *filter(None, [loaded])], default=None)


def _parameter(listed: str, name: str) -> int | None:
    """Return a number from the parameters of a Modelfile: a name and a value on each line."""
    for line in listed.splitlines():
        match line.split():
            case [key, value] if key == name and value.isdecimal():
                return int(value)
            case _:
                continue
    return None
