"""Models with one fault each, run through the suite by ``test_conformance_faults.py``.

pytest does not collect this file by itself.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import anyio
import anyio.lowlevel
import pytest

from tinyagents.harness.errors import BadRequestError, ModelError, NetworkError
from tinyagents.harness.message import (
    AssistantMessage,
    Block,
    Message,
    TextBlock,
    ToolCallBlock,
    UserMessage,
)
from tinyagents.harness.model import (
    ChatModel,
    MessageDelta,
    ModelProfile,
    ModelRequest,
    ModelResponse,
    ModelStreamItem,
    StreamCompleted,
    StreamStarted,
    ToolCallDelta,
)
from tinyagents.testkit import ScriptedModel, Step
from tinyagents.testkit.conformance import (
    ChatModelConformance,
)

T = TypeVar("T", bound=type[Any])
CAUGHT_BY: dict[str, tuple[str, ...]] = {}
"""For each suite on a model with a fault, the tests that must fail: without the fault they pass."""


def caught_by(*tests: str) -> Callable[[T], T]:
    def register(suite: T) -> T:
        CAUGHT_BY[suite.__name__] = tests
        return suite

    return register


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Wrapped:
    """A model that passes everything on; a fault changes one of the steps."""

    def __init__(self, inner: ChatModel) -> None:
        self.inner = inner

    @property
    def profile(self) -> ModelProfile:
        return self.inner.profile

    async def __aenter__(self) -> ChatModel:
        return self

    async def __aexit__(self, *_: object) -> None:
        close = getattr(self.inner, "aclose", None)
        if close is not None:
            await close()

    async def invoke(self, request: ModelRequest, *, ctx: Any = None) -> ModelResponse:
        return self.answered(await self.inner.invoke(self.asked(request)))

    async def stream(
        self, request: ModelRequest, *, ctx: Any = None
    ) -> AsyncIterator[ModelStreamItem]:
        inner: Any = self.inner.stream(self.asked(request))
        try:
            async for item in inner:
                for changed in self.streamed(item):
                    yield changed
        finally:
            await inner.aclose()

    def asked(self, request: ModelRequest) -> ModelRequest:
        return replace(request, messages=self.told(request.messages))

    def told(self, messages: list[Message]) -> list[Message]:
        return messages

    def answered(self, response: ModelResponse) -> ModelResponse:
        message = response.message
        content = self.blocks(message.content)
        return replace(response, message=message.model_copy(update={"content": content}))

    def blocks(self, blocks: list[Block]) -> list[Block]:
        return blocks

    def streamed(self, item: ModelStreamItem) -> Sequence[ModelStreamItem]:
        if isinstance(item, StreamCompleted):
            return [StreamCompleted(self.answered(item.response))]
        return [item]


class Suite(ChatModelConformance):
    fault: type[Wrapped] = Wrapped
    patience = 2.0

    def model(self, script: Sequence[Step]) -> Any:
        return self.fault(ScriptedModel(script))


class TestNoFault(Suite):
    patience = 30.0


# Faults of what comes back


@caught_by("test_it_tells_what_an_answer_cost")
class TestDropsTheUsage(Suite):
    class fault(Wrapped):
        def answered(self, response: ModelResponse) -> ModelResponse:
            message = response.message.model_copy(update={"usage": None})
            return replace(response, message=message)


@caught_by("test_it_tells_what_an_answer_cost")
class TestCountsReasoningBesideTheOutput(Suite):
    class fault(Wrapped):
        def answered(self, response: ModelResponse) -> ModelResponse:
            usage = response.message.usage
            assert usage is not None
            counted = usage.model_copy(update={"output_tokens": 1, "reasoning_tokens": 20})
            message = response.message.model_copy(update={"usage": counted})
            return replace(response, message=message)


@caught_by("test_calls_may_come_in_parallel")
class TestReordersTheBlocks(Suite):
    class fault(Wrapped):
        def blocks(self, blocks: list[Block]) -> list[Block]:
            return blocks[::-1]


@caught_by("test_a_stream_makes_the_message_of_the_plain_call")
class TestReordersTheBlocksOfStreams(Suite):
    class fault(Wrapped):
        async def invoke(self, request: ModelRequest, *, ctx: Any = None) -> ModelResponse:
            return await self.inner.invoke(request)

        def blocks(self, blocks: list[Block]) -> list[Block]:
            return blocks[::-1]


@caught_by("test_ids_differ_from_turn_to_turn", "test_calls_may_come_in_parallel")
class TestReusesIds(Suite):
    class fault(Wrapped):
        def blocks(self, blocks: list[Block]) -> list[Block]:
            return [
                b.model_copy(update={"id": "call"}) if isinstance(b, ToolCallBlock) else b
                for b in blocks
            ]


@caught_by("test_it_calls_a_tool")
class TestGivesNoIds(Suite):
    class fault(Wrapped):
        def blocks(self, blocks: list[Block]) -> list[Block]:
            return [
                b.model_copy(update={"id": ""}) if isinstance(b, ToolCallBlock) else b
                for b in blocks
            ]


@caught_by("test_every_alphabet_arrives_as_it_was_said")
class TestLosesUnicode(Suite):
    class fault(Wrapped):
        def blocks(self, blocks: list[Block]) -> list[Block]:
            return [
                TextBlock(text=b.text.encode("utf-16", "ignore").decode("ascii", "ignore"))
                if isinstance(b, TextBlock) and not b.text.isascii()
                else b
                for b in blocks
            ]


@caught_by("test_arguments_of_every_alphabet_arrive")
class TestSplitsLinesInArguments(Suite):
    class fault(Wrapped):
        def blocks(self, blocks: list[Block]) -> list[Block]:
            return [self.split(b) if isinstance(b, ToolCallBlock) else b for b in blocks]

        def split(self, block: ToolCallBlock) -> ToolCallBlock:
            arguments = {
                name: " ".join(value.splitlines()) if isinstance(value, str) else value
                for name, value in block.arguments.items()
            }
            return block.model_copy(update={"arguments": arguments})


@caught_by(
    "test_it_streams_in_pieces_that_make_the_text",
    "test_the_pieces_alone_make_the_message_of_the_end",
)
class TestStreamsSomethingElse(Suite):
    class fault(Wrapped):
        def streamed(self, item: ModelStreamItem) -> Sequence[ModelStreamItem]:
            return [MessageDelta(item.text.upper())] if isinstance(item, MessageDelta) else [item]


@caught_by("test_it_streams_in_pieces_that_make_the_text")
class TestStreamsInOnePiece(Suite):
    class fault(Wrapped):
        def streamed(self, item: ModelStreamItem) -> Sequence[ModelStreamItem]:
            if isinstance(item, MessageDelta):
                return []
            if isinstance(item, StreamCompleted):
                return [MessageDelta(item.response.text), item]
            return [item]


@caught_by("test_pieces_of_calls_are_streamed", "test_the_pieces_alone_make_the_message_of_the_end")
class TestStreamsNoCalls(Suite):
    class fault(Wrapped):
        def streamed(self, item: ModelStreamItem) -> Sequence[ModelStreamItem]:
            return [] if isinstance(item, ToolCallDelta) else [item]


@caught_by("test_it_answers_with_text")
class TestGoesOnAfterTheEnd(Suite):
    class fault(Wrapped):
        def streamed(self, item: ModelStreamItem) -> Sequence[ModelStreamItem]:
            return [item, MessageDelta("!")] if isinstance(item, StreamCompleted) else [item]


@caught_by("test_it_answers_with_text")
class TestBeginsTwice(Suite):
    class fault(Wrapped):
        def streamed(self, item: ModelStreamItem) -> Sequence[ModelStreamItem]:
            return [item, item] if isinstance(item, StreamStarted) else [item]


@caught_by("test_an_answer_that_was_cut_says_so", "test_a_structured_answer_that_was_cut_says_so")
class TestHidesTheLimit(Suite):
    class fault(Wrapped):
        def answered(self, response: ModelResponse) -> ModelResponse:
            return replace(response, finish_reason="stop")


@caught_by("test_a_refusal_is_told_from_an_answer")
class TestTakesARefusalForAnAnswer(Suite):
    class fault(Wrapped):
        def blocks(self, blocks: list[Block]) -> list[Block]:
            return [TextBlock(text=b.text) if b.type == "refusal" else b for b in blocks]


@caught_by("test_arguments_that_are_no_json_are_kept")
class TestReadsBrokenArgumentsAsNone(Suite):
    class fault(Wrapped):
        def blocks(self, blocks: list[Block]) -> list[Block]:
            return [
                b.model_copy(update={"invalid": None}) if isinstance(b, ToolCallBlock) else b
                for b in blocks
            ]


# Faults of how it is called and left


@caught_by("test_it_answers_with_text")
class TestChangesTheHistory(Suite):
    class fault(Wrapped):
        def asked(self, request: ModelRequest) -> ModelRequest:
            request.messages.append(UserMessage(content="Be quick."))
            return request


@caught_by("test_cancelling_ends_the_call")
class TestSwallowsCancellation(Suite):
    class fault(Wrapped):
        async def invoke(self, request: ModelRequest, *, ctx: Any = None) -> ModelResponse:
            try:
                return await self.inner.invoke(request)
            except anyio.get_cancelled_exc_class():
                return ModelResponse(AssistantMessage(content="Fine."))


@caught_by("test_a_failure_has_its_class", "test_a_connection_that_breaks_is_a_failure")
class TestTellsAllFailuresAlike(Suite):
    class fault(Wrapped):
        async def invoke(self, request: ModelRequest, *, ctx: Any = None) -> ModelResponse:
            try:
                return await self.inner.invoke(request)
            except ModelError as exc:
                raise BadRequestError(exc.message, status=exc.status) from exc


@caught_by("test_a_failure_has_its_class", "test_it_works_again_after_a_failure")
class TestAnswersAFailure(Suite):
    class fault(Wrapped):
        async def invoke(self, request: ModelRequest, *, ctx: Any = None) -> ModelResponse:
            try:
                return await self.inner.invoke(request)
            except ModelError:
                return ModelResponse(AssistantMessage(content="Fine."))


@caught_by("test_a_failure_has_its_class", "test_it_works_again_after_a_failure")
class TestRaisesWhatAClientRaised(Suite):
    class fault(Wrapped):
        async def invoke(self, request: ModelRequest, *, ctx: Any = None) -> ModelResponse:
            try:
                return await self.inner.invoke(request)
            except ModelError as exc:
                raise ConnectionError(exc.message) from exc


@caught_by("test_a_failure_has_its_class")
class TestForgetsTheWait(Suite):
    class fault(Wrapped):
        async def invoke(self, request: ModelRequest, *, ctx: Any = None) -> ModelResponse:
            try:
                return await self.inner.invoke(request)
            except ModelError as exc:
                exc.retry_after = None
                raise


@caught_by("test_a_connection_that_breaks_is_a_failure")
class TestTakesHalfAnAnswerForAWholeOne(Suite):
    class fault(Wrapped):
        async def stream(
            self, request: ModelRequest, *, ctx: Any = None
        ) -> AsyncGenerator[ModelStreamItem]:
            try:
                async for item in super().stream(request):
                    yield item
            except NetworkError:
                return


@caught_by("test_calls_at_the_same_time_do_not_mix")
class TestMixesCalls(Suite):
    class fault(Wrapped):
        """Keeps what it reads in one place for all of its streams."""

        text = ""

        async def stream(
            self, request: ModelRequest, *, ctx: Any = None
        ) -> AsyncGenerator[ModelStreamItem]:
            self.text = ""
            async for item in super().stream(request):
                await anyio.lowlevel.checkpoint()
                if isinstance(item, MessageDelta):
                    self.text += item.text
                if isinstance(item, StreamCompleted) and item.response.text:
                    message = item.response.message.model_copy(
                        update={"content": [TextBlock(text=self.text)]}
                    )
                    item = StreamCompleted(replace(item.response, message=message))
                yield item
