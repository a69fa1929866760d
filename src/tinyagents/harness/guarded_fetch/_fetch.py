"""Fetching an address, redirects and all, within a policy and its limits."""

import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING

from ..concurrency import DeadlineExpired, within
from ..errors import FetchError, FetchRefusedError
from ..text import error_text
from ._addresses import resolve_host
from ._policy import HostPolicy, Resolver, check_addresses, check_target
from ._send import REDIRECTS, Answer, Asked, Sending, check_headers, check_method, send
from ._target import Target, target_of

if TYPE_CHECKING:
    import httpx

_MOST_ADDRESSES = 4
"""How many addresses of one host are tried, one after the other."""
_LONGEST_URL = 8_192
_FOR_ANY_ORIGIN = frozenset({"accept", "accept-language", "user-agent"})
"""The caller's headers that another origin sees as well, after a redirect."""
_SAFE_METHODS = frozenset({"GET", "HEAD"})
"""What changes nothing, by RFC 9110, 9.2.1, and carries no body."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchLimits:
    """How much one fetch may bring, and how long it may take."""

    max_bytes: int = 16 * 2**20
    """Of the body, counted as it is sent and as it is unpacked."""
    seconds: float = 30.0
    """For all of it: look-ups, redirects and the body."""
    max_redirects: int = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """What an address answered, whatever its status."""

    url: str
    """Where it came from in the end, after redirects."""
    status: int
    headers: Mapping[str, str] = field(repr=False)
    """Names are looked up in any case."""
    content: bytes = field(repr=False)
    """The body, with its content encoding undone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardedFetch:
    """Fetches over HTTP what a policy allows. Holds no connection; may be shared freely."""

    hosts: HostPolicy = HostPolicy()
    limits: FetchLimits = FetchLimits()
    resolve: Resolver = resolve_host
    """Looks names up; an application may bring its own."""
    tls: ssl.SSLContext | None = None
    """Whom to trust, in the place of the authorities that httpx trusts."""

    async def get(
        self, url: str, *, headers: Mapping[str, str] | None = None, max_bytes: int | None = None
    ) -> Fetched:
        """Fetch an address with ``GET`` and return the answer: see :meth:`send`.

        Raises:
            FetchRefusedError: The policy does not allow it, or one that it redirects to.
            FetchError: It could not be fetched, or not within the limits.
            ConfigurationError: A header is not the caller's to set, or cannot be sent.
        """
        return await self.send("GET", url, headers=headers, max_bytes=max_bytes)

    async def send(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        max_bytes: int | None = None,
    ) -> Fetched:
        """Send a request and return the answer, whatever its status.

        Redirects are followed by the rules of the first address. No cookie is kept, no proxy of the
        environment is used, and of ``headers`` another origin sees none but ``accept``,
        ``accept-language`` and ``user-agent``. A redirect of another method than ``GET`` and ``HEAD``
        is followed with ``GET`` where the status says so (303, and 301 and 302 after ``POST``; RFC
        9110, 15.4), and else within its origin only.

        Args:
            method: Such as ``GET``, in upper case.
            url: An address of ``http`` or ``https`` without user name and password.
            headers: What to send with the request.
            body: What to send after them.
            max_bytes: Lowers the limit of the answer's body for this call.

        Raises:
            FetchRefusedError: The policy does not allow it, or one that it redirects to.
            FetchError: It could not be fetched, or not within the limits.
            ConfigurationError: The method is none, or a header is not the caller's to set or cannot
                be sent.
        """
        most = self.limits.max_bytes if max_bytes is None else min(max_bytes, self.limits.max_bytes)
        check_method(method)
        check_headers(headers or {})
        address = _parsed(url)
        asked = Asked(method=method, headers=headers or {}, body=body)
        try:
            return await within(self.limits.seconds, lambda: self._follow(address, asked, most))
        except DeadlineExpired:
            shown = _target(address).shown
            raise FetchError(
                f"`{shown}` was not fetched within {self.limits.seconds:g} s",
                url=shown,
                reason="timeout",
            ) from None

    async def _follow(self, url: "httpx.URL", asked: Asked, max_bytes: int) -> Fetched:
        first = _target(url)
        for _ in range(self.limits.max_redirects + 1):
            target = _target(url)
            check_target(self.hosts, target)
            if target.origin != first.origin:
                asked = _for_any_origin(asked, target)
            answer = await self._send(url, target, asked, max_bytes)
            location = answer.headers.get("location")
            if answer.status not in REDIRECTS or location is None:
                return Fetched(
                    url=str(url),
                    status=answer.status,
                    headers=answer.headers,
                    content=answer.content,
                )
            url = _joined(url, location, target)
            asked = _redirected(asked, answer.status)
        raise FetchError(
            f"`{first.shown}` redirects more than {self.limits.max_redirects} times",
            url=first.shown,
            reason="redirect",
        )

    async def _look_up(self, target: Target) -> Sequence[str]:
        if target.address is not None:
            return [target.host]
        try:
            addresses = await self.resolve(target.host, target.port)
        except (OSError, UnicodeError) as exc:
            raise _unreachable(target, "its name could not be looked up") from exc
        if not addresses:
            raise _unreachable(target, "its name has no address")
        return addresses

    async def _send(
        self,
        url: "httpx.URL",
        target: Target,
        asked: Asked,
        max_bytes: int,
    ) -> Answer:
        """Ask the first of the host's addresses that takes a connection."""
        import httpx

        addresses = check_addresses(self.hosts, target, await self._look_up(target))
        addresses = addresses[:_MOST_ADDRESSES]
        how = Sending(
            tls=self.tls or _trusted(),
            connect_seconds=self.limits.seconds / len(addresses),
            max_bytes=max_bytes,
        )
        failure: Exception | None = None
        for address in addresses:
            try:
                return await send(url, target, address, asked, how)
            except (httpx.ConnectError, httpx.ConnectTimeout) as exc:
                failure = exc
        why = "" if failure is None else f" ({error_text(failure)})"
        raise _unreachable(target, f"no connection could be made{why}") from failure


def _parsed(url: str) -> "httpx.URL":
    """Read an address, and refuse what readers of addresses do not agree on."""
    import httpx

    if len(url) > _LONGEST_URL:
        raise _unclear("it is too long")
    if "\\" in url or not url.isprintable() or " " in url:
        raise _unclear("it holds a space, a backslash or a control character")
    try:
        return httpx.URL(url)
    except (httpx.InvalidURL, ValueError) as exc:
        raise _unclear("it is none") from exc


def _target(url: "httpx.URL") -> Target:
    path = url.raw_path.partition(b"?")[0].decode("ascii")
    target = target_of(url.scheme, url.raw_host.decode("ascii"), url.port, path)
    if url.userinfo:
        raise target.refused("credentials", "it names a user")
    return target


def _redirected(asked: Asked, status: int) -> Asked:
    """Return what is asked of the place that an answer redirects to."""
    becomes_get = status == 303 or (status in (301, 302) and asked.method == "POST")
    if not becomes_get or asked.method in _SAFE_METHODS:
        return asked
    headers = {k: v for k, v in asked.headers.items() if not k.lower().startswith("content-")}
    return Asked(method="GET", headers=headers)


def _for_any_origin(asked: Asked, target: Target) -> Asked:
    if asked.method not in _SAFE_METHODS:
        # Whoever answers may not choose who else gets the body.
        raise FetchError(
            f"a {asked.method} was redirected to another origin, `{target.shown}`",
            url=target.shown,
            reason="redirect",
        )
    headers = {k: v for k, v in asked.headers.items() if k.lower() in _FOR_ANY_ORIGIN}
    return replace(asked, headers=headers)


def _joined(url: "httpx.URL", location: str, target: Target) -> "httpx.URL":
    """Return where a redirect leads, of which errors then speak as they do of any address."""
    import httpx

    try:
        return url.join(_parsed(location))
    except (httpx.InvalidURL, ValueError) as exc:
        raise FetchError(
            f"`{target.shown}` redirects to what is no address", url=target.shown, reason="redirect"
        ) from exc


def _unclear(why: str) -> FetchRefusedError:
    # Without the address: what cannot be taken apart may hold a password.
    return FetchRefusedError(f"an address was not fetched: {why}", url="", reason="url")


def _unreachable(target: Target, why: str) -> FetchError:
    return FetchError(
        f"`{target.shown}` was not fetched: {why}", url=target.shown, reason="connection"
    )


@cache
def _trusted() -> ssl.SSLContext:
    """Return the TLS settings of httpx: loading the authorities takes some 20 ms."""
    import httpx

    return httpx.create_ssl_context()
