"""What comes back from the Messages API: whole and streamed, the same message."""

from typing import Any

import httpx
import orjson
import pytest

from tests.harness.providers.anthropic_messages.answers import (
    ANSWERS,
    REQUEST,
    SSE,
    USAGE,
    answering,
    block,
    end,
    event_bytes,
    extension,
    model,
    partial,
    start,
    streamed,
    whole,
)
from tests.harness.providers.server import Reply
from tinyagents.harness.errors import MalformedResponseError, ServerError
from tinyagents.harness.message import (
    ToolCallBlock,
)
from tinyagents.harness.model import (
    ModelRequest,
    StreamCompleted,
    ToolSchema,
)
from tinyagents.harness.providers import AnthropicModel
from tinyagents.harness.tool import wire_names
from tinyagents.harness.usage import Usage


@pytest.mark.parametrize("case", ANSWERS)
async def test_whole_and_streamed_answers_make_the_same_message(case: str) -> None:
    content, events, blocks = ANSWERS[case]
    plain = await whole(content)
    assert plain.message.content == blocks
    assert plain == await streamed([start(), *events, *end()])


@pytest.mark.parametrize("kind", [["odd"], {}, 5, None])
async def test_a_block_whose_type_is_no_text_is_kept_and_goes_back(kind: Any) -> None:
    content = [{"type": kind, "data": 1}, {"type": "text", "text": "hi"}]
    sent: list[Any] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(orjson.loads(request.content))
        said = {"role": "assistant", "content": content, "stop_reason": "end_turn", "usage": USAGE}
        return httpx.Response(200, json=said)

    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
        asked = model(client)
        response = await asked.invoke(REQUEST)
        assert response.text == "hi"
        again = [*REQUEST.messages, response.message, *REQUEST.messages]
        await asked.invoke(ModelRequest(messages=again))
    assert sent[1]["messages"][1]["content"] == content


@pytest.mark.parametrize("case", [name for name in ANSWERS if name != "an empty text"])
async def test_an_answer_goes_back_as_it_came(case: str) -> None:
    content, events, _ = ANSWERS[case]
    sent: list[Any] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(orjson.loads(request.content))
        return httpx.Response(200, headers=SSE, content=event_bytes(start(), *events, *end()))

    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
        asked = model(client)
        items = [item async for item in asked.stream(REQUEST)]
        assert isinstance(items[-1], StreamCompleted)
        history = [*REQUEST.messages, items[-1].response.message, *REQUEST.messages]
        _ = [item async for item in asked.stream(ModelRequest(messages=history))]
    back = sent[1]["messages"][1]["content"]
    assert back == [{k: v for k, v in part.items() if v is not None} for part in content]


async def test_an_error_with_a_status_of_success_is_raised() -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Busy."}}
    async with answering(Reply.json(error).pieces) as client:
        with pytest.raises(ServerError, match="Busy"):
            await model(client).invoke(REQUEST)


async def test_what_no_message_can_hold_is_malformed() -> None:
    deep: Any = 1
    for _ in range(210):
        deep = [deep]
    content = {"type": "thing", "deep": deep}
    with pytest.raises(MalformedResponseError, match="cannot be read"):
        await whole([content])
    with pytest.raises(MalformedResponseError, match="cannot be read"):
        await streamed([start(), *block(0, content), *end()])


# Why it ended, and what it cost


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("tool_use", "tool_calls"),
        ("pause_turn", "pause"),
        ("compaction", "pause"),
        ("refusal", "refusal"),
        ("reason_of_tomorrow", "other"),
    ],
)
async def test_each_reason_has_its_word(reason: str, finish: str) -> None:
    response = await whole([], reason)
    assert (response.finish_reason, response.raw_finish_reason) == (finish, reason)
    assert response == await streamed([start(), *end(reason)])


async def test_what_the_provider_says_of_a_refusal_is_a_finding_of_safety() -> None:
    details: dict[str, Any] = {"type": "refusal", "category": "cyber", "explanation": "No."}
    plain = await whole([], "refusal", stop_details=details)
    assert plain.safety == {"stop_details": details}
    assert plain == await streamed([start(), *end("refusal", delta={"stop_details": details})])


async def test_facts_beside_the_content_are_kept() -> None:
    container: dict[str, Any] = {"id": "container_1", "expires_at": "2026-01-01T00:00:00Z"}
    edits = {"applied_edits": [{"type": "clear", "cleared_input_tokens": 5}]}
    delta: dict[str, Any] = {"stop_sequence": "END", "container": container}
    plain = await whole([], "stop_sequence", context_management=edits, **delta)
    assert plain.message.provider_data == {"anthropic": {"container": container}}
    assert plain.raw == {
        "stop_sequence": "END",
        "container": container,
        "context_management": edits,
        "usage": {**USAGE, "output_tokens": 9},
    }
    assert plain == await streamed(
        [start(), *end("stop_sequence", delta=delta, context_management=edits)]
    )


async def test_usage_counts_the_cache_as_input_and_compacting_on_top() -> None:
    plain = await whole([])
    assert plain.usage == Usage(
        input_tokens=6, output_tokens=9, cache_read_tokens=2, cache_write_tokens=1
    )
    iterations = [
        {"type": "compaction", "input_tokens": 100, "output_tokens": 10},
        {"type": "message", "input_tokens": 3, "output_tokens": 9},
    ]
    compacted = await whole([], usage={**USAGE, "output_tokens": 9, "iterations": iterations})
    assert compacted.usage == Usage(
        input_tokens=106, output_tokens=19, cache_read_tokens=2, cache_write_tokens=1
    )


# Calls


async def test_the_name_of_a_tool_comes_back_as_the_applications() -> None:
    request = ModelRequest(
        messages=REQUEST.messages,
        tools=[ToolSchema(name="a.b", description="", parameters={"type": "object"})],
    )
    begun: dict[str, Any] = {
        "type": "tool_use",
        "id": "t",
        "name": wire_names(["a.b"])["a.b"],
        "input": {},
    }
    plain = await whole([begun], "tool_use", request)
    assert plain.message.tool_calls == [ToolCallBlock(id="t", name="a.b")]
    assert plain == await streamed([start(), *block(0, begun), *end("tool_use")], request)


async def test_arguments_that_are_no_object_are_told_as_invalid_or_repaired() -> None:
    events = [
        start(),
        *block(0, {"type": "tool_use", "id": "a", "name": "f", "input": {}}, partial('{"a": ')),
        *block(1, {"type": "tool_use", "id": "b", "name": "f", "input": {}}, partial("[1]")),
        *end("max_tokens"),
    ]
    first, second = (await streamed(events)).message.tool_calls
    assert first.invalid is not None
    assert first.invalid.raw == '{"a": '
    assert second.invalid is not None
    assert second.invalid.raw == "[1]"


async def test_input_of_the_providers_tool_that_was_cut_off_stays_an_object() -> None:
    begun: dict[str, Any] = {
        "type": "server_tool_use",
        "id": "s",
        "name": "web_search",
        "input": {},
    }
    response = await streamed([start(), *block(0, begun, partial('{"q": "x')), *end("max_tokens")])
    assert response.message.content == [
        extension({**begun, "input": {"invalid_arguments": '{"q": "x'}})
    ]


async def test_a_call_without_an_id_gets_one() -> None:
    (call,) = (await whole([{"type": "tool_use", "name": "f", "input": {}}])).message.tool_calls
    assert call.id.startswith("tacall_")


async def test_thinking_without_a_seal_goes_back_where_none_is_asked_for() -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": ""}
    content = [thought, {"type": "text", "text": "4"}]
    sent: list[Any] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(orjson.loads(request.content))
        return httpx.Response(200, json={**start()["message"], "content": content})

    for provider, back in (("compatible", content), ("anthropic", content[1:])):
        async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
            asked = AnthropicModel(
                "m",
                provider=provider,
                api_key="",
                base_url="http://host.example",
                http_client=client,
            )
            first = await asked.invoke(REQUEST)
            await asked.invoke(ModelRequest(messages=[*REQUEST.messages, first.message]))
        assert sent[-1]["messages"][1]["content"] == back
