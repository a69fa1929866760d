"""A model of each API that the mock server llmock speaks."""

from collections.abc import Callable

from llmock.pytest_plugin import LLMock

from tinyagents.harness.providers import (
    AnthropicModel,
    GeminiModel,
    OpenAIChatModel,
    OpenAIResponsesModel,
    Timeouts,
)

Model = OpenAIChatModel | OpenAIResponsesModel | AnthropicModel | GeminiModel

_TIMEOUT = Timeouts(idle=0.3)

# Where the environment names server and key, they are found there.
APIS: dict[str, Callable[[LLMock], Model]] = {
    "chat": lambda _: OpenAIChatModel("gpt-4o-mini", timeout=_TIMEOUT),
    "responses": lambda _: OpenAIResponsesModel("gpt-4o-mini", timeout=_TIMEOUT),
    "anthropic": lambda _: AnthropicModel("claude-sonnet-4-5", timeout=_TIMEOUT),
    "gemini": lambda mock: GeminiModel(
        "gemini-2.5-flash", base_url=f"{mock.base_url('gemini')}/v1beta", timeout=_TIMEOUT
    ),
}
