"""A real HTTP server on loopback that answers as it is told, on asyncio and on trio."""

import random
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import anyio
import anyio.abc
import anyio.lowlevel
import h11
import orjson

from tests.support import PATIENCE


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the server says, and how it leaves."""

    pieces: tuple[bytes, ...]
    """Sent one by one, each as a chunk of its own."""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    then: Literal["end", "break", "hang"] = "end"
    """After the pieces: end the body, drop the connection, or say nothing more."""

    @classmethod
    def json(
        cls, value: Any, *, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> "Reply":
        """Answer a JSON document in one piece."""
        kind = {"content-type": "application/json", **(headers or {})}
        return cls(pieces=(orjson.dumps(value),), status=status, headers=kind)

    @classmethod
    def events(
        cls, *chunks: Any, done: bool = True, then: Literal["end", "break", "hang"] = "end"
    ) -> "Reply":
        """Answer a stream of events, each in a piece of its own."""
        pieces = [b"data: " + orjson.dumps(chunk) + b"\n\n" for chunk in chunks]
        if done:
            pieces.append(b"data: [DONE]\n\n")
        return cls(pieces=tuple(pieces), headers={"content-type": "text/event-stream"}, then=then)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A request as it arrived."""

    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def document(self) -> Any:
        """The body as JSON."""
        return orjson.loads(self.body)


@dataclass(slots=True)
class Server:
    """A running server and what it has seen."""

    url: str
    requests: list[Seen] = field(default_factory=list[Seen])
    connections: int = 0
    """How many were accepted."""
    gone: list[int] = field(default_factory=list[int])
    """Connections that the client closed in the middle of an answer, by number."""


Script = Callable[[Seen], Reply]


@asynccontextmanager
async def serve(script: Script | Reply) -> AsyncIterator[Server]:
    """Run a server that gives each request the reply of ``script``."""
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0)
    port: int = listener.extra(anyio.abc.SocketAttribute.local_port)
    server = Server(f"http://127.0.0.1:{port}")

    async def handle(stream: anyio.abc.SocketStream) -> None:
        server.connections += 1
        number = server.connections
        try:
            await _talk(stream, server, number, script if callable(script) else lambda _: script)
        except (anyio.BrokenResourceError, anyio.EndOfStream, h11.RemoteProtocolError):
            server.gone.append(number)
        finally:
            with anyio.CancelScope(shield=True):
                await stream.aclose()

    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, handle)
        yield server
        group.cancel_scope.cancel()


async def _talk(
    stream: anyio.abc.SocketStream, server: Server, number: int, script: Script
) -> None:
    connection = h11.Connection(h11.SERVER)
    while (seen := await _request(stream, connection)) is not None:
        server.requests.append(seen)
        reply = script(seen)
        headers = [("transfer-encoding", "chunked"), *reply.headers.items()]
        await stream.send(
            connection.send(h11.Response(status_code=reply.status, headers=headers)) or b""
        )
        for piece in reply.pieces:
            await stream.send(connection.send(h11.Data(data=piece)) or b"")
            # Let the other side read, so that pieces do not melt into one.
            await anyio.lowlevel.checkpoint()
        if reply.then == "hang":
            try:
                await stream.receive()
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                server.gone.append(number)
            return
        if reply.then == "break":
            return
        await stream.send(connection.send(h11.EndOfMessage()) or b"")
        connection.start_next_cycle()


async def _request(stream: anyio.abc.SocketStream, connection: h11.Connection) -> Seen | None:
    head: h11.Request | None = None
    body = b""
    while True:
        match connection.next_event():
            case h11.NEED_DATA:
                try:
                    connection.receive_data(await stream.receive())
                except anyio.EndOfStream:
                    return None
            case h11.Request() as head:
                pass
            case h11.Data(data=data):
                body += data
            case h11.EndOfMessage() if head is not None:
                named = {name.decode(): value.decode() for name, value in head.headers}
                return Seen(path=head.target.decode(), headers=named, body=body)
            case _:
                return None


async def eventually(condition: Callable[[], bool]) -> None:
    """Wait for a state that nothing announces."""
    with anyio.fail_after(PATIENCE):
        while not condition():  # noqa: ASYNC110 - a pool and a thread have no event to wait for
            await anyio.sleep(0.005)


def cut(data: bytes, *, seed: int, pieces: int = 12) -> tuple[bytes, ...]:
    """Cut bytes at places that depend on the seed alone."""
    if len(data) < 2:
        return (data,)
    places = sorted(random.Random(seed).sample(range(1, len(data)), min(pieces, len(data) - 1)))
    return tuple(data[a:b] for a, b in zip([0, *places], [*places, len(data)], strict=True))


def single_bytes(data: bytes) -> tuple[bytes, ...]:
    """Cut bytes one by one."""
    return tuple(data[i : i + 1] for i in range(len(data)))


def joined(events: Iterable[Any], *, done: bool = True) -> bytes:
    """The bytes of a stream of events."""
    return b"".join(Reply.events(*events, done=done).pieces)
