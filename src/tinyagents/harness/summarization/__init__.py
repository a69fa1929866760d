"""Keeping long conversations inside the window: cutting, shortening and summarising them."""

from ._exchanges import Exchange, exchanges, is_well_paired
from ._results import TrimmedResults, shortened_result, trim_results
from ._trim import TrimStrategy, trim_messages, trim_to_budget

__all__ = (
    "Exchange",
    "TrimStrategy",
    "TrimmedResults",
    "exchanges",
    "is_well_paired",
    "shortened_result",
    "trim_messages",
    "trim_results",
    "trim_to_budget",
)
