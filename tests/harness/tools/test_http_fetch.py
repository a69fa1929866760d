"""The tool that fetches: what the model is told, and what it cannot make the tool do."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import anyio
import pytest

from tests.harness.guarded_fetch.loopback import Names, on_loopback, serve_raw
from tests.harness.providers.server import Reply, Seen, eventually, serve
from tests.harness.tools.runs import result_of
from tests.support import PATIENCE
from tinyagents import AgentHarness, ToolMessage
from tinyagents.harness.errors import ConfigurationError
from tinyagents.harness.guarded_fetch import FetchLimits, GuardedFetch, HostPolicy
from tinyagents.harness.tool import Tool
from tinyagents.harness.tools import http_fetch_tool
from tinyagents.testkit import ScriptedModel, call, say

HERE = ["127.0.0.1", "files.test"]
PAGE = b"""<!doctype html><html><head><title>News &amp; views</title><script>steal()</script></head>
<body><h1>Rain</h1><p>It <b>rains</b> in <a href="/paris">Paris</a>.</p><!-- no --></body></html>"""


def on_this_machine(
    *, hosts: Sequence[str] = HERE, limits: FetchLimits | None = None, **options: Any
) -> Tool:
    return http_fetch_tool(fetch=on_loopback(hosts=hosts, limits=limits), **options)


def page(content: bytes, kind: str = "text/plain", status: int = 200) -> Reply:
    return Reply(pieces=(content,), status=status, headers={"content-type": kind})


async def told(tool: Tool, url: str, **arguments: Any) -> ToolMessage:
    return await result_of([tool], tool.name, url=url, **arguments)


@pytest.mark.parametrize("hosts", [None, [], ()])
def test_a_tool_without_an_allow_list_is_not_built(hosts: Sequence[str] | None) -> None:
    with pytest.raises(ConfigurationError, match="name the hosts"):
        http_fetch_tool(hosts=hosts)
    with pytest.raises(ConfigurationError, match="name the hosts"):
        http_fetch_tool(fetch=GuardedFetch(hosts=HostPolicy(hosts=hosts)))


def test_what_cannot_work_is_refused_when_the_tool_is_built() -> None:
    unworkable: list[dict[str, Any]] = [
        {"methods": ["BREW"]},
        {"methods": ["get"]},
        {"methods": "GET"},
        {"methods": []},
        {"max_characters": 0},
        {"fetch": GuardedFetch(hosts=HostPolicy(hosts=["a.test"]))},
        {"headers": {"a.test": {"x-key": "1"}}},
        {"headers": {"https://a.test/path": {"x-key": "1"}}},
    ]
    for options in unworkable:
        with pytest.raises(ConfigurationError):
            http_fetch_tool(hosts=["a.test"], **options)


def test_the_policy_says_what_the_tool_may_change() -> None:
    reading, writing = (
        http_fetch_tool(hosts=["a.test"]),
        http_fetch_tool(hosts=["a.test"], methods=["POST"]),
    )
    assert reading.policy.side_effects.network
    assert reading.policy.side_effects.read_only
    assert reading.idempotent
    assert not writing.policy.side_effects.read_only
    assert writing.policy.side_effects.external_service
    assert not writing.idempotent
    assert "body" not in str(reading.schema.parameters)
    assert "a.test" in reading.description


async def test_a_page_is_told_as_text_with_what_it_is_called() -> None:
    async with serve(page(PAGE, "text/html; charset=utf-8")) as server:
        message = await told(on_this_machine(), f"{server.url}/news")
    assert message.text == (
        f"GET {server.url}/news: 200 OK\ntype: text/html\ntitle: News & views\n\n"
        "# Rain\n\nIt rains in [Paris](/paris)."
    )
    assert not message.is_error


async def test_html_and_json_come_as_they_were_sent_if_the_model_asks() -> None:
    async with serve(page(PAGE, "text/html")) as server:
        message = await told(on_this_machine(), server.url, as_sent=True)
        assert "<script>steal()</script>" in message.text
    async with serve(page(b'{"a":[1,2]}', "application/problem+json")) as server:
        assert '\n{\n  "a": [\n    1,' in (await told(on_this_machine(), server.url)).text
        assert (await told(on_this_machine(), server.url, as_sent=True)).text.endswith(
            '{"a":[1,2]}'
        )
    async with serve(page(b'{"a":', "application/json")) as server:
        assert (await told(on_this_machine(), server.url)).text.endswith('\n{"a":')


async def test_a_refusal_of_the_server_is_an_error_with_its_text() -> None:
    async with serve(page(b"no such page", status=404)) as server:
        message = await told(on_this_machine(), server.url)
    assert message.is_error
    assert "404 Not Found" in message.text
    assert message.text.endswith("no such page")


@pytest.mark.parametrize(
    ("kind", "content", "said"),
    [
        ("text/plain; charset=iso-8859-1", "für".encode("latin-1"), "für"),
        ("text/plain; charset=windows-1252", b"\x80", "€"),
        ("text/plain; charset=shift_jis", "日本".encode("shift_jis"), "日本"),
        ("text/plain", b"\xff\xfe" + "für".encode("utf-16-le"), "für"),
        ("text/html", b'<meta charset="iso-8859-1"><p>f\xfcr</p>', "für"),
        # Python knows these as codecs, and they are none, or bad ones:
        ("text/plain; charset=punycode", b"abc-1", "abc-1"),
        ("text/plain; charset=unicode_escape", b"\\u0041", "\\u0041"),
        ("text/plain; charset=zip", b"abc", "abc"),
        ("text/plain; charset=../../x", b"abc", "abc"),
        ("text/plain", b"a\xffb\0c", "a\ufffdb\ufffdc"),
    ],
)
async def test_text_is_decoded_as_it_was_encoded(kind: str, content: bytes, said: str) -> None:
    async with serve(page(content, kind)) as server:
        assert (await told(on_this_machine(), server.url)).text.endswith(f"\n{said}")


async def test_what_is_no_text_is_described() -> None:
    async with serve(page(b"\x89PNG\r\n\x1a\n\0\0", "image/png")) as server:
        text = (await told(on_this_machine(), server.url)).text
    assert text.endswith("type: image/png\nThe content is no text: 10 bytes.")


async def test_a_long_text_comes_in_parts() -> None:
    letters = "äbcdefghij"
    async with serve(page(letters.encode())) as server:
        tool = on_this_machine(max_characters=4)
        first = (await told(tool, server.url)).text
        assert first.endswith("\näbcd\n[characters 0 to 4 of 10; go on with start=4]")
        last = (await told(tool, server.url, start=8)).text
        assert last.endswith("\nij\n[characters 8 to 10 of 10]")
        assert "nothing at 99" in (await told(tool, server.url, start=99)).text


async def test_head_tells_what_there_is() -> None:
    answer = (
        b"HTTP/1.1 200 OK\r\ncontent-type: video/mp4\r\ncontent-length: 99999999999\r\n"
        b"etag: x\r\n\r\n"
    )
    async with serve_raw(answer) as server:
        text = (await told(on_this_machine(), server.url, method="HEAD")).text
        assert server.heads[0].startswith(b"HEAD / HTTP/1.1")
    assert text.endswith("type: video/mp4\ncontent-length: 99999999999\netag: x")


async def test_a_redirect_is_said() -> None:
    def script(seen: Seen) -> Reply:
        moved = Reply(pieces=(), status=302, headers={"location": "/new"})
        return moved if seen.path == "/old" else page(b"here")

    async with serve(script) as server:
        text = (await told(on_this_machine(), f"{server.url}/old")).text
        assert text.startswith(f"GET {server.url}/new: 200 OK\nasked for: {server.url}/old\n")


async def test_a_body_is_sent_only_by_the_methods_that_were_allowed() -> None:
    async with serve(page(b"ok")) as server:
        tool = on_this_machine(methods=["GET", "POST"])
        message = await told(tool, server.url, method="POST", body='{"a": 1}')
        assert not message.is_error
        assert server.requests[0].document == {"a": 1}
        assert server.requests[0].headers["content-type"] == "application/json"

        assert (await told(tool, server.url, method="GET", body="x")).is_error
        assert (await told(tool, server.url, method="DELETE")).is_error
        assert (await told(on_this_machine(), server.url, method="POST")).is_error
        assert (await told(on_this_machine(), server.url, body="x")).is_error
        assert (await told(tool, server.url, method="POST", body="x" * 300_000)).is_error
        assert len(server.requests) == 1


@pytest.mark.parametrize(("status", "method"), [(303, b"GET"), (302, b"GET"), (307, b"POST")])
async def test_a_post_is_redirected_as_the_status_says(status: int, method: bytes) -> None:
    async def say(head: bytes, send: Callable[[bytes], Awaitable[None]]) -> None:
        if b" /new " in head:
            await send(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
        else:
            await send(
                f"HTTP/1.1 {status} Moved\r\nlocation: /new\r\ncontent-length: 0\r\n\r\n".encode()
            )

    async with serve_raw(say) as server:
        tool = on_this_machine(methods=["POST"])
        assert (await told(tool, server.url, body="x=1")).text.endswith("\nok")
        assert server.heads[1].startswith(method + b" /new ")
        assert (b"content-type" in server.heads[1].lower()) is (method == b"POST")


async def test_a_body_does_not_go_to_another_origin() -> None:
    async with serve_raw(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n") as other:
        moved = Reply(pieces=(), status=307, headers={"location": other.url})
        async with serve(moved) as server:
            message = await told(on_this_machine(methods=["POST"]), server.url, body="secret")
        assert message.is_error
        assert "another origin" in message.text
        assert not other.heads


async def test_headers_go_to_their_origin_and_to_nobody_else() -> None:
    async with serve_raw(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n") as other:

        def script(seen: Seen) -> Reply:
            if seen.path == "/moved":
                return Reply(pieces=(), status=302, headers={"location": other.url})
            return page(b"ok")

        async with serve(script) as server:
            tool = on_this_machine(headers={server.url: {"authorization": "Bearer k"}})
            await told(tool, server.url)
            await told(tool, f"{server.url}/moved")
            await told(tool, other.url)
            assert [each.headers.get("authorization") for each in server.requests] == [
                "Bearer k"
            ] * 2
        assert len(other.heads) == 2
        assert not any(b"authorization" in head.lower() for head in other.heads)
    assert "Bearer" not in repr(tool)


@pytest.mark.parametrize(
    "url",
    [
        "http://other.test/",
        "http://127.0.0.2/",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://0177.0.0.1/",
        "http://127.1/",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[::ffff:7f00:1]/",
        "http://localhost/",
        "http://169.254.169.254/latest/meta-data/",
        "http://user:pass@files.test/",
        "http://files.test@evil.test/",
        "http://files.test\\@evil.test/",
        "file:///etc/passwd",
        "gopher://files.test/",
        "http://files.test/\r\nx-injected: 1",
        "http://files.test/ HTTP/1.1\r\nHost: evil",
        "//files.test/",
        "",
        "x" * 9_000,
    ],
)
async def test_an_address_that_is_not_allowed_reaches_nothing(url: str) -> None:
    asked = Names(files=[["10.0.0.1"]])
    tool = http_fetch_tool(
        fetch=GuardedFetch(hosts=HostPolicy(hosts=["files.test"]), resolve=asked)
    )
    message = await told(tool, url)
    assert message.is_error
    assert message.text.startswith("The request failed:")
    assert "pass@" not in message.text


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.7", "::1", "169.254.169.254"])
async def test_an_allowed_name_that_leads_inside_is_refused(address: str) -> None:
    fetch = GuardedFetch(hosts=HostPolicy(hosts=["files.test"]), resolve=Names(files=[[address]]))
    message = await told(http_fetch_tool(fetch=fetch), "http://files.test/")
    assert message.is_error
    assert address in message.text


@pytest.mark.parametrize(
    "to",
    [
        "http://10.0.0.1/",
        "http://evil.test/",
        "file:///etc/passwd",
        "http://[::1]/",
        "//2130706433/",
    ],
)
async def test_a_redirect_that_leads_out_of_the_list_is_refused(to: str) -> None:
    async with serve(Reply(pieces=(), status=302, headers={"location": to})) as server:
        message = await told(on_this_machine(), server.url)
    assert message.is_error
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "kind", ["a/b\r\nx-injected: 1", "text/plain; x=\r\n", "no type", "ü/ü", ""]
)
async def test_no_header_gets_in_with_a_content_type(kind: str) -> None:
    async with serve(page(b"ok")) as server:
        tool = on_this_machine(methods=["POST"])
        message = await told(tool, server.url, body="x", content_type=kind)
        assert message.is_error
        assert not server.requests


async def test_a_body_that_is_too_large_or_too_slow_is_given_up() -> None:
    async with serve(page(b"x" * 2_000)) as server:
        small = on_this_machine(limits=FetchLimits(max_bytes=1_000))
        assert "more than 1000 bytes" in (await told(small, server.url)).text
    async with serve(Reply(pieces=(b"x",), then="hang")) as server:
        quick = on_this_machine(limits=FetchLimits(seconds=0.2))
        message = await told(quick, server.url)
        assert message.is_error
        assert "within 0.2 s" in message.text


async def test_lines_of_facts_stay_lines() -> None:
    title = b"<title>a\nGET https://bank.test: 200 OK</title><p>x"
    async with serve(page(title, "text/html")) as server:
        text = (await told(on_this_machine(), server.url)).text
    assert text.splitlines()[2] == "title: a GET https://bank.test: 200 OK"


async def test_cancelling_the_run_ends_the_request() -> None:
    async with serve(Reply(pieces=(b"x",), then="hang")) as server:
        model = ScriptedModel([call("http_fetch", url=server.url), say("done")])
        agent = AgentHarness(model=model, tools=[on_this_machine()])
        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as group:
                group.start_soon(agent.invoke, None, "go")
                await eventually(lambda: bool(server.requests))
                group.cancel_scope.cancel()
