"""How large a run's context is, and how much room there is for it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...context import RunContext
from ...errors import ModelNotFoundError
from ...message import AssistantMessage, Message
from ...model import ModelProfile, ModelRequest
from ...token_estimation import TokenEstimator

_OVERHEAD = "context.overhead"
"""The note of what requests hold beside the transcript: a chat is resumed for each of its turns."""
_LARGEST_RESERVE = 4
"""What is kept for the answer is at most this part of the window, where nobody says how much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """How much there is room for."""

    window: int
    limit: int
    """The window without what is kept for the answer."""


@dataclass(slots=True)
class Measured:
    """What is known of the size of a run's context; only the overhead outlives the process."""

    overhead: int
    """What requests hold beside the transcript: instructions, tools, what hooks add; below 0 where
    hooks leave out more than that."""
    transcript: int | None = None
    """The size of the transcript that the next request is made of, until that was seen."""
    request: ModelRequest | None = None
    """The latest request, for the model that it asks for and the answer that it leaves room for."""
    warned: bool = False
    """Whether an event has said that the window is not known."""
    stale: AssistantMessage | None = None
    """The latest answer that was counted when the history was shortened: that count holds no more."""

    @classmethod
    def begin(cls, ctx: RunContext[Any], estimator: TokenEstimator) -> "Measured":
        """Return what is known before a request was seen: what the run noted, or its tools at least."""
        noted = ctx.notes.get(_OVERHEAD)
        return cls(noted if isinstance(noted, int) else estimator.tools(ctx.tools.schemas))

    def of_transcript(self, estimator: TokenEstimator, messages: Sequence[Message]) -> int:
        """Return about how many tokens a request with these messages has."""
        told = estimator.prompt(messages, reported=not self.is_stale(messages))
        self.transcript = told.messages
        return max(told.messages + self.overhead, told.floor)

    def of_request(
        self, ctx: RunContext[Any], estimator: TokenEstimator, request: ModelRequest
    ) -> int:
        """Return about how many tokens a request has, and learn what it holds beside the transcript."""
        told = estimator.request(request, reported=not self.is_stale(request.messages))
        if self.transcript is not None:
            parts = told.messages + told.tools + told.response_format
            self.overhead = parts - self.transcript
            self.transcript = None
            ctx.notes[_OVERHEAD] = self.overhead
        self.request = request
        return told.total

    def shortened(self, messages: Sequence[Message]) -> None:
        """Take note of a shorter conversation: what was counted for its answers holds no more."""
        self.stale = _latest_counted(messages)

    def is_stale(self, messages: Sequence[Message]) -> bool:
        """Whether what was counted for the messages was another prompt."""
        return self.stale is not None and _latest_counted(messages) is self.stale


def _latest_counted(messages: Sequence[Message]) -> AssistantMessage | None:
    """Return the latest answer whose usage the provider has reported: the one estimates go by."""
    for message in reversed(messages):
        usage = message.usage if message.role == "assistant" else None
        if usage is not None and usage.source == "reported" and usage.total_tokens:
            assert message.role == "assistant"
            return message
    return None


def profile_for(ctx: RunContext[Any], request: ModelRequest | None) -> ModelProfile | None:
    """Return the profile of the model that would answer; ``None`` where none can."""
    try:
        asked = request or ModelRequest([], model=ctx.model_override)
        return ctx.models.resolve(asked).model.profile
    except ModelNotFoundError:
        return None


def room_for(
    ctx: RunContext[Any],
    request: ModelRequest | None,
    *,
    window: int | None = None,
    reserve: int | None = None,
) -> Room | None:
    """Return how much there is room for; ``None`` where nobody knows.

    Args:
        ctx: The run.
        request: What is about to be sent, or was sent last; the run's usual model where there is none.
        window: The window, in place of what the model's profile says.
        reserve: What is kept for the answer; by default what the request asks for or the model can
            give, a quarter of the window at most.
    """
    profile = profile_for(ctx, request)
    window = window or (profile.max_input_tokens if profile is not None else None)
    if window is None:
        return None
    if reserve is None:
        asked = request.settings.max_tokens if request is not None else None
        able = profile.max_output_tokens if profile is not None else None
        reserve = min(asked or able or 0, window // _LARGEST_RESERVE)
    return Room(window=window, limit=max(1, window - reserve))


def warn_of_unknown_window(ctx: RunContext[Any], by: str, measured: Measured) -> None:
    """Say once in a run that nothing is made shorter, since nobody knows for what."""
    if measured.warned:
        return
    measured.warned = True
    profile = profile_for(ctx, measured.request)
    ctx.emit("context.window_unknown", by=by, model=profile.model if profile is not None else None)
