"""What comes back from the Responses API: whole and streamed, every shape makes one message."""

from typing import Any

import pytest

from tests.harness.providers.openai_responses.wire import (
    NAME,
    REQUEST,
    USAGE,
    call,
    event,
    events_of,
    items_of,
    message,
    own,
    response,
    streamed,
    text,
    thought,
    whole,
)
from tests.harness.providers.server import (
    joined,
)
from tinyagents.harness.message import (
    Block,
    CitationBlock,
    ImageBlock,
    InvalidArguments,
    ProviderExtensionBlock,
    ReasoningBlock,
    RefusalBlock,
    TextBlock,
    ToolCallBlock,
)
from tinyagents.harness.model import (
    MessageDelta,
    ModelRequest,
    StreamCompleted,
    StreamStarted,
    ToolCallDelta,
    ToolSchema,
    UsageDelta,
)
from tinyagents.harness.tool import wire_names
from tinyagents.harness.usage import Usage

FRAME = message()
PART = text("")
WEB = {"type": "url_citation", "url": "https://x", "title": "X", "start_index": 0, "end_index": 2}
FILE = {"type": "file_citation", "file_id": "file-1", "filename": "a.txt", "index": 1}
BOXED = {
    "type": "container_file_citation",
    "container_id": "c",
    "file_id": "f",
    "filename": "b.csv",
    "start_index": 0,
    "end_index": 1,
}
ODD_NOTES: list[dict[str, Any]] = [{"type": "odd"}, {"type": ["odd"]}, {"type": {}}]
SEARCH = {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {"q": "x"}}
DRAWN = {"id": "ig_1", "type": "image_generation_call", "status": "completed"}

ANSWERS: dict[str, tuple[dict[str, Any], list[Block], str]] = {
    "text": (
        response(message(text("Hello"), phase="final_answer")),
        [
            TextBlock(
                text="Hello",
                provider_data=own(item={**FRAME, "phase": "final_answer"}, part=PART),
            )
        ],
        "stop",
    ),
    "a refusal": (
        response(message({"type": "refusal", "refusal": "I will not."})),
        [
            RefusalBlock(
                text="I will not.",
                provider_data=own(item=FRAME, part={"type": "refusal", "refusal": ""}),
            )
        ],
        "refusal",
    ),
    "encrypted reasoning with summaries": (
        response(thought("One", "Two", encrypted_content="gAAA"), message(text("4"))),
        [
            ReasoningBlock(
                text="One\n\nTwo",
                data="gAAA",
                provider_data=own(item=thought("One", "Two", encrypted_content="")),
            ),
            TextBlock(text="4", provider_data=own(item=FRAME, part=PART)),
        ],
        "stop",
    ),
    "reasoning in the open": (
        response(thought(content=[{"type": "reasoning_text", "text": "Let me see"}])),
        [
            ReasoningBlock(
                text="Let me see",
                provider_data=own(
                    item=thought(content=[{"type": "reasoning_text", "text": "Let me see"}])
                ),
            )
        ],
        "stop",
    ),
    "calls": (
        response(call('{"a":1}'), call('{ "b": 2 }', "g", id="fc_2", call_id="call_2")),
        [
            ToolCallBlock(
                id="call_1", name="f", arguments={"a": 1}, provider_data=own(item=call(""))
            ),
            ToolCallBlock(
                id="call_2",
                name="g",
                arguments={"b": 2},
                provider_data=own(item=call('{ "b": 2 }', "g", id="fc_2", call_id="call_2")),
            ),
        ],
        "tool_calls",
    ),
    "a call without arguments": (
        response(call("")),
        [ToolCallBlock(id="call_1", name="f", provider_data=own(item=call("")))],
        "tool_calls",
    ),
    "a call cut by the limit": (
        response(
            call('{"a":"x', status="incomplete"),
            status="incomplete",
            incomplete_details={"reason": "max_output_tokens"},
        ),
        [
            ToolCallBlock(
                id="call_1",
                name="f",
                invalid=InvalidArguments(raw='{"a":"x', reason="?"),
                provider_data=own(item=call('{"a":"x', status="incomplete")),
            )
        ],
        "length",
    ),
    "citations": (
        response(message(text("Hi."), text("Yes", WEB, FILE, BOXED, *ODD_NOTES))),
        [
            TextBlock(text="Hi.", provider_data=own(item=FRAME, part=PART)),
            TextBlock(
                text="Yes",
                provider_data=own(item=FRAME, part=text("", WEB, FILE, BOXED, *ODD_NOTES)),
            ),
            CitationBlock(url="https://x", title="X", start=3, end=5),
            CitationBlock(title="a.txt", provider_data={NAME: FILE}),
            CitationBlock(title="b.csv", start=3, end=4, provider_data={NAME: BOXED}),
        ],
        "stop",
    ),
    "tools of the provider": (
        response(SEARCH, {**DRAWN, "result": "aWk=", "output_format": "webp"}, message(text("a"))),
        [
            ProviderExtensionBlock(provider=NAME, data=SEARCH),
            ImageBlock(
                data="aWk=",
                media_type="image/webp",
                provider_data=own(item={**DRAWN, "result": None, "output_format": "webp"}),
            ),
            TextBlock(text="a", provider_data=own(item=FRAME, part=PART)),
        ],
        "stop",
    ),
    "what is not understood": (
        response({"type": "new_item", "x": [1]}, message({"type": "new_part", "y": 2}), message()),
        [
            ProviderExtensionBlock(provider=NAME, data={"type": "new_item", "x": [1]}),
            ProviderExtensionBlock(
                provider=NAME, data={"item": FRAME, "part": {"type": "new_part", "y": 2}}
            ),
            ProviderExtensionBlock(provider=NAME, data=message()),
        ],
        "stop",
    ),
    "an answer cut by the filter": (
        response(
            message(text("He")),
            status="incomplete",
            incomplete_details={"reason": "content_filter"},
        ),
        [TextBlock(text="He", provider_data=own(item=FRAME, part=PART))],
        "content_filter",
    ),
    "an answer cut for a new reason": (
        response(status="incomplete", incomplete_details={"reason": "max_tool_calls"}),
        [],
        "other",
    ),
}


def without_reasons(content: list[Block]) -> list[Block]:
    """The wording of what is wrong with arguments is not what is tested."""
    made: list[Block] = []
    for block in content:
        if isinstance(block, ToolCallBlock) and block.invalid is not None:
            invalid = InvalidArguments(raw=block.invalid.raw, reason="?")
            block = block.model_copy(update={"invalid": invalid})
        made.append(block)
    return made


@pytest.mark.parametrize("shape", ANSWERS)
async def test_whole_and_streamed_answers_make_the_same_message(shape: str) -> None:
    body, content, finish = ANSWERS[shape]
    body = {**body, "usage": USAGE}
    plain = await whole(body)
    assert without_reasons(plain.message.content) == content
    assert plain.finish_reason == finish
    assert plain.message.id == plain.response_id == "resp_1"
    assert plain.model == "served"
    assert await streamed(events_of(body)) == plain


@pytest.mark.parametrize("shape", ANSWERS)
async def test_the_message_is_the_same_when_only_whole_items_come(shape: str) -> None:
    body, _, _ = ANSWERS[shape]
    plain = await whole(body)
    kinds = ("response.output_item.done", "response.completed", "response.incomplete")
    assert await streamed([each for each in events_of(body) if each["type"] in kinds]) == plain
    assert await streamed(events_of(body)[-1:]) == plain


async def test_an_end_that_holds_no_items_leaves_those_that_came() -> None:
    body = response(thought("a", encrypted_content="x"), message(text("Hello")), call('{"a":1}'))
    events = events_of(body)
    events[-1] = event("completed", response={**body, "output": []})
    assert (await streamed(events)).message == (await whole(body)).message


async def test_pieces_of_items_that_never_came_whole_are_kept() -> None:
    body = response(thought("a"), message(text("Hello")), call('{"a":1}'))
    events = [each for each in events_of(body) if not each["type"].endswith("item.done")]
    events[-1] = event("completed", response={**body, "output": []})
    answer = (await streamed(events)).message
    assert answer.text == "Hello"
    assert [(each.id, each.arguments) for each in answer.tool_calls] == [("call_1", {"a": 1})]
    assert [each.text for each in answer.content if each.type == "reasoning"] == ["a"]


async def test_a_stream_gives_out_its_pieces_as_they_come() -> None:
    body = response(thought("One", "Two"), message(text("Hello")), call("{}"), usage=USAGE)
    items = await items_of([joined(events_of(body), done=False)])
    used = Usage(
        input_tokens=10,
        output_tokens=7,
        cache_read_tokens=4,
        cache_write_tokens=2,
        reasoning_tokens=5,
    )
    assert items[:-1] == [
        StreamStarted(response_id="resp_1", model="served"),
        MessageDelta(reasoning="O"),
        MessageDelta(reasoning="ne"),
        MessageDelta(reasoning="\n\n"),
        MessageDelta(reasoning="T"),
        MessageDelta(reasoning="wo"),
        MessageDelta("He"),
        MessageDelta("llo"),
        ToolCallDelta(call_id="call_1", name="f", index=2),
        ToolCallDelta(arguments="{", index=2),
        ToolCallDelta(arguments="}", index=2),
        UsageDelta(used),
    ]
    assert isinstance(items[-1], StreamCompleted)
    assert items[-1].response.usage == used


OTHER_EVENTS = [
    event("queued", response=response(status="queued")),
    *(
        event(kind, output_index=0, item_id="i", content_index=0)
        for kind in (
            "content_part.added",
            "content_part.done",
            "output_text.done",
            "output_text.annotation.added",
            "refusal.done",
            "reasoning_summary_part.added",
            "reasoning_summary_part.done",
            "reasoning_summary_text.done",
            "reasoning_text.done",
            "function_call_arguments.done",
            "file_search_call.in_progress",
            "file_search_call.searching",
            "file_search_call.completed",
            "web_search_call.in_progress",
            "web_search_call.searching",
            "web_search_call.completed",
            "image_generation_call.in_progress",
            "image_generation_call.generating",
            "image_generation_call.partial_image",
            "image_generation_call.completed",
            "code_interpreter_call.in_progress",
            "code_interpreter_call.interpreting",
            "code_interpreter_call.completed",
            "code_interpreter_call_code.done",
            "mcp_call.in_progress",
            "mcp_call.completed",
            "mcp_call.failed",
            "mcp_list_tools.in_progress",
            "mcp_list_tools.completed",
            "mcp_list_tools.failed",
        )
    ),
    *(
        event(f"{kind}.delta", output_index=0, item_id="i", delta="x")
        for kind in (
            "mcp_call_arguments",
            "custom_tool_call_input",
            "code_interpreter_call_code",
            "audio",
            "audio.transcript",
            "an_event_of_next_year",
        )
    ),
    {"type": "keepalive", "sequence_number": 3},
    {"type": ["odd"]},
    {"no": "type"},
]


async def test_events_that_add_nothing_are_ignored() -> None:
    body = response(SEARCH, message(text("Hello")))
    events = events_of(body)
    mixed = [*events[:3], *OTHER_EVENTS, *events[3:]]
    assert await streamed(mixed) == await whole(body)


async def test_the_applications_name_of_a_tool_comes_back() -> None:
    tool = ToolSchema(name="weather.now", description="", parameters={"type": "object"})
    request = ModelRequest(messages=REQUEST.messages, tools=[tool])
    wire = wire_names(["weather.now"])["weather.now"]
    body = response(call("{}", wire))
    plain = await whole(body, request)
    assert [each.name for each in plain.message.tool_calls] == ["weather.now"]
    assert await streamed(events_of(body), request) == plain


async def test_a_call_without_any_id_gets_one_that_its_deltas_have_too() -> None:
    body = response(call("{}", id=None, call_id=None))
    items = await items_of([joined(events_of(body), done=False)])
    assert isinstance(items[-1], StreamCompleted)
    (made,) = items[-1].response.message.tool_calls
    assert made.id.startswith("tacall")
    assert ToolCallDelta(call_id=made.id, name="f", index=0) in items


async def test_what_else_the_provider_says_is_kept() -> None:
    logprobs = [{"token": "a", "logprob": -0.1}]
    body = response(
        message(text("a", logprobs=logprobs)),
        service_tier="default",
        tools=[{"type": "function"}],
        instructions="Be brief.",
        content_filters=[{"blocked": False, "source": "prompt"}],
        usage=USAGE,
    )
    answer = await whole(body)
    assert answer.raw == {
        "service_tier": "default",
        "usage": USAGE,
        "logprobs": {"content": logprobs},
    }
    assert answer.safety == {"content_filters": [{"blocked": False, "source": "prompt"}]}
    assert answer.raw_finish_reason == "completed"
    assert answer.message.content == [
        TextBlock(text="a", provider_data=own(item=FRAME, part=text("", logprobs=[])))
    ]


async def test_a_call_whose_name_comes_late_is_announced_once_it_is_known() -> None:
    body = response(call('{"a":1}'))
    events = events_of(body)
    events[2]["item"] = {**events[2]["item"], "name": "", "call_id": None}
    assert await streamed(events) == await whole(body)


async def test_items_that_are_numbered_from_another_place_come_once() -> None:
    body = response(message(text("Hello")), call("{}"))
    events = events_of(body)
    for each in events:
        if "output_index" in each:
            each["output_index"] += 3
    assert await streamed(events) == await whole(body)
