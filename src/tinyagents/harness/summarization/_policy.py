"""When to summarise a conversation, and which part of it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..errors import ConfigurationError
from ..message import Message, UserMessage
from ..model import ModelProfile
from ..token_estimation import TokenEstimator
from ._exchanges import Exchange, exchanges
from ._records import is_summary
from ._triggers import ContextSize, TokensAbove, Trigger, WindowFraction

_ESTIMATOR = TokenEstimator()


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryPlan:
    """A conversation in the parts that a summary divides it into."""

    system: tuple[Message, ...]
    """System messages, which stay in front."""
    older: tuple[Message, ...]
    """What is summarised, whole exchanges; an earlier summary is the first of them."""
    held: tuple[Message, ...]
    """Exchanges between the older ones that stay, since they hold ``trusted_verbatim`` results."""
    recent: tuple[Message, ...]
    """What stays as it is."""

    @property
    def kept(self) -> tuple[Message, ...]:
        """All that stays."""
        return (*self.system, *self.held, *self.recent)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to summarise: no more at least than an earlier summary."""
        return all(is_summary(message) for message in self.older)

    def with_summary(self, summary: Message) -> list[Message]:
        """Return the conversation with the summary in the place of the older part.

        It stands behind the system messages. Where what follows does not begin with a user's turn
        it becomes one, since some providers take no other beginning.
        """
        following = (*self.held, *self.recent)
        if summary.role == "system" and not (following and following[0].role == "user"):
            summary = as_user_turn(summary)
        return [*self.system, summary, *following]


@dataclass(frozen=True, slots=True, kw_only=True)
class SummarizationPolicy:
    """When to summarise and how much to keep.

    With a window it triggers from a share of it on, without one above a number of tokens; a
    ``trigger`` of your own takes the place of both.
    """

    trigger_tokens: int = 0
    """Tokens above which it triggers, where there is neither a window nor a trigger."""
    keep_last: int = 0
    """How many of the last messages, system messages not counted, stay as they are. More do where
    an exchange would be cut."""
    context_window: int | None = None
    """Tokens that the model takes."""
    threshold_fraction: float = 0.9
    """The share of the window from which on it triggers."""
    trigger: Trigger | None = None
    """Such as ``WindowFraction(0.8) | MessagesAbove(200)``."""

    def __post_init__(self) -> None:
        for name in ("trigger_tokens", "keep_last"):
            if getattr(self, name) < 0:
                raise ConfigurationError(f"`{name}` is {getattr(self, name)}: it is 0 or more")
        if self.context_window is not None and self.context_window < 1:
            raise ConfigurationError(
                f"`context_window` is {self.context_window}: it must be above 0"
            )
        WindowFraction(self.threshold_fraction)

    @classmethod
    def from_profile(
        cls, profile: ModelProfile, *, keep_last: int = 0, threshold_fraction: float = 0.9
    ) -> "SummarizationPolicy":
        """Return a policy with the window of a model; ``None`` where that is not known."""
        return cls(
            keep_last=keep_last,
            context_window=profile.max_input_tokens,
            threshold_fraction=threshold_fraction,
        )

    def with_context_window(self, tokens: int | None) -> "SummarizationPolicy":
        """Return the policy with another window."""
        return replace(self, context_window=tokens)

    @property
    def effective_trigger(self) -> Trigger:
        """What decides."""
        if self.trigger is not None:
            return self.trigger
        if self.context_window is not None:
            return WindowFraction(self.threshold_fraction)
        return TokensAbove(self.trigger_tokens)

    def triggers(self, size: ContextSize) -> bool:
        """Whether a conversation of this size is to be summarised."""
        if size.window is None and self.context_window is not None:
            size = replace(size, window=self.context_window)
        return self.effective_trigger.fires(size)

    def should_summarize(
        self, messages: Sequence[Message], *, estimator: TokenEstimator | None = None
    ) -> bool:
        """Whether a conversation is to be summarised."""
        tokens = (estimator or _ESTIMATOR).messages(messages)
        return self.triggers(ContextSize(tokens=tokens, messages=len(messages)))

    def plan(self, messages: Sequence[Message]) -> SummaryPlan:
        """Divide a conversation into what is summarised and what stays.

        The cut moves towards the front where it would fall inside an exchange. Nothing is older
        where there are no more messages than ``keep_last``.
        """
        system = tuple(message for message in messages if message.role == "system")
        summaries = tuple(message for message in system if is_summary(message))
        rest = [message for message in messages if message.role != "system"]
        pieces = exchanges(rest)
        cut = self._cut(pieces, len(rest))
        older = tuple(m for each in pieces[:cut] if not each.trusted for m in each.messages)
        return SummaryPlan(
            system=tuple(message for message in system if not is_summary(message)),
            older=(*summaries, *older),
            held=tuple(m for each in pieces[:cut] if each.trusted for m in each.messages),
            recent=tuple(m for each in pieces[cut:] for m in each.messages),
        )

    def _cut(self, pieces: Sequence[Exchange], count: int) -> int:
        """Return how many of the exchanges are older."""
        end = count - self.keep_last
        return sum(1 for each in pieces if each.end <= end)


def as_user_turn(message: Message) -> Message:
    """Return a summary as a user's message."""
    return UserMessage(content=message.content, id=message.id)
