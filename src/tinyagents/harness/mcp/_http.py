"""A server behind an address: what its answers may hold, and what they say of the session."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage

from ._transports import McpHttp

_CONNECT_SECONDS = 30.0
_SESSION_HEADER = "mcp-session-id"


class HttpSignals:
    """What the status lines of a server say, which the package keeps to itself."""

    def __init__(self) -> None:
        self.expired = False
        """The server knows the session no more, and has refused what was sent under it."""
        self.refused: int | None = None
        """The status of the last answer that was a refusal."""

    def look_at(self, response: httpx2.Response) -> None:
        """Take note of an answer."""
        if response.status_code >= 400:
            self.refused = response.status_code
        if response.status_code == 404 and _SESSION_HEADER in response.request.headers:
            self.expired = True


@asynccontextmanager
async def http_transport(
    server: McpHttp, signals: HttpSignals, *, max_message_bytes: int
) -> AsyncGenerator[tuple[ReadStream[SessionMessage | Exception], WriteStream[SessionMessage]]]:
    """Hand out the streams to a server; at the end its session is given up."""

    async def look_at(response: httpx2.Response) -> None:
        signals.look_at(response)
        _bound_body(response, max_message_bytes)

    async with (
        httpx2.AsyncClient(
            # Unpacked, a small body could become one of any size.
            headers={**(server.headers or {}), "accept-encoding": "identity"},
            auth=server.auth,
            # How long a call may take is for whoever makes it to say.
            timeout=httpx2.Timeout(_CONNECT_SECONDS, read=None),
            event_hooks={"response": [look_at]},
        ) as client,
        streamable_http_client(
            server.url, http_client=client, max_sse_event_size=max_message_bytes
        ) as streams,
    ):
        yield streams


def _bound_body(response: httpx2.Response, limit: int) -> None:
    """Let the body end with an error where it is packed or too long; events have their own bound."""
    headers = response.headers
    if headers.get("content-encoding", "identity").lower() != "identity":
        response.stream = _BoundedBody(response.stream, -1, "it is compressed, against the request")
    elif not headers.get("content-type", "").lower().startswith("text/event-stream"):
        announced = headers.get("content-length", "")
        left = -1 if announced.isdecimal() and int(announced) > limit else limit
        response.stream = _BoundedBody(response.stream, left, f"it has more than {limit} bytes")


class _BoundedBody(httpx2.AsyncByteStream):
    def __init__(
        self, body: httpx2.AsyncByteStream | httpx2.SyncByteStream, limit: int, why: str
    ) -> None:
        assert isinstance(body, httpx2.AsyncByteStream)
        self._body = body
        self._limit = limit
        self._why = why

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = self._limit
        if left >= 0:
            async for chunk in self._body:
                left -= len(chunk)
                if left < 0:
                    break
                yield chunk
        if left < 0:
            raise httpx2.StreamError(f"the answer cannot be read: {self._why}")

    async def aclose(self) -> None:
        await self._body.aclose()
