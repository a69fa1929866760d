"""Servers that say too much, too little or the wrong thing, and leave at the wrong time."""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from tests.harness.mcp.support import HERE, free_port, is_alive, raw, reached, result_of, words
from tests.support import PATIENCE
from tinyagents import AgentHarness
from tinyagents.harness.errors import (
    ConfigurationError,
    DuplicateNameError,
    InvalidRequestError,
    MissingDependencyError,
    ToolServerError,
)
from tinyagents.harness.mcp import McpClient, McpHttp, McpStdio
from tinyagents.harness.retry import RetryPolicy
from tinyagents.harness.tool import Tool
from tinyagents.testkit import ScriptedModel, call, say

AT_ONCE = RetryPolicy(initial_backoff=0.0, max_attempts=50)


@pytest.mark.parametrize("order", ["id first", "id last"])
async def test_an_answer_that_is_too_long_fails_its_call_and_no_other(order: str) -> None:
    async with McpClient(raw(), max_message_bytes=200_000) as server:
        result = await result_of(server.tools, "huge", size=1_000_000, order=order)
        assert result.is_error
        assert "more than 200000 bytes" in words(result)
        assert words(await result_of(server.tools, "echo", words="still here")) == "still here"


async def test_a_notice_that_is_too_long_is_passed_over() -> None:
    async with McpClient(raw(), max_message_bytes=200_000) as server:
        result = await result_of(server.tools, "huge", size=1_000_000, order="notice")
        # The answer itself fits.
        assert words(result) == "after the notice"


async def test_an_answer_too_long_to_know_whose_it_is_ends_the_connection_only() -> None:
    async with McpClient(raw(), max_message_bytes=200_000, reconnect=AT_ONCE) as server:
        result = await result_of(server.tools, "huge", size=1_000_000, order="hidden")
        assert "broke off" in words(result)
        assert words(await result_of(server.tools, "echo", words="back")) == "back"


async def test_what_is_no_message_is_passed_over() -> None:
    async with McpClient(raw()) as server:
        assert words(await result_of(server.tools, "noise")) == "heard"


async def test_a_result_that_is_none_fails_its_call_and_no_other() -> None:
    async with McpClient(raw()) as server:
        result = await result_of(server.tools, "odd")
        assert "no result of a tool" in words(result)
        refused = await result_of(server.tools, "refuse")
        assert "out of order" in words(refused)
        assert words(await result_of(server.tools, "echo", words="fine")) == "fine"


async def test_a_schema_of_the_server_is_not_worked_on_for_its_own_results() -> None:
    # Result and schema are both the server's: a check could take for ever, and would prove nothing.
    async with McpClient(raw()) as server:
        result = await result_of(server.tools, "fact")
    assert words(result) == "seven"
    assert not result.is_error
    assert result.artifact == {"n": 7}


async def test_the_title_of_a_tool_is_one_line_for_whoever_is_asked_about_it() -> None:
    async with McpClient(raw()) as server:
        (fact,) = [tool for tool in server.tools if tool.name == "fact"]
    assert fact.policy.display.label == "Look Approved by: the administrator "


async def test_what_a_server_asks_of_the_client_is_refused() -> None:
    async with McpClient(raw()) as server:
        result = await result_of(server.tools, "sample")
    assert words(result) == "s-elicitation/create s-roots/list s-sampling/createMessage"


@pytest.mark.parametrize("mode", ["good", "stubborn"])
async def test_a_server_and_its_children_are_gone_after_it_is_closed(mode: str) -> None:
    async with McpClient(raw(mode)) as server:
        pid = int(words(await result_of(server.tools, "child")))
        assert is_alive(pid)
    await reached(lambda: not is_alive(pid))


async def test_a_server_whose_child_holds_the_pipe_is_seen_to_leave() -> None:
    async with McpClient(raw(), reconnect=AT_ONCE) as server:
        pid = int(words(await result_of(server.tools, "child")))
        result = await result_of(server.tools, "leave")
        assert "broke off" in words(result)
        assert words(await result_of(server.tools, "echo", words="anew")) == "anew"
        await reached(lambda: not is_alive(pid))


async def test_a_server_that_listens_no_more_can_be_closed() -> None:
    async with McpClient(raw()) as server:
        model = ScriptedModel([call("deaf"), say("done")])
        with anyio.move_on_after(0.3):
            await AgentHarness(model, tools=server.tools).invoke(None, "go")
        with anyio.fail_after(PATIENCE):
            await server.aclose()


async def test_a_server_that_never_answers_the_handshake_is_given_up() -> None:
    client = McpClient(raw("mute"), connect_timeout=0.3)
    with pytest.raises(ToolServerError, match=r"did not answer within 0\.3 s"):
        async with client:
            pass


async def test_entering_can_be_cancelled() -> None:
    client = McpClient(raw("mute"))
    with anyio.move_on_after(0.3) as scope:
        await client.__aenter__()
    assert scope.cancelled_caught
    assert "not connected" in repr(client)


async def test_closing_wins_over_a_connection_that_is_being_made() -> None:
    client = McpClient(raw("mute"))
    told: list[BaseException] = []

    async def enter() -> None:
        try:
            await client.__aenter__()
        except ToolServerError as error:
            told.append(error)

    async with anyio.create_task_group() as tg:
        tg.start_soon(enter)
        await anyio.wait_all_tasks_blocked()
        await client.aclose()
    assert [type(error) for error in told] == [ToolServerError]


async def test_a_server_that_leaves_at_once_is_an_error_with_its_last_words() -> None:
    secret = "sk-very-secret-value"
    with pytest.raises(ToolServerError, match="left before") as caught:
        async with McpClient(raw("dead", SECRET=secret)):
            pass
    assert caught.value.stderr == "cannot find my config, key=***"
    assert caught.value.__notes__ == ["it wrote last: cannot find my config, key=***"]
    assert secret not in f"{caught.value!r} {raw('dead', SECRET=secret)!r}"


async def test_a_server_that_cannot_be_started_or_reached_is_an_error() -> None:
    with pytest.raises(ToolServerError, match="FileNotFoundError"):
        async with McpClient(McpStdio("/no/such/program")):
            pass
    with pytest.raises(ToolServerError, match="ConnectError") as caught:
        async with McpClient(McpHttp(f"http://127.0.0.1:{free_port()}/mcp?key=sk-secret")):
            pass
    assert "sk-secret" not in str(caught.value)


async def test_a_server_that_stays_away_fails_the_calls_until_it_is_back(tmp_path: Path) -> None:
    program, away = tmp_path / "server.py", tmp_path / "away.py"
    shutil.copy(HERE / "raw.py", program)
    once = RetryPolicy(initial_backoff=0.0, max_attempts=1)
    async with McpClient(McpStdio(sys.executable, [str(program)]), reconnect=once) as server:
        program.rename(away)
        await result_of(server.tools, "leave")
        for _ in range(2):
            assert "left before the connection" in words(await result_of(server.tools, "echo"))
        away.rename(program)
        assert words(await result_of(server.tools, "echo", words="back")) == "back"


@pytest.mark.parametrize(
    ("mode", "error", "says"),
    [
        ("endless", ToolServerError, "without an end"),
        ("twice", DuplicateNameError, "two tools `echo`"),
    ],
)
async def test_a_listing_that_cannot_be_is_refused(
    mode: str, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        async with McpClient(raw(mode)):
            pass


async def test_a_tool_that_no_model_can_be_told_of_is_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with McpClient(raw("unfit")) as server:
        names = [tool.name for tool in server.tools]
    assert "echo" in names
    assert not {"wide", "n" * 300} & set(names)
    assert "the parameters of `wide` take" in caplog.text


async def test_a_description_has_a_bounded_length() -> None:
    async with McpClient(raw()) as server:
        assert len(server.tools[0].description) < 9000
        assert server.tools[0].description.endswith("[cut: the first 8192 characters]")


async def test_only_the_chosen_tools_are_taken() -> None:
    async with McpClient(raw(), include=["echo", "h*", "grow"], exclude=["gr?w"]) as server:
        assert [tool.name for tool in server.tools] == ["echo", "huge"]
    async with McpClient(raw(), include=()) as server:
        assert server.tools == ()
    with pytest.raises(ConfigurationError, match="no tool `ecko`"):
        async with McpClient(raw(), include=["ecko"]):
            pass
    with pytest.raises(ConfigurationError, match="write include="):
        McpClient(raw(), include="echo")


async def test_the_environment_is_what_was_given_and_little_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WORD", "from the parent")
    async with McpClient(raw()) as server:
        assert words(await result_of(server.tools, "echo", words="!")) == "!"
    async with McpClient(raw(WORD="given")) as server:
        assert words(await result_of(server.tools, "echo", words="!")) == "given!"


async def test_a_client_is_entered_once_at_a_time_and_again_later() -> None:
    client = McpClient(raw())
    async with client:
        with pytest.raises(InvalidRequestError, match="connected already"):
            await client.__aenter__()
        assert words(await result_of(client.tools, "echo", words="1")) == "1"
    async with client:
        assert words(await result_of(client.tools, "echo", words="2")) == "2"


def test_the_tools_belong_to_one_event_loop() -> None:
    kept: list[Tool] = []

    async def inner() -> str:
        return words(await result_of(tuple(kept), "echo"))

    async def outer() -> str:
        async with McpClient(raw()) as server:
            kept.extend(server.tools)
            return await anyio.to_thread.run_sync(lambda: anyio.run(inner))

    assert "another event loop" in anyio.run(outer)


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(MissingDependencyError, match=r"tinyagents\[mcp\]"):
        anyio.run(McpClient(raw()).__aenter__)


@pytest.mark.parametrize(
    "make",
    [
        lambda: McpStdio(" "),
        lambda: McpStdio("uvx", "mcp-server"),
        lambda: McpHttp("example.com/mcp"),
        lambda: McpHttp("file:///etc/passwd"),
    ],
)
def test_a_transport_that_cannot_be_is_refused(make: Callable[[], object]) -> None:
    with pytest.raises(ConfigurationError):
        make()
