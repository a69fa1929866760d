"""What the name of a model tells of it."""

import re

from ..model import Modality, ModelProfile
from ._presets import ModelPreset

# OpenAI's reasoning families, also behind a gateway's prefix such as `openai/gpt-5-mini`. Their
# `-chat` variants are not among them.
_REASONING = re.compile(r"(?:\A|/)(?:o[134](?:-|\Z)|gpt-5(?!.*-chat))")

# Other families that think before they answer.
_THINKERS = re.compile(
    r"deepseek-(?:reasoner|r1)|qwq|gpt-oss|grok-3-mini|grok-4|magistral|-thinking|gemini-2\.5|gemini-3"
    r"|glm-4\.[5-9]|sonar-reasoning"
)

# Held dependably to a schema beside tools (structured outputs).
_STRUCTURED = re.compile(r"(?:\A|/)(?:gpt-4o|gpt-4\.1)")

# Tokens of context, by a part of the name in lower case; the first one found counts, so the
# special stands before the general. Rows without a note: the original library's.
_CONTEXT = (
    (r"claude-haiku|claude-sonnet-4|claude-opus-4|claude-3-5|claude-3-opus", 200_000),
    (r"claude.{1,4}(?:haiku|sonnet|opus)", 200_000),  # claude-3.7-sonnet: platform.claude.com, 2026
    (r"gpt-5", 400_000),
    (r"gpt-4\.1", 1_047_576),
    (r"gpt-oss", 131_072),  # openrouter.ai/openai/gpt-oss-120b, 2026
    (r"gpt-4o|gpt-4-turbo|gpt-4", 128_000),
    (r"gpt-3\.5", 16_385),
    (r"(?:\A|[/_.:-])o[134](?:[/_.:-]|\Z)", 200_000),
    (r"grok-4(?:\.1)?-fast", 2_000_000),  # openrouter.ai/x-ai/grok-4-fast, September 2025
    (r"grok-4\.3|grok-4\.20", 1_000_000),  # docs.apiyi.com on grok, July 2026
    (r"grok-4\.5", 500_000),  # the same
    (r"grok-4", 256_000),  # openrouter.ai/x-ai/grok-4, July 2025
    (r"grok-[23]", 131_072),  # promptfoo.dev/docs/providers/xai, 2025
    (r"gemini-(?:2|3)", 1_048_576),  # ai.google.dev/gemini-api/docs/models, 2026
    (r"deepseek", 128_000),
    (r"gemma", 8_192),
    (r"llama-?3", 128_000),
)


def is_reasoning_model(model: str) -> bool:
    """Whether a name is of OpenAI's families that take an effort and no temperature."""
    return _REASONING.search(model.lower()) is not None


def thinks(model: str) -> bool:
    """Whether a name is of a family that thinks before it answers."""
    return is_reasoning_model(model) or _THINKERS.search(model.lower()) is not None


def context_window(model: str) -> int | None:
    """Return the tokens of context that a model is known to have."""
    lowered = model.lower()
    return next((size for part, size in _CONTEXT if re.search(part, lowered)), None)


def derive_profile(preset: ModelPreset, model: str) -> ModelProfile:
    """Return what is known of a model from its provider and its name."""
    reasoning = is_reasoning_model(model)
    structured = preset.json_schema is True and (
        reasoning or _STRUCTURED.search(model.lower()) is not None
    )
    inputs: list[Modality] = ["text"]
    if preset.image_input:
        inputs.append("image")
    if preset.audio_input and "audio" in model.lower():
        inputs.append("audio")
    if preset.file_input:
        inputs.append("file")
    return ModelProfile(
        provider=preset.name,
        model=model,
        input_modalities=frozenset(inputs),
        tool_calling=preset.tools,
        parallel_tool_calls=preset.parallel_tool_calls,
        forced_tool_choice=preset.forced_tool_choice,
        streaming=True,
        streaming_tool_chunks=preset.tools,
        native_structured_output=structured or None,
        json_schema=preset.json_schema,
        json_mode=preset.json_schema if preset.json_object is False else preset.json_object,
        reasoning=thinks(model) or None,
        reasoning_effort=(reasoning and preset.reasoning in ("effort", "object")) or None,
        temperature=not preset.refuses_temperature(model),
        max_input_tokens=None if preset.local else context_window(model),
    )
