"""Connections: who opens and closes them, how long they may take, how much they may bring."""

import gc
import gzip
import sys
import threading
import traceback
import tracemalloc
import zlib
from collections.abc import AsyncGenerator, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast

import anyio
import httpx
import httpx2
import pytest
import sniffio

from tests.harness.providers.server import Reply, Seen, Server, eventually, serve
from tests.support import PATIENCE
from tinyagents.harness.errors import (
    ConfigurationError,
    MalformedResponseError,
    MissingDependencyError,
    ModelError,
    NetworkError,
    ProviderTimeoutError,
    RateLimitError,
)
from tinyagents.harness.message import UserMessage
from tinyagents.harness.model import (
    MessageDelta,
    ModelRequest,
    ModelSettings,
    ModelStreamItem,
    StreamCompleted,
    drain,
)
from tinyagents.harness.providers import OpenAIChatModel, Timeouts
from tinyagents.harness.providers._http import HttpCall, HttpClient
from tinyagents.harness.providers._transport import HttpStream, HttpTransport

REQUEST = ModelRequest(messages=[UserMessage(content="hi")])
ANSWER = Reply.json(
    {"id": "c", "choices": [{"message": {"content": "hello"}, "finish_reason": "stop"}]}
)


def piece(text: str, finish: str | None = None) -> dict[str, Any]:
    return {"id": "c", "choices": [{"delta": {"content": text}, "finish_reason": finish}]}


STREAM = Reply.events(piece("a"), piece("b"), piece("", "stop"))
SILENT = Reply.events(piece("a"), done=False, then="hang")


def model(server: Server, **options: Any) -> OpenAIChatModel:
    options.setdefault("base_url", f"{server.url}/v1")
    return OpenAIChatModel("m", api_key="the-key-of-a-test", **options)


def streaming(
    asked: OpenAIChatModel, request: ModelRequest = REQUEST
) -> AsyncGenerator[ModelStreamItem]:
    return cast("AsyncGenerator[ModelStreamItem]", asked.stream(request))


def pool_of(client: httpx.AsyncClient) -> Any:
    # httpx has no public way to ask what its pool holds.
    return cast(Any, client)._transport._pool


# One connection for many calls


async def test_calls_one_after_the_other_share_a_connection_streams_too() -> None:
    def script(seen: Seen) -> Reply:
        return STREAM if seen.document.get("stream") else ANSWER

    async with serve(script) as server, model(server) as asked:
        for _ in range(3):
            assert (await asked.invoke(REQUEST)).text == "hello"
            assert (await drain(asked.stream(REQUEST))).text == "ab"
        assert server.connections == 1


async def test_nothing_is_opened_before_the_first_call() -> None:
    async with serve(ANSWER) as server, model(server):
        assert server.connections == 0


async def test_a_model_can_be_used_again_after_it_was_closed() -> None:
    async with serve(ANSWER) as server:
        asked = model(server)
        await asked.invoke(REQUEST)
        await asked.aclose()
        await asked.aclose()
        assert (await asked.invoke(REQUEST)).text == "hello"
        await asked.aclose()


async def test_a_client_that_was_passed_in_stays_open() -> None:
    async with serve(ANSWER) as server, httpx.AsyncClient() as client:
        async with model(server, http_client=client) as asked:
            await asked.invoke(REQUEST)
        assert not client.is_closed
        await model(server, http_client=client).invoke(REQUEST)
        assert server.connections == 1


@pytest.fixture
def threaded_url() -> Iterator[str]:
    """A server that belongs to no event loop."""
    body = ANSWER.pieces[0]

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()
        thread.join()


def test_one_model_works_in_one_event_loop_after_the_other_and_leaves_nothing_open(
    threaded_url: str,
) -> None:
    asked = OpenAIChatModel("m", api_key="k", base_url=threaded_url)

    async def once() -> str:
        return (await asked.invoke(REQUEST)).text

    # Nobody closes the model: its connections must end with their loop. A socket that is left open
    # would warn, and a warning fails the test.
    for backend in ("asyncio", "trio", "asyncio"):
        assert anyio.run(once, backend=backend) == "hello"
        gc.collect()


async def test_one_model_serves_two_event_loops_at_once() -> None:
    async with serve(ANSWER) as server, model(server) as asked:
        texts: list[str] = []

        async def call() -> None:
            texts.append((await asked.invoke(REQUEST)).text)

        await call()
        thread = threading.Thread(target=lambda: anyio.run(call, backend="asyncio"))
        thread.start()
        await eventually(lambda: not thread.is_alive())
        await call()
        assert texts == ["hello"] * 3
        assert server.connections == 2


@pytest.mark.parametrize("library", [httpx, httpx2])
async def test_clients_of_both_libraries_serve_alike(library: Any) -> None:
    def script(seen: Seen) -> Reply:
        return STREAM if seen.document.get("stream") else ANSWER

    async with serve(script) as server, library.AsyncClient() as client:
        asked = model(server, http_client=client)
        assert (await asked.invoke(REQUEST)).text == "hello"
        assert (await drain(asked.stream(REQUEST))).text == "ab"
        nowhere = model(server, base_url="http://127.0.0.1:1/v1", http_client=client)
        with pytest.raises(NetworkError):
            await nowhere.invoke(REQUEST)


@pytest.mark.parametrize("library", [httpx, httpx2])
async def test_failures_of_both_libraries_are_told_alike(library: Any) -> None:
    broken = Reply.events(piece("a"), done=False, then="break")

    def script(seen: Seen) -> Reply:
        return broken if seen.document.get("stream") else SILENT

    async with serve(script) as server, library.AsyncClient(timeout=0.05) as client:
        asked = model(server, http_client=client)
        with pytest.raises(NetworkError, match="RemoteProtocolError"):
            await drain(asked.stream(REQUEST))
        with pytest.raises(ProviderTimeoutError):
            await asked.invoke(REQUEST)


# Leaving early


@pytest.mark.parametrize("way", ["close", "cancel", "drop"])
async def test_a_hundred_streams_that_are_left_give_all_connections_back(way: str) -> None:
    def script(seen: Seen) -> Reply:
        return ANSWER if not seen.document.get("stream") else SILENT

    limits = httpx.Limits(max_connections=4, max_keepalive_connections=4)
    timeout = httpx.Timeout(5, pool=2)
    async with serve(script) as server, httpx.AsyncClient(limits=limits, timeout=timeout) as client:
        asked = model(server, http_client=client)
        for _ in range(100):
            await leave(streaming(asked), way)
        if way == "drop":
            gc.collect()
        await eventually(lambda: not pool_of(client).connections)
        assert (await asked.invoke(REQUEST)).text == "hello"


async def leave(stream: AsyncGenerator[ModelStreamItem], way: str) -> None:
    await anext(stream)
    assert await anext(stream) == MessageDelta("a")
    match way:
        case "close":
            await stream.aclose()
        case "cancel":
            with anyio.move_on_after(0.001):
                await anext(stream)
            # Being cancelled while it waits ends a generator; closing it again is harmless.
            await stream.aclose()
        case _:
            # Trio warns of generators that are dropped; there it is left to the consumer.
            if sniffio.current_async_library() == "trio":
                await stream.aclose()


async def test_a_cancelled_stream_tells_the_server_at_once() -> None:
    async with serve(SILENT) as server, model(server) as asked:
        stream = streaming(asked)
        await anext(stream)
        await stream.aclose()
        await eventually(lambda: bool(server.gone))


async def test_a_cancelled_plain_call_tells_the_server_at_once() -> None:
    waiting = Reply(pieces=(b"{",), then="hang")
    async with serve(waiting) as server, model(server) as asked:
        with anyio.move_on_after(0.1):
            await asked.invoke(REQUEST)
        await eventually(lambda: bool(server.gone))


async def test_many_calls_at_once_each_get_their_own_answer() -> None:
    def script(seen: Seen) -> Reply:
        return Reply.events(piece(seen.document["messages"][0]["content"], "stop"))

    async with serve(script) as server, model(server) as asked:
        texts: dict[int, str] = {}

        async def call(number: int) -> None:
            request = ModelRequest(messages=[UserMessage(content=str(number))])
            texts[number] = (await drain(asked.stream(request))).text

        async with anyio.create_task_group() as group:
            for number in range(20):
                group.start_soon(call, number)
        assert texts == {number: str(number) for number in range(20)}


# Time


async def test_a_stream_that_falls_silent_is_given_up_after_the_idle_time() -> None:
    async with serve(SILENT) as server, model(server, timeout=Timeouts(idle=0.1)) as asked:
        stream = streaming(asked)
        with anyio.fail_after(PATIENCE):
            await anext(stream)
            assert await anext(stream) == MessageDelta("a")
            with pytest.raises(ProviderTimeoutError, match="silent"):
                await anext(stream)
        await eventually(lambda: bool(server.gone))


async def test_a_plain_call_has_an_end() -> None:
    async with serve(SILENT) as server, model(server, timeout=0.1) as asked:
        with (
            anyio.fail_after(PATIENCE),
            pytest.raises(ProviderTimeoutError, match=r"within 0\.1 s"),
        ):
            await asked.invoke(REQUEST)


async def test_a_requests_own_timeout_wins_for_plain_and_streamed_calls() -> None:
    request = ModelRequest(messages=REQUEST.messages, settings=ModelSettings(timeout=0.1))
    async with serve(SILENT) as server, model(server, timeout=60) as asked:
        with anyio.fail_after(PATIENCE):
            with pytest.raises(ProviderTimeoutError, match=r"within 0\.1 s"):
                await asked.invoke(request)
            with pytest.raises(ProviderTimeoutError, match=r"within 0\.1 s"):
                await drain(asked.stream(request))


async def test_a_clients_own_timeouts_hold_unless_others_are_given() -> None:
    async with serve(SILENT) as server, httpx.AsyncClient(timeout=0.05) as client:
        with anyio.fail_after(PATIENCE), pytest.raises(ProviderTimeoutError):
            await drain(model(server, http_client=client).stream(REQUEST))
        patient = model(server, http_client=client, timeout=Timeouts(idle=0.3))
        started = anyio.current_time()
        with pytest.raises(ProviderTimeoutError):
            await drain(patient.stream(REQUEST))
        assert anyio.current_time() - started > 0.2


async def test_no_connection_is_a_network_error_without_secrets() -> None:
    asked = OpenAIChatModel("m", api_key="sk-secret-1234", base_url="http://127.0.0.1:1/v1")
    async with asked:
        for call in (asked.invoke(REQUEST), drain(asked.stream(REQUEST))):
            with pytest.raises(NetworkError) as raised:
                await call
            assert raised.value.retryable
            assert "sk-secret" not in str(raised.value)


async def test_a_transfer_that_breaks_is_a_network_error() -> None:
    broken = Reply.events(piece("a"), done=False, then="break")
    half = Reply(pieces=(b'{"id":',), then="break")

    def script(seen: Seen) -> Reply:
        return broken if seen.document.get("stream") else half

    async with serve(script) as server, model(server) as asked:
        for call in (asked.invoke(REQUEST), drain(asked.stream(REQUEST))):
            with pytest.raises(NetworkError) as raised:
                await call
            assert raised.value.retryable


async def test_a_server_that_keeps_a_finished_stream_open_holds_nobody_up() -> None:
    lingering = Reply.events(piece("a", "stop"), then="hang")
    async with serve(lingering) as server, model(server) as asked:
        with anyio.fail_after(PATIENCE):
            assert (await drain(asked.stream(REQUEST))).text == "a"


# Size

# No adapter has the bounds as options: the transport is what is tested.
CALL = HttpCall(url="", headers={}, body=b"{}", provider="p", model="m")
MEBIBYTE = 2**20


def encoded(*pieces: bytes, as_: str = "gzip", status: int = 200) -> Reply:
    return Reply(pieces=pieces, status=status, headers={"content-encoding": as_})


async def test_a_body_is_read_up_to_its_bound() -> None:
    async with serve(Reply(pieces=(b"x" * 600,) * 2)) as server:
        async with HttpTransport(max_body_bytes=1_000) as transport:
            with pytest.raises(MalformedResponseError, match="1000 bytes.*`max_body_bytes`"):
                await transport.post(replace(CALL, url=server.url))
        async with HttpTransport(max_body_bytes=1_200) as transport:
            answer = await transport.post(replace(CALL, url=server.url))
            assert len(answer.body) == 1_200


async def test_a_compressed_answer_is_read() -> None:
    packed = gzip.compress(ANSWER.pieces[0])
    headers = {"content-encoding": "gzip", "content-type": "application/json"}
    reply = Reply(pieces=(packed[:9], packed[9:]), headers=headers)
    async with serve(reply) as server, model(server) as asked:
        assert (await asked.invoke(REQUEST)).text == "hello"
        assert (await drain(asked.stream(REQUEST))).text == "hello"


async def test_a_body_that_cannot_be_decoded_is_malformed() -> None:
    async with serve(encoded(b"no gzip")) as server, model(server) as asked:
        for call in (asked.invoke(REQUEST), drain(asked.stream(REQUEST))):
            with pytest.raises(MalformedResponseError, match="decoded"):
                await call


async def test_only_the_encoding_whose_size_is_bounded_is_asked_for() -> None:
    async with serve(ANSWER) as server, httpx.AsyncClient() as client:
        async with model(server) as asked:
            await asked.invoke(REQUEST)
        await model(server, http_client=client).invoke(REQUEST)
        await model(server, http_client=client, headers={"Accept-Encoding": "identity"}).invoke(
            REQUEST
        )
        asked_for = [seen.headers["accept-encoding"] for seen in server.requests]
    assert asked_for == ["gzip", "gzip", "identity"]


@pytest.mark.parametrize("library", [httpx, httpx2])
async def test_a_small_body_that_unpacks_to_a_large_one_takes_no_more_than_its_bound(
    library: Any,
) -> None:
    bomb = gzip.compress(bytes(48 * MEBIBYTE))
    assert len(bomb) < 50_000
    async with serve(encoded(bomb)) as server, library.AsyncClient() as client:
        transport = HttpTransport(client=client, max_body_bytes=2 * MEBIBYTE)
        tracemalloc.start()
        try:
            with pytest.raises(MalformedResponseError, match="`max_body_bytes`"):
                await transport.post(replace(CALL, url=server.url))
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak < 8 * MEBIBYTE


@pytest.mark.parametrize("encoding", ["gzip, gzip", "deflate", "br", "identity, br", "gzip,zstd"])
async def test_other_encodings_and_stacks_of_them_are_refused(encoding: str) -> None:
    bomb = gzip.compress(gzip.compress(bytes(8 * MEBIBYTE)))
    async with serve(encoded(bomb, as_=encoding)) as server, model(server) as asked:
        for call in (asked.invoke(REQUEST), drain(asked.stream(REQUEST))):
            with pytest.raises(MalformedResponseError, match="content-encoding"):
                await call


@pytest.mark.parametrize("encoding", ["identity", "none", "UTF-8", "", "identity, identity"])
async def test_encodings_that_encode_nothing_are_read(encoding: str) -> None:
    def script(seen: Seen) -> Reply:
        reply = STREAM if seen.document.get("stream") else ANSWER
        return replace(reply, headers={**reply.headers, "content-encoding": encoding})

    async with serve(script) as server, model(server) as asked:
        assert (await asked.invoke(REQUEST)).text == "hello"
        assert (await drain(asked.stream(REQUEST))).text == "ab"


async def test_a_refusal_that_cannot_be_decoded_is_judged_by_its_status() -> None:
    async with serve(encoded(b"?", as_="br", status=429)) as server, model(server) as asked:
        for call in (asked.invoke(REQUEST), drain(asked.stream(REQUEST))):
            with pytest.raises(RateLimitError):
                await call


async def test_compressed_events_come_as_soon_as_they_are_sent() -> None:
    packer = zlib.compressobj(wbits=31)
    events = Reply.events(piece("a" * 70_000), piece("b"), done=False).pieces
    pieces = [packer.compress(event) + packer.flush(zlib.Z_SYNC_FLUSH) for event in events]
    reply = replace(encoded(*pieces, as_="X-GZip"), then="hang")
    async with serve(reply) as server, model(server) as asked:
        stream = streaming(asked)
        with anyio.fail_after(PATIENCE):
            await anext(stream)
            assert await anext(stream) == MessageDelta("a" * 70_000)
            assert await anext(stream) == MessageDelta("b")
        await stream.aclose()


async def test_a_compressed_answer_gives_its_connection_back() -> None:
    packed = gzip.compress(ANSWER.pieces[0])
    async with serve(encoded(packed, b"what stands behind it")) as server, model(server) as asked:
        for _ in range(3):
            assert (await asked.invoke(REQUEST)).text == "hello"
        assert server.connections == 1


async def test_a_body_that_a_hook_of_the_client_has_read_already_is_read_again() -> None:
    async def log(response: httpx.Response) -> None:
        await response.aread()

    reply = encoded(gzip.compress(ANSWER.pieces[0]))
    hooks = {"response": [log]}
    async with serve(reply) as server, httpx.AsyncClient(event_hooks=hooks) as client:
        assert (await model(server, http_client=client).invoke(REQUEST)).text == "hello"


KEEP_ALIVES = Reply(pieces=(b": nothing yet\n\n",) * 200, then="hang")
# Behind its header, blocks that hold nothing.
NOTHING = encoded(gzip.compress(b"")[:10], *(b"\0\0\0\xff\xff",) * 400)
# Behind its end, more bytes that are thrown away.
BEYOND = encoded(gzip.compress(b""), *(b"more",) * 400)
UNPACKED = encoded(gzip.compress(b"\n" * 3_000))


@pytest.mark.parametrize("reply", [KEEP_ALIVES, replace(NOTHING, then="hang"), BEYOND, UNPACKED])
async def test_a_stream_without_end_is_given_up(reply: Reply) -> None:
    async with (
        serve(reply) as server,
        HttpTransport(max_stream_bytes=1_000) as transport,
    ):
        response = await transport.open(replace(CALL, url=server.url))
        with anyio.fail_after(PATIENCE):
            with pytest.raises(MalformedResponseError, match="1000 bytes.*`max_stream_bytes`"):
                await all_of(response)
            await response.aclose()


async def all_of(response: HttpStream) -> None:
    while await response.next_chunk() is not None:
        pass


async def test_a_plain_answer_to_a_streaming_request_has_the_bound_of_a_plain_answer() -> None:
    async with (
        serve(Reply(pieces=(b"x" * 600,) * 2)) as server,
        HttpTransport(max_body_bytes=1_000) as transport,
    ):
        response = await transport.open(replace(CALL, url=server.url))
        first = await response.next_chunk()
        assert first is not None
        with pytest.raises(MalformedResponseError, match="`max_body_bytes`"):
            await response.read(first)
        await response.aclose()


# Addresses and clients that cannot be used


@pytest.mark.parametrize(
    "base_url",
    [
        "http://127.0.0.1:99999/v1",
        "http://127.0.0.1:x/v1",
        "http://user:pass-1234@host:99999",
        "http://user:pass-1234/5678@host/v1",
        "http://[::1",
        "http://user:pass-1234@\u2100/v1",
    ],
)
def test_a_base_url_that_is_no_address_is_refused_at_once(base_url: str) -> None:
    for provider in ("openai", "ollama"):
        with pytest.raises(ConfigurationError, match=f"base URL.*{provider}") as raised:
            OpenAIChatModel("m", api_key="k", provider=provider, base_url=base_url)
        assert "pass-1234" not in "".join(traceback.format_exception(raised.value))


@pytest.mark.parametrize("library", [httpx, httpx2])
async def test_a_client_that_was_closed_is_refused(library: Any) -> None:
    async with serve(ANSWER) as server:
        async with library.AsyncClient() as client:
            asked = model(server, http_client=client)
        for call in (asked.invoke(REQUEST), drain(asked.stream(REQUEST))):
            with pytest.raises(ConfigurationError, match="`http_client`.*closed"):
                await call
        with pytest.raises(ConfigurationError, match="`http_client`.*closed"):
            model(server, http_client=client)


@pytest.mark.parametrize("library", [httpx, httpx2])
async def test_a_client_that_is_closed_during_a_stream_is_a_network_error(library: Any) -> None:
    async with serve(SILENT) as server, library.AsyncClient() as client:
        stream = streaming(model(server, http_client=client))
        await anext(stream)
        assert await anext(stream) == MessageDelta("a")
        await client.aclose()
        with pytest.raises(NetworkError):
            await anext(stream)


async def test_a_proxy_at_a_port_that_is_none_is_a_network_error() -> None:
    async with serve(ANSWER) as server, httpx.AsyncClient(proxy="http://127.0.0.1:99999") as client:
        with pytest.raises(NetworkError):
            await model(server, http_client=client).invoke(REQUEST)


# The rest


async def test_http2_without_its_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "h2", None)
    asked = OpenAIChatModel("m", api_key="k", base_url="http://127.0.0.1:1/v1", http2=True)
    with pytest.raises(MissingDependencyError, match=r"tinyagents\[http2\]"):
        await asked.invoke(REQUEST)


async def test_http2_can_be_offered() -> None:
    async with serve(ANSWER) as server, model(server, http2=True) as asked:
        assert (await asked.invoke(REQUEST)).text == "hello"


async def test_a_redirect_is_an_error_and_not_followed_with_the_key() -> None:
    moved = Reply(pieces=(b"",), status=307, headers={"location": "http://127.0.0.1:1/"})
    async with serve(moved) as server, model(server) as asked:
        with pytest.raises(ModelError) as raised:
            await asked.invoke(REQUEST)
        assert raised.value.status == 307
        assert len(server.requests) == 1


@pytest.mark.parametrize("library", [httpx, httpx2])
async def test_a_callers_client_that_follows_redirects_takes_the_key_nowhere(library: Any) -> None:
    async with serve(ANSWER) as elsewhere:
        address = elsewhere.url.replace("127.0.0.1", "localhost")
        moved = Reply(pieces=(b"",), status=307, headers={"location": address})
        async with serve(moved) as server, library.AsyncClient(follow_redirects=True) as client:
            asked = model(server, provider="azure", http_client=client)
            with pytest.raises(ModelError) as raised:
                await asked.invoke(REQUEST)
        assert raised.value.status == 307
        assert server.requests[0].headers["api-key"] == "the-key-of-a-test"
        assert not elsewhere.requests


@pytest.mark.parametrize("value", ["Bearer secret-1234\n", "Bearer secret-1234é", None])
async def test_a_header_that_cannot_be_sent_is_not_quoted(value: Any) -> None:
    async with serve(ANSWER) as server, model(server, headers={"authorization": value}) as asked:
        with pytest.raises(ConfigurationError, match="headers") as raised:
            await asked.invoke(REQUEST)
        assert not server.requests
    assert "secret" not in "".join(traceback.format_exception(raised.value))


@pytest.mark.parametrize(
    ("proxy", "words"), [("socks5://127.0.0.1:1", "socksio"), ("no:proxy", "ALL_PROXY")]
)
async def test_a_proxy_of_the_environment_that_cannot_be_used_is_said_to_be_it(
    proxy: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALL_PROXY", proxy)
    monkeypatch.setitem(sys.modules, "socksio", None)
    asked = OpenAIChatModel("m", api_key="k", base_url="http://127.0.0.1:1/v1")
    with pytest.raises(ConfigurationError, match=words) as raised:
        await asked.invoke(REQUEST)
    assert not isinstance(raised.value, MissingDependencyError)


def test_both_libraries_clients_fit_the_protocol() -> None:
    clients: list[HttpClient] = [httpx.AsyncClient(), httpx2.AsyncClient()]
    assert len(clients) == 2


async def test_a_stream_of_a_finished_answer_ends_in_one_item() -> None:
    async with serve(STREAM) as server, model(server) as asked:
        items = [item async for item in asked.stream(REQUEST)]
    assert sum(isinstance(item, StreamCompleted) for item in items) == 1
    assert isinstance(items[-1], StreamCompleted)
