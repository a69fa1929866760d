"""A small HTTP server on loopback, which gives the answers that a suite has for it."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, Self, TypeAlias

import anyio
import anyio.abc
import anyio.lowlevel
import pytest

from ...text import encode_json, parse_json

_MOST_BYTES = 2**24
"""What a request may hold: a suite's own are far smaller."""

Ending: TypeAlias = Literal["end", "stop", "break", "hang"]
"""How an answer ends: as it should, in the middle (``stop`` properly, ``break`` with the connection
gone), or never."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WireAnswer:
    """An answer as it is on the wire."""

    chunks: tuple[bytes, ...]
    """The body, in the pieces in which it is sent: one for each event of a stream."""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def json(
        cls, document: Any, *, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> Self:
        """Return an answer of one JSON document."""
        kind = {"content-type": "application/json", **(headers or {})}
        return cls(chunks=(encode_json(document),), status=status, headers=kind)

    @classmethod
    def events(
        cls, documents: Iterable[Any], *, named_by: str | None = None, done: str | None = None
    ) -> Self:
        """Return an answer of server-sent events.

        Args:
            documents: What the events hold, each a JSON document.
            named_by: The field of a document that is the event's name, too.
            done: The data of a last event that is no JSON, such as ``[DONE]``.
        """
        chunks = [
            (f"event: {document[named_by]}\n" if named_by else "").encode()
            + b"data: %s\n\n" % encode_json(document)
            for document in documents
        ]
        if done is not None:
            chunks.append(f"data: {done}\n\n".encode())
        return cls(chunks=tuple(chunks), headers={"content-type": "text/event-stream"})

    @classmethod
    def lines(cls, documents: Iterable[Any]) -> Self:
        """Return an answer of JSON documents, one a line."""
        chunks = tuple(encode_json(document) + b"\n" for document in documents)
        return cls(chunks=chunks, headers={"content-type": "application/x-ndjson"})


def cut(text: str, *, size: int = 4) -> list[str]:
    """Cut a text for a stream, into pieces of so many characters; no piece for no text."""
    return [text[start : start + size] for start in range(0, len(text), size)]


@dataclass(frozen=True, slots=True, kw_only=True)
class WireRequest:
    """A request as it arrived."""

    target: str
    """The path, with the query."""
    headers: Mapping[str, str]
    """By name in lower case."""
    body: bytes

    @property
    def document(self) -> Any:
        """The body as JSON."""
        return parse_json(self.body)


@dataclass(slots=True)
class Wire:
    """A running server."""

    url: str
    """Without a slash at its end."""
    requests: list[WireRequest] = field(default_factory=list[WireRequest])
    answers: list[WireAnswer] = field(default_factory=list[WireAnswer])
    """What was sent for them, in order; of an answer that breaks off or hangs, all of it."""
    unfinished: int = 0
    """How many answers are being sent."""
    idle: anyio.Event = field(default_factory=anyio.Event)
    """Set while no answer is being sent; replaced when one begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reaction:
    """What the server does for one request."""

    answer: WireAnswer
    ending: Ending = "end"
    reached: Callable[[], None] = lambda: None
    """Called when an answer that hangs has come to where it does."""


@asynccontextmanager
async def serving(
    react: Callable[[WireRequest], Awaitable[Reaction]],
) -> AsyncGenerator[Wire]:
    """Run a server for the block. What the block raises leaves it as it is, in no group."""
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0)
    port: int = listener.extra(anyio.abc.SocketAttribute.local_port)
    wire = Wire(f"http://127.0.0.1:{port}")
    wire.idle.set()
    raised: BaseException | None = None

    async def handle(stream: anyio.abc.SocketStream) -> None:
        try:
            await _converse(stream, wire, react)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream):
            pass  # the client has left
        finally:
            with anyio.CancelScope(shield=True):
                await stream.aclose()

    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, handle)
        try:
            yield wire
        except (Exception, pytest.skip.Exception, pytest.fail.Exception) as exc:  # noqa: BLE001
            raised = exc
        group.cancel_scope.cancel()
    if raised is not None:
        raise raised


async def _converse(
    stream: anyio.abc.SocketStream,
    wire: Wire,
    react: Callable[[WireRequest], Awaitable[Reaction]],
) -> None:
    """Answer the requests of one connection, one after the other."""
    reader = _Reader(stream)
    while (request := await reader.request()) is not None:
        wire.requests.append(request)
        if wire.unfinished == 0:
            wire.idle = anyio.Event()
        wire.unfinished += 1
        try:
            reaction = await react(request)
            wire.answers.append(reaction.answer)
            await _send(stream, reaction)
            if reaction.ending == "hang":
                reaction.reached()
                await stream.receive()  # raises when the client has left
        finally:
            wire.unfinished -= 1
            if wire.unfinished == 0:
                wire.idle.set()
        if reaction.ending in ("break", "hang"):
            return


async def _send(stream: anyio.abc.SocketStream, reaction: Reaction) -> None:
    answer = reaction.answer
    headers = {"transfer-encoding": "chunked", **answer.headers}
    lines = [f"HTTP/1.1 {answer.status} Status", *(f"{n}: {v}" for n, v in headers.items())]
    await stream.send("\r\n".join([*lines, "", ""]).encode("latin-1"))
    chunks = answer.chunks
    if reaction.ending != "end":
        chunks = _first_half(chunks)
    for chunk in chunks:
        await stream.send(b"%x\r\n%s\r\n" % (len(chunk), chunk))
        # Let the other side read, so that pieces do not melt into one.
        await anyio.lowlevel.checkpoint()
    if reaction.ending in ("end", "stop"):
        await stream.send(b"0\r\n\r\n")


def _first_half(chunks: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """Return the beginning of a body, which is not all of it: whole events, where there are some."""
    if len(chunks) > 1:
        return chunks[: len(chunks) // 2]
    only = b"".join(chunks)
    return (only[: len(only) // 2],)


class _Reader:
    """Reads requests off a connection."""

    def __init__(self, stream: anyio.abc.SocketStream) -> None:
        self._stream = stream
        self._buffer = b""

    async def request(self) -> WireRequest | None:
        """Return the next request; ``None`` once there are no more."""
        try:
            head = await self._until(b"\r\n\r\n")
        except anyio.EndOfStream:
            return None
        first, *lines = head.decode("latin-1").split("\r\n")
        pairs = (line.partition(":") for line in lines)
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        if "chunked" in headers.get("transfer-encoding", ""):
            body = await self._chunked()
        else:
            body = await self._exactly(int(headers.get("content-length", "0")))
        return WireRequest(target=first.split(" ")[1], headers=headers, body=body)

    async def _chunked(self) -> bytes:
        pieces: list[bytes] = []
        while size := int((await self._until(b"\r\n")).split(b";")[0], 16):
            pieces.append(await self._exactly(size))
            await self._until(b"\r\n")
        await self._until(b"\r\n")
        return b"".join(pieces)

    async def _until(self, mark: bytes) -> bytes:
        while mark not in self._buffer:
            await self._fill()
        found, _, self._buffer = self._buffer.partition(mark)
        return found

    async def _exactly(self, count: int) -> bytes:
        while len(self._buffer) < count:
            await self._fill()
        found, self._buffer = self._buffer[:count], self._buffer[count:]
        return found

    async def _fill(self) -> None:
        if len(self._buffer) > _MOST_BYTES:
            raise anyio.BrokenResourceError
        self._buffer += await self._stream.receive()
