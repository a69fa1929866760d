"""What recorded answers of the Messages API become: the table is what is expected of each.

The folder is not part of the repository, and nothing of its texts is: a block is told by its kind
and length, a call by its name and the names of its arguments.
"""

from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from tests.harness.providers.recorded import (
    REQUEST,
    Answer,
    Failure,
    anthropic_model,
    cases,
    described,
    document_of,
    is_streamed,
    outcome,
    replies,
    without_new_ids,
)
from tests.harness.providers.server import Reply, Seen, serve
from tinyagents.harness.errors import (
    AuthenticationError,
    BadRequestError,
    ContextOverflowError,
    RateLimitError,
    ServerError,
)
from tinyagents.harness.message import UserMessage
from tinyagents.harness.model import (
    MessageDelta,
    ModelRequest,
    StreamCompleted,
    StreamMerger,
    UsageDelta,
)
from tinyagents.harness.providers import AnthropicModel

API = "anthropic_messages"

EXPECTED: dict[str, Answer | Failure] = {
    "cache-read": Answer(["text 961"], (1167, 202, 1163, 0, 0), "stop", "end_turn"),
    "code-execution": Answer(
        ["text 55", "server_tool_use", "bash_code_execution_tool_result", "text 236"],
        (4796, 234, 0, 0, 0),
        "stop",
        "end_turn",
    ),
    "compaction-block": Answer(["compaction"], (83555, 139, 0, 0, 0), "pause", "compaction"),
    "empty-history-message": Answer(["text 364"], (41, 88, 0, 0, 0), "stop", "end_turn"),
    "error-400-too-long": Failure(
        ContextOverflowError, 400, "invalid_request_error", retryable=False
    ),
    "error-401": Failure(AuthenticationError, 401, "authentication_error", retryable=False),
    "error-404": Failure(BadRequestError, 404, "not_found_error", retryable=False),
    "image-input": Answer(["text 366"], (296, 91, 0, 0, 0), "stop", "end_turn"),
    "json-schema": Answer(["text 65"], (196, 19, 0, 0, 0), "stop", "end_turn"),
    "parallel-tool-results": Answer(["text 340"], (771, 77, 0, 0, 0), "stop", "end_turn"),
    "parallel-tool-use": Answer(
        ["text 156", *["retrieve_entity_info(name)"] * 4],
        (423, 202, 0, 0, 0),
        "tool_calls",
        "tool_use",
    ),
    "pdf-input": Answer(["text 112"], (1615, 28, 0, 0, 0), "stop", "end_turn"),
    "plain-text": Answer(["text 31"], (20, 10, 0, 0, 0), "stop", "end_turn"),
    "programmatic-tool-use": Answer(
        ["text 41", "server_tool_use", "get_weather(location)"],
        (3294, 103, 0, 0, 0),
        "tool_calls",
        "tool_use",
    ),
    "reconstructed-error-429-retry-after": Failure(
        RateLimitError, 429, "rate_limit_error", retryable=True, retry_after=12.0
    ),
    "reconstructed-error-500": Failure(ServerError, 500, "api_error", retryable=True),
    "reconstructed-error-529": Failure(ServerError, 529, "overloaded_error", retryable=True),
    "reconstructed-refusal": Answer([], (9, 0, 0, 0, 0), "refusal", "refusal"),
    "reconstructed-stream-overloaded": Failure(
        ServerError, None, "overloaded_error", retryable=True
    ),
    "redacted-thinking": Answer(
        ["reasoning 0", "text 341"], (92, 196, 0, 0, 0), "stop", "end_turn"
    ),
    "stop-sequence": Answer(["text 22"], (32, 5, 0, 0, 0), "stop", "stop_sequence"),
    "stream-citations": Answer(
        ["text 18", "citation", "text 5", "text 15", "citation", "text 1"],
        (566, 46, 0, 0, 0),
        "stop",
        "end_turn",
    ),
    "stream-text": Answer(["text 42"], (639, 13, 0, 0, 0), "stop", "end_turn"),
    "stream-thinking": Answer(["reasoning 422", "text 56"], (52, 216, 0, 0, 0), "stop", "end_turn"),
    "stream-tool-use": Answer(
        ["get_weather(location)"], (567, 57, 0, 0, 0), "tool_calls", "tool_use"
    ),
    "thinking-signature": Answer(
        ["reasoning 847", "text 1295"], (354, 525, 0, 0, 0), "stop", "end_turn"
    ),
    "thinking-tool-result": Answer(["text 604"], (566, 126, 0, 0, 0), "stop", "end_turn"),
    "web-search": Answer(
        [
            *("text 67", "server_tool_use", "web_search_tool_result", "text 72"),
            *("text 176", "citation", "text 1"),
        ],
        (16083, 165, 0, 0, 0),
        "stop",
        "end_turn",
    ),
}


def test_every_recorded_case_has_an_expectation(shared: Path) -> None:
    assert cases(shared, API) == set(EXPECTED)


@pytest.mark.parametrize("case", EXPECTED)
async def test_a_recorded_answer_is_understood_however_its_bytes_arrive(
    case: str, shared: Path
) -> None:
    document = document_of(shared, API, case)
    forms = replies(document["response"])

    def script(_seen: Seen) -> Reply:
        return forms[len(server.requests) - 1]

    async with serve(script) as server, anthropic_model(document, server.url) as model:
        seen = [await outcome(model, is_streamed(document)) for _ in forms]
    assert [described(each) for each in seen] == [EXPECTED[case]] * len(forms)
    assert all(without_new_ids(each) == without_new_ids(seen[0]) for each in seen)


STREAMS = [
    case for case, expected in EXPECTED.items() if "stream" in case and isinstance(expected, Answer)
]


@pytest.mark.parametrize("case", STREAMS)
async def test_the_deltas_of_a_recorded_stream_make_the_same_message_as_its_last_item(
    case: str, shared: Path
) -> None:
    document = document_of(shared, API, case)
    merger = StreamMerger()
    async with (
        serve(replies(document["response"])[0]) as server,
        anthropic_model(document, server.url) as model,
    ):
        items = [item async for item in model.stream(REQUEST)]
    for item in items[:-1]:
        assert item != MessageDelta()
        merger.add(item)
    assert isinstance(items[-1], StreamCompleted)
    final = items[-1].response.message
    merged = merger.message()
    assert merged.text == final.text
    assert [(c.id, c.name, c.arguments) for c in merged.tool_calls] == [
        (c.id, c.name, c.arguments) for c in final.tool_calls
    ]
    usages = [item.usage for item in items if isinstance(item, UsageDelta)]
    assert usages[-1:] == [final.usage]


WHOLE = [
    case
    for case, expected in EXPECTED.items()
    if isinstance(expected, Answer) and "stream" not in case and expected.blocks
]


@pytest.mark.parametrize("case", WHOLE)
async def test_a_recorded_answer_goes_back_as_it_came(case: str, shared: Path) -> None:
    document = document_of(shared, API, case)
    sent: list[Any] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(orjson.loads(request.content))
        return httpx.Response(200, json=document["response"]["body"])

    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
        model = AnthropicModel("claude-sonnet-4-5", api_key="the-key-of-a-test", http_client=client)
        first = await model.invoke(REQUEST)
        next_turn = [*REQUEST.messages, first.message, UserMessage(content="go on")]
        await model.invoke(ModelRequest(messages=next_turn))
    assert sent[1]["messages"][1]["content"] == document["response"]["body"]["content"]
