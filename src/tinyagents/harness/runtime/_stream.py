"""A run that its consumer follows piece by piece, and owns."""

from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from ..agent_loop import AgentRun, LoopRun, drive
from ..cancel import CancellationToken
from ..concurrency import BackgroundTask, Channel, ChannelClosed

if TYPE_CHECKING:
    from ..stream import StreamChunk, StreamMode

StateT = TypeVar("StateT")
OutputT = TypeVar("OutputT")

_LEFT = "the consumer left the stream"


class _Production(Generic[StateT, OutputT]):
    """The producing side: it knows the channel and not the stream, which may be dropped."""

    __slots__ = ("channel", "error", "feed", "result", "run")

    def __init__(
        self,
        run: LoopRun,
        channel: "Channel[StreamChunk[Any, Any]]",
        modes: "frozenset[StreamMode]",
    ) -> None:
        feed = run.follow(channel, modes)
        self.run = run
        self.channel = channel
        self.feed = feed if "final" in modes else None
        self.result: AgentRun[StateT, OutputT] | None = None
        self.error: BaseException | None = None

    async def produce(self) -> None:
        """Drive the run to its end; what it raises goes through the channel."""
        try:
            self.result = await drive(self.run)
        except BaseException as error:
            self.error = error
            self.channel.close(error)
            if not isinstance(error, Exception):
                raise
        else:
            if self.feed is not None:
                self.feed.final(self.result)
            self.channel.close()


class AgentStream(Generic[StateT, OutputT]):
    """The chunks of a run as they come: iterate over it, in ``async with`` where you may leave early.

    The consumer owns the run. Closing the stream, leaving its ``async with``, or a cancellation of
    the consumer cancels the run and waits for its clean-up; a stream that is merely dropped cancels
    its run as well. A consumer that is slow slows the run down.

    An error of the run is raised by the iteration, with what there is of the run as ``error.run``.
    """

    def __init__(
        self,
        run: LoopRun,
        token: CancellationToken,
        modes: "frozenset[StreamMode]",
    ) -> None:
        channel: Channel[StreamChunk[Any, Any]] = Channel()
        self._production: _Production[StateT, OutputT] = _Production(run, channel, modes)
        self._token = token
        self._get = channel.get
        self._caught_up = channel.caught_up
        self._waiting = channel.waiting
        self._task: BackgroundTask | None = None
        self._closed = False

    def __repr__(self) -> str:
        run = self._production.run
        return f"AgentStream({run.ctx.run_id!r}, {run.snapshot.status})"

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> "StreamChunk[StateT, OutputT]":
        # Most pieces are there already: the producer runs ahead.
        waiting = self._waiting
        if waiting:
            chunk = waiting.popleft()
            if not waiting:
                self._caught_up()
            return chunk
        if self._closed:
            raise StopAsyncIteration
        if self._task is None:
            self._task = BackgroundTask(self._production.produce)
        try:
            return await self._get()
        except ChannelClosed:
            await self._task.wait_quietly()
            raise StopAsyncIteration from None
        except BaseException:
            # The run's own error, or a cancellation of the consumer: either way it is over.
            await self.aclose()
            raise

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Cancel the run if it has not ended, and wait until it has cleaned up."""
        self._closed = True
        if self._task is None:
            return
        if not self._task.done:
            self._token.cancel(_LEFT)
            self._production.channel.drop()
        await self._task.wait_shielded()

    async def result(self) -> AgentRun[StateT, OutputT]:
        """Read what is left of the stream and return the run.

        Raises:
            TinyAgentsError: The run failed, or was cancelled by closing the stream.
        """
        production = self._production
        if not self._closed:
            async for _ in self:
                pass
        if self._task is None:
            # Closed before its first step: there is no run, and cancelling it only names the reason.
            self._token.cancel(_LEFT)
            self._token.raise_if_cancelled()
        if production.error is not None:
            raise production.error
        assert production.result is not None
        return production.result

    @property
    def partial(self) -> AgentRun[StateT, OutputT] | None:
        """The run after the stream was left early or has failed; ``None`` while it goes on."""
        if self._production.result is not None:
            return self._production.result
        return getattr(self._production.error, "run", None)

    def __del__(self) -> None:
        task = getattr(self, "_task", None)
        if task is not None and not task.done:
            self._token.cancel("the stream was dropped")
