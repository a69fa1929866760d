"""Tools of a server, over both transports, against the official package."""

from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from tests.harness.mcp.support import (
    at_port,
    free_port,
    official,
    raw,
    reached,
    result_of,
    words,
)
from tests.support import PATIENCE
from tinyagents import AgentHarness, ToolMessage
from tinyagents.harness.errors import ToolServerError
from tinyagents.harness.mcp import McpClient, McpHttp, McpStdio
from tinyagents.harness.policy import RunPolicy
from tinyagents.harness.retry import RetryPolicy
from tinyagents.harness.stream import ToolProgress
from tinyagents.harness.tool import ToolAccess, ToolPolicy
from tinyagents.testkit import ScriptedModel, call, say

# The package leaves its streams of events to the garbage collector, which trio reports.
pytestmark = pytest.mark.filterwarnings("ignore:Async generator 'http:ResourceWarning")

AT_ONCE = RetryPolicy(initial_backoff=0.0, max_attempts=50)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    port = free_port()
    with at_port("official.py", port):
        yield f"http://127.0.0.1:{port}/mcp"


@pytest.fixture(params=["stdio", "http"])
def transport(request: pytest.FixtureRequest) -> McpStdio | McpHttp:
    return official() if request.param == "stdio" else McpHttp(request.getfixturevalue("address"))


async def test_an_agent_calls_the_tools_of_a_server(transport: McpStdio | McpHttp) -> None:
    async with McpClient(transport, prefix="demo_") as server:
        model = ScriptedModel([call("demo_add", a=20, b=22), say("It is 42.")])
        run = await AgentHarness(model, tools=server.tools).invoke(None, "20 + 22?")
    assert run.text == "It is 42."
    (result,) = [m for m in run.messages if isinstance(m, ToolMessage)]
    assert words(result) == "42"
    assert result.artifact == {"result": 42}


async def test_a_result_keeps_its_parts_and_their_order(transport: McpStdio | McpHttp) -> None:
    async with McpClient(transport) as server:
        result = await result_of(server.tools, "parts")
    kinds = [block.type for block in result.content]
    assert kinds == ["text", "image", "audio", "text", "file", "text"]
    assert words(result) == (
        "words\n[file:///notes.txt]\nnotes\n[more](https://example.com/more): the rest"
    )
    assert result.content[4].model_dump(exclude_none=True) == {
        "type": "file", "data": "Ynl0ZXM=", "media_type": "application/pdf", "name": "report.pdf",
    }  # fmt: skip
    assert result.artifact == {"pages": 3}


async def test_what_a_tool_says_it_could_not_do_is_an_error_result(
    transport: McpStdio | McpHttp,
) -> None:
    async with McpClient(transport) as server:
        result = await result_of(server.tools, "fail")
    assert result.is_error
    assert "no such luck" in words(result)


async def test_progress_reaches_whoever_follows_the_run_and_a_cancelled_call_the_server(
    transport: McpStdio | McpHttp, tmp_path: Path
) -> None:
    witness = tmp_path / "witness"
    async with McpClient(transport) as server:
        model = ScriptedModel([call("wait", witness=str(witness)), say("done")])
        harness = AgentHarness(model, tools=server.tools)
        with anyio.fail_after(PATIENCE):
            async with harness.stream(None, "go", modes="tools") as stream:
                async for chunk in stream:
                    if isinstance(chunk, ToolProgress):
                        assert chunk.content == "on its way"
                        break
            await reached(lambda: witness.exists() and witness.read_text() == "cancelled")
        assert words(await result_of(server.tools, "add", a=1, b=2)) == "3"


async def test_a_call_that_is_out_of_time_is_cancelled_at_the_server(
    transport: McpStdio | McpHttp, tmp_path: Path
) -> None:
    witness = tmp_path / "witness"
    async with McpClient(transport, timeout=0.2) as server:
        result = await result_of(server.tools, "wait", witness=str(witness))
        assert result.is_error
        assert "did not end within 200 ms" in words(result)
        await reached(lambda: not witness.exists() or witness.read_text() == "cancelled")
        assert words(await result_of(server.tools, "add", a=1, b=2)) == "3"


async def test_many_runs_call_at_once(transport: McpStdio | McpHttp) -> None:
    found: dict[int, str] = {}
    async with McpClient(transport) as server:

        async def one(number: int) -> None:
            found[number] = words(await result_of(server.tools, "add", a=number, b=0))

        async with anyio.create_task_group() as tg:
            for number in range(20):
                tg.start_soon(one, number)
    assert found == {number: str(number) for number in range(20)}


async def test_a_longer_answer_than_allowed_fails_its_call_and_no_other(
    transport: McpStdio | McpHttp,
) -> None:
    async with McpClient(transport, max_message_bytes=100_000) as server:
        result = await result_of(server.tools, "big", size=1_000_000)
        assert result.is_error
        assert "100000" in words(result)
        assert words(await result_of(server.tools, "add", a=1, b=2)) == "3"


async def test_a_long_text_is_cut_for_the_model(transport: McpStdio | McpHttp) -> None:
    async with McpClient(transport, max_result_chars=100) as server:
        result = await result_of(server.tools, "big", size=5000)
    assert words(result) == "x" * 100 + "\n[cut: the first 100 of 5000 characters]"


async def test_only_a_trusted_server_can_say_that_a_tool_is_harmless() -> None:
    own = ToolPolicy(access=ToolAccess(approval_required=True))
    async with McpClient(official(), timeout=5.0, policies={"big": own}) as server:
        tools = {tool.name: tool for tool in server.tools}
    add, wipe = tools["add"].policy, tools["mcp_wipe_disk"].policy
    assert not add.classified
    assert not add.side_effects.read_only
    assert not add.runtime.idempotent
    assert add.runtime.timeout == 5.0
    assert add.display.label == "Sum"
    assert tools["add"].metadata["mcp_hints"] == {"read_only_hint": True}
    assert wipe.side_effects.destructive
    assert not wipe.runtime.idempotent
    assert wipe.display.label == "Wipe Disk"
    assert tools["big"].policy == own

    async with McpClient(official(), trust_annotations=True) as server:
        tools = {tool.name: tool for tool in server.tools}
    add, wipe = tools["add"].policy, tools["mcp_wipe_disk"].policy
    assert add.classified
    assert add.side_effects.read_only
    assert add.runtime.idempotent
    assert wipe.side_effects.destructive
    assert wipe.runtime.idempotent
    assert not tools["fail"].policy.classified


async def test_a_listing_that_grows_is_taken_up() -> None:
    heard: list[tuple[str, ...]] = []
    for transport in (official(), raw()):
        async with McpClient(
            transport, on_tools_changed=lambda tools: heard.append(tuple(t.name for t in tools))
        ) as server:
            before = server.tools
            await result_of(before, "grow")
            await reached(lambda: bool(heard))
            assert heard.pop()[-1] == "fresh"
            assert [tool.name for tool in server.tools][-1] == "fresh"
            assert [tool.name for tool in before] == [tool.name for tool in server.tools][:-1]


async def test_a_server_that_crashes_in_a_call_is_started_again() -> None:
    async with McpClient(official(), reconnect=AT_ONCE) as server:
        result = await result_of(server.tools, "crash")
        assert result.is_error
        assert "may have had effects" in words(result)
        assert words(await result_of(server.tools, "add", a=1, b=2)) == "3"


async def test_a_server_that_was_restarted_behind_its_address_is_found_again() -> None:
    port = free_port()
    with at_port("official.py", port):
        client = McpClient(McpHttp(f"http://127.0.0.1:{port}/mcp"), reconnect=AT_ONCE)
        server = await client.__aenter__()
    try:
        with at_port("official.py", port):
            answers = [await result_of(server.tools, "add", a=1, b=2) for _ in range(2)]
            assert words(answers[-1]) == "3"
    finally:
        await client.aclose()


async def test_a_server_behind_an_address_that_crashes_in_a_call_fails_that_call() -> None:
    port = free_port()
    with at_port("official.py", port):
        async with McpClient(
            McpHttp(f"http://127.0.0.1:{port}/mcp"),
            reconnect=RetryPolicy(max_attempts=1, initial_backoff=0.0),
        ) as server:
            result = await result_of(server.tools, "crash")
            assert result.is_error
            assert "may have had effects" in words(result)
            gone = await result_of(server.tools, "add", a=1, b=2)
            assert "cannot be reached" in words(gone)


async def test_a_lost_server_is_an_error_that_says_whose_it_is() -> None:
    async with McpClient(official(), name="sums", reconnect=AT_ONCE) as server:
        model = ScriptedModel([call("crash"), say("done")])
        harness = AgentHarness(model, tools=server.tools, policy=RunPolicy(tool_errors="fail"))
        with pytest.raises(Exception, match="sums") as caught:
            await harness.invoke(None, "go")
    cause = caught.value.__cause__
    assert isinstance(cause, ToolServerError)
    assert cause.server == "sums"
    assert cause.retryable
    assert "about to crash" in cause.stderr


async def test_a_connection_is_entered_in_one_task_and_closed_in_another() -> None:
    client = McpClient(official())
    async with anyio.create_task_group() as tg:
        tg.start_soon(client.__aenter__)
    assert words(await result_of(client.tools, "add", a=1, b=2)) == "3"
    async with anyio.create_task_group() as tg:
        tg.start_soon(client.aclose)
    result = await result_of(client.tools, "add", a=1, b=2)
    assert "not connected" in words(result)
