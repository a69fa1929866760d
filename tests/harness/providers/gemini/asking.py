"""Asking a Gemini model, and what arrives of it."""

from typing import Any

import orjson
import pytest
import respx

from tinyagents.harness.errors import InvalidRequestError
from tinyagents.harness.message import (
    Block,
    Message,
    UserMessage,
)
from tinyagents.harness.model import (
    ModelRequest,
    ModelSettings,
    ToolSchema,
)
from tinyagents.harness.providers import GeminiModel
from tinyagents.harness.text import JsonObject

URL = "https://generativelanguage.googleapis.com/v1beta"
ANSWER = {"candidates": [{"content": {"parts": [{"text": "ok"}]}, "finishReason": "STOP"}]}
HI = UserMessage(content="hi")
SENT_HI = {"role": "user", "parts": [{"text": "hi"}]}
CITY: JsonObject = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
}
WEATHER = ToolSchema(name="get_weather", description="Weather.", parameters=CITY)
DECLARED = {"name": "get_weather", "description": "Weather.", "parametersJsonSchema": CITY}


def model(name: str = "gemini-2.5-flash", **options: Any) -> GeminiModel:
    options.setdefault("api_key", "the-key-of-a-test")
    return GeminiModel(name, **options)


async def body_of(
    router: respx.MockRouter, *messages: Message, name: str = "gemini-2.5-flash", **request: Any
) -> dict[str, Any]:
    async with model(name) as asked:
        await asked.invoke(ModelRequest(messages=list(messages) or [HI], **request))
    body: dict[str, Any] = orjson.loads(router.calls.last.request.content)
    return body


async def sent(
    router: respx.MockRouter, *messages: Message, name: str = "gemini-2.5-flash"
) -> list[Any]:
    contents: list[Any] = (await body_of(router, *messages, name=name))["contents"]
    return contents


async def parts_of(router: respx.MockRouter, *blocks: Block, **options: Any) -> list[Any]:
    parts: list[Any] = (await sent(router, UserMessage(content=blocks), **options))[0]["parts"]
    return parts


async def generation(
    router: respx.MockRouter, name: str = "gemini-2.5-flash", **settings: Any
) -> dict[str, Any]:
    body = await body_of(router, name=name, settings=ModelSettings(**settings))
    config: dict[str, Any] = body.get("generationConfig", {})
    return config


async def refused(*messages: Message, name: str = "gemini-2.5-flash", **request: Any) -> str:
    with pytest.raises(InvalidRequestError) as caught:
        await model(name).invoke(ModelRequest(messages=list(messages) or [HI], **request))
    return str(caught.value)
