"""A cache as a harness holds it."""

from dataclasses import dataclass

from ..errors import ConfigurationError
from ._flight import SingleFlight
from ._types import ResponseCache


@dataclass(frozen=True, slots=True)
class AttachedCache:
    """A cache, and the calls under way whose answers it is waiting for."""

    cache: ResponseCache
    flights: SingleFlight


def attach(cache: object) -> AttachedCache:
    """Return a cache in the form that runs use.

    Raises:
        ConfigurationError: It is none.
    """
    if isinstance(cache, type) or not isinstance(cache, ResponseCache):
        what = f"the class `{cache.__name__}`" if isinstance(cache, type) else repr(cache)
        raise ConfigurationError(
            f"{what} is no response cache: pass an object with `get`, `put`, `clear` and `stats`, "
            "such as `InMemoryResponseCache()`"
        )
    flights = getattr(cache, "flights", None)
    return AttachedCache(cache, flights if isinstance(flights, SingleFlight) else SingleFlight())
