"""The task that owns the connection to a server: it connects, hears of the end, connects again."""

import logging
import math
from collections.abc import Callable

import anyio
import mcp_types as types

from ..concurrency import CLEAN_UP_SECONDS, BackgroundTask
from ..errors import TinyAgentsError, ToolServerError
from ..retry import RetryPolicy
from ..text import error_text
from ._session import Session

_log = logging.getLogger("tinyagents.mcp")


class Owner:
    """Keeps a connection, in a task of its own, which alone enters and leaves it.

    It is always in one of these states: connecting, up (there is a session), down (there is a
    failure; the next call begins anew), or closed.

    Args:
        connect: Makes a session that is not connected.
        take: Gets the server's listing, first when a session is up.
        name: What messages call the server.
        connect_timeout: Seconds until a session is up.
        reconnect: The waits, and how many tries make it down.
    """

    def __init__(
        self,
        connect: Callable[[], Session],
        take: Callable[[list[types.Tool]], None],
        *,
        name: str,
        connect_timeout: float,
        reconnect: RetryPolicy,
    ) -> None:
        self._connect = connect
        self._take = take
        self._name = name
        self._connect_timeout = connect_timeout
        self._reconnect = reconnect
        self._session: Session | None = None
        self._failure: TinyAgentsError | None = None
        self._settled = anyio.Event()
        """Set unless it is connecting."""
        self._wanted = anyio.Event()
        self._closing = anyio.Event()
        self._scope = anyio.CancelScope()
        """What the task is doing at the moment, apart from closing a session."""
        self._opened = False
        self._task = BackgroundTask(self._run)

    async def opened(self) -> None:
        """Wait for the first session.

        Raises:
            TinyAgentsError: It came to nothing.
        """
        await self._settled.wait()
        failure = self._failure
        if failure is not None:
            if isinstance(failure, ToolServerError) and failure.stderr:
                # For whoever reads the traceback; no model gets to see it.
                failure.add_note(f"it wrote last: {failure.stderr}")
            raise failure
        if self._closing.is_set():
            raise self._closed()

    async def session(self) -> Session:
        """Return the session that is up, after waiting for one where there is none.

        Raises:
            ToolServerError: There will be none.
        """
        if self._failure is not None:
            self._failure = None
            self._unsettle()
            self._wanted.set()
        while not self._closing.is_set():
            session = self._session
            if session is not None and not session.lost:
                return session
            if session is not None:  # its end is still to be seen by the task
                self._unsettle()
            await self._settled.wait()
            if self._failure is not None:
                # One of its own for each call: a traceback grows where an error is raised.
                raise ToolServerError(str(self._failure), server=self._name, retryable=True)
        raise self._closed()

    async def close(self) -> None:
        """End the connection; cancelled, the end goes on by itself."""
        self._closing.set()
        self._wanted.set()
        self._scope.cancel()
        await self._task.wait_shielded()

    def _closed(self) -> ToolServerError:
        return ToolServerError(f"the tool server `{self._name}` is closed", server=self._name)

    def _unsettle(self) -> None:
        self._session = None
        if self._settled.is_set():
            self._settled = anyio.Event()

    async def _run(self) -> None:
        tries = 0
        try:
            while not self._closing.is_set():
                session = self._connect()
                failure = await self._live(session)
                if self._closing.is_set():
                    return
                if not self._opened:
                    self._failure = failure
                    return
                self._unsettle()
                tries = 1 if session.answered else tries + 1
                await self._wait(tries, failure)
                if tries > self._reconnect.max_attempts:
                    tries = 0
        finally:
            self._session = None
            self._closing.set()
            self._settled.set()

    async def _live(self, session: Session) -> TinyAgentsError:
        """Connect, stay until the end, and return why it ended."""
        try:
            with anyio.CancelScope() as scope:
                self._scope = scope
                scope.deadline = anyio.current_time() + self._connect_timeout
                async with session.client:
                    await self._attend(session, scope)
                    scope.deadline = anyio.current_time() + CLEAN_UP_SECONDS
        except Exception as exc:  # noqa: BLE001 - whatever a transport raises, it is the end
            return session.failed_with(exc)
        if session.lost or self._closing.is_set():
            return session.failure("broke off", retryable=True)
        return session.failure(f"did not answer within {self._connect_timeout:g} s", retryable=True)

    async def _attend(self, session: Session, scope: anyio.CancelScope) -> None:
        """Stay with a session until it is lost or to be closed, and take its listings.

        Args:
            session: It is connected.
            scope: Its deadline holds until the session is up.
        """
        async with anyio.create_task_group() as tg:
            # Before the listing, so that no change is missed between the two.
            await tg.start(session.follow_changes)
            self._take(await session.list_tools())
            scope.deadline = math.inf
            self._session, self._opened = session, True
            self._scope = tg.cancel_scope
            self._settled.set()
            while not session.lost:
                await session.news()
                if session.listing_changed:
                    await self._list_again(session)
            tg.cancel_scope.cancel()

    async def _list_again(self, session: Session) -> None:
        session.listing_changed = False
        try:
            with anyio.fail_after(self._connect_timeout):
                self._take(await session.list_tools())
        except Exception as exc:  # noqa: BLE001 - the tools stay as they were
            _log.warning(
                "the tool server `%s` has changed its tools, which cannot be taken: %s",
                session.name,
                error_text(exc) or type(exc).__name__,
            )

    async def _wait(self, tries: int, failure: TinyAgentsError) -> None:
        """Wait before the next try; after the last one until somebody wants it."""
        if tries <= self._reconnect.max_attempts:
            with anyio.move_on_after(self._reconnect.delay_after(tries)):
                await self._closing.wait()
            return
        _log.warning("%s; it is tried again at the next call", failure)
        self._wanted = anyio.Event()
        self._failure = failure
        self._settled.set()
        await self._wanted.wait()
