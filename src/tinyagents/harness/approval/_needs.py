"""What makes a call need approval, while the run lives."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from ..context import RunContext
from ..errors import ConfigurationError
from ._decisions import ALL_DECISIONS, Decision, DecisionKind
from ._requests import ApprovalRequest

Approver: TypeAlias = Callable[
    [RunContext[Any], ApprovalRequest], "Decision | None | Awaitable[Decision | None]"
]
"""Decides in place, while the run waits; ``None`` leaves it to somebody outside the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalNeed:
    """One reason for a call to need approval.

    Raises:
        ConfigurationError: It takes a decision that there is not, or lapses before it is asked.
    """

    reason: str | None = None
    when: Callable[[], bool | Awaitable[bool]] | None = None
    """Whether it holds, asked once the call has been checked; ``None`` for always."""
    approver: Approver | None = None
    expires_in: float | None = None
    """Seconds from the request until it lapses."""
    allow: tuple[DecisionKind, ...] = ALL_DECISIONS
    """The decisions that it takes; a rejection it always takes."""
    may_remember: bool = True

    def __post_init__(self) -> None:
        if unknown := [kind for kind in self.allow if kind not in ALL_DECISIONS]:
            raise ConfigurationError(
                f"there is no decision {unknown[0]!r}; there are {', '.join(ALL_DECISIONS)}"
            )
        if self.expires_in is not None and not self.expires_in > 0:
            raise ConfigurationError(
                f"`expires_in` is {self.expires_in!r}: give seconds above 0, or None for no end"
            )
