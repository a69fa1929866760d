"""Servers on loopback that send what they are told byte for byte, and names that lead to them."""

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import anyio.abc
from anyio.streams.tls import TLSListener

from tinyagents.harness.guarded_fetch import FetchLimits, GuardedFetch, HostPolicy, Resolver

CERTIFICATE = Path(__file__).with_name("files_test.pem")
"""Of ``files.test``, signed by itself, with its key."""

Say = Callable[[bytes, Callable[[bytes], Awaitable[None]]], Awaitable[None]]
"""Gets the head of a request and a function that sends."""


class Names:
    """A resolver that knows a few names, each with an answer for each look-up; the last stays."""

    def __init__(self, **answers: Sequence[Sequence[str]]) -> None:
        self._answers = {name: list(each) for name, each in answers.items()}
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        answers = self._answers.get(host.partition(".")[0])
        if answers is None:
            raise OSError(f"no such name: {host}")
        return answers.pop(0) if len(answers) > 1 else answers[0]


def on_loopback(
    resolve: Resolver | None = None,
    *,
    hosts: Sequence[str] | None = None,
    limits: FetchLimits | None = None,
    tls: ssl.SSLContext | None = None,
) -> GuardedFetch:
    """A fetch that may reach 127.0.0.1 at any port; ``files.test`` leads there."""
    return GuardedFetch(
        hosts=HostPolicy(networks=["127.0.0.1/32"], ports=None, hosts=hosts),
        limits=limits or FetchLimits(),
        resolve=resolve or Names(files=[["127.0.0.1"]]),
        tls=tls,
    )


@dataclass(slots=True)
class RawServer:
    """A running server, and the heads of the requests to it."""

    port: int
    heads: list[bytes] = field(default_factory=list[bytes])

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}/"


@asynccontextmanager
async def serve_raw(say: Say | bytes, *, tls: bool = False) -> AsyncIterator[RawServer]:
    """Run a server that answers the first request of each connection and closes it."""
    tcp = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0)
    server = RawServer(tcp.extra(anyio.abc.SocketAttribute.local_port))
    listener: anyio.abc.Listener[anyio.abc.ByteStream] = tcp
    if tls:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(CERTIFICATE)
        listener = TLSListener(tcp, context, standard_compatible=False)

    async def handle(stream: anyio.abc.ByteStream) -> None:
        try:
            head = b""
            while b"\r\n\r\n" not in head:
                head += await stream.receive()
            server.heads.append(head)
            if isinstance(say, bytes):
                await stream.send(say)
            else:
                await say(head, stream.send)
        except (anyio.BrokenResourceError, anyio.EndOfStream, ssl.SSLError):
            return
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.aclose_forcefully(stream)

    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, handle)
        yield server
        group.cancel_scope.cancel()
