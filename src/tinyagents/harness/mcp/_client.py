"""A tool server as its tools: connected, kept connected, and closed, by one task of its own."""

from collections.abc import Callable, Collection, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

from anyio.lowlevel import current_token
from pydantic import JsonValue

from ..errors import InvalidRequestError, ToolServerError
from ..retry import RetryPolicy
from ..tool import Tool, ToolContext, ToolPolicy, ToolResult
from ._choice import ToolChoice
from ._transports import McpTransport, require_mcp

if TYPE_CHECKING:
    import mcp_types as types

    from ._owner import Owner
    from ._session import Session

_MAX_MESSAGE_BYTES = 16 * 1024 * 1024
_MAX_RESULT_CHARS = 200_000


class McpClient:
    """The tools of one MCP server, for any number of harnesses and runs of one event loop.

    As an async context manager it is connected while it is entered; ``tools`` are then ordinary
    tools. One task owns the connection, so that it may be entered in one task and left in another.
    A connection that is lost is made anew, calls wait for that, and the tools stay the same
    objects. A call that is cancelled, or out of time, is cancelled at the server as well.

    Args:
        transport: A program to start (:class:`McpStdio`) or an address (:class:`McpHttp`).
        name: How errors and logs call the server; the program or the host by default.
        prefix: Put before the server's names, so that several servers have no name in common.
        include: The tools to take, by the server's names, with ``*`` and ``?`` for any characters;
            ``None`` takes all, an empty collection none.
        exclude: Tools to leave out, in the same way.
        policies: What a tool does and needs, by the server's name for it, in place of what follows
            from its annotations and from the options below.
        trust_annotations: Believe the server's hints that a tool only reads, or may be repeated.
            Otherwise only the hint that it destroys things counts.
        timeout: Seconds for a call, ``None`` for no limit, or what the run says.
        max_result_chars: How much text of a result the model gets.
        max_message_bytes: A longer message of the server is not read, and its call fails.
        connect_timeout: Seconds for starting the server, the handshake and the listing together.
        reconnect: How often a lost connection is tried again before it is given up until the
            next call, and the waits between.
        on_tools_changed: Called with the new tools when the server's listing has changed. Harnesses
            keep theirs; the next run can be given others.

    Raises:
        ConfigurationError: An option cannot work.
    """

    def __init__(
        self,
        transport: McpTransport,
        *,
        name: str | None = None,
        prefix: str = "",
        include: Collection[str] | None = None,
        exclude: Collection[str] = (),
        policies: Mapping[str, ToolPolicy] | None = None,
        trust_annotations: bool = False,
        timeout: float | None | Literal["inherit"] = "inherit",
        max_result_chars: int | None = _MAX_RESULT_CHARS,
        max_message_bytes: int = _MAX_MESSAGE_BYTES,
        connect_timeout: float = 30.0,
        reconnect: RetryPolicy | None = None,
        on_tools_changed: Callable[[tuple[Tool, ...]], None] | None = None,
    ) -> None:
        self.name: str = name or transport.label
        self._transport = transport
        self._choice = ToolChoice(
            prefix=prefix,
            include=include,
            exclude=exclude,
            policies=policies or {},
            trust_annotations=trust_annotations,
            timeout=timeout,
            max_result_chars=max_result_chars,
        )
        self._max_message_bytes = max_message_bytes
        self._connect_timeout = connect_timeout
        self._reconnect = reconnect or RetryPolicy()
        self._on_tools_changed = on_tools_changed
        self._tools: tuple[Tool, ...] = ()
        self._owner: Owner | None = None
        self._loop: object = None
        self._checked = False

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The server's tools in the order of its listing, as it was last; none before entering."""
        return self._tools

    async def __aenter__(self) -> Self:
        """Connect and list the tools.

        Raises:
            MissingDependencyError: The extra ``mcp`` is not installed.
            ToolServerError: The server cannot be started or reached, or does not answer in time.
            ConfigurationError: ``include`` or ``policies`` name a tool that there is not.
            DuplicateNameError: Two of its tools have one name.
        """
        require_mcp()
        from ._owner import Owner

        if self._owner is not None:
            raise InvalidRequestError(f"the tool server `{self.name}` is connected already")
        self._loop, self._checked = current_token(), False
        self._owner = Owner(
            self._new_session,
            self._take,
            name=self.name,
            connect_timeout=self._connect_timeout,
            reconnect=self._reconnect,
        )
        try:
            await self._owner.opened()
        except BaseException:
            await self.aclose()
            raise
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connection, and wait until the server is gone; from any task of the loop.

        Calls that are under way fail. Where the wait is cancelled the closing goes on by itself.
        """
        owner = self._owner
        if owner is None:
            return
        try:
            await owner.close()
        finally:
            self._owner = None

    def __repr__(self) -> str:
        state = "not connected" if self._owner is None else f"{len(self._tools)} tools"
        return f"<{type(self).__name__} {self.name}: {state}>"

    def _new_session(self) -> "Session":
        from ._session import Session

        return Session(self._transport, self.name, max_message_bytes=self._max_message_bytes)

    def _take(self, listed: "Sequence[types.Tool]") -> None:
        """Make tools of a listing, and tell of it where it is another one."""
        from ._listing import make_tools

        if not self._checked:
            self._choice.check([tool.name for tool in listed], self.name)
            self._checked = True
        tools = make_tools(listed, self._choice, self._call, server=self.name)
        if [tool.schema for tool in tools] == [tool.schema for tool in self._tools]:
            return
        known, self._tools = self._tools, tools
        if known and self._on_tools_changed is not None:
            self._on_tools_changed(tools)

    async def _call(
        self, tool: str, arguments: dict[str, JsonValue], ctx: ToolContext[Any]
    ) -> ToolResult:
        """Call a tool of the server, by the server's name for it."""
        from ._session import SessionExpired

        try:
            return await (await self._session()).call(tool, arguments, ctx)
        except SessionExpired:
            # The server was started anew, and has refused the call without a look at it.
            return await (await self._session()).call(tool, arguments, ctx)

    async def _session(self) -> "Session":
        owner = self._owner
        if owner is None:
            raise self._unusable("is not connected: use its tools inside `async with`")
        if current_token() != self._loop:
            raise self._unusable("is connected in another event loop: make a client for each")
        return await owner.session()

    def _unusable(self, why: str) -> ToolServerError:
        return ToolServerError(f"the tool server `{self.name}` {why}", server=self.name)
