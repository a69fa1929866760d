"""A run that its consumer follows piece by piece, and owns."""

from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self

from typing_extensions import TypeVar

from ..agent_loop import AgentRun, LoopRun
from ..cancel import CancellationToken
from ..concurrency import Channel, ChannelClosed
from ._production import Production

if TYPE_CHECKING:
    from ..stream import StreamChunk, StreamMode

StateT = TypeVar("StateT", default=Any)
OutputT = TypeVar("OutputT", default=Any)

_LEFT = "the consumer left the stream"


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
        self._production: Production[StateT, OutputT] = Production(run, token, channel, modes)
        self._channel = channel
        self._get = channel.get
        self._caught_up = channel.caught_up
        self._waiting = channel.waiting
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
        task = self._production.task or self._production.start()
        try:
            return await self._get()
        except ChannelClosed:
            await task.wait_quietly()
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
        task = self._production.task
        if task is None or not task.done:
            self._production.cancel(_LEFT)
            self._channel.drop()
        if task is not None:
            await task.wait_shielded()

    async def result(self) -> AgentRun[StateT, OutputT]:
        """Read what is left of the stream and return the run.

        Raises:
            TinyAgentsError: The run failed, or was cancelled by closing the stream.
        """
        if not self._closed:
            async for _ in self:
                pass
        return self._production.outcome()

    @property
    def partial(self) -> AgentRun[StateT, OutputT] | None:
        """The run after the stream was left early or has failed; ``None`` while it goes on."""
        if self._production.result is not None:
            return self._production.result
        return getattr(self._production.error, "run", None)

    def __del__(self) -> None:
        task = self._production.task
        if task is not None and not task.done:
            self._production.cancel("the stream was dropped")
