"""Messages as they are sent to the Messages API."""

from typing import Any

import pytest
import respx

from tests.harness.providers.anthropic_messages.requests import HI, HI_WIRE, body_of, model, sent
from tinyagents.harness.message import (
    AssistantMessage,
    AudioBlock,
    Block,
    CitationBlock,
    FileBlock,
    ImageBlock,
    InvalidArguments,
    JsonBlock,
    ProviderExtensionBlock,
    ReasoningBlock,
    RefusalBlock,
    SystemMessage,
    TextBlock,
    ToolCallBlock,
    ToolMessage,
    ToolResultBlock,
    UserMessage,
)
from tinyagents.harness.tool import wire_names


async def test_a_plain_conversation_is_sent_as_system_blocks_and_turns(
    router: respx.MockRouter,
) -> None:
    assert await body_of(
        router,
        model(),
        SystemMessage(content="Be brief."),
        UserMessage(content="hi", name="ann"),
        AssistantMessage(content="hello"),
        UserMessage(content="bye"),
    ) == {
        "model": "claude-sonnet-4-5",
        "max_tokens": 16_384,
        "system": [{"type": "text", "text": "Be brief."}],
        "messages": [
            HI_WIRE,
            {"role": "assistant", "content": [{"type": "text", "text": "hello"}]},
            {"role": "user", "content": [{"type": "text", "text": "bye"}]},
        ],
    }
    request = router.calls.last.request
    assert str(request.url) == "https://api.anthropic.com/v1/messages"
    assert request.headers["x-api-key"] == "the-key-of-a-test"
    assert request.headers["anthropic-version"] == "2023-06-01"
    assert "authorization" not in request.headers
    assert "anthropic-beta" not in request.headers


async def test_system_messages_from_anywhere_stand_in_the_system_blocks(
    router: respx.MockRouter,
) -> None:
    body = await body_of(
        router, model(), SystemMessage(content="a"), HI, SystemMessage(content="b")
    )
    assert body["system"] == [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert body["messages"] == [HI_WIRE]


async def test_all_results_of_parallel_calls_stand_first_in_one_user_turn(
    router: respx.MockRouter,
) -> None:
    calls: list[Block] = [
        TextBlock(text="Both."),
        ToolCallBlock(id="toolu_1", name="get_weather", arguments={"city": "Paris"}),
        ToolCallBlock(id="toolu_2", name="get_weather", arguments={}),
    ]
    assert await sent(
        router,
        HI,
        AssistantMessage(content=calls),
        ToolMessage(tool_call_id="toolu_1", content="sunny"),
        ToolMessage(tool_call_id="toolu_2", content="no city", is_error=True),
        UserMessage(content="and?"),
    ) == [
        HI_WIRE,
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "Both."},
                {
                    "type": "tool_use",
                    "id": "toolu_1",
                    "name": "get_weather",
                    "input": {"city": "Paris"},
                },
                {"type": "tool_use", "id": "toolu_2", "name": "get_weather", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": "sunny"},
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_2",
                    "content": "no city",
                    "is_error": True,
                },
                {"type": "text", "text": "and?"},
            ],
        },
    ]


async def test_a_result_is_text_blocks_media_or_nothing(router: respx.MockRouter) -> None:
    results = [
        ToolMessage(tool_call_id="a", content=[JsonBlock(value={"n": 1})]),
        ToolMessage(
            tool_call_id="b",
            content=[TextBlock(text="see"), ImageBlock(data="AAAA", media_type="image/png")],
        ),
        ToolMessage(tool_call_id="c", content=""),
        ToolMessage(tool_call_id="d", content="", is_error=True),
        ToolMessage(tool_call_id="e", content=[FileBlock(file_id="file_1")]),
    ]
    turn = (await sent(router, HI, AssistantMessage(content="x"), *results))[2]
    png = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
    assert turn["content"] == [
        {"type": "tool_result", "tool_use_id": "a", "content": '{"n":1}'},
        {
            "type": "tool_result",
            "tool_use_id": "b",
            "content": [{"type": "text", "text": "see"}, {"type": "image", "source": png}],
        },
        {"type": "tool_result", "tool_use_id": "c"},
        {
            "type": "tool_result",
            "tool_use_id": "d",
            "content": "The tool failed and said nothing.",
            "is_error": True,
        },
        {
            "type": "tool_result",
            "tool_use_id": "e",
            "content": [{"type": "document", "source": {"type": "file", "file_id": "file_1"}}],
        },
    ]
    assert router.calls.last.request.headers["anthropic-beta"] == "files-api-2025-04-14"


MEDIA: dict[str, tuple[Block, dict[str, Any]]] = {
    "an image by address": (
        ImageBlock(url="https://host.example/a.png"),
        {"type": "image", "source": {"type": "url", "url": "https://host.example/a.png"}},
    ),
    "an image of a data URI": (
        ImageBlock(url="data:image/gif;base64,AAAA"),
        {
            "type": "image",
            "source": {"type": "base64", "media_type": "image/gif", "data": "AAAA"},
        },
    ),
    "an uploaded image": (
        ImageBlock(file_id="file_1"),
        {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
    ),
    "a PDF with a title": (
        FileBlock(data="AAAA", media_type="application/pdf", name="a.pdf"),
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": "AAAA"},
            "title": "a.pdf",
        },
    ),
    "a document by address": (
        FileBlock(url="https://host.example/a.pdf"),
        {"type": "document", "source": {"type": "url", "url": "https://host.example/a.pdf"}},
    ),
    "plain text, to be cited": (
        FileBlock(
            data="aGk=",
            media_type="text/markdown",
            provider_data={"anthropic": {"citations": {"enabled": True}}},
        ),
        {
            "type": "document",
            "source": {"type": "text", "media_type": "text/plain", "data": "hi"},
            "citations": {"enabled": True},
        },
    ),
    "a file that is an image": (
        FileBlock(data="AAAA", media_type="image/png"),
        {
            "type": "image",
            "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"},
        },
    ),
}


@pytest.mark.parametrize("case", MEDIA)
async def test_media_are_sent_as_images_and_documents(case: str, router: respx.MockRouter) -> None:
    block, wire = MEDIA[case]
    turn = (await sent(router, UserMessage(content=[block])))[0]
    assert turn == {"role": "user", "content": [wire]}


async def test_thinking_goes_back_as_it_came_and_anothers_stays_behind(
    router: respx.MockRouter,
) -> None:
    own: dict[str, Any] = {"anthropic": {"type": "thinking"}}
    redacted: dict[str, Any] = {"anthropic": {"type": "redacted_thinking"}}
    content: list[Block] = [
        ReasoningBlock(text="hm", signature="c2ln", provider_data=own),
        ReasoningBlock(text="", signature="c2ln", provider_data=own),
        ReasoningBlock(data="b3BhcXVl", redacted=True, provider_data=redacted),
        ReasoningBlock(text="cut off", provider_data=own),
        ReasoningBlock(text="another's", signature="x", provider_data={"deepseek": {"field": "r"}}),
        ReasoningBlock(text="another's", signature="x"),
        TextBlock(text="4"),
        CitationBlock(url="https://host.example"),
        ProviderExtensionBlock(provider="openai", data={"type": "thing"}),
        ProviderExtensionBlock(provider="anthropic", data={"type": "server_tool_use", "id": "s"}),
    ]
    assert (await sent(router, HI, AssistantMessage(content=content)))[1]["content"] == [
        {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
        {"type": "thinking", "thinking": "", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "b3BhcXVl"},
        {"type": "text", "text": "4"},
        {"type": "server_tool_use", "id": "s"},
    ]


async def test_the_history_of_another_provider_is_sent_in_the_words_of_this_one(
    router: respx.MockRouter,
) -> None:
    content: list[Block] = [
        RefusalBlock(text="No."),
        AudioBlock(data="AAAA", media_type="audio/wav", transcript="spoken"),
        JsonBlock(value=[1]),
        ToolCallBlock(id="ran", name="search", arguments={}),
        ToolResultBlock(tool_call_id="ran", content=[TextBlock(text="found")]),
        ToolCallBlock(
            id="call:1",
            name="a.b",
            invalid=InvalidArguments(raw="{", reason="cut"),
            provider_data={"openai": {"extra": 1}},
        ),
    ]
    wire = await sent(
        router,
        HI,
        AssistantMessage(content=content, provider_data={"openai": {"x": 1}}),
        ToolMessage(tool_call_id="call:1", content="r"),
    )
    call, result = wire[1]["content"].pop(), wire[2]["content"][0]
    assert wire[1]["content"] == [
        {"type": "text", "text": "No."},
        {"type": "text", "text": "spoken"},
        {"type": "text", "text": "[1]"},
    ]
    assert call["id"] == result["tool_use_id"]
    assert ":" not in call["id"]
    assert call == {
        "type": "tool_use",
        "id": call["id"],
        "name": wire_names(["a.b"])["a.b"],
        "input": {"invalid_arguments": "{"},
    }


async def test_an_answer_after_a_pause_continues_the_turn(router: respx.MockRouter) -> None:
    paused = AssistantMessage(content="a", provider_data={"anthropic": {"container": {"id": "c1"}}})
    body = await body_of(router, model(), HI, paused)
    assert body["container"] == "c1"
    body = await body_of(router, model(), HI, paused, AssistantMessage(content="b"), HI)
    assert body["messages"][1]["content"] == [
        {"type": "text", "text": "a"},
        {"type": "text", "text": "b"},
    ]
    assert "container" not in body


async def test_a_container_goes_with_the_results_of_calls_from_it(
    router: respx.MockRouter,
) -> None:
    caller: dict[str, Any] = {
        "anthropic": {"caller": {"type": "code_execution_20250825", "tool_id": "s"}}
    }
    asked = AssistantMessage(
        content=[ToolCallBlock(id="t", name="f", provider_data=caller)],
        provider_data={"anthropic": {"container": {"id": "c1", "expires_at": "later"}}},
    )
    body = await body_of(router, model(), HI, asked, ToolMessage(tool_call_id="t", content="r"))
    assert body["container"] == "c1"
    assert body["messages"][1]["content"] == [
        {"type": "tool_use", "id": "t", "name": "f", "input": {}, **caller["anthropic"]}
    ]


async def test_empty_texts_and_messages_are_left_out(router: respx.MockRouter) -> None:
    empty = AssistantMessage(content=[TextBlock(text="")])
    assert await sent(router, HI, empty, UserMessage(content="there")) == [
        {
            "role": "user",
            "content": [{"type": "text", "text": "hi"}, {"type": "text", "text": "there"}],
        }
    ]


async def test_a_message_whose_list_was_appended_to_is_encoded_anew(
    router: respx.MockRouter,
) -> None:
    message = UserMessage(content="a")
    asked = model()
    await body_of(router, asked, message)
    message.content.append(TextBlock(text="b"))
    assert len((await body_of(router, asked, message))["messages"][0]["content"]) == 2
