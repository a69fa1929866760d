"""Asks a model of Ollama's own API and looks at what was sent."""

from typing import Any

import orjson
import pytest
import respx

from tinyagents.harness.errors import InvalidRequestError
from tinyagents.harness.message import Message, UserMessage
from tinyagents.harness.model import ModelRequest, ToolSchema
from tinyagents.harness.providers import OllamaModel

ANSWER = {"model": "m", "message": {"role": "assistant", "content": "ok"}, "done": True}
HI = UserMessage(content="hi")
WEATHER = ToolSchema(
    name="get_weather",
    description="Weather.",
    parameters={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)


async def body_of(
    router: respx.MockRouter,
    *messages: Message,
    asked: OllamaModel | None = None,
    **request: Any,
) -> dict[str, Any]:
    async with asked or OllamaModel("qwen3") as model:
        await model.invoke(ModelRequest(messages=list(messages) or [HI], **request))
    body: dict[str, Any] = orjson.loads(router.calls.last.request.content)
    return body


async def refused(message: str, *messages: Message, **request: Any) -> None:
    with respx.mock as router:
        async with OllamaModel("qwen3") as model:
            with pytest.raises(InvalidRequestError, match=message):
                await model.invoke(ModelRequest(messages=list(messages) or [HI], **request))
        assert not router.calls
