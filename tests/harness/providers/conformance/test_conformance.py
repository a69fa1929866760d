"""Every adapter passes the suite that others run on theirs."""

from typing import Any

from tests.harness.providers.conformance import openai_chat
from tinyagents.harness.model import ChatModel, ModelProfile, ModelResponse
from tinyagents.harness.providers import OpenAIChatModel
from tinyagents.testkit.conformance import HttpChatModelConformance, WireAnswer, WireRequest


class TestOpenAIChat(HttpChatModelConformance):
    def connect(self, base_url: str) -> ChatModel:
        return OpenAIChatModel(
            "m",
            provider="compatible",
            api_key=self.key,
            base_url=f"{base_url}/v1",
            profile=ModelProfile.permissive("compatible", "m"),
        )

    def encode(self, answer: ModelResponse, *, stream: bool) -> WireAnswer:
        return openai_chat.encode(answer, stream=stream)

    def sent_ids(self, document: Any) -> tuple[list[str], list[str]]:
        return openai_chat.sent_ids(document)
