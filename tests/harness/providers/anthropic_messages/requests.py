"""What the tests of requests share."""

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
from tinyagents.harness.providers import AnthropicModel

ANSWER: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [{"type": "text", "text": "ok"}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 1, "output_tokens": 1},
}
HI = UserMessage(content="hi")
HI_WIRE: dict[str, Any] = {"role": "user", "content": [{"type": "text", "text": "hi"}]}
WEATHER = ToolSchema(
    name="get_weather",
    description="Weather.",
    parameters={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
WEATHER_WIRE: dict[str, Any] = {
    "name": "get_weather",
    "description": "Weather.",
    "input_schema": WEATHER.parameters,
}
MARK: dict[str, Any] = {"cache_control": {"type": "ephemeral"}}


def model(name: str = "claude-sonnet-4-5", **options: Any) -> AnthropicModel:
    options.setdefault("api_key", "the-key-of-a-test")
    return AnthropicModel(name, **options)


async def body_of(
    router: respx.MockRouter, asked: AnthropicModel, *messages: Message, **request: Any
) -> dict[str, Any]:
    async with asked:
        await asked.invoke(ModelRequest(messages=list(messages) or [HI], **request))
    body: dict[str, Any] = orjson.loads(router.calls.last.request.content)
    return body


async def sent(router: respx.MockRouter, *messages: Message, **options: Any) -> list[Any]:
    wire: list[Any] = (await body_of(router, model(**options), *messages))["messages"]
    return wire


async def settings_sent(
    router: respx.MockRouter, name: str = "claude-sonnet-4-5", **settings: Any
) -> dict[str, Any]:
    body = await body_of(router, model(name), settings=ModelSettings(**settings))
    return {k: v for k, v in body.items() if k not in ("model", "messages")}
