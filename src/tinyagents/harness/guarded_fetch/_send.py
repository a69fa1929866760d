"""One request to one checked address, and its answer read within bounds."""

import re
import ssl
import zlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio

from ..concurrency import CLEAN_UP_SECONDS
from ..errors import ConfigurationError, FetchError
from ..gunzip import Gunzip
from ._addresses import Address
from ._target import Target

if TYPE_CHECKING:
    import httpx

REDIRECTS = frozenset({301, 302, 303, 307, 308})
_OWN_HEADERS = frozenset(
    {
        *("accept-encoding", "connection", "content-length", "expect", "host", "keep-alive"),
        *("te", "trailer", "transfer-encoding", "upgrade"),
    }
)
"""What only this module may say, since it decides where a request goes and how its answer ends."""
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""A token of RFC 9110, 5.6.2."""
_METHOD = re.compile("[A-Z]{1,20}")
_NO_REQUESTS = frozenset({"CONNECT", "TRACE"})
_GZIP = frozenset({"gzip", "x-gzip"})
_NO_ENCODING = frozenset({"", "identity"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is asked of an address."""

    method: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer; of a redirect, whose body nobody reads, the content is empty."""

    status: int
    headers: Mapping[str, str]
    content: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sending:
    """How requests are sent."""

    tls: ssl.SSLContext
    connect_seconds: float
    max_bytes: int


def check_method(method: str) -> None:
    """Check that a method is one in upper case, and that asking it is no other thing than a request.

    Raises:
        ConfigurationError: It is not.
    """
    if not _METHOD.fullmatch(method) or method in _NO_REQUESTS:
        raise ConfigurationError(f"a fetch has no method {method[:40]!r}")


def check_headers(headers: Mapping[str, str]) -> None:
    """Check that the caller's headers leave those of the connection alone.

    Raises:
        ConfigurationError: One of them is not the caller's to set, or cannot be sent.
    """
    for name, value in headers.items():
        if name.lower() in _OWN_HEADERS:
            raise ConfigurationError(f"the header `{name}` cannot be set for a fetch")
        sendable = value.isascii() and value.isprintable() and value == value.strip()
        if not sendable or not _HEADER_NAME.fullmatch(name):
            # Without the value, which may be a key: what HTTP libraries say of it quotes it.
            raise ConfigurationError(f"the header {name!r} holds what cannot be sent")


async def send(
    url: "httpx.URL",
    target: Target,
    address: Address,
    asked: Asked,
    how: Sending,
) -> Answer:
    """Send a request to the address, with the name of the target on it, and read the answer.

    Raises:
        FetchError: The connection broke, or the body is too large or cannot be unpacked.
        httpx.ConnectError: No connection could be made. ``httpx.ConnectTimeout``: not in time.
    """
    import httpx

    request = httpx.Request(
        asked.method,
        # An address in the place of the name: there is no second look-up that could tell another.
        url.copy_with(scheme=target.scheme, host=str(address), port=target.port, fragment=None),
        content=asked.body,
        headers={
            "user-agent": "tinyagents",
            "accept": "*/*",
            **{name.lower(): value for name, value in asked.headers.items()},
            "host": target.authority,
            "accept-encoding": "gzip",
        },
        extensions={
            "sni_hostname": target.host,
            "timeout": {"connect": how.connect_seconds},
        },
    )
    # A transport and no client: it knows no cookies, no proxies and no redirects.
    transport = httpx.AsyncHTTPTransport(verify=how.tls, trust_env=False)
    response: httpx.Response | None = None
    chunks: AsyncIterator[bytes] | None = None
    try:
        response = await transport.handle_async_request(request)
        chunks = response.aiter_raw()
        redirects = response.status_code in REDIRECTS and "location" in response.headers
        if redirects or asked.method == "HEAD":
            content = b""
        else:
            content = await _read(chunks, response.headers, target, how.max_bytes)
        return Answer(status=response.status_code, headers=response.headers, content=content)
    except (httpx.ConnectError, httpx.ConnectTimeout):
        raise
    except (httpx.TransportError, httpx.StreamError) as exc:
        raise FetchError(
            f"the connection to `{target.shown}` broke ({type(exc).__name__})",
            url=target.shown,
            reason="connection",
        ) from exc
    finally:
        await _close(transport, response, chunks)


async def _read(
    chunks: AsyncIterator[bytes], headers: Mapping[str, str], target: Target, max_bytes: int
) -> bytes:
    named = headers.get("content-length", "")
    # Longer numbers are nonsense that the reading will end.
    if named.isdecimal() and len(named) < 20 and int(named) > max_bytes:
        raise _too_large(target, max_bytes)
    encoding = headers.get("content-encoding", "").strip().lower()
    if encoding in _NO_ENCODING:
        return await _gathered(chunks, target, max_bytes)
    if encoding in _GZIP:
        return await _unpacked(chunks, target, max_bytes)
    raise _unreadable(target, "its content-encoding is another one than gzip")


async def _gathered(chunks: AsyncIterator[bytes], target: Target, max_bytes: int) -> bytes:
    body = bytearray()
    async for chunk in chunks:
        body += chunk
        if len(body) > max_bytes:
            raise _too_large(target, max_bytes)
    return bytes(body)


async def _unpacked(chunks: AsyncIterator[bytes], target: Target, max_bytes: int) -> bytes:
    unpacker, body = Gunzip(), bytearray()
    try:
        async for chunk in chunks:
            unpacker.feed(chunk)
            while piece := unpacker.piece():
                body += piece
                if len(body) > max_bytes:
                    raise _too_large(target, max_bytes)
            if unpacker.fed > max_bytes:  # what unpacks to nothing may have no end, either
                raise _too_large(target, max_bytes)
    except zlib.error as exc:
        raise _unreadable(target, f"it cannot be unpacked: {exc}") from exc
    if unpacker.fed and not unpacker.complete:
        raise _unreadable(target, "its end is missing")
    return bytes(body)


async def _close(
    transport: "httpx.AsyncHTTPTransport",
    response: "httpx.Response | None",
    chunks: AsyncIterator[bytes] | None,
) -> None:
    with anyio.move_on_after(CLEAN_UP_SECONDS, shield=True):
        try:
            if response is not None:
                await response.aclose()
            if chunks is not None:
                # Closing leaves the readers of the layers below suspended, and trio complains of
                # each. One more step makes them find the stream closed and end.
                await anext(chunks, None)
        except Exception:  # noqa: BLE001 - there is nothing left to lose
            return
        finally:
            await transport.aclose()


def _too_large(target: Target, max_bytes: int) -> FetchError:
    return FetchError(
        f"`{target.shown}` holds more than {max_bytes} bytes",
        url=target.shown,
        reason="size",
        limit=max_bytes,
    )


def _unreadable(target: Target, why: str) -> FetchError:
    return FetchError(
        f"the body of `{target.shown}` was not read: {why}", url=target.shown, reason="body"
    )
