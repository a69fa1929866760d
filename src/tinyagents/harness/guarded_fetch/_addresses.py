"""Which IP addresses belong to the public internet."""

import socket
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network
from typing import TypeAlias

import anyio

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

# A table of our own: which networks Python calls global or private differs between its versions.
# From IANA's registries of special-purpose addresses (RFC 6890), in the order in which they are tried.
_SPECIAL: tuple[tuple[Network, str], ...] = tuple(
    (ip_network(network), what)
    for network, what in (
        ("0.0.0.0/8", "this host"),
        ("10.0.0.0/8", "private"),
        ("100.64.0.0/10", "shared by a provider's customers"),
        ("127.0.0.0/8", "loopback"),
        ("168.63.129.16/32", "a cloud's own server"),  # Azure's, at a public address
        ("169.254.0.0/16", "link-local"),  # the metadata of most clouds, too
        ("172.16.0.0/12", "private"),
        ("192.0.0.0/24", "reserved"),
        ("192.0.2.0/24", "for documentation"),
        ("192.88.99.0/24", "a relay to IPv6"),
        ("192.168.0.0/16", "private"),
        ("198.18.0.0/15", "for benchmarks"),
        ("198.51.100.0/24", "for documentation"),
        ("203.0.113.0/24", "for documentation"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved"),
        ("::/128", "this host"),
        ("::1/128", "loopback"),
        ("::ffff:0:0/96", "an IPv4 address in IPv6 form"),
        ("::/96", "an IPv4 address in IPv6 form"),
        ("64:ff9b::/96", "an IPv4 address in IPv6 form"),  # NAT64
        ("64:ff9b:1::/48", "an IPv4 address in IPv6 form"),
        ("2002::/16", "an IPv4 address in IPv6 form"),  # 6to4
        ("2001::/32", "an IPv4 address in IPv6 form"),  # Teredo
        ("2001::/23", "reserved"),
        ("2001:db8::/32", "for documentation"),
        ("3fff::/20", "for documentation"),
        ("fc00::/7", "private"),
        ("fe80::/10", "link-local"),
        ("fec0::/10", "private"),
        ("ff00::/8", "multicast"),
    )
)
_PUBLIC_IPV6 = IPv6Network("2000::/3")
"""All that is given out so far (RFC 4291, 2.4); the rest is reserved."""


def special_use(address: Address) -> str | None:
    """Return what an address is for that is not of the public internet, or ``None`` for one that is."""
    for network, what in _SPECIAL:
        if address in network:
            return what
    if isinstance(address, IPv6Address) and address not in _PUBLIC_IPV6:
        return "reserved"
    return None


async def resolve_host(host: str, port: int) -> Sequence[str]:
    """Return the IP addresses that the system knows for a name, in the order to try them.

    Raises:
        OSError: The name is not known, or could not be looked up.
    """
    found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(entry[4][0] for entry in found))
