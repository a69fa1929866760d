"""Which hosts may be reached."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cache
from ipaddress import ip_network
from typing import TypeAlias

from ..errors import ConfigurationError
from ._addresses import Address, Network, special_use
from ._target import Target, is_host_name, plain_address

Resolver: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]
"""From a host name and a port to its IP addresses; raises ``OSError`` where there are none."""

_SCHEMES = ("https", "http")


@dataclass(frozen=True, slots=True, kw_only=True)
class HostPolicy:
    """Which hosts may be reached; by default all of the public internet, over its usual ports.

    Not of the public internet are loopback, private, link-local (with the metadata servers of
    clouds), shared, multicast and reserved addresses, and IPv6 addresses that stand for an IPv4
    address.

    Raises:
        ConfigurationError: A host, a scheme, a port or a network cannot be one.
    """

    hosts: Collection[str] | None = None
    """The only ones allowed: ``example.com``, or ``*.example.com`` for all names below it. Names
    beyond ASCII stand in their ``xn--`` form. ``None`` allows all."""
    schemes: Collection[str] = _SCHEMES
    ports: Collection[int] | None = (443, 80)
    """``None`` allows all."""
    networks: Collection[str] = ()
    """Networks that may be reached although they are not of the public internet, such as
    ``10.1.0.0/16``, or ``127.0.0.1/32`` in a test."""

    def __post_init__(self) -> None:
        for name in ("hosts", "schemes", "networks"):
            if isinstance(getattr(self, name), str):
                raise ConfigurationError(f"`HostPolicy.{name}` is one string: pass a list of them")
        for host in self.hosts or ():
            if not is_host_name(host.removeprefix("*.").lower()) and plain_address(host) is None:
                raise ConfigurationError(
                    f"`HostPolicy.hosts` has {host!r}; it takes a name, `*.` and a name, "
                    "or an IP address"
                )
        for scheme in self.schemes:
            if scheme not in _SCHEMES:
                raise ConfigurationError(
                    f"`HostPolicy.schemes` has {scheme!r}; it takes http and https"
                )
        try:
            for network in self.networks:
                _network(network)
        except ValueError as exc:
            raise ConfigurationError(f"`HostPolicy.networks`: {exc}") from exc


def check_target(policy: HostPolicy, target: Target) -> None:
    """Check all that can be told before a name is looked up.

    Raises:
        FetchRefusedError: The scheme, the port or the host is not allowed.
    """
    if target.scheme not in policy.schemes:
        allowed = " and ".join(policy.schemes)
        raise target.refused("scheme", f"the policy allows {allowed or 'no scheme'}")
    if policy.ports is not None and target.port not in policy.ports:
        raise target.refused("port", f"the policy does not allow port {target.port}")
    if policy.hosts is not None and not any(_matches(target.host, host) for host in policy.hosts):
        raise target.refused("host", f"the policy does not name the host `{target.host}`")


def check_addresses(policy: HostPolicy, target: Target, addresses: Sequence[str]) -> list[Address]:
    """Check every address of a host: one that is refused refuses them all.

    Raises:
        FetchRefusedError: One of them is not of the public internet, or is no plain address.
    """
    return [_checked(policy, target, address) for address in addresses]


def _checked(policy: HostPolicy, target: Target, text: str) -> Address:
    address = plain_address(text)
    if address is None:
        raise target.refused("address", f"`{target.host}` stands for no plain IP address")
    if not any(address in _network(network) for network in policy.networks):
        special = special_use(address)
        if special is not None:
            named = "it" if target.address else f"`{target.host}`"
            raise target.refused("address", f"{named} stands for {address} ({special})")
    return address


@cache
def _network(text: str) -> Network:
    return ip_network(text)


def _matches(host: str, pattern: str) -> bool:
    if pattern.startswith("*."):
        return host.endswith(pattern[1:].lower())
    address = plain_address(pattern)
    return host == (pattern.lower().removesuffix(".") if address is None else str(address))
