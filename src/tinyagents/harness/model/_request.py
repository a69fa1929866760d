"""What is asked of a model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, Field, JsonValue

from ..message import Message
from ..retry import RetryPolicy
from ..text import JsonObject
from ._profile import CapabilitySet

ReasoningEffort: TypeAlias = Literal["none", "minimal", "low", "medium", "high"]


class ReasoningConfig(BaseModel, frozen=True, extra="forbid", defer_build=True):
    """How much a model should think, and what it should show of it."""

    effort: ReasoningEffort | None = None
    budget_tokens: int | None = None
    summary: Literal["auto", "concise", "detailed"] | None = None


class ModelSettings(BaseModel, frozen=True, extra="forbid", defer_build=True):
    """How a model answers. ``None`` leaves a choice to the provider."""

    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    """The most tokens of one answer, reasoning included."""
    stop: tuple[str, ...] = ()
    """Texts at which the answer ends."""
    seed: int | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    logprobs: int | None = None
    """Ask for log probabilities with so many alternatives a token; 0 for the chosen token alone."""
    parallel_tool_calls: bool | None = None
    reasoning: ReasoningConfig | None = None
    timeout: float | None = None
    """Seconds for one call, from sending it to the end of the answer."""
    user: str | None = None
    """The end user, for the provider's abuse detection."""
    extra_headers: Mapping[str, str] = Field(default_factory=dict[str, str], repr=False)
    """Sent with the request; not shown in the repr, since keys travel in headers."""
    provider_options: Mapping[str, Any] = Field(default_factory=dict[str, Any])
    """Fields of the provider's own request format, sent as they are.

    Fields that the harness sets itself (model, messages, tools, …) are refused.
    """

    def merged(self, over: "ModelSettings | None") -> "ModelSettings":
        """Return these settings with those that ``over`` sets in their place.

        Mappings are merged key by key.
        """
        if over is None or not over.model_fields_set:
            return self
        changes: dict[str, Any] = {name: getattr(over, name) for name in over.model_fields_set}
        for name in ("extra_headers", "provider_options"):
            if name in changes:
                changes[name] = {**getattr(self, name), **changes[name]}
        return self.model_copy(update=changes)

    def capped(self, most: int | None) -> "ModelSettings":
        """Return these settings with ``max_tokens`` at ``most`` where it is not lower."""
        if most is None or (self.max_tokens is not None and self.max_tokens <= most):
            return self
        return self.model_copy(update={"max_tokens": most})


@dataclass(frozen=True, slots=True)
class NamedTool:
    """The model must call this tool."""

    name: str


ToolChoice: TypeAlias = Literal["auto", "none", "required"] | NamedTool
"""Whether the model may, must not or must call a tool, or which one it must call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSchema:
    """A tool as a model sees it."""

    name: str
    """The application's name; adapters derive from it one that their provider takes."""
    description: str
    parameters: JsonObject
    """JSON Schema of the arguments: always an object schema."""
    strict: bool | None = None
    """Ask the provider to enforce the schema; ``None`` leaves it to the adapter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonObjectFormat:
    """The answer is a JSON object of any shape."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonSchemaFormat:
    """The answer is JSON of this schema."""

    name: str
    schema: JsonObject
    description: str | None = None
    strict: bool | None = None


ResponseFormat: TypeAlias = JsonObjectFormat | JsonSchemaFormat
"""The form of the answer's text; where a request has none it is free text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelHint:
    """A model to prefer, if it is registered and can do what the request needs."""

    model: str
    priority: int = 0
    """The highest is tried first; equals in the order given."""


SegmentRole: TypeAlias = Literal["system", "tools", "instructions", "history", "volatile"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSegment:
    """A named part of the prompt, for providers' prompt caches."""

    id: str
    role: SegmentRole
    cacheable: bool
    messages: int = 0
    """How many messages of the request belong to the segment."""


@dataclass(slots=True)
class ModelRequest:
    """One call of a model. Hooks may change any of it; what they leave is what is sent."""

    messages: list[Message]
    tools: Sequence[ToolSchema] = ()
    tool_choice: ToolChoice = "auto"
    response_format: ResponseFormat | None = None
    settings: ModelSettings = field(default_factory=ModelSettings)
    model: str | None = None
    """The registered model to use; unset, the resolution of :class:`ModelRegistry` decides."""
    model_hints: Sequence[ModelHint] = ()
    reuse_previous_model: bool = False
    """Prefer the model that answered the run's previous call."""
    required_capabilities: CapabilitySet | None = None
    """What the model must be able to do, beyond what the request itself shows."""
    metadata: Mapping[str, JsonValue] = field(default_factory=lambda: {})
    """The application's own data about the request; never sent."""
    tags: Sequence[str] = ()
    segments: Sequence[PromptSegment] = ()
    """How the prompt is laid out, for prompt caches."""
    prompt_fingerprint: str | None = None
    """A digest of the stable part of the prompt."""
    cache: bool | None = None
    """Whether a stored response may answer; ``None`` leaves it to the run's policy."""
    continuation_id: str | None = None
    """The response that this request continues, where the provider keeps conversations."""
    retry: RetryPolicy | None = None
    """Replaces the run's policy for this call."""
