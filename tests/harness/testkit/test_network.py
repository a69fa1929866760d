import socket
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import anyio
import anyio.abc
import httpx
import pytest

from tinyagents.testkit import NetworkBlocked, block_network

# The addresses are reserved for documentation (RFC 5737 and RFC 3849): nothing answers there.
FAR, FAR_6 = "192.0.2.1", "2001:db8::1"


@pytest.fixture(autouse=True)
def blocked() -> Iterator[None]:
    with block_network():
        yield


def by_connect() -> None:
    with socket.socket() as sock:
        sock.connect((FAR, 80))


def by_connect_ex() -> None:
    with socket.socket() as sock:
        sock.connect_ex((FAR, 80))


def by_ipv6() -> None:
    with socket.socket(socket.AF_INET6) as sock:
        sock.connect((FAR_6, 80))


def by_datagram() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.sendto(b"x", (FAR, 53))


def by_datagram_with_flags() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.sendto(b"x", 0, (FAR, 53))


def by_message() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.sendmsg([b"x"], [], 0, (FAR, 53))


def by_name() -> None:
    socket.create_connection(("example.org", 80))


def by_bytes() -> None:
    socket.getaddrinfo(b"example.org", 80)


def by_old_lookup() -> None:
    socket.gethostbyname("example.org")


def by_httpx() -> None:
    httpx.get("http://example.org")


@pytest.mark.parametrize(
    "reach",
    [
        by_connect,
        by_connect_ex,
        by_ipv6,
        by_datagram,
        by_datagram_with_flags,
        by_message,
        by_name,
        by_bytes,
        by_old_lookup,
        by_httpx,
    ],
)
def test_every_way_beyond_this_machine_is_refused(reach: Callable[[], None]) -> None:
    with pytest.raises(NetworkBlocked, match="the network is blocked: the .* was refused"):
        reach()


def test_the_error_names_where_it_should_have_gone() -> None:
    with pytest.raises(NetworkBlocked, match=r"the connection to `192\.0\.2\.1` port 80"):
        by_connect()
    with pytest.raises(NetworkBlocked, match=r"the look-up of `example\.org`"):
        by_name()


async def connect_by_name() -> None:
    await anyio.connect_tcp("example.org", 80)


async def connect_by_address() -> None:
    await anyio.connect_tcp(FAR, 80)


async def ask_by_httpx() -> None:
    async with httpx.AsyncClient() as client:
        await client.get("http://example.org")


@pytest.mark.parametrize("reach", [connect_by_name, connect_by_address, ask_by_httpx])
async def test_async_code_is_refused_as_well(reach: Callable[[], Awaitable[None]]) -> None:
    with pytest.raises((NetworkBlocked, ExceptionGroup)) as raised:
        await reach()
    found: Any = raised.value
    while isinstance(found, ExceptionGroup):
        (found,) = found.exceptions
    assert isinstance(found, NetworkBlocked)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
async def test_this_machine_can_be_reached(host: str) -> None:
    async def echo(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            await stream.send(await stream.receive())

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, echo)
        async with await anyio.connect_tcp(host, port) as stream:
            await stream.send(b"x")
            assert await stream.receive() == b"x"
        group.cancel_scope.cancel()


def test_unix_sockets_and_pairs_work(tmp_path: Any) -> None:
    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        server.bind(path)
        server.listen()
        client.connect(path)
    first, second = socket.socketpair()
    with first, second:
        first.send(b"x")
        assert second.recv(1) == b"x"


def test_datagrams_within_this_machine_work() -> None:
    with socket.socket(type=socket.SOCK_DGRAM) as one, socket.socket(type=socket.SOCK_DGRAM) as two:
        two.bind(("127.0.0.1", 0))
        one.sendto(b"x", two.getsockname())
        one.connect(two.getsockname())
        one.send(b"y")
        assert two.recv(1) + two.recv(1) == b"xy"


def test_a_malformed_address_is_the_sockets_own_affair() -> None:
    with socket.socket() as sock, pytest.raises(TypeError):
        sock.connect(())
    with socket.socket() as sock, pytest.raises(TypeError):
        sock.connect()  # type: ignore[call-arg]


def test_other_threads_are_refused_too() -> None:
    errors: list[NetworkBlocked] = []

    def reach() -> None:
        try:
            by_connect()
        except NetworkBlocked as error:
            errors.append(error)

    thread = threading.Thread(target=reach)
    thread.start()
    thread.join()
    assert len(errors) == 1


def test_what_is_allowed_passes_but_only_if_every_block_allows_it() -> None:
    with block_network(allow=[FAR]), pytest.raises(NetworkBlocked):
        by_connect()  # the one around it does not


def test_everything_is_as_before_in_the_end() -> None:
    # In a process of its own, for the tests themselves run within a block.
    code = """
import socket
from tinyagents.testkit import block_network
before = dict(vars(socket)), set(vars(socket.socket))
with block_network(allow=["192.0.2.1", "LOCALHOST"]), socket.socket() as sock:
    assert "connect" in vars(socket.socket)
    socket.getaddrinfo("localhost", 80)
    sock.setblocking(False)
    try:
        sock.connect(("192.0.2.1", 80))
    except OSError as error:  # the operating system's own: under way, or no route
        print(type(error).__name__)
assert before == (dict(vars(socket)), set(vars(socket.socket)))
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_blocks_may_end_in_any_order() -> None:
    first, second = block_network(), block_network()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    with pytest.raises(NetworkBlocked):
        by_connect()
    second.__exit__(None, None, None)
