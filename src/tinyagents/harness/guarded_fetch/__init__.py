"""Fetching addresses that somebody else chose: a user, a model, a document.

Whoever chooses an address must not reach what only this machine can reach. So the names that a
:class:`HostPolicy` allows are looked up first, all their addresses are checked, and the connection goes
to a checked one, with no second look-up in between. Redirects go through the same, sizes are counted while they
are read, and nothing is taken from the environment but the certificates to trust.
"""

from ._addresses import resolve_host
from ._fetch import Fetched, FetchLimits, GuardedFetch
from ._policy import HostPolicy, Resolver

__all__ = (
    "FetchLimits",
    "Fetched",
    "GuardedFetch",
    "HostPolicy",
    "Resolver",
    "resolve_host",
)
