"""What the name of a model and its provider tell of it."""

import re
from collections.abc import Mapping
from typing import Any, Final

from ..model import Modality, ModelProfile
from ._presets import ModelPreset
from ._profile_table import ProfileTable

# OpenAI's reasoning families, also behind a gateway's prefix such as `openai/gpt-5-mini`. Their
# `-chat` variants are not among them. They take other fields than the models before them, so it is
# the form of a request that is told here, and not what can be looked up in the table.
_REASONING: Final = re.compile(r"(?:\A|/)(?:o[134](?:-|\Z)|gpt-[5-9](?!.*-chat))")


def is_reasoning_model(model: str) -> bool:
    """Whether a name is of OpenAI's families that take an effort and no temperature."""
    return _REASONING.search(model.lower()) is not None


def with_facts(
    derived: ModelProfile, profiles: ProfileTable | None, *, local: bool = False
) -> ModelProfile:
    """Return a profile with what the table knows of its model.

    Args:
        derived: What its provider and the form of its name tell.
        profiles: The table; the built-in one when not given.
        local: The provider is a runtime on the user's machine.
    """
    table = profiles or ProfileTable.built_in()
    facts = table.facts(derived.model, derived.provider, local=local)
    if "input_modalities" in facts:
        facts["uncertain_inputs"] = frozenset[Modality]()
    known = table.find(derived.model, derived.provider) is not None
    return derived.model_copy(update={**facts, "known": known})


def derive_profile(
    preset: ModelPreset, model: str, profiles: ProfileTable | None = None
) -> ModelProfile:
    """Return what is known of a model behind one of OpenAI's APIs.

    What the provider has no form for stays refused, whatever the model could do.
    """
    media = _media(preset)
    basic = ModelProfile(
        provider=preset.name,
        model=model,
        input_modalities=frozenset({"text", *(kind for kind, takes in media.items() if takes)}),
        uncertain_inputs=frozenset(kind for kind, takes in media.items() if takes is None),
        tool_calling=preset.tools,
        parallel_tool_calls=preset.parallel_tool_calls,
        forced_tool_choice=preset.forced_tool_choice,
        streaming=True,
        streaming_tool_chunks=preset.tools,
        json_schema=preset.json_schema,
        json_mode=preset.json_schema if preset.json_object is False else preset.json_object,
    )
    made = with_facts(basic, profiles, local=preset.local)
    return made.model_copy(update=_held_back(preset, made))


def _media(preset: ModelPreset) -> dict[Modality, bool | None]:
    """Return for each kind of input whether the provider's models take it; ``None``: some may."""
    return {
        "image": None if preset.local and not preset.image_input else preset.image_input,
        # Even where the API takes sound, few of its models do: those that the table says.
        "audio": False if preset.audio_input is False else None,
        "file": preset.file_input,
    }


def _held_back(preset: ModelPreset, made: ModelProfile) -> Mapping[str, Any]:
    """Return the fields of a profile that the provider decides, above what the model could do."""
    refused = {kind for kind, takes in _media(preset).items() if takes is False}
    own = {
        "tool_calling": preset.tools,
        "parallel_tool_calls": preset.parallel_tool_calls,
        "forced_tool_choice": preset.forced_tool_choice,
        "json_schema": preset.json_schema,
    }
    changes: dict[str, Any] = {name: False for name, takes in own.items() if takes is False}
    changes["input_modalities"] = made.input_modalities - refused
    changes["temperature"] = made.temperature is not False and not preset.refuses_temperature(
        made.model
    )
    if preset.json_schema is not True:
        changes["native_structured_output"] = None
    if preset.reasoning not in ("effort", "object"):
        changes["reasoning_effort"] = None
    return changes
