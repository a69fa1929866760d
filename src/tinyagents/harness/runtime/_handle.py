"""A run that nobody's loop owns: it goes on whoever looks."""

from collections.abc import AsyncIterator, Generator, Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import anyio

from ..agent_loop import AgentRun, LoopRun, drive
from ..cancel import CancellationToken
from ..concurrency import BackgroundTask
from ..errors import RunCancelledError
from ._open import stream_modes

if TYPE_CHECKING:
    from ..events import HarnessRunStatus
    from ..stream import StreamChunk, StreamMode

StateT = TypeVar("StateT")
OutputT = TypeVar("OutputT")

_ALL_MODES: "frozenset[StreamMode]" = frozenset(("messages", "tools", "updates", "events", "final"))


class ChunkLog:
    """All chunks of a run in order, for any number of readers that come and go."""

    __slots__ = ("_chunks", "_closed", "_news")

    def __init__(self) -> None:
        self._chunks: list[StreamChunk[Any, Any]] = []
        self._closed = False
        self._news: anyio.Event | None = None

    async def room(self) -> None:
        """Return at once."""

    def put(self, chunk: "StreamChunk[Any, Any]", /) -> bool:
        """Add a chunk and wake the readers; none of them can hold the run up."""
        self._chunks.append(chunk)
        self._wake()
        return False

    def close(self) -> None:
        """Say that no chunk follows."""
        self._closed = True
        self._wake()

    async def read(self, from_offset: int) -> "AsyncIterator[StreamChunk[Any, Any]]":
        """Yield the chunks from an offset on, those to come too, until the log is closed."""
        position = from_offset
        while True:
            while position < len(self._chunks):
                yield self._chunks[position]
                position += 1
            if self._closed:
                return
            if self._news is None:
                self._news = anyio.Event()
            await self._news.wait()

    def _wake(self) -> None:
        news, self._news = self._news, None
        if news is not None:
            news.set()


class RunHandle(Generic[StateT, OutputT]):
    """A run in the background: follow it, cancel it, or await it for its result.

    It goes on when the handle is dropped. The chunks are kept for as long as the handle is.
    """

    def __init__(
        self,
        run: LoopRun,
        log: ChunkLog,
        token: CancellationToken,
    ) -> None:
        self._run = run
        self._log = log
        self._feed = run.follow(log, _ALL_MODES)
        self._token = token
        self._result: AgentRun[StateT, OutputT] | None = None
        self._error: BaseException | None = None
        self._task = BackgroundTask(self._produce)

    def __repr__(self) -> str:
        return f"RunHandle({self.run_id!r}, {self._run.snapshot.status})"

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self._run.ctx.run_id

    @property
    def done(self) -> bool:
        """Whether the run has ended."""
        return self._task.done

    async def subscribe(
        self,
        *,
        modes: "Iterable[StreamMode] | StreamMode" = ("messages", "tools", "final"),
        from_offset: int = 0,
    ) -> "AsyncIterator[StreamChunk[StateT, OutputT]]":
        """Yield the run's chunks of these modes, from an offset on, until the run has ended.

        Any number may read at once, each at its own speed; leaving disturbs nothing. The iteration
        ends quietly when the run fails: the error is for who awaits the handle.
        """
        wanted = stream_modes(modes)
        async for chunk in self._log.read(from_offset):
            if chunk.mode in wanted:
                yield chunk

    def cancel(self, reason: str | None = None) -> None:
        """Ask the run to stop; from any thread. Awaiting the handle tells when it has."""
        self._token.cancel(reason)

    def status(self) -> "HarnessRunStatus":
        """Return what the run is doing; worked out when it is asked for."""
        return self._run.status()

    async def wait(self) -> AgentRun[StateT, OutputT]:
        """Wait for the end of the run and return it; cancelling the wait leaves the run alone.

        Raises:
            TinyAgentsError: The run failed or was cancelled.
        """
        await self._task.wait_quietly()
        if self._error is not None:
            raise self._error
        if self._result is None:
            raise RunCancelledError("the event loop was closed before the run began")
        return self._result

    def __await__(self) -> Generator[Any, Any, AgentRun[StateT, OutputT]]:
        return self.wait().__await__()

    async def _produce(self) -> None:
        try:
            self._result = result = await drive(self._run)
            self._feed.final(result)
        except BaseException as error:
            self._error = error
            if not isinstance(error, Exception):
                raise
        finally:
            self._log.close()
