"""Where a request goes, read in one way only."""

import re
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from typing import Final

from ..errors import FetchRefusedError
from ._addresses import Address

_LABEL = "[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"(?:{_LABEL}\.)*{_LABEL}")
_LONGEST_NAME = 253
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_PORT_OF: Final = {"https": 443, "http": 80}
_LONGEST_SHOWN = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The place that an address names, before any name is looked up."""

    scheme: str
    host: str
    """In lower case, without a dot at its end: a name in ASCII, or an IP address."""
    port: int
    path: str

    @property
    def origin(self) -> tuple[str, str, int]:
        """Whom credentials are for."""
        return self.scheme, self.host, self.port

    @property
    def address(self) -> Address | None:
        """The host, where it is an IP address itself."""
        return plain_address(self.host)

    @property
    def authority(self) -> str:
        """What the ``Host`` header says."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORT_OF.get(self.scheme, 0) else f"{host}:{self.port}"

    @property
    def shown(self) -> str:
        """The address for errors: without query, fragment and credentials, and not too long."""
        start = f"{self.scheme}://" if self.scheme else ""
        return f"{start}{self.authority}{self.path}"[:_LONGEST_SHOWN]

    def refused(self, reason: str, why: str) -> FetchRefusedError:
        """Return the error that says what is not allowed."""
        return FetchRefusedError(
            f"`{self.shown}` was not fetched: {why}", url=self.shown, reason=reason
        )


def target_of(scheme: str, host: str, port: int | None, path: str) -> Target:
    """Return the target of a URL's parts.

    Raises:
        FetchRefusedError: The host is neither a name nor an IP address in its usual form. Decimal,
            octal and hexadecimal forms, which resolvers take for addresses, are refused.
    """
    scheme, address = scheme.lower(), plain_address(host)
    host = host.lower().removesuffix(".") if address is None else str(address)
    port = _PORT_OF.get(scheme, 0) if port is None else port
    target = Target(scheme=scheme, host=host, port=port, path=path)
    if scheme not in _PORT_OF:
        raise target.refused("scheme", "only http and https are spoken")
    if not 0 < port < 2**16:
        raise target.refused("port", "there is no such port")
    if address is None and not is_host_name(host):
        raise target.refused(
            "url", "its host is neither a name nor an IP address in its usual form"
        )
    return target


def is_host_name(host: str) -> bool:
    """Whether a text in lower case is a name, and can be nothing else."""
    # A name whose last part is a number is an address to some resolvers and none to others.
    return (
        len(host) <= _LONGEST_NAME
        and _NAME.fullmatch(host) is not None
        and _NUMBER.fullmatch(host.rpartition(".")[2]) is None
    )


def plain_address(text: str) -> Address | None:
    """Return the IP address that a text is, in its usual form and without a zone."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    # With a zone it is one of this machine's links.
    return None if isinstance(address, IPv6Address) and address.scope_id else address
