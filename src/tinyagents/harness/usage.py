"""Token usage, with one meaning for every provider."""

import operator
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, Field, NonNegativeInt

__all__ = ("CHARACTERS_PER_TOKEN", "Usage", "UsageTotals", "estimate_tokens")

CHARACTERS_PER_TOKEN = 4
"""A rough figure for what a provider did not count, as tokenizers average on English."""

_Detail = Annotated[NonNegativeInt, Field(exclude_if=operator.not_)]


def estimate_tokens(characters: int) -> int:
    """Return about how many tokens so many characters are: begun ones are whole."""
    return -(-characters // CHARACTERS_PER_TOKEN)


class Usage(BaseModel, frozen=True, extra="forbid", defer_build=True):
    """Tokens of one model call, or of several added up.

    ``input_tokens`` counts the whole prompt, what came from or went to the provider's prompt cache
    included; ``output_tokens`` counts the whole answer, reasoning included. Adapters convert what
    their provider reports into this before anything else sees it.
    """

    input_tokens: NonNegativeInt = 0
    output_tokens: NonNegativeInt = 0
    cache_read_tokens: _Detail = 0
    """The part of ``input_tokens`` that the provider read from its prompt cache."""
    cache_write_tokens: _Detail = 0
    """The part of ``input_tokens`` that the provider wrote to its prompt cache."""
    reasoning_tokens: _Detail = 0
    """The part of ``output_tokens`` spent on reasoning."""
    source: Literal["reported", "estimated"] = "reported"
    """``estimated`` when any part of the figures did not come from the provider."""

    @property
    def total_tokens(self) -> int:
        """Input and output together."""
        return self.input_tokens + self.output_tokens

    @property
    def fresh_input_tokens(self) -> int:
        """Input that neither came from the prompt cache nor was written to it; never negative."""
        return max(0, self.input_tokens - self.cache_read_tokens - self.cache_write_tokens)

    def updated(self, later: "Usage") -> "Usage":
        """Return what is known after ``later``, another report on the same call.

        Providers repeat a call's usage while it streams: figures replace each other and are never
        added up, and one that ``later`` does not set stays as it was.
        """
        known = {name: getattr(later, name) for name in later.model_fields_set}
        return self.model_copy(update=known)

    def __add__(self, other: "Usage") -> "Usage":
        """Return the sum, as for two calls."""
        totals = UsageTotals()
        totals.add(self)
        totals.add(other)
        return totals.usage


@dataclass(slots=True)
class UsageTotals:
    """Usage added up over calls; mutable, for whoever counts."""

    calls: int = 0
    """Model calls that were counted, those that reported no usage included."""
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    source: Literal["reported", "estimated"] = "reported"

    def add(self, usage: Usage | None) -> None:
        """Count one call."""
        self.calls += 1
        if usage is None:
            # Nobody said what it cost: the sum is no longer what was reported.
            self.source = "estimated"
            return
        self.input_tokens += usage.input_tokens
        self.output_tokens += usage.output_tokens
        self.cache_read_tokens += usage.cache_read_tokens
        self.cache_write_tokens += usage.cache_write_tokens
        self.reasoning_tokens += usage.reasoning_tokens
        if usage.source == "estimated":
            self.source = "estimated"

    @property
    def usage(self) -> Usage:
        """The sum so far."""
        return Usage(
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            cache_read_tokens=self.cache_read_tokens,
            cache_write_tokens=self.cache_write_tokens,
            reasoning_tokens=self.reasoning_tokens,
            source=self.source,
        )
