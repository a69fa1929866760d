"""Responses of models, kept: what a cache is, two that are built in, and what their keys are made of.

:class:`SqliteResponseCache` needs the extra ``sqlite``.
"""

from typing import TYPE_CHECKING

from .. import _lazy
from ._attach import AttachedCache, attach
from ._flight import Shared, SingleFlight
from ._key import UNKEYED, cache_key, credential_fingerprint, model_identity, scoped_cache_key
from ._memory import InMemoryResponseCache
from ._stored import decode_response, encode_response, is_storable
from ._types import CacheStats, ResponseCache

if TYPE_CHECKING:
    from ._sqlite import SqliteResponseCache

__all__ = (
    "UNKEYED",
    "AttachedCache",
    "CacheStats",
    "InMemoryResponseCache",
    "ResponseCache",
    "Shared",
    "SingleFlight",
    "SqliteResponseCache",
    "attach",
    "cache_key",
    "credential_fingerprint",
    "decode_response",
    "encode_response",
    "is_storable",
    "model_identity",
    "scoped_cache_key",
)

if not TYPE_CHECKING:
    __getattr__, __dir__ = _lazy.names(__name__, {"_sqlite": ("SqliteResponseCache",)})
