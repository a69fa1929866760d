"""What the tests of MCP share: servers as processes, and runs that call one tool."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio

from tests.support import PATIENCE
from tinyagents import AgentHarness, ToolMessage
from tinyagents.harness.mcp import McpStdio
from tinyagents.harness.tool import Tool
from tinyagents.testkit import ScriptedModel, call, say

HERE = Path(__file__).parent


def official() -> McpStdio:
    """The server of the official package, as a child process."""
    return McpStdio(sys.executable, [str(HERE / "official.py")])


def raw(mode: str = "good", **env: str) -> McpStdio:
    """The server written by hand, as a child process."""
    return McpStdio(sys.executable, [str(HERE / "raw.py"), mode], env=env)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def at_port(script: str, port: int, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a script that listens at a port, and wait until it does."""
    command = [sys.executable, str(HERE / script), *arguments, str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            deadline = time.monotonic() + PATIENCE
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    assert process.poll() is None, f"{script} has left"
                    assert time.monotonic() < deadline, f"{script} does not listen"
                    time.sleep(0.02)
            yield process
        finally:
            process.kill()


async def reached(condition: Callable[[], bool]) -> None:
    """Wait for a state that nothing announces."""
    with anyio.fail_after(PATIENCE):
        while not condition():  # noqa: ASYNC110
            await anyio.sleep(0.01)


def is_alive(pid: int) -> bool:
    """Whether a process of that id runs; one that only waits to be reaped does not."""
    try:
        os.kill(pid, 0)
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return False


async def result_of(tools: tuple[Tool, ...], name: str, **arguments: Any) -> ToolMessage:
    """Run an agent whose model calls one tool, and return what the model was told."""
    model = ScriptedModel([call(name, **arguments), say("done")])
    run = await AgentHarness(model, tools=tools).invoke(None, "go")
    (message,) = [m for m in run.messages if isinstance(m, ToolMessage)]
    return message


def words(message: ToolMessage) -> str:
    """The text of a result."""
    return "\n".join(block.text for block in message.content if block.type == "text")
