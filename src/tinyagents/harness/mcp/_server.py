"""Tools served to others: over the standard streams, or as a web application."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio

from ..concurrency import CLEAN_UP_SECONDS, asyncio_loop
from ..errors import ConfigurationError
from ..providers import MockModel
from ..runtime import AgentHarness
from ..tool import ToolLike
from ._served import CallContext, ContextFactory, ServedCall
from ._transports import require_mcp

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

AsgiApp: TypeAlias = Callable[[Any, Any, Any], Awaitable[None]]
"""An application for web servers: gets a scope, and the functions to receive and to send."""


class McpServer:
    """Serves the tools of a harness, or tools as they are, to the clients of MCP.

    Each call is a run of the harness that makes this one call: the arguments are checked, the
    middleware stands around the tool, timeouts and limits hold, and its events are seen by the
    listeners. No model is asked. Failures are results that say so; what a tool reports is sent as
    progress, and a call that the client cancels is cancelled.

    A tool that needs an approval is not served, as there is nobody to ask; nor can one that asks
    a question go on.

    Args:
        source: A harness, or tools.
        name: What clients see as the server's name.
        version: What they see as its version.
        instructions: What the tools are for, for the client's model.
        data: The dependencies that tools get as ``ctx.data``.
        context_factory: Gives data, state and configuration for each call in place of ``data``.
            A :class:`~tinyagents.ToolError` of it is what the client is told.
        allow_approval_required: Serve the tools that need an approval too, without one.
        max_concurrency: Calls that run at once; further ones wait.

    Raises:
        ConfigurationError: An option cannot work.
    """

    def __init__(
        self,
        source: AgentHarness | Iterable[ToolLike],
        *,
        name: str = "tinyagents",
        version: str = "0",
        instructions: str | None = None,
        data: Any = None,
        context_factory: ContextFactory | None = None,
        allow_approval_required: bool = False,
        max_concurrency: int = 32,
    ) -> None:
        if data is not None and context_factory is not None:
            raise ConfigurationError("give either `data` or a `context_factory`")
        if max_concurrency < 1:
            raise ConfigurationError(f"`max_concurrency` is at least 1, got {max_concurrency}")
        if not isinstance(source, AgentHarness):
            source = AgentHarness(MockModel(), tools=source, name=name)
        self.name: str = name
        self._harness = source
        self._version = version
        self._instructions = instructions
        self._context_factory: ContextFactory = context_factory or _always(CallContext(data=data))
        self._allow_approval_required = allow_approval_required
        self._max_concurrency = max_concurrency

    async def serve_stdio(self) -> None:
        """Serve one client over this process's standard streams, until it closes them.

        What is printed meanwhile goes to the standard error.

        Raises:
            MissingDependencyError: The extra ``mcp`` is not installed.
        """
        server = self.build()
        from mcp.server.stdio import stdio_server

        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    async def serve_http(
        self, *, host: str = "127.0.0.1", port: int = 8000, path: str = "/mcp"
    ) -> None:
        """Serve any number of clients over streamable HTTP, until it is cancelled. Only on asyncio.

        There is no authentication: for other hosts than this one, put :meth:`asgi_app` behind your
        own.

        Raises:
            MissingDependencyError: The extra ``mcp`` is not installed.
            ConfigurationError: The event loop is not asyncio's, or nothing can listen there.
        """
        app = self.asgi_app(path=path)
        import uvicorn

        if asyncio_loop() is None:
            raise ConfigurationError("`serve_http` needs asyncio, as its web server uvicorn does")
        config = uvicorn.Config(app, host=host, port=port, log_level="warning", lifespan="on")
        server = uvicorn.Server(config)
        ended = anyio.Event()

        async def run() -> None:
            # Cancelled itself, it would leave its sockets open.
            with anyio.CancelScope(shield=True):
                try:
                    await server.serve()
                except SystemExit:
                    pass  # how it says that the port is taken, after it has logged it
                finally:
                    ended.set()

        async with anyio.create_task_group() as tg:
            tg.start_soon(run)
            try:
                await ended.wait()
            finally:
                server.should_exit = True
                with anyio.move_on_after(CLEAN_UP_SECONDS, shield=True):
                    await ended.wait()
                server.force_exit = True
        if not server.started:
            raise ConfigurationError(f"nothing can listen at {host}:{port}: the log says why")

    def asgi_app(
        self, *, path: str = "/mcp", allowed_hosts: Sequence[str] | None = None
    ) -> AsgiApp:
        """Return a web application that serves the tools at ``path``.

        It must see the web server's lifespan events: an application that it is mounted in passes
        them on.

        Args:
            path: Where the endpoint is.
            allowed_hosts: The ``Host`` headers that are served, such as ``tools.example.com``, with
                ``:*`` at the end for any port. By default those of this machine, so that no web
                page can reach a local server by a name of its own.

        Raises:
            MissingDependencyError: The extra ``mcp`` is not installed.
        """
        server = self.build()
        from mcp.server.transport_security import TransportSecuritySettings

        hosts = allowed_hosts or ("127.0.0.1:*", "localhost:*", "[::1]:*")
        origins = [f"{scheme}://{host}" for host in hosts for scheme in ("http", "https")]
        app: AsgiApp = server.streamable_http_app(
            streamable_http_path=path,
            transport_security=TransportSecuritySettings(
                allowed_hosts=list(hosts), allowed_origins=origins
            ),
        )
        return app

    def build(self) -> "Server[Any]":
        """Return a server of the official package, for what this class has no method for.

        Tests connect to one in their own process: ``mcp.Client(server.build())``.

        Raises:
            MissingDependencyError: The extra ``mcp`` is not installed.
        """
        require_mcp()
        from ._serving import build_server

        return build_server(
            self._harness,
            name=self.name,
            version=self._version,
            instructions=self._instructions,
            context_factory=self._context_factory,
            allow_approval_required=self._allow_approval_required,
            max_concurrency=self._max_concurrency,
        )


def _always(context: CallContext) -> ContextFactory:
    def make(_call: ServedCall) -> CallContext:
        return context

    return make
