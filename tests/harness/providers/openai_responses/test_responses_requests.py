"""What messages are sent as to the Responses API."""

from dataclasses import replace
from typing import Any

import httpx
import orjson
import respx

from tests.harness.providers.openai_responses.asking import (
    ANSWER,
    HI,
    NAME,
    body_of,
    model,
    own,
    sent,
)
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
from tinyagents.harness.model import (
    ModelRequest,
    ModelSettings,
)
from tinyagents.harness.prompt import PromptBuilder
from tinyagents.harness.providers import OpenAIChatModel, OpenAIResponsesModel

# Messages


async def test_a_plain_conversation_is_sent_as_instructions_and_items(
    router: respx.MockRouter,
) -> None:
    assert await body_of(
        router,
        model(),
        SystemMessage(content="Be brief."),
        SystemMessage(content="Be kind."),
        HI,
        AssistantMessage(content="hello"),
        SystemMessage(content="Now in French."),
        UserMessage(content="bye"),
    ) == {
        "model": "gpt-4.1",
        "store": False,
        "instructions": "Be brief.\n\nBe kind.",
        "input": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "hello"},
            {"role": "system", "content": "Now in French."},
            {"role": "user", "content": "bye"},
        ],
    }
    assert str(router.calls.last.request.url) == "https://api.openai.com/v1/responses"


async def test_instructions_alone_are_sent_as_input(router: respx.MockRouter) -> None:
    body = await body_of(router, model(), SystemMessage(content="Tell a joke."))
    assert body["input"] == [{"role": "system", "content": "Tell a joke."}]
    assert "instructions" not in body


async def test_a_server_without_instructions_is_sent_items(router: respx.MockRouter) -> None:
    body = await body_of(router, model(provider="xai"), SystemMessage(content="Be brief."), HI)
    assert body["input"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "hi"},
    ]
    assert "instructions" not in body


async def test_what_the_model_said_is_quoted_as_text(router: respx.MockRouter) -> None:
    file = {"type": "input_file", "file_id": "file-1"}
    blocks: list[Block] = [
        TextBlock(text="see"),
        JsonBlock(value={"a": 1}),
        RefusalBlock(text=" no"),
        ReasoningBlock(text="hm"),
        CitationBlock(url="https://x"),
        ProviderExtensionBlock(provider="anthropic", data={"type": "odd"}),
    ]
    own_part = ProviderExtensionBlock(provider=NAME, data=file)
    system = SystemMessage(content=[ProviderExtensionBlock(provider=NAME, data=file)])
    assert await sent(
        router,
        UserMessage(content=blocks),
        UserMessage(content=[TextBlock(text="x"), own_part]),
        system,
        SystemMessage(content=""),
    ) == [
        {"role": "user", "content": 'see\n{"a":1} no'},
        {"role": "user", "content": [{"type": "input_text", "text": "x"}, file]},
        {"role": "system", "content": [file]},
    ]


async def test_media_are_parts_of_the_user_message(router: respx.MockRouter) -> None:
    blocks: list[Block] = [
        TextBlock(text="see", provider_data=own(prompt_cache_breakpoint={"mode": "explicit"})),
        ImageBlock(url="https://x/i.png", detail="low"),
        ImageBlock(data="aWk=", media_type="image/png"),
        ImageBlock(file_id="file-1"),
        FileBlock(data="cGRm", media_type="application/pdf", name="a.pdf"),
        FileBlock(url="https://x/b.pdf"),
        FileBlock(file_id="file-2"),
        JsonBlock(value={"a": 1}),
    ]
    (item,) = await sent(router, UserMessage(content=blocks))
    assert item == {
        "role": "user",
        "content": [
            {
                "type": "input_text",
                "text": "see",
                "prompt_cache_breakpoint": {"mode": "explicit"},
            },
            {"type": "input_image", "detail": "low", "image_url": "https://x/i.png"},
            {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,aWk="},
            {"type": "input_image", "detail": "auto", "file_id": "file-1"},
            {
                "type": "input_file",
                "filename": "a.pdf",
                "file_data": "data:application/pdf;base64,cGRm",
            },
            {"type": "input_file", "file_url": "https://x/b.pdf"},
            {"type": "input_file", "file_id": "file-2"},
            {"type": "input_text", "text": '{"a":1}'},
        ],
    }


async def test_calls_and_their_results_are_items_of_their_own(router: respx.MockRouter) -> None:
    calls: list[Block] = [
        TextBlock(text="Looking."),
        ToolCallBlock(id="call_1", name="get_weather", arguments={"city": "Paris"}),
        ToolCallBlock(id="call_2", name="look", arguments={}),
        ToolCallBlock(
            id="call_3", name="look", invalid=InvalidArguments(raw="{oops", reason="no JSON")
        ),
    ]
    picture = ImageBlock(url="https://x/i.png")
    assert await sent(
        router,
        HI,
        AssistantMessage(content=calls),
        ToolMessage(tool_call_id="call_1", content="sunny"),
        ToolMessage(tool_call_id="call_2", content=[TextBlock(text="this:"), picture]),
        ToolMessage(tool_call_id="call_3", content="no JSON", is_error=True),
    ) == [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "Looking."},
        {
            "type": "function_call",
            "call_id": "call_1",
            "name": "get_weather",
            "arguments": '{"city":"Paris"}',
        },
        {"type": "function_call", "call_id": "call_2", "name": "look", "arguments": "{}"},
        {
            "type": "function_call",
            "call_id": "call_3",
            "name": "look",
            "arguments": '{"invalid_arguments":"{oops"}',
        },
        {"type": "function_call_output", "call_id": "call_1", "output": "sunny"},
        {
            "type": "function_call_output",
            "call_id": "call_2",
            "output": [
                {"type": "input_text", "text": "this:"},
                {"type": "input_image", "detail": "auto", "image_url": "https://x/i.png"},
            ],
        },
        {"type": "function_call_output", "call_id": "call_3", "output": "no JSON"},
    ]


async def test_an_id_that_is_too_long_is_replaced_the_same_in_call_and_result(
    router: respx.MockRouter,
) -> None:
    long = "call_" + "x" * 80
    call, result = await sent(
        router,
        AssistantMessage(content=[ToolCallBlock(id=long, name="f")]),
        ToolMessage(tool_call_id=long, content="x"),
    )
    assert call["call_id"] == result["call_id"]
    assert len(call["call_id"]) <= 64


async def test_what_another_provider_made_is_sent_as_far_as_it_has_a_form(
    router: respx.MockRouter,
) -> None:
    blocks: list[Block] = [
        ReasoningBlock(text="hm", signature="s", provider_data={"anthropic": {"x": 1}}),
        TextBlock(text="a", provider_data={"openai": {"x": 1}}),
        CitationBlock(url="https://x"),
        ProviderExtensionBlock(provider="openai", data={"type": "odd"}),
        RefusalBlock(text="b"),
        JsonBlock(value=[1]),
        AudioBlock(data="aWk=", media_type="audio/wav", transcript="c"),
        ToolCallBlock(id="s1", name="search", arguments={"q": 1}),
        ToolResultBlock(tool_call_id="s1", content=[TextBlock(text="found")]),
        TextBlock(text="d"),
    ]
    message = AssistantMessage(content=blocks)
    assert await sent(router, HI, message) == [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "ab[1]c"},
        {"type": "function_call", "call_id": "s1", "name": "search", "arguments": '{"q":1}'},
        {"type": "function_call_output", "call_id": "s1", "output": "found"},
        {"role": "assistant", "content": "d"},
    ]
    assert message.content == blocks


FRAME = {
    "id": "msg_1",
    "type": "message",
    "status": "completed",
    "content": [],
    "role": "assistant",
}
PART = {"type": "output_text", "annotations": [], "text": ""}
THOUGHT: dict[str, Any] = {"id": "rs_1", "type": "reasoning", "summary": []}
CALL = {"id": "fc_1", "type": "function_call", "call_id": "c1", "name": "f", "arguments": ""}


def answer(*, encrypted: str | None = "gAAA", text: str = "done") -> AssistantMessage:
    item = THOUGHT if encrypted is None else {**THOUGHT, "encrypted_content": ""}
    return AssistantMessage(
        id="resp_1",
        content=[
            ReasoningBlock(data=encrypted, provider_data=own(item=item)),
            TextBlock(text=text, provider_data=own(item=FRAME, part=PART)),
            ToolCallBlock(id="c1", name="f", arguments={"a": 1}, provider_data=own(item=CALL)),
        ],
    )


async def test_reasoning_goes_back_encrypted_with_the_items_it_led_to(
    router: respx.MockRouter,
) -> None:
    assert await sent(router, answer()) == [
        {**THOUGHT, "encrypted_content": "gAAA"},
        {**FRAME, "content": [{**PART, "text": "done"}]},
        {**CALL, "arguments": '{"a":1}'},
    ]


async def test_reasoning_that_nobody_could_read_is_left_out_with_the_ids_that_depend_on_it(
    router: respx.MockRouter,
) -> None:
    items = await sent(router, answer(encrypted=None))
    assert [item["type"] for item in items] == ["message", "function_call"]
    assert not any("id" in item for item in items)
    stored = await sent(router, answer(encrypted=None), store=True)
    assert [item["id"] for item in stored] == ["rs_1", "msg_1", "fc_1"]
    # A server that shows its reasoning reads it.
    other = {"deepseek_responses": {"item": THOUGHT}}
    shown = AssistantMessage(content=[ReasoningBlock(text="x", provider_data=other)])
    assert await sent(router, shown, provider="deepseek") == [THOUGHT]


async def test_one_message_is_encoded_for_both_when_storing_changes(
    router: respx.MockRouter,
) -> None:
    message, asked = answer(encrypted=None), model()
    lengths: list[int] = []
    async with asked:
        for store in (False, True, False):
            settings = ModelSettings(provider_options={"store": store})
            await asked.invoke(ModelRequest(messages=[message], settings=settings))
            lengths.append(len(orjson.loads(router.calls.last.request.content)["input"]))
    assert lengths == [2, 3, 2]


async def test_reasoning_that_led_to_nothing_is_left_out(router: respx.MockRouter) -> None:
    cut = AssistantMessage(content=answer().content[:1])
    assert await sent(router, HI, cut) == [{"role": "user", "content": "hi"}]


async def test_parts_of_one_item_go_back_together_and_a_changed_text_is_sent(
    router: respx.MockRouter,
) -> None:
    refusal = {"type": "refusal", "refusal": ""}
    blocks: list[Block] = [
        TextBlock(text="a", provider_data=own(item=FRAME, part=PART)),
        CitationBlock(url="https://x"),
        ProviderExtensionBlock(provider=NAME, data={"item": FRAME, "part": {"type": "odd"}}),
        RefusalBlock(text="no", provider_data=own(item=FRAME, part=refusal)),
        TextBlock(text="b", provider_data=own(item={**FRAME, "id": "msg_2"}, part=PART)),
        TextBlock(text="mine"),
    ]
    assert await sent(router, AssistantMessage(content=blocks)) == [
        {
            **FRAME,
            "content": [
                {**PART, "text": "a"},
                {"type": "odd"},
                {"type": "refusal", "refusal": "no"},
            ],
        },
        {**FRAME, "id": "msg_2", "content": [{**PART, "text": "b"}]},
        {"role": "assistant", "content": "mine"},
    ]


async def test_the_text_of_arguments_is_kept_until_they_are_changed(
    router: respx.MockRouter,
) -> None:
    item = {**CALL, "arguments": '{ "a": 1 }'}
    call = ToolCallBlock(id="c1", name="f", arguments={"a": 1}, provider_data=own(item=item))
    changed = call.model_copy(update={"arguments": {"a": 2}})
    items = await sent(router, AssistantMessage(content=[call, changed]))
    assert [each["arguments"] for each in items] == ['{ "a": 1 }', '{"a":2}']


async def test_a_quoted_answer_keeps_nothing_of_its_item(router: respx.MockRouter) -> None:
    assert await sent(router, UserMessage(content=[answer().content[1]])) == [
        {"role": "user", "content": "done"}
    ]


async def test_items_of_the_providers_own_tools_go_back_where_they_stood(
    router: respx.MockRouter,
) -> None:
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    drawn: dict[str, Any] = {"type": "image_generation_call", "id": "ig_1", "result": None}
    blocks: list[Block] = [
        ProviderExtensionBlock(provider=NAME, data=search),
        ImageBlock(data="aWk=", media_type="image/png", provider_data=own(item=drawn)),
        TextBlock(text="a"),
    ]
    approval = {"type": "mcp_approval_response", "approval_request_id": "m1", "approve": True}
    yes = UserMessage(
        content=[TextBlock(text="ok"), ProviderExtensionBlock(provider=NAME, data=approval)]
    )
    assert await sent(router, AssistantMessage(content=blocks), yes) == [
        search,
        {**drawn, "result": "aWk="},
        {"role": "assistant", "content": "a"},
        {"role": "user", "content": "ok"},
        approval,
    ]


# Continuing


async def test_a_continued_answer_is_followed_by_what_is_new(router: respx.MockRouter) -> None:
    odd = ToolCallBlock(id="c_1-x", name="f", provider_data=own(item={**CALL, "call_id": "c_1-x"}))
    asked = AssistantMessage(id="resp_7", content=[odd])
    body = await body_of(
        router,
        model(settings=ModelSettings(provider_options={"store": True})),
        SystemMessage(content="Be brief."),
        HI,
        asked,
        ToolMessage(tool_call_id="c_1-x", content="1"),
        continuation_id="resp_7",
    )
    assert body == {
        "model": "gpt-4.1",
        "store": True,
        "previous_response_id": "resp_7",
        "instructions": "Be brief.",
        "input": [{"type": "function_call_output", "call_id": "c_1-x", "output": "1"}],
    }


async def test_all_messages_are_new_where_the_continued_answer_is_not_among_them(
    router: respx.MockRouter,
) -> None:
    body = await body_of(router, model(), HI, continuation_id="resp_7")
    assert body["input"] == [{"role": "user", "content": "hi"}]
    assert body["previous_response_id"] == "resp_7"
    assert body["store"] is False


async def test_the_providers_own_id_of_a_call_is_used_for_its_result(
    router: respx.MockRouter,
) -> None:
    output = [{**CALL, "call_id": "functions.f:0", "arguments": "{}"}]
    router.route().mock(return_value=httpx.Response(200, json={**ANSWER, "output": output}))
    asked = model()
    async with asked:
        message = (await asked.invoke(ModelRequest(messages=[HI]))).message
    (call,) = message.tool_calls
    assert "." not in call.id
    items = await sent(router, message, ToolMessage(tool_call_id=call.id, content="1"))
    assert [item["call_id"] for item in items] == ["functions.f:0"] * 2


async def test_an_answer_of_this_api_is_plain_to_the_chat_api(router: respx.MockRouter) -> None:
    search = ProviderExtensionBlock(provider=NAME, data={"type": "web_search_call", "id": "ws_1"})
    message = AssistantMessage(content=[search, *answer().content])
    choice = {"index": 0, "message": {"content": "ok"}, "finish_reason": "stop"}
    router.route().mock(return_value=httpx.Response(200, json={"id": "c", "choices": [choice]}))
    async with OpenAIChatModel("gpt-4.1", api_key="the-key-of-a-test") as chat:
        await chat.invoke(ModelRequest(messages=[HI, message]))
    assert orjson.loads(router.calls.last.request.content)["messages"][1] == {
        "role": "assistant",
        "content": "done",
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}
        ],
    }


# Prompt caches

STABLE = PromptBuilder().push_system("You help.")


async def test_the_key_of_the_prompt_cache_is_made_of_the_fingerprint(
    router: respx.MockRouter,
) -> None:
    request = STABLE.push_volatile("now").build("hi")

    async def key(asked: OpenAIResponsesModel, **changes: Any) -> object:
        async with asked:
            await asked.invoke(replace(request, **changes))
        return orjson.loads(router.calls.last.request.content).get("prompt_cache_key")

    made = await key(model(prompt_cache_key=True))
    # OpenAI takes 64 characters at most.
    assert made == f"tap-{STABLE.fingerprint}"[:64]
    assert await key(model()) is None
    own = ModelSettings(provider_options={"prompt_cache_key": "mine"})
    assert await key(model(prompt_cache_key=True), settings=own) == "mine"
    assert await key(model(prompt_cache_key=True), prompt_fingerprint=None) is None
    late = PromptBuilder().push_volatile("now").push_system("You help.").build("hi")
    assert await key(model(prompt_cache_key=True), segments=late.segments) is None
