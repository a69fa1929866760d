"""What a model answers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel

from ..message import AssistantMessage
from ..usage import Usage

FinishReason: TypeAlias = Literal[
    "stop", "length", "tool_calls", "content_filter", "refusal", "error", "pause", "other"
]
"""Why an answer ended, in the same words for every provider.

``pause`` asks to be called again with the answer so far; ``other`` is a reason without a word here,
which ``raw_finish_reason`` holds.
"""

ModelSource: TypeAlias = Literal[
    "request_override", "state_reuse", "hint", "agent_default", "registry_default", "fallback"
]


class ResolvedModel(BaseModel, frozen=True, extra="forbid", defer_build=True):
    """Which model answered, and why that one."""

    name: str
    """Its name in the registry."""
    provider: str = ""
    model: str = ""
    """The provider's name for it."""
    requested: str | None = None
    """The name that was asked for, when one was."""
    source: ModelSource = "registry_default"


@dataclass(slots=True)
class Timing:
    """Where the time of a call went, in seconds."""

    total: float = 0.0
    first_token: float | None = None
    """From sending the request to the first piece of the answer; only when streamed."""
    waited: float = 0.0
    """Spent between attempts."""


@dataclass(slots=True)
class ModelResponse:
    """One answer of a model. Hooks may change any of it; what they leave is what the run uses."""

    message: AssistantMessage
    finish_reason: FinishReason | None = None
    """``None`` when the provider gave none, as when a stream just ends."""
    raw_finish_reason: str | None = None
    """The provider's own word."""
    response_id: str | None = None
    model: str | None = None
    """The model that the provider says has answered."""
    resolved_model: ResolvedModel | None = None
    structured: Any = None
    """The value of a structured answer, once it was extracted."""
    raw: Mapping[str, Any] = field(default_factory=lambda: {})
    """What else the provider said: log probabilities, service tier, filter results, …"""
    notices: tuple[str, ...] = ()
    """What had to be changed or left out of the request to suit the provider, a sentence each."""
    safety: Mapping[str, Any] | None = None
    """The provider's filter and safety findings."""
    request_id: str | None = None
    attempts: int = 1
    served_from_cache: bool = False
    cache_key: str | None = None
    timing: Timing = field(default_factory=Timing)
    continue_turn: str | None = None
    """Text that the loop says to the model as the user, to go on without the user's turn."""

    @property
    def usage(self) -> Usage | None:
        """The tokens that the call took; they are kept on the message."""
        return self.message.usage

    @property
    def text(self) -> str:
        """The text of the message."""
        return self.message.text

    @property
    def refusal(self) -> str | None:
        """The words in which the model declined, or ``None``."""
        return self.message.refusal
