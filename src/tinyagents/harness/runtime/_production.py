"""Driving a run in the background, for the stream or the handle in front of it."""

from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from ..agent_loop import AgentRun, LoopRun, drive
from ..cancel import CancellationToken
from ..concurrency import BackgroundTask
from ..errors import RunCancelledError

if TYPE_CHECKING:
    from ..stream import StreamChunk, StreamMode

StateT = TypeVar("StateT")
OutputT = TypeVar("OutputT")


class ChunkOutlet(Protocol):
    """Where a run hands its chunks, and the end of them."""

    def put(self, chunk: "StreamChunk[Any, Any]", /) -> bool:
        """Hand on a chunk, at once, and tell whether whoever reads is far behind."""
        ...

    async def room(self) -> None:
        """Wait until whoever reads has caught up."""
        ...

    def close(self, error: BaseException | None = None) -> None:
        """Say that no chunk follows, and what ended the run if something did."""
        ...


class Production(Generic[StateT, OutputT]):
    """A run that is driven in a task of its own, and what came of it.

    It knows where the chunks go and not who reads them: streams and handles may be dropped.
    """

    __slots__ = ("_feed", "_outlet", "_token", "error", "modes", "result", "run", "task")

    def __init__(
        self,
        run: LoopRun,
        token: CancellationToken,
        outlet: ChunkOutlet,
        modes: "frozenset[StreamMode]",
    ) -> None:
        self.run: LoopRun = run
        self.modes: frozenset[StreamMode] = modes
        self.task: BackgroundTask | None = None
        """The task; ``None`` before :meth:`start`."""
        self.result: AgentRun[StateT, OutputT] | None = None
        self.error: BaseException | None = None
        self._token = token
        self._outlet = outlet
        self._feed = run.follow(outlet, modes)

    def start(self) -> BackgroundTask:
        """Begin the run, in the event loop of the caller."""
        self.task = BackgroundTask(self._produce)
        return self.task

    def cancel(self, reason: str | None) -> None:
        """Ask the run to stop; from any thread."""
        self._token.cancel(reason)

    def outcome(self) -> AgentRun[StateT, OutputT]:
        """Return the run once its task has ended, or never will begin.

        Raises:
            Exception: What ended the run.
            RunCancelledError: It was cancelled, or had no chance to begin.
        """
        if self.error is not None:
            raise self.error
        if self.result is None:
            reason = self._token.reason
            because = reason or "its event loop was closed"
            raise RunCancelledError(
                f"the run was cancelled before it began: {because}", reason=reason
            )
        return self.result

    async def _produce(self) -> None:
        try:
            self.result = await drive(self.run)
        except BaseException as error:
            self.error = error
            self._outlet.close(error)
            if not isinstance(error, Exception):
                raise
        else:
            if "final" in self.modes:
                self._feed.final(self.result)
            self._outlet.close()
