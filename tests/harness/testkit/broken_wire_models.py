"""Models behind HTTP with one fault each, run like those of ``broken_models.py``."""

from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any

import pytest

from tests.harness.providers.conformance import anthropic, openai_chat
from tests.harness.testkit.broken_models import Wrapped, anyio_backend, caught_by
from tinyagents.harness.errors import ModelError
from tinyagents.harness.message import (
    AssistantMessage,
    Block,
    MediaBlock,
    Message,
    ProviderExtensionBlock,
    TextBlock,
    ToolCallBlock,
    ToolMessage,
    UserMessage,
)
from tinyagents.harness.model import (
    ChatModel,
    MessageDelta,
    ModelProfile,
    ModelRequest,
    ModelResponse,
    ModelSettings,
    ModelStreamItem,
)
from tinyagents.harness.providers import AnthropicModel, OpenAIChatModel
from tinyagents.testkit.conformance import HttpChatModelConformance, WireAnswer

__all__ = ("anyio_backend",)


class WireSuite(HttpChatModelConformance):
    fault: type[Wrapped] = Wrapped
    patience = 2.0

    def connect(self, base_url: str) -> Any:
        can = ModelProfile.permissive("compatible", "m")
        model = OpenAIChatModel("m", api_key=self.key, base_url=f"{base_url}/v1", profile=can)
        return self.fault(model)

    def encode(self, answer: ModelResponse, *, stream: bool) -> WireAnswer:
        return openai_chat.encode(answer, stream=stream)

    def sent_ids(self, document: Any) -> tuple[list[str], list[str]]:
        return openai_chat.sent_ids(document)


class TestNoFaultOnTheWire(WireSuite):
    patience = 30.0


@caught_by("test_it_takes_every_shape_of_a_conversation")
class TestForgetsSystemMessages(WireSuite):
    class fault(Wrapped):
        def told(self, messages: list[Message]) -> list[Message]:
            return [message for message in messages if message.role != "system"]


@caught_by("test_it_takes_every_shape_of_a_conversation")
class TestReordersTheHistory(WireSuite):
    class fault(Wrapped):
        def told(self, messages: list[Message]) -> list[Message]:
            return messages[::-1] if {m.role for m in messages} == {"user"} else messages


@caught_by("test_it_takes_every_shape_of_a_conversation")
class TestTellsTheLastMessageTwice(WireSuite):
    class fault(Wrapped):
        def told(self, messages: list[Message]) -> list[Message]:
            return [*messages, messages[-1]] if messages[-1].role == "user" else messages


@caught_by("test_it_takes_the_kinds_of_input_of_its_profile", "test_results_go_back")
class TestForgetsFiles(WireSuite):
    class fault(Wrapped):
        def told(self, messages: list[Message]) -> list[Message]:
            return [
                m.model_copy(
                    update={"content": [b for b in m.content if not isinstance(b, MediaBlock)]}
                )
                for m in messages
            ]


@caught_by(
    "test_results_of_parallel_calls_go_back_with_what_was_said",
    "test_it_continues_what_another_provider_began",
)
class TestMixesUpResults(WireSuite):
    class fault(Wrapped):
        def told(self, messages: list[Message]) -> list[Message]:
            results = [m for m in messages if isinstance(m, ToolMessage)]
            ids = iter([m.tool_call_id for m in results][::-1])
            return [
                m.model_copy(update={"tool_call_id": next(ids)})
                if isinstance(m, ToolMessage)
                else m
                for m in messages
            ]


@caught_by("test_a_setting_is_used_or_refused")
class TestDropsSettings(WireSuite):
    class fault(Wrapped):
        def asked(self, request: ModelRequest) -> ModelRequest:
            return replace(request, settings=ModelSettings(timeout=request.settings.timeout))


@caught_by("test_an_answer_has_the_form_of_a_schema")
class TestDropsTheSchema(WireSuite):
    class fault(Wrapped):
        def asked(self, request: ModelRequest) -> ModelRequest:
            return replace(request, response_format=None)


@caught_by("test_every_tool_choice_is_told")
class TestDropsTheToolChoice(WireSuite):
    class fault(Wrapped):
        def asked(self, request: ModelRequest) -> ModelRequest:
            return replace(request, tool_choice="auto")


@caught_by("test_a_name_in_the_request_is_not_sent")
class TestSendsTheNameOfTheRegistry(WireSuite):
    class fault(Wrapped):
        def asked(self, request: ModelRequest) -> ModelRequest:
            options = {"label": request.model} if request.model else {}
            return replace(
                request, settings=request.settings.merged(ModelSettings(provider_options=options))
            )


@caught_by("test_it_continues_what_another_provider_began")
class TestTellsWhatIsAnothersOwn(WireSuite):
    class fault(Wrapped):
        def told(self, messages: list[Message]) -> list[Message]:
            return [
                m.model_copy(update={"content": [self.opened(b) for b in m.content]})
                for m in messages
            ]

        def opened(self, block: Block) -> Block:
            if isinstance(block, ProviderExtensionBlock):
                return TextBlock(text=str(block.data))
            return block


@caught_by("test_the_key_is_shown_nowhere")
class TestShowsTheKey(WireSuite):
    class fault(Wrapped):
        def __repr__(self) -> str:
            return f"Model(api_key={WireSuite.key!r})"


@caught_by("test_the_key_is_shown_nowhere")
class TestTellsTheKeyInErrors(WireSuite):
    class fault(Wrapped):
        async def invoke(self, request: ModelRequest, *, ctx: Any = None) -> ModelResponse:
            try:
                return await self.inner.invoke(request)
            except ModelError as exc:
                exc.raw = {"key": WireSuite.key}
                raise


@caught_by("test_one_call_is_one_request")
class TestRetriesByItself(WireSuite):
    class fault(Wrapped):
        async def invoke(self, request: ModelRequest, *, ctx: Any = None) -> ModelResponse:
            try:
                return await self.inner.invoke(request)
            except ModelError:
                return await self.inner.invoke(request)


@caught_by("test_leaving_a_stream_early_ends_the_call")
class TestLeavesStreamsOpen(WireSuite):
    class fault(Wrapped):
        async def __aenter__(self) -> ChatModel:
            self.left: list[Any] = []
            return self

        async def __aexit__(self, *_: object) -> None:
            for stream in self.left:
                await stream.aclose()
            await super().__aexit__()

        async def stream(
            self, request: ModelRequest, *, ctx: Any = None
        ) -> AsyncGenerator[ModelStreamItem]:
            inner: Any = self.inner.stream(request)
            self.left.append(inner)
            async for item in inner:
                yield item


@caught_by("test_making_a_model_sends_nothing")
class TestCallsOnTheWay(WireSuite):
    class fault(Wrapped):
        async def __aenter__(self) -> ChatModel:
            with pytest.raises(ModelError):
                await self.inner.invoke(ModelRequest(messages=[UserMessage(content="ping")]))
            return self


@caught_by("test_the_cache_identity_tells_endpoints_apart")
class TestCannotTellEndpointsApart(WireSuite):
    class fault(Wrapped):
        cache_identity = "the same for all"


@caught_by("test_a_page_is_no_answer", "test_a_stream_without_its_end_is_a_failure")
class TestTakesAPageForAnAnswer(WireSuite):
    class fault(Wrapped):
        async def invoke(self, request: ModelRequest, *, ctx: Any = None) -> ModelResponse:
            try:
                return await self.inner.invoke(request)
            except ModelError:
                return ModelResponse(AssistantMessage(content="<html>"))

        async def stream(
            self, request: ModelRequest, *, ctx: Any = None
        ) -> AsyncGenerator[ModelStreamItem]:
            try:
                async for item in super().stream(request):
                    yield item
            except ModelError:
                yield MessageDelta("<html>")


@caught_by("test_a_silent_server_runs_into_the_timeout")
class TestRunsWithoutATimeout(WireSuite):
    class fault(Wrapped):
        def asked(self, request: ModelRequest) -> ModelRequest:
            return replace(request, settings=ModelSettings())


@caught_by("test_ids_go_back_as_they_came")
class TestRenamesItsOwnCalls(WireSuite):
    class fault(Wrapped):
        def blocks(self, blocks: list[Block]) -> list[Block]:
            return [
                b.model_copy(update={"id": f"{b.id}-1"}) if isinstance(b, ToolCallBlock) else b
                for b in blocks
            ]


@caught_by("test_arguments_of_every_alphabet_arrive")
class TestGarblesArgumentsOfTheHistory(WireSuite):
    class fault(Wrapped):
        def told(self, messages: list[Message]) -> list[Message]:
            return [
                m.model_copy(update={"content": [self.garbled(b) for b in m.content]})
                for m in messages
            ]

        def garbled(self, block: Block) -> Block:
            if not isinstance(block, ToolCallBlock):
                return block
            plain = {name: str(value).strip("\r\n|") for name, value in block.arguments.items()}
            return block.model_copy(update={"arguments": plain})


@caught_by("test_seals_of_reasoning_go_back")
class TestForgetsSeals(WireSuite):
    def connect(self, base_url: str) -> Any:
        can = ModelProfile.permissive("anthropic", "m")
        model = AnthropicModel("m", api_key=self.key, base_url=base_url, profile=can)
        return self.fault(model)

    def encode(self, answer: ModelResponse, *, stream: bool) -> WireAnswer:
        return anthropic.encode(answer, stream=stream)

    def sent_ids(self, document: Any) -> tuple[list[str], list[str]]:
        return anthropic.sent_ids(document)

    class fault(Wrapped):
        def blocks(self, blocks: list[Block]) -> list[Block]:
            return [b for b in blocks if b.type != "reasoning"]
