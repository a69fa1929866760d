"""A run that nobody's loop owns: it goes on whoever looks."""

from collections.abc import AsyncGenerator, AsyncIterator, Collection, Generator, Iterable
from typing import TYPE_CHECKING, Any, Generic

import anyio
from typing_extensions import TypeVar

from ..agent_loop import AgentRun
from ..errors import InvalidRequestError
from ._open import stream_modes
from ._production import Production

if TYPE_CHECKING:
    from ..events import HarnessRunStatus
    from ..stream import StreamChunk, StreamMode

StateT = TypeVar("StateT", default=Any)
OutputT = TypeVar("OutputT", default=Any)


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

    def close(self, error: BaseException | None = None) -> None:
        """Say that no chunk follows; an error is for who awaits the run."""
        self._closed = True
        self._wake()

    async def read(
        self, modes: "Collection[StreamMode]", from_offset: int
    ) -> "AsyncGenerator[StreamChunk[Any, Any]]":
        """Yield the chunks from an offset on, those to come too, until the log is closed."""
        position = from_offset
        while True:
            while position < len(self._chunks):
                chunk = self._chunks[position]
                position += 1
                if chunk.mode in modes:
                    yield chunk
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

    It goes on when the handle is dropped. The chunks of the modes that :meth:`AgentHarness.start`
    was given are kept, all of them, for as long as the handle or the run is.
    """

    def __init__(self, production: Production[StateT, OutputT], log: ChunkLog) -> None:
        self._production = production
        self._log = log

    def __repr__(self) -> str:
        return f"RunHandle({self.run_id!r}, {self._production.run.snapshot.status})"

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self._production.run.ctx.run_id

    @property
    def done(self) -> bool:
        """Whether the run has ended."""
        task = self._production.task
        return task is not None and task.done

    def subscribe(
        self,
        *,
        modes: "Iterable[StreamMode] | StreamMode | None" = None,
        from_offset: int = 0,
    ) -> "AsyncIterator[StreamChunk[StateT, OutputT]]":
        """Yield the run's chunks from an offset on, until the run has ended.

        Any number may read at once, each at its own speed; leaving disturbs nothing. The iteration
        ends quietly when the run fails: the error is for who awaits the handle.

        Args:
            modes: Some of the modes that the run was started with; ``None`` for all of them.
            from_offset: The ``offset`` of the first chunk.

        Raises:
            InvalidRequestError: The run keeps no chunks of such a mode, or there is none.
        """
        kept = self._production.modes
        wanted = kept if modes is None else stream_modes(modes)
        if missing := wanted - kept:
            names = ", ".join(f"`{mode}`" for mode in sorted(missing))
            raise InvalidRequestError(
                f"the run keeps no chunks of {names}: name the mode in `start(…, modes=…)`"
            )
        return self._log.read(wanted, from_offset)

    def cancel(self, reason: str | None = None) -> None:
        """Ask the run to stop; from any thread. Awaiting the handle tells when it has."""
        self._production.cancel(reason)

    def status(self) -> "HarnessRunStatus":
        """Return what the run is doing; worked out when it is asked for."""
        return self._production.run.status()

    async def wait(self) -> AgentRun[StateT, OutputT]:
        """Wait for the end of the run and return it; cancelling the wait leaves the run alone.

        Raises:
            TinyAgentsError: The run failed or was cancelled.
        """
        if self._production.task is not None:
            await self._production.task.wait_quietly()
        return self._production.outcome()

    def __await__(self) -> Generator[Any, Any, AgentRun[StateT, OutputT]]:
        return self.wait().__await__()
