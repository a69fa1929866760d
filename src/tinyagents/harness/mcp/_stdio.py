"""A server as a child process: lines of JSON over its standard streams, each of bounded length.

The package's own transport reads a line of any length, and its standard error can only go to a
file; everything else here is what the protocol says of shutting a server down.
"""

import os
import re
import shutil
import signal
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
import mcp_types as types
from anyio.abc import ByteReceiveStream, Process
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage

from ._transports import McpStdio

_STDERR_BYTES = 8192
_ENDS = 256
"""Bytes that are kept of both ends of a line that is too long."""
_LEAVE_SECONDS = 2.0
"""For the server to leave by itself after its input was closed, and again after SIGTERM."""
_POLL_SECONDS = 0.02
_WATCH_SECONDS = 0.5

_ID_FIRST = re.compile(rb'\s*\{\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*(\d{1,18})\s*,')
_ID_LAST = re.compile(rb',\s*"id"\s*:\s*(\d{1,18})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$')
_NO_ANSWER = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"method"')

Incoming = SessionMessage | Exception


class TooLong:
    """A line beyond the bound, of which only the ends are known."""

    __slots__ = ("head", "tail")

    def __init__(self, head: bytes, tail: bytes) -> None:
        self.head = head
        self.tail = tail

    def answers(self) -> int | None:
        """Return the id of the request that the line answers, as far as its ends tell."""
        found = _ID_FIRST.match(self.head) or _ID_LAST.search(self.tail)
        return int(found[1]) if found else None

    def is_answer(self) -> bool:
        """Whether somebody may wait for it."""
        return _NO_ANSWER.match(self.head) is None


class Lines:
    """Cuts what comes in pieces into lines; one beyond ``limit`` bytes is not kept."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self._head = b""
        self._tail = b""

    def feed(self, chunk: bytes) -> Iterator[bytes | TooLong]:
        """Yield the lines that the chunk completes."""
        *ends, rest = chunk.split(b"\n")
        for part in ends:
            self._add(part)
            yield self._take()
        self._add(rest)

    def _add(self, part: bytes) -> None:
        self._size += len(part)
        if self._size <= self._limit:
            self._parts.append(part)
            return
        if self._parts:
            self._head = b"".join(self._parts)[:_ENDS]
            self._parts.clear()
        if len(self._head) < _ENDS:
            self._head = (self._head + part)[:_ENDS]
        self._tail = (self._tail + part[-_ENDS:])[-_ENDS:]

    def _take(self) -> bytes | TooLong:
        kept = self._size <= self._limit
        line = b"".join(self._parts) if kept else TooLong(self._head, self._tail)
        self._parts.clear()
        self._size, self._head, self._tail = 0, b"", b""
        return line


class StderrTail:
    """The last words of a server, without the values of the environment that it was given."""

    def __init__(self, server: McpStdio) -> None:
        self._kept = bytearray()
        self._secrets = [value for value in (server.env or {}).values() if len(value) >= 8]

    def add(self, chunk: bytes) -> None:
        """Take note of what was written."""
        self._kept += chunk
        del self._kept[:-_STDERR_BYTES]

    @property
    def text(self) -> str:
        """What is left of it."""
        text = self._kept.decode(errors="replace").strip()
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text


@asynccontextmanager
async def stdio_transport(
    server: McpStdio, stderr: StderrTail, *, max_message_bytes: int
) -> AsyncGenerator[tuple[MemoryObjectReceiveStream[Incoming], MemoryObjectSendStream[Any]]]:
    """Start the server and hand out the streams to it; at the end it is gone with all it started.

    Raises:
        OSError: The program cannot be started.
    """
    process = await _start(server)
    # Nothing is awaited from here to the `try`: a cancellation there would leave the process.
    inbox, incoming = anyio.create_memory_object_stream[Incoming](0)
    outgoing, outbox = anyio.create_memory_object_stream[SessionMessage](0)
    try:
        async with anyio.create_task_group() as tg:
            tg.start_soon(_read, process, inbox, max_message_bytes)
            tg.start_soon(_write, process, outbox, inbox)
            tg.start_soon(_listen, process, stderr)
            tg.start_soon(_watch, process, inbox)
            try:
                yield incoming, outgoing
            finally:
                incoming.close()
                outgoing.close()
                with anyio.CancelScope(shield=True):
                    await _stop(process)
                tg.cancel_scope.cancel()
    finally:
        for stream in (inbox, incoming, outgoing, outbox):
            stream.close()


async def _start(server: McpStdio) -> Process:
    command = server.command
    if sys.platform == "win32":
        command = shutil.which(command) or command
    # Shielded: of a start that is cancelled asyncio kills the process, and not what it has started.
    with anyio.CancelScope(shield=True):
        return await anyio.open_process(
            [command, *server.args],
            env=get_default_environment() | dict(server.env or {}),
            cwd=server.cwd,
            start_new_session=True,
        )
    raise AssertionError("a scope that nobody cancels swallows nothing")


async def _read(process: Process, inbox: MemoryObjectSendStream[Incoming], limit: int) -> None:
    assert process.stdout is not None
    lines = Lines(limit)
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, ConnectionError):
        async with inbox:
            async for chunk in process.stdout:
                for line in lines.feed(chunk):
                    if (item := _parsed(line, limit)) is not None:
                        await inbox.send(item)
    # A server that still writes would otherwise block on a full pipe, and not leave.
    await _drain(process.stdout)


def _parsed(line: bytes | TooLong, limit: int) -> Incoming | None:
    """Return the message of a line.

    Raises:
        BrokenResourceError: It is too long, and whoever waits for it cannot be told.
    """
    if isinstance(line, TooLong):
        if not line.is_answer():
            return None
        answers = line.answers()
        if answers is None:
            raise anyio.BrokenResourceError
        error = types.ErrorData(
            code=types.INTERNAL_ERROR, message=f"the answer has more than {limit} bytes"
        )
        return SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=answers, error=error))
    if not line.strip():
        return None
    try:
        return SessionMessage(types.jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as exc:  # a banner or a debugging print: nobody waits for it
        return exc


async def _write(
    process: Process,
    outbox: MemoryObjectReceiveStream[SessionMessage],
    inbox: MemoryObjectSendStream[Incoming],
) -> None:
    assert process.stdin is not None
    try:
        async with outbox:
            async for item in outbox:
                text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                await process.stdin.send(text.encode() + b"\n")
    except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
        # The server reads no more; the session learns it by the end of what it reads itself.
        inbox.close()


async def _listen(process: Process, stderr: StderrTail) -> None:
    assert process.stderr is not None
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, ConnectionError):
        async for chunk in process.stderr:
            stderr.add(chunk)


async def _watch(process: Process, inbox: MemoryObjectSendStream[Incoming]) -> None:
    """End the session when the server is gone and a child of it keeps the pipe open."""
    while process.returncode is None:  # noqa: ASYNC110 - nothing tells: see `_left`
        await anyio.sleep(_WATCH_SECONDS)
    await anyio.sleep(_WATCH_SECONDS)  # what it wrote last is still to be read
    inbox.close()


async def _drain(stdout: ByteReceiveStream) -> None:
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, ConnectionError):
        async for _ in stdout:
            pass


async def _stop(process: Process) -> None:
    """Close the server's input, and kill it and all of its group where that does not end it.

    The order is that of the protocol (revision 2025-11-25, basic/lifecycle, shutdown).
    """
    assert process.stdin is not None
    with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        await process.stdin.aclose()
    if not await _left(process):
        _signal(process, "SIGTERM")
        await _left(process)
    # Also where the server has left: what it started may not have.
    _signal(process, "SIGKILL")
    await _left(process)
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            await stream.aclose()
    # Of a daemon that left the group and holds a pipe asyncio would wait for the end for ever.
    transport = getattr(getattr(process, "_process", None), "_transport", None)
    if transport is not None:
        with suppress(PermissionError):
            transport.close()


async def _left(process: Process) -> bool:
    # Not `wait()`, which on asyncio also waits for the end of the pipes.
    with anyio.move_on_after(_LEAVE_SECONDS):
        while process.returncode is None:  # noqa: ASYNC110 - nothing tells of the end
            await anyio.sleep(_POLL_SECONDS)
        return True
    return False


def _signal(process: Process, name: str) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if sys.platform != "win32":
            os.killpg(process.pid, getattr(signal, name))
        elif process.returncode is None:
            process.kill()
