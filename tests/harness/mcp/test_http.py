"""What a server behind an address says by its status lines, and how much it may say."""

import gzip
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.harness.mcp.support import result_of, words
from tests.harness.providers.server import Reply, Seen, serve
from tinyagents import AgentHarness
from tinyagents.harness.errors import ToolFailedError, ToolServerError
from tinyagents.harness.mcp import McpClient, McpHttp
from tinyagents.harness.policy import RunPolicy
from tinyagents.harness.retry import RetryPolicy
from tinyagents.testkit import ScriptedModel, call, say

# The package leaves its streams of events to the garbage collector, which trio reports.
pytestmark = pytest.mark.filterwarnings("ignore:Async generator 'http:ResourceWarning")

AT_ONCE = RetryPolicy(initial_backoff=0.0, max_attempts=50)
SCHEMA: dict[str, Any] = {"type": "object", "properties": {}}


@dataclass
class Sessions:
    """A server with sessions, of the revision before the present one."""

    current: int = 1
    answer: Reply | None = None
    """What a call gets in place of its result."""
    calls: list[str] = field(default_factory=list[str])

    def __call__(self, seen: Seen) -> Reply:
        if not seen.body:
            return Reply(pieces=(), status=405)
        message = seen.document
        session = seen.headers.get("mcp-session-id")
        if session is not None and session != f"s{self.current}":
            return Reply(pieces=(), status=404)
        if "id" not in message:
            return Reply(pieces=(), status=202)
        if message["method"] == "tools/call":
            self.calls.append(session or "none")
            if self.answer is not None:
                return self.answer
        result: dict[str, Any]
        match message["method"]:
            case "initialize":
                result = {
                    "protocolVersion": "2025-11-25",
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "sessions", "version": "1"},
                }
            case "tools/list":
                result = {"tools": [{"name": "echo", "inputSchema": SCHEMA}]}
            case "tools/call":
                result = {"content": [{"type": "text", "text": session}]}
            case _:
                error = {"code": -32601, "message": "no such method"}
                return Reply.json({"jsonrpc": "2.0", "id": message["id"], "error": error})
        headers = {"mcp-session-id": f"s{self.current}"}
        body = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        return Reply.json(body, headers=headers)


async def test_a_call_that_a_restarted_server_did_not_take_is_made_again() -> None:
    script = Sessions()
    async with serve(script) as host, McpClient(McpHttp(host.url), reconnect=AT_ONCE) as server:
        assert words(await result_of(server.tools, "echo")) == "s1"
        script.current = 2
        assert words(await result_of(server.tools, "echo")) == "s2"
    assert script.calls == ["s1", "s2"]


@pytest.mark.parametrize(("status", "retryable"), [(503, True), (429, True), (403, False)])
async def test_a_refusal_of_a_call_is_told_with_its_status(status: int, retryable: bool) -> None:
    script = Sessions(answer=Reply(pieces=(b"busy",), status=status))
    async with serve(script) as host, McpClient(McpHttp(host.url)) as server:
        model = ScriptedModel([call("echo"), say("done")])
        policy = RunPolicy(tool_errors="fail")
        with pytest.raises(
            ToolFailedError, match=f"refused the call of `echo`: HTTP {status}"
        ) as e:
            await AgentHarness(model, tools=server.tools, policy=policy).invoke(None, "go")
        assert isinstance(e.value.__cause__, ToolServerError)
        assert e.value.__cause__.retryable is retryable
        script.answer = None
        assert words(await result_of(server.tools, "echo")) == "s1"


async def test_a_refused_connection_is_told_with_its_status_and_without_the_headers() -> None:
    async with serve(Reply(pieces=(), status=401)) as host:
        client = McpClient(McpHttp(host.url, headers={"Authorization": "Bearer sk-secret"}))
        with pytest.raises(ToolServerError, match="refused the connection: HTTP 401") as caught:
            async with client:
                pass
    assert host.requests[0].headers["authorization"] == "Bearer sk-secret"
    assert "sk-secret" not in f"{caught.value!r} {client!r} {McpHttp(host.url, headers={'a': 'b'})}"


def too_long() -> list[Reply]:
    text = "x" * 10_000
    body = {"jsonrpc": "2.0", "id": 4, "result": {"content": [{"type": "text", "text": text}]}}
    plain = Reply.json(body)
    small = gzip.compress(plain.pieces[0])
    packed = {**plain.headers, "content-encoding": "gzip"}
    return [
        plain,
        Reply.events(body, done=False),
        Reply(pieces=(small,), headers=packed),
    ]


@pytest.mark.parametrize("answer", too_long(), ids=["json", "events", "packed"])
async def test_an_answer_that_is_too_long_or_packed_fails_its_call_and_no_other(
    answer: Reply,
) -> None:
    script = Sessions(answer=answer)
    async with (
        serve(script) as host,
        McpClient(McpHttp(host.url), max_message_bytes=5000) as server,
    ):
        result = await result_of(server.tools, "echo")
        assert result.is_error
        script.answer = None
        assert words(await result_of(server.tools, "echo")) == "s1"


async def test_an_answer_that_breaks_off_may_have_had_effects() -> None:
    script = Sessions(answer=Reply.events(done=False, then="break"))
    async with serve(script) as host, McpClient(McpHttp(host.url), reconnect=AT_ONCE) as server:
        result = await result_of(server.tools, "echo")
        assert "may have had effects" in words(result)
        script.answer = None
        assert words(await result_of(server.tools, "echo")) == "s1"
