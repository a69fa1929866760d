"""The same work done by an agent of tinyagents, used the way an application does."""

from collections.abc import AsyncGenerator
from typing import Any

from benchmarks.work import Run, Work
from tinyagents import AgentHarness, AssistantMessage, RunContext, RunLimits, ToolCallBlock, tool
from tinyagents.harness.message import Block, TextBlock
from tinyagents.harness.middleware import ContextWindowMiddleware
from tinyagents.harness.model import (
    MessageDelta,
    ModelProfile,
    ModelRequest,
    ModelResponse,
    ModelStreamItem,
    StreamCompleted,
)
from tinyagents.harness.stream import Final, TextDelta
from tinyagents.harness.summarization import Summarize, TrimOldest

MORE_THAN_ENOUGH = 1_000_000
STEPS = (Summarize(keep_last=8), TrimOldest())
"""What is done when the window is full: no model is asked."""
LIMITS = RunLimits(max_model_calls=MORE_THAN_ENOUGH, max_tool_calls=MORE_THAN_ENOUGH)


class WorkModel:
    """A chat model that says what the work's script says; it ignores the tools it is given."""

    profile = ModelProfile(provider="benchmark", model="work", tool_calling=True, streaming=True)

    def __init__(self, work: Work) -> None:
        self._work = work

    async def invoke(
        self, request: ModelRequest, *, ctx: RunContext[Any] | None = None
    ) -> ModelResponse:
        """Answer in one piece."""
        numbers = await self._next_numbers(request)
        if not numbers:
            return _response([TextBlock(text="".join(self._work.pieces))])
        turn = len(request.messages)
        return _response(
            [
                ToolCallBlock(id=f"call-{turn}-{n}", name="add_one", arguments={"number": n})
                for n in numbers
            ]
        )

    async def stream(
        self, request: ModelRequest, *, ctx: RunContext[Any] | None = None
    ) -> AsyncGenerator[ModelStreamItem]:
        """Answer piece by piece; the work that is streamed calls no tools."""
        await self._next_numbers(request)
        pieces = self._work.pieces
        for piece in pieces:
            yield MessageDelta(text=piece)
        yield StreamCompleted(_response([TextBlock(text="".join(pieces))]))

    async def _next_numbers(self, request: ModelRequest) -> list[int]:
        last = request.messages[-1]
        return await self._work.ask(last.text if last.role == "tool" else None)


def _response(content: list[Block]) -> ModelResponse:
    return ModelResponse(message=AssistantMessage(content=content))


def build(work: Work) -> Run:
    """An agent for ``work``, which streams if the work has more than one delta."""

    @tool
    async def add_one(number: int) -> int | str:
        """Add one to a number."""
        return work.add_one(number)

    middleware = (
        () if work.window is None else (ContextWindowMiddleware(STEPS, window=work.window),)
    )
    agent = AgentHarness(
        model=WorkModel(work), tools=[add_one], middleware=middleware, limits=LIMITS
    )

    async def invoke() -> tuple[str, int]:
        run = await agent.invoke(None, "count")
        return run.text, 0

    async def stream() -> tuple[str, int]:
        seen, text = 0, ""
        async for chunk in agent.stream(None, "count"):
            if isinstance(chunk, TextDelta):
                seen += 1
            elif isinstance(chunk, Final):
                text = chunk.run.text
        return text, seen

    return stream if work.deltas > 1 else invoke
