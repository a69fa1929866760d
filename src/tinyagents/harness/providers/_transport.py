"""HTTP for the adapters: one place for pooling, timeouts, bounds, and the failures of both.

httpx is imported when the first client is made. A caller's own client may be of httpx or of httpx2:
nothing here needs to know which.
"""

import ssl
import zlib
from collections.abc import AsyncGenerator, Mapping
from functools import cache
from types import TracebackType
from typing import Any, Self
from weakref import WeakKeyDictionary

import anyio
from anyio.lowlevel import RunVar

from ..concurrency import CLEAN_UP_SECONDS
from ..errors import (
    ConfigurationError,
    MalformedResponseError,
    MissingDependencyError,
    NetworkError,
    ProviderTimeoutError,
)
from ..gunzip import Gunzip
from ._errors import error_from_exception
from ._http import HttpAnswer, HttpCall, HttpClient, HttpResponse, Timeouts

_DRAINING_SECONDS = 0.25
"""How long the end of a finished stream is waited for, so that its connection can be used again."""

_MAX_CONNECTIONS = 1_000
_MAX_IDLE_CONNECTIONS = 100

_NO_ENCODING = frozenset({"", "identity", "none", "utf-8"})
"""What says nothing, in lower case. With ``none`` servers keep proxies from holding a stream up."""
_GZIP = frozenset({"gzip", "x-gzip"})
"""The encoding that is asked for, and read: its unpacked size can be bounded."""


class HttpTransport:
    """Sends requests through a client of its own, or through the caller's.

    Its own clients are made at first use, one for each event loop, and closed by :meth:`aclose` or
    when their loop ends; the caller's is never closed. May be shared between loops and threads.

    Args:
        client: The caller's client. Its timeouts hold, unless ``timeouts`` are given.
        timeouts: Limits of each call.
        http2: Offer HTTP/2.
        max_body_bytes: The most that a whole answer may hold, unpacked.
        max_event_bytes: The most that one event of a stream may hold.
        max_stream_bytes: The most that all of a stream may hold, unpacked: against servers that
            never end. A hundred thousand tokens with their probabilities take less.

    Raises:
        ConfigurationError: The caller's client is closed.
    """

    def __init__(
        self,
        *,
        client: HttpClient | None = None,
        timeouts: Timeouts | None = None,
        http2: bool = False,
        max_body_bytes: int = 64 * 2**20,
        max_event_bytes: int = 16 * 2**20,
        max_stream_bytes: int = 256 * 2**20,
    ) -> None:
        _refuse_closed(client)
        self._client = client
        self._http2 = http2
        self._keeps_timeouts = client is not None and timeouts is None
        self._timeouts = timeouts or Timeouts()
        self.max_body_bytes = max_body_bytes
        self.max_event_bytes = max_event_bytes
        self.max_stream_bytes = max_stream_bytes

    @property
    def client(self) -> HttpClient | None:
        """The caller's client."""
        return self._client

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close this event loop's own client. The next call would open another one."""
        keeper = _keepers().pop(self, None)
        if keeper is not None:
            await keeper.aclose()

    async def post(self, call: HttpCall) -> HttpAnswer:
        """Send a request and read the whole answer, whatever its status.

        Raises:
            NetworkError: No connection, or it broke.
            ProviderTimeoutError: The answer took too long.
            MalformedResponseError: The answer is larger than ``max_body_bytes``.
        """
        limit = self._limit(call, self._timeouts.total)
        with anyio.move_on_after(limit):
            response = await self._open(call, _Deadline(None), read=None)
            try:
                body = await response.read()
            finally:
                await response.aclose()
            return HttpAnswer(status=response.status, headers=response.headers, body=body)
        raise _too_slow(call, limit, "a whole answer")

    async def open(self, call: HttpCall) -> "HttpStream":
        """Send a request and return the answer as soon as its headers are there.

        The caller closes it, on every path.

        Raises:
            NetworkError: No connection, or it broke.
            ProviderTimeoutError: The headers took too long.
        """
        deadline = _Deadline(self._limit(call, self._timeouts.stream))
        return await self._open(call, deadline, read=self._timeouts.idle)

    def _limit(self, call: HttpCall, otherwise: float | None) -> float | None:
        if call.timeout is not None:
            return call.timeout
        return None if self._keeps_timeouts else otherwise

    async def _open(
        self, call: HttpCall, deadline: "_Deadline", *, read: float | None
    ) -> "HttpStream":
        _refuse_closed(self._client)
        client = self._client or self._own_client()
        headers = {"accept-encoding": "gzip", **call.headers}
        options: dict[str, Any] = {}
        if not self._keeps_timeouts:
            # connect, read, write, pool
            limits = self._timeouts
            options["timeout"] = (limits.connect, read, limits.idle, limits.total)
        try:
            request = client.build_request(
                call.method, call.url, content=call.body or None, headers=headers, **options
            )
        except Exception as exc:  # noqa: BLE001 - nothing was sent: the settings are wrong
            # From nothing, since what HTTP libraries say of a header quotes it, with the key.
            raise ConfigurationError(
                f"the request to {call.provider} cannot be made ({type(exc).__name__}): "
                "check the base URL and the headers"
            ) from None
        try:
            with deadline.scope():
                # A redirect would take the key to whoever it names.
                response: HttpResponse = await client.send(
                    request, stream=True, follow_redirects=False
                )
                return HttpStream(
                    response,
                    call,
                    deadline,
                    max_body_bytes=self.max_body_bytes,
                    max_stream_bytes=self.max_stream_bytes,
                )
        except Exception as exc:
            _raise_told(exc, call, "the request")
            raise
        raise _too_slow(call, deadline.seconds, "the beginning of an answer")

    def _own_client(self) -> HttpClient:
        keepers = _keepers()
        keeper = keepers.get(self)
        if keeper is None:
            keeper = keepers[self] = _ClientKeeper(self._make_client())
        return keeper.client

    def _make_client(self) -> HttpClient:
        import httpx

        limits = httpx.Limits(
            max_connections=_MAX_CONNECTIONS, max_keepalive_connections=_MAX_IDLE_CONNECTIONS
        )
        try:
            return httpx.AsyncClient(
                http2=self._http2, limits=limits, verify=_tls_context(http2=self._http2)
            )
        except ImportError as exc:
            if "'h2'" in str(exc):
                raise MissingDependencyError("h2", extra="http2") from exc
            raise ConfigurationError(f"no HTTP client can be made: {exc}") from exc
        except Exception as exc:  # noqa: BLE001 - a proxy that cannot be one, of whatever error
            raise ConfigurationError(
                f"no HTTP client can be made ({type(exc).__name__}): check the proxies that the "
                "environment names (`HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY`)"
            ) from None


class HttpStream:
    """An answer whose body is read as it comes. Closed by whoever opened it."""

    __slots__ = (
        "_bound",
        "_call",
        "_chunks",
        "_deadline",
        "_encoding",
        "_max_body_bytes",
        "_most",
        "_response",
        "_size",
        "_unpacker",
    )

    def __init__(
        self,
        response: HttpResponse,
        call: HttpCall,
        deadline: "_Deadline",
        *,
        max_body_bytes: int,
        max_stream_bytes: int,
    ) -> None:
        self._response = response
        self._call = call
        self._deadline = deadline
        self._max_body_bytes = max_body_bytes
        self._most, self._bound = max_stream_bytes, "max_stream_bytes"
        self._size = 0
        self._encoding = "" if response.is_stream_consumed else _encoding_of(response.headers)
        self._unpacker = Gunzip() if self._encoding else None
        # Without an encoding the bytes are raw already; another layer would only take time.
        read = response.is_stream_consumed
        self._chunks = response.aiter_bytes() if read else response.aiter_raw()

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self._response.status_code

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers; names are looked up in any case."""
        return self._response.headers

    async def next_chunk(self) -> bytes | None:
        """Return the next bytes of the body; ``None`` at its end.

        Raises:
            NetworkError: The connection broke before the end.
            ProviderTimeoutError: Nothing came for too long.
            MalformedResponseError: The body is too large, or its encoding is one that is not read.
        """
        if self._deadline.seconds is None:
            return await self._read()
        with self._deadline.scope():
            return await self._read()
        raise _too_slow(self._call, self._deadline.seconds, "a whole answer")

    async def read(self, already: bytes = b"") -> bytes:
        """Return the rest of the body, after the bytes that were read already.

        Raises:
            MalformedResponseError: The body is larger than ``max_body_bytes``.
        """
        self._most, self._bound = self._max_body_bytes, "max_body_bytes"
        pieces = [already]
        while (chunk := await self.next_chunk()) is not None:
            pieces.append(chunk)
        return b"".join(pieces)

    async def drain(self) -> None:
        """Read what follows the end of the answer, for a moment: it frees the connection."""
        with anyio.move_on_after(_DRAINING_SECONDS):
            try:
                while await anext(self._chunks, None) is not None:
                    pass
            except Exception:  # noqa: BLE001 - the answer is complete, only the connection is lost
                return

    async def aclose(self) -> None:
        """Give the connection back, or close it if the answer was not read to its end."""
        with anyio.move_on_after(CLEAN_UP_SECONDS, shield=True):
            try:
                await self._response.aclose()
                # Closing leaves the readers of the layers below suspended, and trio complains of
                # each. One more step makes them find the stream closed and end.
                await anext(self._chunks, None)
            except Exception:  # noqa: BLE001 - there is nothing left to lose
                return

    async def _read(self) -> bytes | None:
        try:
            if self._unpacker is None:
                chunk = await anext(self._chunks, None)
            else:
                chunk = await self._unpack(self._unpacker)
        except Exception as exc:
            _raise_told(exc, self._call, "the answer")
            raise
        if chunk is not None:
            self._size += len(chunk)
            if self._size > self._most:
                raise self._too_large()
        return chunk

    async def _unpack(self, unpacker: Gunzip) -> bytes | None:
        if self._encoding not in _GZIP:
            if self.status >= 300:
                return None  # the status tells more than a body that cannot be read
            raise self._malformed("its content-encoding is another one than gzip")
        try:
            while not (piece := unpacker.piece()):
                packed = await anext(self._chunks, None)
                if packed is None:
                    return None
                unpacker.feed(packed)
                if unpacker.fed > self._most:  # what unpacks to nothing may have no end, either
                    raise self._too_large()
        except zlib.error as exc:
            raise self._malformed(f"it cannot be decoded: {exc}") from exc
        return piece

    def _too_large(self) -> MalformedResponseError:
        return self._malformed(f"it is larger than {self._most} bytes (`{self._bound}`)")

    def _malformed(self, reason: str) -> MalformedResponseError:
        return MalformedResponseError(
            f"the answer was not read: {reason}",
            provider=self._call.provider,
            model=self._call.model,
            status=self.status,
        )


def _encoding_of(headers: Mapping[str, str]) -> str:
    """Return the content encoding, in lower case; empty for none."""
    named = (name.strip() for name in headers.get("content-encoding", "").lower().split(","))
    return ", ".join(name for name in named if name not in _NO_ENCODING)


class _Deadline:
    """A limit that holds over several steps, of which each has a scope of its own."""

    __slots__ = ("_at", "seconds")

    def __init__(self, seconds: float | None) -> None:
        self.seconds = seconds
        self._at = float("inf") if seconds is None else anyio.current_time() + seconds

    def scope(self) -> anyio.CancelScope:
        return anyio.CancelScope(deadline=self._at)


class _ClientKeeper:
    """Closes a client when it is asked to, or else when the event loop ends.

    A loop that ends closes the asynchronous generators that are still suspended in it, so one of
    them holds the client. Without it the sockets of a client that nobody closed would be dropped
    with a warning, or be used again from a later loop.
    """

    __slots__ = ("_generator", "client")

    def __init__(self, client: HttpClient) -> None:
        self.client = client
        self._generator = _until_closed(client)
        # Run it to its first suspension by hand: starting it awaits nothing.
        try:
            self._generator.asend(None).send(None)
        except StopIteration:
            pass

    async def aclose(self) -> None:
        await self._generator.aclose()


async def _until_closed(client: HttpClient) -> AsyncGenerator[None]:
    try:
        yield
    finally:
        with anyio.move_on_after(CLEAN_UP_SECONDS, shield=True):
            await client.aclose()


@cache
def _tls_context(*, http2: bool) -> ssl.SSLContext:
    """Return the TLS settings that clients share: loading the authorities takes some 20 ms.

    One for each protocol, since connecting writes the protocols on offer into them.
    """
    import httpx

    _ = http2
    return httpx.create_ssl_context()


_keepers_of_loop: RunVar[WeakKeyDictionary[HttpTransport, _ClientKeeper]] = RunVar(
    "tinyagents.http_clients"
)


def _keepers() -> WeakKeyDictionary[HttpTransport, _ClientKeeper]:
    try:
        return _keepers_of_loop.get()
    except LookupError:
        keepers: WeakKeyDictionary[HttpTransport, _ClientKeeper] = WeakKeyDictionary()
        _keepers_of_loop.set(keepers)
        return keepers


def _refuse_closed(client: HttpClient | None) -> None:
    if client is not None and client.is_closed:
        raise ConfigurationError("the `http_client` that was passed in is closed")


def _raise_told(exc: Exception, call: HttpCall, doing: str) -> None:
    """Raise this library's error for a failure; return if it is no failure of HTTP."""
    error = error_from_exception(exc, provider=call.provider, model=call.model, doing=doing)
    if error is None and isinstance(exc, ExceptionGroup):
        # From the race for a connection, such as one to a proxy whose port is none.
        error = NetworkError(
            f"the connection failed during {doing}", provider=call.provider, model=call.model
        )
    if error is not None:
        # What is said of a header that cannot be sent quotes it, with the key.
        raise error from None if isinstance(error, ConfigurationError) else exc


def _too_slow(call: HttpCall, seconds: float | None, what: str) -> ProviderTimeoutError:
    return ProviderTimeoutError(
        f"{what} did not arrive within {seconds:g} s", provider=call.provider, model=call.model
    )
