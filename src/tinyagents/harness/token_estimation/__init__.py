"""How many tokens a prompt is, before a provider counts them."""

from ._counters import (
    HEURISTIC,
    Encoder,
    EncoderTokenCounter,
    HeuristicTokenCounter,
    TokenCounter,
    TokenCounterLike,
    as_token_counter,
    estimate_tokens,
)
from ._estimate import TokenEstimate, TokenEstimator
from ._tiktoken import TiktokenCounter

__all__ = (
    "HEURISTIC",
    "Encoder",
    "EncoderTokenCounter",
    "HeuristicTokenCounter",
    "TiktokenCounter",
    "TokenCounter",
    "TokenCounterLike",
    "TokenEstimate",
    "TokenEstimator",
    "as_token_counter",
    "estimate_tokens",
)
