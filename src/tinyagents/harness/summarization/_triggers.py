"""When a conversation is to be made shorter: small conditions on its size, and their combinations."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

from ..errors import ConfigurationError


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextSize:
    """How large a conversation is."""

    tokens: int
    """Estimated."""
    messages: int
    window: int | None = None
    """The tokens that there is room for; ``None`` where that is not known."""


class Trigger(ABC):
    """A condition on the size of a conversation. ``a | b`` and ``a & b`` combine two."""

    @abstractmethod
    def fires(self, size: ContextSize) -> bool:
        """Whether a conversation of this size is too large."""

    @property
    def needs_window(self) -> bool:
        """Whether it never fires where the window is not known."""
        return False

    def budget(self, window: int | None) -> int | None:
        """Return the tokens from which on it fires at the earliest; ``None`` where tokens do not decide.

        Args:
            window: The tokens that there is room for, where that is known.
        """
        return None

    def __or__(self, other: "Trigger") -> "Trigger":
        return AnyOf(self, other)

    def __and__(self, other: "Trigger") -> "Trigger":
        return AllOf(self, other)


@dataclass(frozen=True, slots=True)
class TokensAbove(Trigger):
    """Fires above so many tokens."""

    limit: int

    def __post_init__(self) -> None:
        _check_not_negative("TokensAbove", self.limit)

    def fires(self, size: ContextSize) -> bool:
        """Whether there are more tokens."""
        return size.tokens > self.limit

    def budget(self, window: int | None) -> int | None:
        """Return the limit."""
        return self.limit


@dataclass(frozen=True, slots=True)
class MessagesAbove(Trigger):
    """Fires above so many messages."""

    limit: int

    def __post_init__(self) -> None:
        _check_not_negative("MessagesAbove", self.limit)

    def fires(self, size: ContextSize) -> bool:
        """Whether there are more messages."""
        return size.messages > self.limit


@dataclass(frozen=True, slots=True)
class WindowFraction(Trigger):
    """Fires from this share of the window on; never where the window is not known."""

    fraction: float

    def __post_init__(self) -> None:
        if not 0 < self.fraction <= 1:
            raise ConfigurationError(
                f"`WindowFraction({self.fraction!r})` is no share: it must be above 0 and at most 1"
            )

    @property
    def needs_window(self) -> bool:
        """It does."""
        return True

    def fires(self, size: ContextSize) -> bool:
        """Whether so much of the window is used."""
        return size.window is not None and size.tokens >= size.window * self.fraction

    def budget(self, window: int | None) -> int | None:
        """Return the share of the window."""
        return None if window is None else max(0, math.ceil(window * self.fraction) - 1)


class _Combined(Trigger):
    """Several conditions taken together."""

    def __init__(self, *triggers: Trigger) -> None:
        if not triggers:
            raise ConfigurationError(f"`{type(self).__name__}` combines at least one trigger")
        self.triggers: tuple[Trigger, ...] = triggers

    def budget(self, window: int | None) -> int | None:
        """Return the smallest of theirs."""
        found = (trigger.budget(window) for trigger in self.triggers)
        return min((each for each in found if each is not None), default=None)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.triggers))})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.triggers == self.triggers

    def __hash__(self) -> int:
        return hash((type(self), self.triggers))


class AnyOf(_Combined):
    """Fires when one of several triggers does."""

    @property
    def needs_window(self) -> bool:
        """Whether each of them does."""
        return all(trigger.needs_window for trigger in self.triggers)

    def fires(self, size: ContextSize) -> bool:
        """Whether one of them fires."""
        return any(trigger.fires(size) for trigger in self.triggers)


class AllOf(_Combined):
    """Fires when all of several triggers do."""

    @property
    def needs_window(self) -> bool:
        """Whether one of them does."""
        return any(trigger.needs_window for trigger in self.triggers)

    def fires(self, size: ContextSize) -> bool:
        """Whether all of them fire."""
        return all(trigger.fires(size) for trigger in self.triggers)


def _check_not_negative(name: str, limit: int) -> None:
    if limit < 0:
        raise ConfigurationError(f"`{name}({limit!r})` must not be negative")
