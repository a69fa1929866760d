"""What calls cost in money."""

from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar

from pydantic import BaseModel

from .usage import Usage

__all__ = ("CostTotals", "ModelPricing", "estimate_cost")

_MILLION = Decimal(1_000_000)


class ModelPricing(BaseModel, frozen=True, extra="forbid", defer_build=True):
    """US dollars per million tokens; what a price table leaves out costs what its kind does."""

    input: Decimal = Decimal(0)
    output: Decimal = Decimal(0)
    cache_read: Decimal | None = None
    """Prompt tokens read from the provider's cache; the input price when not given."""
    cache_write: Decimal | None = None
    """Prompt tokens written to the provider's cache; the input price when not given."""
    reasoning: Decimal | None = None
    """Reasoning tokens; the output price when not given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostTotals:
    """US dollars, by what they were spent on."""

    input: Decimal = Decimal(0)
    output: Decimal = Decimal(0)
    cache: Decimal = Decimal(0)
    """Prompt cache reads and writes."""
    reasoning: Decimal = Decimal(0)

    ZERO: ClassVar["CostTotals"]

    @property
    def total(self) -> Decimal:
        """The sum of the parts."""
        return self.input + self.output + self.cache + self.reasoning

    def __add__(self, other: "CostTotals") -> "CostTotals":
        return CostTotals(
            input=self.input + other.input,
            output=self.output + other.output,
            cache=self.cache + other.cache,
            reasoning=self.reasoning + other.reasoning,
        )


CostTotals.ZERO = CostTotals()


def estimate_cost(pricing: ModelPricing, usage: Usage) -> CostTotals:
    """Price the disjoint parts of ``usage``: fresh input, cache, answer and reasoning."""

    def dollars(tokens: int, price: Decimal | None, otherwise: Decimal) -> Decimal:
        return tokens * (otherwise if price is None else price) / _MILLION

    answer = max(0, usage.output_tokens - usage.reasoning_tokens)
    return CostTotals(
        input=dollars(usage.fresh_input_tokens, pricing.input, pricing.input),
        output=dollars(answer, pricing.output, pricing.output),
        cache=dollars(usage.cache_read_tokens, pricing.cache_read, pricing.input)
        + dollars(usage.cache_write_tokens, pricing.cache_write, pricing.input),
        reasoning=dollars(usage.reasoning_tokens, pricing.reasoning, pricing.output),
    )
