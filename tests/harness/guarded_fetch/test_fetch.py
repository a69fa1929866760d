"""Fetching from real servers: what goes over the wire, and what a server cannot make it do."""

import gzip
import os
import ssl
from collections.abc import Awaitable, Callable

import anyio
import pytest

from tests.harness.guarded_fetch.loopback import CERTIFICATE, Names, on_loopback, serve_raw
from tests.harness.providers.server import Reply, Seen, eventually, serve
from tests.support import PATIENCE
from tinyagents.harness.errors import ConfigurationError, FetchError, FetchRefusedError
from tinyagents.harness.guarded_fetch import FetchLimits, GuardedFetch

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"
SMALL = FetchLimits(max_bytes=1_000)


def redirect(to: str, status: int = 302) -> Reply:
    return Reply(pieces=(b"moved",), status=status, headers={"location": to})


async def fails(url: str, fetch: GuardedFetch | None = None) -> FetchError:
    with pytest.raises(FetchError) as caught:
        await (fetch or on_loopback()).get(url)
    return caught.value


async def test_the_answer_comes_with_its_status_and_headers() -> None:
    reply = Reply(pieces=(b"he", b"llo"), status=404, headers={"Content-Type": "text/plain"})
    async with serve(reply) as server:
        fetched = await on_loopback().get(f"{server.url}/a?b=c#d")
        assert fetched.status == 404
        assert fetched.content == b"hello"
        assert fetched.headers["content-TYPE"] == "text/plain"
        assert fetched.url == f"{server.url}/a?b=c#d"
        assert server.requests[0].path == "/a?b=c"


async def test_the_connection_goes_to_the_address_and_the_name_stays_in_the_header() -> None:
    async with serve_raw(OK) as server:
        fetched = await on_loopback().get(f"http://Files.test.:{server.port}/x")
        assert fetched.content == b"hello"
        assert f"host: files.test:{server.port}".encode() in server.heads[0].lower()
        assert server.heads[0].count(b"ost:") == 1


async def test_the_certificate_is_checked_for_the_name() -> None:
    trusting = ssl.create_default_context(cafile=str(CERTIFICATE))
    names = Names(files=[["127.0.0.1"]], other=[["127.0.0.1"]])
    fetch = on_loopback(names, tls=trusting)
    async with serve_raw(OK, tls=True) as server:
        assert (await fetch.get(f"https://files.test:{server.port}/")).content == b"hello"
        assert (await fails(f"https://other.test:{server.port}/", fetch)).reason == "connection"
        assert (await fails(f"https://127.0.0.1:{server.port}/", fetch)).reason == "connection"
        # Whom nobody was told to trust:
        assert (await fails(f"https://files.test:{server.port}/")).reason == "connection"
        assert len(server.heads) == 1


async def test_a_name_is_looked_up_once_for_each_request() -> None:
    names = Names(files=[["127.0.0.1"], ["10.0.0.1"]])
    async with serve(Reply(pieces=(b"hello",))) as server:
        url = server.url.replace("127.0.0.1", "files.test")
        assert (await on_loopback(names).get(url)).content == b"hello"
        assert names.asked == ["files.test"]
        # Rebound by now: the next request is refused, and nothing was sent to the new address.
        assert isinstance(await fails(url, on_loopback(names)), FetchRefusedError)
        assert server.connections == 1


async def test_the_next_address_is_tried_when_one_takes_no_connection() -> None:
    async with serve(Reply(pieces=(b"hello",))) as server:
        port = server.url.rpartition(":")[2]
        fetch = GuardedFetch(
            hosts=on_loopback().hosts, resolve=Names(files=[["127.0.0.1", "127.0.0.1"]])
        )
        assert (await fetch.get(f"http://files.test:{port}/")).content == b"hello"
        assert server.connections == 1


async def test_no_connection_is_an_error_that_may_pass() -> None:
    async with serve(Reply(pieces=())) as server:
        url = server.url
    error = await fails(url)
    assert (error.reason, error.retryable) == ("connection", True)
    unknown = await fails("http://unknown.test/?token=hunter2")
    assert (unknown.reason, unknown.retryable) == ("connection", True)
    assert "hunter2" not in str(unknown)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirects_are_followed(status: int) -> None:
    def script(seen: Seen) -> Reply:
        return Reply(pieces=(b"here",)) if seen.path == "/b/c" else redirect("b/c", status)

    async with serve(script) as server:
        fetched = await on_loopback().get(f"{server.url}/a")
        assert (fetched.content, fetched.url) == (b"here", f"{server.url}/b/c")


@pytest.mark.parametrize(
    ("to", "reason"),
    [
        ("http://127.0.0.2/", "address"),
        ("http://169.254.169.254/latest/meta-data/", "address"),
        ("//10.0.0.1/", "address"),
        ("http://[::1]/", "address"),
        ("http://[::ffff:127.0.0.1]/", "address"),
        ("http://inside.test/", "address"),
        ("http://2130706433/", "url"),
        ("http://0x7f.1/", "url"),
        ("http://user:pw@127.0.0.1/", "credentials"),
        ("file:///etc/passwd", "scheme"),
        ("gopher://127.0.0.1/", "scheme"),
    ],
)
async def test_a_redirect_to_what_is_refused_is_refused(to: str, reason: str) -> None:
    names = Names(files=[["127.0.0.1"]], inside=[["10.0.0.1"]])
    async with serve(redirect(to)) as server:
        error = await fails(server.url.replace("127.0.0.1", "files.test"), on_loopback(names))
        assert isinstance(error, FetchRefusedError)
        assert error.reason == reason
        assert len(server.requests) == 1


async def test_a_redirect_leaves_the_hosts_that_are_named() -> None:
    names = Names(files=[["127.0.0.1"]], other=[["127.0.0.1"]])
    async with serve(redirect("http://other.test/")) as server:
        fetch = on_loopback(names, hosts=["files.test"])
        error = await fails(server.url.replace("127.0.0.1", "files.test"), fetch)
        assert error.reason == "host"


async def test_a_redirect_to_a_name_that_is_rebound_is_refused() -> None:
    names = Names(files=[["127.0.0.1"], ["127.0.0.2"]])
    async with serve(redirect("/again")) as server:
        error = await fails(server.url.replace("127.0.0.1", "files.test"), on_loopback(names))
        assert error.reason == "address"
        assert names.asked == ["files.test", "files.test"]


async def test_redirects_are_bounded() -> None:
    async with serve(redirect("/again")) as server:
        error = await fails(server.url, on_loopback(limits=FetchLimits(max_redirects=3)))
        assert error.reason == "redirect"
        assert len(server.requests) == 4


async def test_credentials_and_cookies_stay_with_their_origin() -> None:
    headers = {"Authorization": "Bearer hunter2", "X-Key": "hunter2", "Accept": "image/*"}
    async with serve(lambda seen: Reply(pieces=(b"here",))) as other:
        moved = Reply(
            pieces=(), status=302, headers={"location": f"{other.url}/", "set-cookie": "a=hunter2"}
        )

        def script(seen: Seen) -> Reply:
            return moved if seen.path == "/b" else redirect("/b")

        async with serve(script) as server:
            await on_loopback().get(f"{server.url}/a", headers=headers)
        first, second = server.requests
        assert first.headers["authorization"] == second.headers["authorization"] == "Bearer hunter2"
        (third,) = other.requests
        assert third.headers["accept"] == "image/*"
        assert "hunter2" not in repr(third)


async def test_nothing_of_the_environment_is_sent(
    monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    netrc = f"{tmp_path}/netrc"
    with open(netrc, "w") as file:  # noqa: ASYNC230 - a few bytes
        file.write("machine 127.0.0.1 login me password hunter2\n")
    monkeypatch.setenv("NETRC", netrc)
    async with serve(Reply(pieces=(b"proxied",))) as proxy, serve(Reply(pieces=(b"own",))) as own:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setitem(os.environ, name, proxy.url)
        assert (await on_loopback().get(own.url)).content == b"own"
        assert proxy.connections == 0
        assert set(own.requests[0].headers) == {
            *("accept", "accept-encoding", "host", "user-agent"),
        }


@pytest.mark.parametrize("value", ["hunter2\r\nx: y", " hunter2", "hunter2\0", "hunter2é"])
async def test_a_header_that_cannot_be_sent_is_not_repeated(value: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        await on_loopback().get("http://files.test/", headers={"x-key": value})
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "name", ["Host", "content-length", "Transfer-Encoding", "a\nb", "a b", "", "é"]
)
async def test_headers_of_the_connection_cannot_be_set(name: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        await on_loopback().get("http://files.test/", headers={name: "hunter2"})
    assert "hunter2" not in str(caught.value)


async def test_a_body_that_says_it_is_too_large_is_not_read() -> None:
    async with serve_raw(b"HTTP/1.1 200 OK\r\ncontent-length: 1001\r\n\r\n") as server:
        error = await fails(server.url, on_loopback(limits=SMALL))
        assert error.reason == "size"
        assert not error.retryable


async def test_a_body_that_says_nothing_is_counted_while_it_is_read() -> None:
    sent = 0

    async def endless(head: bytes, send: Callable[[bytes], Awaitable[None]]) -> None:
        nonlocal sent
        await send(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            await send(b"x" * 1_000)
            sent += 1

    async with serve_raw(endless) as server:
        with anyio.fail_after(PATIENCE):
            error = await fails(server.url, on_loopback(limits=SMALL))
        assert error.reason == "size"
    # Buffers of the system aside, it was left at once.
    assert sent < 20_000


async def test_a_limit_of_the_call_lowers_that_of_the_fetch_and_never_raises_it() -> None:
    async with serve(Reply(pieces=(b"x" * 600,) * 2)) as server:
        fetch = on_loopback(limits=SMALL)
        for most in (None, 100, 5_000):
            with pytest.raises(FetchError, match="more than"):
                await fetch.get(server.url, max_bytes=most)
        assert len((await on_loopback().get(server.url, max_bytes=1_200)).content) == 1_200


async def test_a_body_longer_than_it_says_is_cut_where_it_says() -> None:
    async with serve_raw(OK + b" and more that is no answer") as server:
        assert (await on_loopback().get(server.url)).content == b"hello"


@pytest.mark.parametrize(
    "said",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\ncontent-length: -5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello!",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nhello",
        b"HTTP/1.1 200 OK\r\nx: " + b"y" * 200_000,
        b"nonsense\r\n\r\n",
        b"",
    ],
)
async def test_an_answer_that_breaks_is_an_error(said: bytes) -> None:
    async with serve_raw(said) as server:
        assert (await fails(server.url)).reason == "connection"


async def test_gzip_is_undone() -> None:
    packed = gzip.compress(b"hello" * 100)
    reply = Reply(pieces=(packed[:9], packed[9:]), headers={"content-encoding": "GZIP"})
    async with serve(reply) as server:
        assert (await on_loopback().get(server.url)).content == b"hello" * 100


async def test_a_gzip_bomb_is_left_as_soon_as_it_is_too_large() -> None:
    bomb = gzip.compress(bytes(50_000_000))
    reply = Reply(pieces=(bomb,), headers={"content-encoding": "gzip"})
    async with serve(reply) as server:
        limits = FetchLimits(max_bytes=1_000_000)
        assert len(bomb) < limits.max_bytes
        assert (await fails(server.url, on_loopback(limits=limits))).reason == "size"


async def test_packed_bytes_that_unpack_to_nothing_are_counted() -> None:
    # Each empty block of deflate is five bytes that stand for none.
    head = gzip.compress(b"")[:10]
    reply = Reply(
        pieces=(head, *(b"\x00\x00\x00\xff\xff" * 100,) * 30), headers={"content-encoding": "gzip"}
    )
    async with serve(reply) as server:
        assert (await fails(server.url, on_loopback(limits=SMALL))).reason == "size"


@pytest.mark.parametrize(
    ("body", "encoding"),
    [
        (b"no gzip", "gzip"),
        (gzip.compress(b"hello" * 100)[:-9], "gzip"),
        (gzip.compress(b"hello")[:-8] + bytes(8), "gzip"),
        (gzip.compress(gzip.compress(b"hello")), "gzip, gzip"),
        (b"hello", "br"),
    ],
    ids=["no gzip", "cut", "a wrong checksum", "twice", "another encoding"],
)
async def test_a_body_that_cannot_be_unpacked_is_an_error(body: bytes, encoding: str) -> None:
    async with serve(Reply(pieces=(body,), headers={"content-encoding": encoding})) as server:
        assert (await fails(server.url)).reason == "body"


async def test_a_slow_body_is_left_when_the_time_is_up() -> None:
    async with serve(Reply(pieces=(b"h",), then="hang")) as server:
        fetch = on_loopback(limits=FetchLimits(seconds=0.2))
        error = await fails(server.url, fetch)
        assert (error.reason, error.retryable) == ("timeout", True)
        await eventually(lambda: server.gone == [1])


async def test_a_slow_look_up_is_left_when_the_time_is_up() -> None:
    async def never(host: str, port: int) -> list[str]:
        await anyio.sleep_forever()
        return []

    fetch = GuardedFetch(resolve=never, limits=FetchLimits(seconds=0.01))
    assert (await fails("http://files.test/", fetch)).reason == "timeout"


async def test_a_cancelled_fetch_closes_its_connection() -> None:
    async with serve(Reply(pieces=(b"h",), then="hang")) as server:
        async with anyio.create_task_group() as group:
            group.start_soon(on_loopback().get, server.url)
            await eventually(lambda: len(server.requests) == 1)
            group.cancel_scope.cancel()
        await eventually(lambda: server.gone == [1])


@pytest.mark.parametrize(
    "method", ["get", "", "GET /x", "GET\r\nx: 1", "CONNECT", "TRACE", "X" * 99]
)
async def test_what_is_no_method_of_a_request_is_refused(method: str) -> None:
    async with serve_raw(OK) as server:
        with pytest.raises(ConfigurationError, match="no method"):
            await on_loopback().send(method, server.url)
        assert not server.heads


async def test_a_body_goes_with_the_method_that_was_asked_for() -> None:
    async with serve(Reply(pieces=(b"ok",))) as server:
        headers = {"content-type": "text/plain"}
        sent = await on_loopback().send("PUT", f"{server.url}/a", body=b"hello", headers=headers)
        assert (sent.status, sent.content) == (200, b"ok")
        assert server.requests[0].body == b"hello"
        assert server.requests[0].headers["content-length"] == "5"


@pytest.mark.parametrize(
    ("method", "status", "then"),
    [
        ("POST", 301, "GET"),
        ("POST", 302, "GET"),
        ("PUT", 302, "PUT"),
        ("POST", 303, "GET"),
        ("DELETE", 303, "GET"),
        ("POST", 307, "POST"),
        ("POST", 308, "POST"),
        ("HEAD", 303, "HEAD"),
    ],
)
async def test_a_redirect_changes_the_method_as_the_status_says(
    method: str, status: int, then: str
) -> None:
    async def say(head: bytes, send: Callable[[bytes], Awaitable[None]]) -> None:
        moved = f"HTTP/1.1 {status} x\r\nlocation: /b\r\ncontent-length: 0\r\n\r\n".encode()
        await send(b"HTTP/1.1 204 No Content\r\n\r\n" if b" /b " in head else moved)

    async with serve_raw(say) as server:
        body = None if method == "HEAD" else b"x"
        await on_loopback().send(method, f"{server.url}a", body=body)
        assert [head.split(b" ")[0].decode() for head in server.heads] == [method, then]
        assert (b"content-length: 1" in server.heads[1].lower()) is (then in ("POST", "PUT"))
