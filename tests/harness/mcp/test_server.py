"""Our tools as a server, asked by the client of the official package over both transports."""

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path

import anyio
import httpx
import mcp_types as types
import pytest
from mcp import Client, MCPError, StdioServerParameters

from tests.harness.mcp.support import HERE, at_port, free_port, reached, result_of, words
from tests.support import PATIENCE
from tinyagents import AgentHarness, ToolContext, tool
from tinyagents.harness.errors import ConfigurationError, MissingDependencyError
from tinyagents.harness.mcp import CallContext, McpClient, McpHttp, McpServer, ServedCall
from tinyagents.harness.tools import file_tools
from tinyagents.harness.workspace import TemporaryCopyWorkspace
from tinyagents.testkit import EventRecorder, ScriptedModel, assert_event_grammar, call, say

# The package leaves its streams of events to the garbage collector, which trio reports.
pytestmark = pytest.mark.filterwarnings("ignore:Async generator 'http:ResourceWarning")

Connect = Callable[[], AbstractAsyncContextManager[Client]]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    port = free_port()
    with at_port("ours.py", port, "strict"):
        yield f"http://127.0.0.1:{port}/mcp"


def stdio(backend: str, approvals: str = "strict") -> StdioServerParameters:
    return StdioServerParameters(
        command=sys.executable, args=[str(HERE / "ours.py"), approvals, backend]
    )


@pytest.fixture(params=["stdio", "stdio-legacy", "http", "http-legacy"])
def connect(request: pytest.FixtureRequest, anyio_backend_name: str) -> Connect:
    kind, _, legacy = str(request.param).partition("-")
    server = stdio(anyio_backend_name) if kind == "stdio" else request.getfixturevalue("address")
    return partial(Client, server, mode="legacy" if legacy else "auto")


def said(result: types.CallToolResult) -> str:
    return "\n".join(part.text for part in result.content if isinstance(part, types.TextContent))


async def test_a_client_sees_and_calls_the_tools(connect: Connect, tmp_path: Path) -> None:
    async with connect() as client:
        listed = (await client.list_tools()).tools
        assert [tool.name for tool in listed] == [
            "add", "ask", "chatty", "fail", "parts", "wait", "who",
        ]  # fmt: skip
        sums = listed[0]
        assert sums.description == "Add two numbers."
        assert sums.input_schema["required"] == ["a", "b"]
        assert sums.annotations is not None
        assert sums.annotations.read_only_hint
        assert "session" not in listed[-1].input_schema["properties"]
        assert client.instructions == "Use with care."

        assert said(await client.call_tool("add", {"a": 1, "b": 2})) == "3"
        refused = await client.call_tool("add", {"a": "x"})
        assert refused.is_error
        assert "arguments.a" in said(refused)
        failed = await client.call_tool("fail")
        assert (failed.is_error, said(failed)) == (True, "no such luck")
        assert said(await client.call_tool("chatty")) == "said"
        mixed = await client.call_tool("parts")
        assert [part.type for part in mixed.content] == ["text", "image", "text"]
        assert mixed.structured_content == {"pages": 3}

        for name in ("launch", "no_such_tool"):
            with pytest.raises(MCPError, match=f"there is no tool `{name}`"):
                await client.call_tool(name)
        asked = await client.call_tool("ask")
        assert asked.is_error
        assert "cannot be asked here" in said(asked)

        witness = tmp_path / "witness"
        async with anyio.create_task_group() as tg:
            tg.start_soon(client.call_tool, "wait", {"witness": str(witness)})
            await reached(witness.exists)
            tg.cancel_scope.cancel()
        await reached(lambda: witness.read_text() == "cancelled")
        assert said(await client.call_tool("add", {"a": 1, "b": 2})) == "3"


async def test_reports_of_a_tool_are_progress(connect: Connect) -> None:
    heard: list[tuple[float, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, message))

    async with connect() as client:
        await client.call_tool("who", progress_callback=hear)
        await reached(lambda: len(heard) == 2)
    assert sorted(heard) == [(1.0, "one"), (2.0, "two")]


async def test_the_hooks_of_the_harness_stand_around_the_calls(connect: Connect) -> None:
    async with connect() as client:
        stopped = await client.call_tool("add", {"a": 13, "b": 2})
        assert (stopped.is_error, said(stopped)) == (True, "unlucky")
        broken = await client.call_tool("add", {"a": 666, "b": 2})
        assert (broken.is_error, said(broken)) == (True, "`add` failed")


async def test_many_calls_run_at_once(connect: Connect) -> None:
    found: dict[int, str] = {}
    async with connect() as client:

        async def one(number: int) -> None:
            found[number] = said(await client.call_tool("add", {"a": number, "b": 100}))

        async with anyio.create_task_group() as tg:
            for number in range(20, 40):
                tg.start_soon(one, number)
    assert found == {number: str(number + 100) for number in range(20, 40)}


async def test_the_context_of_a_call_follows_from_who_makes_it(address: str) -> None:
    async with McpClient(McpHttp(address, headers={"X-User": "ada"})) as server:
        assert words(await result_of(server.tools, "who")) == "ada ADA state"
        assert words(await result_of(server.tools, "fail")) == "not for you"
    async with Client(stdio("asyncio")) as client:
        assert said(await client.call_tool("who")).startswith("mcp MCP")


async def test_tools_that_need_an_approval_are_served_where_that_is_allowed() -> None:
    async with Client(stdio("asyncio", "allow")) as client:
        assert said(await client.call_tool("launch")) == "launched"


async def test_our_client_and_our_server_understand_each_other(address: str) -> None:
    async with McpClient(McpHttp(address), prefix="our_", trust_annotations=True) as server:
        assert next(t for t in server.tools if t.name == "our_add").policy.side_effects.read_only
        model = ScriptedModel([call("our_add", a=2, b=3), say("5")])
        run = await AgentHarness(model, tools=server.tools).invoke(None, "2 + 3?")
    assert run.text == "5"
    assert not run.messages[2].is_error  # type: ignore[union-attr]


async def test_a_web_page_cannot_reach_a_local_server_by_another_name(address: str) -> None:
    async with httpx.AsyncClient() as client:
        answer = await client.post(address, json={}, headers={"host": "evil.example"})
    assert answer.status_code == 421


@tool
async def double(number: int) -> int:
    """Double it."""
    return 2 * number


async def test_a_call_gets_a_workspace_where_the_harness_makes_one_for_each_run(
    tmp_path: Path,
) -> None:
    source, copies = tmp_path / "source", tmp_path / "copies"
    source.mkdir()
    copies.mkdir()
    (source / "note.txt").write_text("milk", "utf-8")
    harness = AgentHarness(
        ScriptedModel([]),
        tools=file_tools(),
        workspace=TemporaryCopyWorkspace(source, parent=copies),
    )
    async with Client(McpServer(harness).build()) as client:
        assert "milk" in said(await client.call_tool("read_file", {"path": "note.txt"}))
    assert not list(copies.iterdir())


async def test_a_call_is_a_run_with_its_events() -> None:
    recorder = EventRecorder()
    harness = AgentHarness(ScriptedModel([]), tools=[double], listeners=[recorder])
    async with Client(McpServer(harness).build()) as client:
        assert said(await client.call_tool("double", {"number": 21})) == "42"
    kinds = [event.kind for event in recorder.events]
    assert kinds[0] == "run.started"
    assert "tool.completed" in kinds
    assert kinds[-1] == "run.completed"
    assert not [kind for kind in kinds if kind.startswith("model")]
    assert_event_grammar(recorder.events)


async def test_a_context_can_be_awaited_for_and_can_fail() -> None:
    @tool
    async def tell(*, ctx: ToolContext[str]) -> str:
        return ctx.data

    async def context_of(served: ServedCall) -> CallContext:
        await anyio.lowlevel.checkpoint()
        if served.tool == "double":
            raise RuntimeError("a secret of the application")
        return CallContext(data="late")

    async with Client(McpServer([double, tell], context_factory=context_of).build()) as client:
        assert said(await client.call_tool("tell")) == "late"
        failed = await client.call_tool("double", {"number": 1})
        assert (failed.is_error, said(failed)) == (True, "`double` failed")


async def test_no_more_calls_run_at_once_than_allowed() -> None:
    running: list[int] = []
    most: list[int] = []
    release = anyio.Event()

    @tool
    async def hold() -> str:
        running.append(1)
        most.append(len(running))
        await release.wait()
        running.pop()
        return "held"

    async with (
        Client(McpServer([hold], max_concurrency=2).build()) as client,
        anyio.create_task_group() as tg,
    ):
        for _ in range(5):
            tg.start_soon(client.call_tool, "hold")
        await reached(lambda: len(running) == 2)
        await anyio.wait_all_tasks_blocked()
        release.set()
    assert max(most) == 2
    assert len(most) == 5


def test_options_that_cannot_work_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="either"):
        McpServer([double], data=1, context_factory=lambda _served: CallContext())
    with pytest.raises(ConfigurationError, match="max_concurrency"):
        McpServer([double], max_concurrency=0)


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(MissingDependencyError, match=r"tinyagents\[mcp\]"):
        McpServer([double]).asgi_app()


async def test_serving_over_http_ends_with_its_task(anyio_backend_name: str) -> None:
    server, port = McpServer([double]), free_port()
    if anyio_backend_name == "trio":
        with pytest.raises(ConfigurationError, match="asyncio"):
            await server.serve_http(port=port)
        return
    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tg:
            tg.start_soon(partial(server.serve_http, port=port))
            async with httpx.AsyncClient() as client:
                while True:
                    try:
                        await client.get(f"http://127.0.0.1:{port}/nowhere")
                        break
                    except httpx.TransportError:
                        await anyio.sleep(0.02)
            async with Client(f"http://127.0.0.1:{port}/mcp") as caller:
                assert said(await caller.call_tool("double", {"number": 4})) == "8"
            with pytest.raises(ConfigurationError, match="nothing can listen"):
                await server.serve_http(port=port)
            tg.cancel_scope.cancel()
    with pytest.raises(OSError, match="."):
        await anyio.connect_tcp("127.0.0.1", port)
