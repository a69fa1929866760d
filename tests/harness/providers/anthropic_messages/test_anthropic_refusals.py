"""What the Messages API cannot take is refused before anything is sent."""

from typing import Any

import pytest
import respx

from tests.harness.providers.anthropic_messages.requests import HI, WEATHER, model
from tinyagents.harness.errors import InvalidRequestError
from tinyagents.harness.message import (
    AudioBlock,
    FileBlock,
    ImageBlock,
    Message,
    SystemMessage,
    UserMessage,
)
from tinyagents.harness.model import (
    JsonObjectFormat,
    JsonSchemaFormat,
    ModelRequest,
    ModelSettings,
    NamedTool,
    ReasoningConfig,
    ToolSchema,
)

REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"continuation_id": "r"}, "`continuation_id`"),
    ({"response_format": JsonObjectFormat()}, "JSON answers without a schema"),
    (
        {"response_format": JsonSchemaFormat(name="s", schema={"type": "object"}, strict=True)},
        "the schema `s`: `\\$` takes properties of any name",
    ),
    ({"tool_choice": NamedTool("f")}, "the tool `f`, which is not offered"),
    ({"settings": ModelSettings(seed=1)}, "the setting `seed`"),
    ({"settings": ModelSettings(logprobs=0)}, "the setting `logprobs`"),
    ({"settings": ModelSettings(temperature=1.5)}, "a temperature of 1.5"),
    (
        {"settings": ModelSettings(reasoning=ReasoningConfig(budget_tokens=9))},
        "a thinking budget of 9: the least is 1024",
    ),
    (
        {"settings": ModelSettings(max_tokens=99, reasoning=ReasoningConfig(effort="high"))},
        "a thinking budget of 16384 within `max_tokens` of 99",
    ),
    (
        {"settings": ModelSettings(reasoning=ReasoningConfig(effort="low", budget_tokens=1024))},
        "an? .*effort beside `budget_tokens`",
    ),
    ({"settings": ModelSettings(reasoning=ReasoningConfig(summary="concise"))}, "`concise`"),
    (
        {"settings": ModelSettings(provider_options={"max_tokens": 1, "stream": True})},
        "settings of their own: max_tokens, stream",
    ),
    ({"settings": ModelSettings(provider_options={"tools": 1})}, "`tools` is no list"),
    ({"settings": ModelSettings(provider_options={"betas": "a"})}, "`betas`"),
    (
        {
            "tools": [WEATHER],
            "tool_choice": "required",
            "settings": ModelSettings(reasoning=ReasoningConfig(effort="low")),
        },
        "a forced tool choice while it thinks",
    ),
    (
        {"settings": ModelSettings(top_p=0.9, reasoning=ReasoningConfig(effort="low"))},
        "a `top_p` of 0.9 while it thinks: the least is 0.95",
    ),
    ({"settings": ModelSettings(temperature=0.5, top_p=0.9)}, "`temperature` and `top_p` at once"),
    (
        {
            "tools": [
                ToolSchema(name="f", description="", parameters={"type": "object"}, strict=True)
            ]
        },
        "strict arguments for `f`",
    ),
    ({"messages": [SystemMessage(content="x")]}, "a message that says anything"),
]


@pytest.mark.parametrize(("request_", "words"), REFUSED)
async def test_what_cannot_work_is_refused_before_anything_is_sent(
    request_: dict[str, Any], words: str, router: respx.MockRouter
) -> None:
    options: dict[str, Any] = {"messages": [HI], **request_}
    request = ModelRequest(**options)
    async with model() as asked:
        with pytest.raises(InvalidRequestError, match=words):
            await asked.invoke(request)
    assert not router.calls


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (ModelSettings(top_p=0.5), "the setting `top_p`"),
        (
            ModelSettings(reasoning=ReasoningConfig(budget_tokens=2_000)),
            "`budget_tokens`: it takes an `effort`",
        ),
    ],
)
async def test_the_newest_models_take_neither_sampling_nor_budgets(
    settings: ModelSettings, words: str, router: respx.MockRouter
) -> None:
    for name in ("claude-opus-4-7", "claude-opus-5", "claude-anything-preview"):
        async with model(name) as asked:
            with pytest.raises(InvalidRequestError, match=words):
                await asked.invoke(ModelRequest(messages=[HI], settings=settings))
    assert not router.calls


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (
            UserMessage(content=[AudioBlock(data="AAAA", media_type="audio/wav")]),
            "a `audio` block in a user message",
        ),
        (
            UserMessage(content=[FileBlock(data="AAAA", media_type="application/zip")]),
            "not as `application/zip`",
        ),
        (
            UserMessage(content=[FileBlock(data="/w==", media_type="text/plain")]),
            "its text cannot be read",
        ),
        (
            UserMessage(content=[ImageBlock(url="data:image/png,plain")]),
            "only as base64 data",
        ),
        (
            SystemMessage(content=[ImageBlock(file_id="f")]),
            "a `image` block in a system message",
        ),
    ],
)
async def test_a_block_without_a_form_is_refused_by_name(
    message: Message, words: str, router: respx.MockRouter
) -> None:
    async with model() as asked:
        with pytest.raises(InvalidRequestError, match=words):
            await asked.invoke(ModelRequest(messages=[message]))
    assert not router.calls


async def test_a_model_without_structured_output_refuses_a_schema(
    router: respx.MockRouter,
) -> None:
    schema: Any = {"type": "object", "properties": {"a": {"type": "string"}}}
    wanted = JsonSchemaFormat(name="s", schema=schema)
    async with model("claude-sonnet-4-20250514") as asked:
        with pytest.raises(InvalidRequestError, match="answers of a JSON schema"):
            await asked.invoke(ModelRequest(messages=[HI], response_format=wanted))
    assert not router.calls
