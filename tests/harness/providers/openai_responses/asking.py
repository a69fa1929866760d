"""Asking a model of the Responses API, to see what it sends."""

from typing import Any

import orjson
import respx

from tinyagents.harness.message import (
    Message,
    UserMessage,
)
from tinyagents.harness.model import (
    ModelRequest,
    ModelSettings,
    ToolSchema,
)
from tinyagents.harness.providers import (
    OpenAIResponsesModel,
    ResponsesPreset,
)

ANSWER = {"id": "resp_1", "model": "m", "status": "completed", "output": []}
HI = UserMessage(content="hi")
WEATHER = ToolSchema(
    name="get_weather",
    description="Weather.",
    parameters={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
NAME = "openai_responses"


def model(
    name: str = "gpt-4.1", provider: str | ResponsesPreset = "openai", **options: Any
) -> OpenAIResponsesModel:
    options.setdefault("api_key", "the-key-of-a-test")
    return OpenAIResponsesModel(name, provider=provider, **options)


async def body_of(
    router: respx.MockRouter, asked: OpenAIResponsesModel, *messages: Message, **request: Any
) -> dict[str, Any]:
    async with asked:
        await asked.invoke(ModelRequest(messages=list(messages) or [HI], **request))
    body: dict[str, Any] = orjson.loads(router.calls.last.request.content)
    return body


async def sent(
    router: respx.MockRouter, *messages: Message, store: bool = False, **options: Any
) -> list[Any]:
    settings = ModelSettings(provider_options={"store": store})
    body = await body_of(router, model(**options), *messages, settings=settings)
    items: list[Any] = body["input"]
    return items


async def with_settings(
    router: respx.MockRouter, name: str = "gpt-4.1", **settings: Any
) -> dict[str, Any]:
    body = await body_of(router, model(name), settings=ModelSettings(**settings))
    return {k: v for k, v in body.items() if k not in ("model", "input")}


def own(**fields: Any) -> Any:
    return {NAME: fields}
