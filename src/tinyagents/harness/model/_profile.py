"""What a model can do."""

from collections.abc import Set as AbstractSet
from datetime import date
from typing import Final, Literal, TypeAlias

from pydantic import BaseModel

from ..cost import ModelPricing

Modality: TypeAlias = Literal["text", "image", "audio", "file"]

MEDIA: Final[frozenset[Modality]] = frozenset({"image", "audio", "file"})
"""What a message may hold besides text."""


class CapabilitySet(BaseModel, frozen=True, extra="forbid", defer_build=True):
    """Demands on a model; the empty set is met by every model."""

    tool_calling: bool = False
    parallel_tool_calls: bool = False
    streaming: bool = False
    streaming_tool_chunks: bool = False
    native_structured_output: bool = False
    json_schema: bool = False
    reasoning: bool = False
    input_modalities: frozenset[Modality] = frozenset()
    output_modalities: frozenset[Modality] = frozenset()
    min_input_tokens: int | None = None
    min_output_tokens: int | None = None


class ModelProfile(BaseModel, frozen=True, extra="forbid", defer_build=True):
    """What is known of a model. ``None`` means not known: allowed, but it meets no demand."""

    provider: str = ""
    model: str = ""
    known: bool = True
    """Whether more is known than who serves the model: otherwise the rest is what its API takes."""
    display_name: str | None = None
    status: Literal["stable", "preview", "deprecated", "retired"] = "stable"
    """A retired model is never chosen unless the caller allows it."""
    release_date: date | None = None
    input_modalities: frozenset[Modality] = frozenset({"text"})
    uncertain_inputs: frozenset[Modality] = frozenset()
    """Kinds of input that the model may take or not: they are sent, but they meet no demand."""
    output_modalities: frozenset[Modality] = frozenset({"text"})
    tool_calling: bool | None = None
    parallel_tool_calls: bool | None = None
    forced_tool_choice: bool | None = None
    """Takes ``required`` and a named tool as tool choice."""
    streaming: bool | None = None
    streaming_tool_chunks: bool | None = None
    """Streams the arguments of calls in pieces that can be shown."""
    native_structured_output: bool | None = None
    """Its answer can be held to a JSON schema beside tools, dependably."""
    json_schema: bool | None = None
    """Takes a JSON schema as response format."""
    json_mode: bool | None = None
    """Takes "any JSON object" as response format."""
    reasoning: bool | None = None
    reasoning_effort: bool | None = None
    """Takes a reasoning effort."""
    temperature: bool | None = None
    """Takes a temperature."""
    max_input_tokens: int | None = None
    max_output_tokens: int | None = None
    pricing: ModelPricing | None = None

    @classmethod
    def permissive(cls, provider: str = "", model: str = "") -> "ModelProfile":
        """Return the profile of a model that can do everything, with sizes and prices not known."""
        return cls(
            provider=provider,
            model=model,
            input_modalities=frozenset({"text", "image", "audio", "file"}),
            tool_calling=True,
            parallel_tool_calls=True,
            forced_tool_choice=True,
            streaming=True,
            streaming_tool_chunks=True,
            native_structured_output=True,
            json_schema=True,
            json_mode=True,
            reasoning=True,
            reasoning_effort=True,
            temperature=True,
        )

    def missing(self, demands: CapabilitySet) -> list[str]:
        """Return the names of the demands that the model does not meet, or not knowably."""
        lacks = [name for name in _FLAGS if getattr(demands, name) and not getattr(self, name)]
        for name in ("input_modalities", "output_modalities"):
            wanted: AbstractSet[str] = getattr(demands, name)
            has: AbstractSet[str] = getattr(self, name)
            lacks.extend(f"{name}: {kind}" for kind in sorted(wanted - has))
        for name, size in (
            ("min_input_tokens", "max_input_tokens"),
            ("min_output_tokens", "max_output_tokens"),
        ):
            least: int | None = getattr(demands, name)
            most: int | None = getattr(self, size)
            if least is not None and (most is None or most < least):
                lacks.append(f"{name}: {least}")
        return lacks

    @property
    def refused_inputs(self) -> frozenset[Modality]:
        """The kinds of input that the model is known not to take."""
        return MEDIA - self.input_modalities - self.uncertain_inputs

    def satisfies(self, demands: CapabilitySet) -> bool:
        """Whether the model is known to meet every demand."""
        return not self.missing(demands)


_FLAGS = (
    "tool_calling",
    "parallel_tool_calls",
    "streaming",
    "streaming_tool_chunks",
    "native_structured_output",
    "json_schema",
    "reasoning",
)
