"""One connection to a server, from the handshake to its end."""

import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cache
from importlib import metadata
from types import TracebackType
from typing import Any, Self, cast

import anyio
import mcp_types as types
from anyio.abc import TaskStatus
from mcp import Client, MCPError
from mcp.client import IncomingMessage
from mcp.client._transport import TransportStreams
from mcp.shared._stream_protocols import ReadStream
from mcp.shared.message import SessionMessage
from pydantic import JsonValue, ValidationError

from ..errors import TinyAgentsError, ToolServerError
from ..text import error_text
from ..tool import ToolContext, ToolResult
from ._http import HttpSignals, http_transport
from ._results import to_result
from ._stdio import Incoming, StderrTail, stdio_transport
from ._transports import McpStdio, McpTransport

_log = logging.getLogger("tinyagents.mcp")

_MAX_PAGES = 100
_MAX_TOOLS = 1000
_PASSING_STATUS = (408, 425, 429)
_BARE_REFUSAL = "Server returned an error response"
"""What the package says of a status without a message of the protocol."""
_BROKEN_OFF = ("Connection closed", "SSE stream ended")
"""How it calls an answer that never came."""
_MAX_WORDS = 2000
"""Characters of a server's message or report that are passed on."""


class SessionExpired(Exception):
    """The server did not take the call, as it knows the session no more: it can be made again."""


class Session:
    """One connection: its ``client`` is entered and left by one task, and used by any.

    Requests of the server for sampling, elicitation and roots are refused: the client is given no
    callback for them, and so declares none.
    """

    def __init__(self, transport: McpTransport, name: str, *, max_message_bytes: int) -> None:
        self.name = name
        self.answered = False
        """Whether a call was answered: the connection was of use."""
        self.lost = False
        self.listing_changed = False
        self._signals = HttpSignals()
        self._stderr: StderrTail | None = None
        self._in_flight = 0
        self._news = anyio.Event()
        if isinstance(transport, McpStdio):
            self._stderr = StderrTail(transport)
            streams: Any = stdio_transport(
                transport, self._stderr, max_message_bytes=max_message_bytes
            )
        else:
            streams = http_transport(transport, self._signals, max_message_bytes=max_message_bytes)
        self.client = Client(
            _watched(streams, self.end),
            client_info=types.Implementation(name="tinyagents", version=_version()),
            message_handler=self._take_message,
            cache=None,
        )

    def wake(self) -> None:
        """Let whoever waits in :meth:`news` look again."""
        self._news.set()

    async def news(self) -> None:
        """Wait until something was lost, has changed, or :meth:`wake` was called."""
        await self._news.wait()
        self._news = anyio.Event()

    def end(self) -> None:
        """The server's messages have ended."""
        self.lost = True
        self.wake()

    async def _take_message(self, message: IncomingMessage) -> None:
        """Take note of what the server says by itself."""
        if isinstance(message, types.ToolListChangedNotification):
            self.listing_changed = True
            self.wake()
        elif isinstance(message, Exception):
            _log.debug("the tool server `%s` wrote what is no message", self.name)

    async def follow_changes(
        self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        """Hear of changes of the listing where the protocol wants that to be asked for."""
        capability = self.client.server_capabilities.tools
        if not (self.client.session.discover_result and capability and capability.list_changed):
            task_status.started()
            return
        heard = False
        try:
            async with self.client.listen(tools_list_changed=True) as changes:
                task_status.started()
                heard = True
                async for _ in changes:
                    self.listing_changed = True
                    self.wake()
        except (MCPError, RuntimeError) as exc:
            _log.info("the tool server `%s` reports no changes any more: %s", self.name, exc)
            if not heard:
                task_status.started()

    async def list_tools(self) -> list[types.Tool]:
        """Return the server's tools.

        Raises:
            ToolServerError: There is no end of them.
        """
        tools: list[types.Tool] = []
        cursor: str | None = None
        for _ in range(_MAX_PAGES):
            page = await self.client.list_tools(cursor=cursor)
            tools += page.tools
            if (cursor := page.next_cursor) is None or len(tools) > _MAX_TOOLS:
                break
        if cursor is not None or len(tools) > _MAX_TOOLS:
            raise self.failure(f"lists more than {_MAX_TOOLS} tools, or without an end")
        return tools

    async def call(
        self, tool: str, arguments: dict[str, JsonValue], ctx: ToolContext[Any]
    ) -> ToolResult:
        """Call a tool; a cancellation of the caller is told to the server.

        Raises:
            SessionExpired: The server did not take the call.
            ToolServerError: It refused it, answered what cannot be read, or broke off.
        """

        async def report(progress: float, total: float | None, message: str | None) -> None:
            share = f"{progress:g}" if total is None else f"{progress:g}/{total:g}"
            ctx.progress((message or share)[:_MAX_WORDS])

        self._in_flight += 1
        try:
            answer = await self.client.call_tool(tool, arguments, progress_callback=report)
        except MCPError as exc:
            raise self._refusal(tool, exc) from exc
        except ValidationError as exc:
            raise self.failure(f"answered `{tool}` with what is no result of a tool") from exc
        except RuntimeError as exc:  # what the package raises for answers that it cannot take
            raise self.failure(f"answered `{tool}` with what cannot be taken: {exc}") from exc
        finally:
            self._in_flight -= 1
        self.answered = True
        return to_result(answer)

    def _refusal(self, tool: str, error: MCPError) -> Exception:
        if self._is_broken_off(error):
            # Over HTTP it may be this one answer that broke off, and others go on.
            if self._in_flight == 1:
                self.end()
            return self.failure("broke off; the call may have had effects", retryable=True)
        if self._signals.expired:
            self.end()
            return SessionExpired()
        self.answered = True
        status = self._status(error)
        if status is not None:
            return self.failure(
                f"refused the call of `{tool}`: HTTP {status}",
                code=error.code,
                retryable=status >= 500 or status in _PASSING_STATUS,
            )
        return self.failure(f"refused the call of `{tool}`: {error}", code=error.code)

    def _is_broken_off(self, error: MCPError) -> bool:
        # The code alone does not tell: it is also the one of servers that have no better.
        return error.code == types.CONNECTION_CLOSED and (
            self.lost or error.message.startswith(_BROKEN_OFF)
        )

    def _status(self, error: MCPError) -> int | None:
        """Return the status behind an error that the package made of nothing else."""
        return self._signals.refused if error.message == _BARE_REFUSAL else None

    def failure(
        self, what: str, *, code: int | None = None, retryable: bool = False
    ) -> ToolServerError:
        """Return the error for something that the server did."""
        return ToolServerError(
            f"the tool server `{self.name}` {what[:_MAX_WORDS]}",
            server=self.name,
            code=code,
            retryable=retryable,
            stderr=self._stderr.text if self._stderr is not None else "",
        )

    def failed_with(self, error: BaseException) -> TinyAgentsError:
        """Return the error for a connection that ended, or never came to be, with this one."""
        error = _first(error)
        if isinstance(error, TinyAgentsError):
            return error
        if isinstance(error, ValidationError):
            return self.failure("answered what is not of the protocol")
        if not isinstance(error, MCPError):
            why = f"{type(error).__name__}: {error_text(error)}"
            return self.failure(f"cannot be reached ({why})", retryable=True)
        if self._is_broken_off(error):
            return self.failure("left before the connection was made", retryable=True)
        if (status := self._status(error)) is not None:
            return self.failure(f"refused the connection: HTTP {status}", code=error.code)
        return self.failure(f"refused the connection: {error}", code=error.code)


def _first(error: BaseException) -> BaseException:
    if not isinstance(error, BaseExceptionGroup):
        return error
    return _first(cast("BaseExceptionGroup[BaseException]", error).exceptions[0])


@asynccontextmanager
async def _watched(
    transport: AbstractAsyncContextManager[TransportStreams], ended: Callable[[], None]
) -> AsyncGenerator[TransportStreams]:
    """Call ``ended`` when a server's messages end, which the package tells nobody.

    The output schemas of its tools are left out: the package would check each result by them, on the event
    loop, and both are the server's own. A short schema can make that take for ever.
    """
    async with transport as (incoming, outgoing):
        yield _Watched(incoming, ended), outgoing


class _Watched:
    def __init__(self, stream: ReadStream[Incoming], ended: Callable[[], None]) -> None:
        self._stream = stream
        self._ended = ended

    async def receive(self) -> Incoming:
        try:
            return _without_output_schemas(await self._stream.receive())
        except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
            self._ended()
            raise

    async def aclose(self) -> None:
        await self._stream.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Incoming:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        await self.aclose()


def _without_output_schemas(item: Incoming) -> Incoming:
    if isinstance(item, SessionMessage) and isinstance(item.message, types.JSONRPCResponse):
        tools: object = item.message.result.get("tools")
        for tool in cast("list[object]", tools) if isinstance(tools, list) else ():
            if isinstance(tool, dict):
                cast("dict[str, object]", tool).pop("outputSchema", None)
    return item


@cache
def _version() -> str:
    try:
        return metadata.version("tinyagents")
    except metadata.PackageNotFoundError:
        return "0"
