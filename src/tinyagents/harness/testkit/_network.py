"""No connections beyond this machine."""

import ipaddress
import socket
from collections.abc import Collection, Generator
from contextlib import contextmanager
from threading import Lock
from typing import Any, cast

_FAMILIES = (socket.AF_INET, socket.AF_INET6)
_METHODS = ("connect", "connect_ex", "sendto", "sendmsg")
_FUNCTIONS = ("getaddrinfo", "gethostbyname", "gethostbyname_ex")


class NetworkBlocked(RuntimeError):
    """Something tried to reach beyond this machine while that is not allowed.

    Not an ``OSError``: those are what clients retry, and what code under test may swallow.
    """


@contextmanager
def block_network(*, allow: Collection[str] = ()) -> Generator[None]:
    """Refuse every connection, datagram and name look-up beyond this machine.

    Loopback addresses, ``localhost`` and Unix sockets work. It holds for the whole process, all
    threads and event loops of it, and may be nested: what is allowed then is what each allows.
    Connections that are open already are not touched.

    Args:
        allow: Host names and addresses to let through.

    Raises:
        NetworkBlocked: In whoever tries.
    """
    guard = _Guard(allow)
    _install(guard)
    try:
        yield
    finally:
        _remove(guard)


class _Guard:
    """What one ``with`` lets through."""

    def __init__(self, allow: Collection[str]) -> None:
        self._names = {name.lower() for name in allow}
        self._addresses = {found for name in allow if (found := _address(name)) is not None}

    def allows_name(self, name: str) -> bool:
        """Whether the name may be looked up. Addresses need no look-up."""
        name = name.lower().rstrip(".")
        local = name in ("", "localhost") or name.endswith(".localhost")
        return local or name in self._names or _address(name) is not None

    def allows_address(self, host: str) -> bool:
        """Whether the host, an address or a name, may be reached."""
        address = _address(host)
        if address is None:
            return self.allows_name(host)
        return address.is_loopback or address.is_unspecified or address in self._addresses

    def learn(self, name: str, addresses: Collection[str]) -> None:
        """Let through what an allowed name stands for."""
        if name.lower().rstrip(".") in self._names:
            self._addresses.update(found for a in addresses if (found := _address(a)) is not None)


_lock = Lock()
_guards: list[_Guard] = []
_originals: dict[tuple[Any, str], Any] = {}


def _install(guard: _Guard) -> None:
    with _lock:
        _guards.append(guard)
        if len(_guards) > 1:
            return
        for name in _METHODS:
            if hasattr(socket.socket, name):
                _replace(socket.socket, name, _guarded_method(name, getattr(socket.socket, name)))
        for name in _FUNCTIONS:
            _replace(socket, name, _guarded_lookup(name, getattr(socket, name)))


def _remove(guard: _Guard) -> None:
    with _lock:
        _guards.remove(guard)
        if _guards:
            return
        for (owner, name), original in _originals.items():
            if original is None:
                delattr(owner, name)
            else:
                setattr(owner, name, original)
        _originals.clear()


def _replace(owner: Any, name: str, replacement: Any) -> None:
    # The methods are inherited from the C class, which cannot be changed: taken away again later.
    _originals[owner, name] = owner.__dict__.get(name)
    setattr(owner, name, replacement)


def _guarded_method(name: str, original: Any) -> Any:
    def guarded(self: socket.socket, *args: Any) -> Any:
        if self.family in _FAMILIES and args:
            # `sendto` and `sendmsg` take it last, and none on a socket that is connected.
            _check(args[-1])
        return original(self, *args)

    guarded.__name__ = name
    return guarded


def _guarded_lookup(name: str, original: Any) -> Any:
    def guarded(host: Any, *args: Any, **kwargs: Any) -> Any:
        wanted = _text(host)
        for guard in tuple(_guards):
            if not guard.allows_name(wanted):
                raise NetworkBlocked(
                    f"the network is blocked: the look-up of `{wanted}` was refused"
                )
        found = original(host, *args, **kwargs)
        if name == "getaddrinfo":
            addresses = [str(entry[4][0]) for entry in found]
        else:
            addresses = [found] if isinstance(found, str) else list(found[2])
        for guard in tuple(_guards):
            guard.learn(wanted, addresses)
        return found

    guarded.__name__ = name
    return guarded


def _check(address: object) -> None:
    parts = cast("tuple[object, ...]", address) if isinstance(address, tuple) else ()
    if not parts:
        return  # no address, or one that the socket itself refuses
    host = _text(parts[0])
    if all(guard.allows_address(host) for guard in tuple(_guards)):
        return
    port = f" port {parts[1]}" if len(parts) > 1 else ""
    raise NetworkBlocked(f"the network is blocked: the connection to `{host}`{port} was refused")


def _text(host: object) -> str:
    if isinstance(host, bytes | bytearray):
        return host.decode("ascii", "replace")
    return "" if host is None else str(host)


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address
