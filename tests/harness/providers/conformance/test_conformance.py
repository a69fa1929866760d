"""Every adapter passes the suite that others run on theirs."""

from typing import Any

from tests.harness.providers.conformance import anthropic, gemini, ollama, openai_chat, responses
from tinyagents.harness.model import ChatModel, Modality, ModelProfile, ModelResponse
from tinyagents.harness.providers import (
    AnthropicModel,
    GeminiModel,
    OllamaModel,
    OpenAIChatModel,
    OpenAIResponsesModel,
)
from tinyagents.testkit.conformance import HttpChatModelConformance, WireAnswer, WireRequest


def profile(provider: str, *inputs: Modality, **more: Any) -> ModelProfile:
    """What a model does that can do all that its API has a form for."""
    changes = {"input_modalities": frozenset({"text", *inputs}), **more}
    return ModelProfile.permissive(provider, "m").model_copy(update=changes)


class TestOpenAIChat(HttpChatModelConformance):
    def connect(self, base_url: str) -> ChatModel:
        can = profile("compatible", "image", "audio", "file")
        return OpenAIChatModel("m", api_key=self.key, base_url=f"{base_url}/v1", profile=can)

    def encode(self, answer: ModelResponse, *, stream: bool) -> WireAnswer:
        return openai_chat.encode(answer, stream=stream)

    def sent_ids(self, document: Any) -> tuple[list[str], list[str]]:
        return openai_chat.sent_ids(document)


class TestOpenAIResponses(HttpChatModelConformance):
    def connect(self, base_url: str) -> ChatModel:
        can = profile("openai", "image", "file")
        return OpenAIResponsesModel("m", api_key=self.key, base_url=f"{base_url}/v1", profile=can)

    def encode(self, answer: ModelResponse, *, stream: bool) -> WireAnswer:
        return responses.encode(answer, stream=stream)

    def sent_ids(self, document: Any) -> tuple[list[str], list[str]]:
        return responses.sent_ids(document)


class TestAnthropic(HttpChatModelConformance):
    def connect(self, base_url: str) -> ChatModel:
        can = profile("anthropic", "image", "file", json_mode=False)
        return AnthropicModel("claude-sonnet-4-5", api_key=self.key, base_url=base_url, profile=can)

    def encode(self, answer: ModelResponse, *, stream: bool) -> WireAnswer:
        return anthropic.encode(answer, stream=stream)

    def sent_ids(self, document: Any) -> tuple[list[str], list[str]]:
        return anthropic.sent_ids(document)


class TestGemini(HttpChatModelConformance):
    def connect(self, base_url: str) -> ChatModel:
        can = profile("gemini", "image", "audio", "file")
        return GeminiModel("gemini-3-flash", api_key=self.key, base_url=base_url, profile=can)

    def encode(self, answer: ModelResponse, *, stream: bool) -> WireAnswer:
        return gemini.encode(answer, stream=stream)

    def is_stream(self, request: WireRequest) -> bool:
        return gemini.is_stream(request)

    def sent_ids(self, document: Any) -> tuple[list[str], list[str]]:
        return gemini.sent_ids(document)


class TestOllama(HttpChatModelConformance):
    def connect(self, base_url: str) -> ChatModel:
        can = profile("ollama", "image", forced_tool_choice=False)
        return OllamaModel("m", api_key=self.key, base_url=base_url, profile=can)

    def encode(self, answer: ModelResponse, *, stream: bool) -> WireAnswer:
        return ollama.encode(answer, stream=stream)

    def is_stream(self, request: WireRequest) -> bool:
        return ollama.is_stream(request)

    def sent_ids(self, document: Any) -> tuple[list[str], list[str]]:
        return ollama.sent_ids(document)
