"""What recorded answers of the Responses API become, and what is sent back of them.

The folder is not part of the repository, and nothing of its texts is.
"""

import json
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.harness.providers.recorded import (
    REQUEST,
    Answer,
    Failure,
    cases,
    described,
    document_of,
    is_streamed,
    outcome,
    replies,
    responses_model,
    without_new_ids,
)
from tests.harness.providers.server import Reply, Seen, serve
from tinyagents.harness.errors import AuthenticationError, BadRequestError, ServerError
from tinyagents.harness.message import UserMessage, dump_messages, load_messages
from tinyagents.harness.model import (
    MessageDelta,
    ModelRequest,
    ModelResponse,
    ModelSettings,
    StreamCompleted,
    StreamMerger,
    UsageDelta,
)

API = "openai_responses"

EXPECTED: dict[str, Answer | Failure] = {
    "deepseek-error-400-octet-stream": Failure(
        BadRequestError, 400, "invalid_request_error", retryable=False
    ),
    "deepseek-stream-function-call": Answer(
        ["reasoning 61", "get_temperature(city)"],
        (366, 59, 256, 0, 14),
        "tool_calls",
        "completed",
    ),
    "openai-cached-tokens": Answer(["text 2"], (4020, 5, 4012, 0, 0), "stop", "completed"),
    "openai-code-interpreter": Answer(
        ["reasoning 0", "code_interpreter_call", "text 35"],
        (1348, 624, 0, 0, 384),
        "stop",
        "completed",
    ),
    "openai-error-400": Failure(BadRequestError, 400, "decimal_below_min_value", retryable=False),
    "openai-error-401": Failure(AuthenticationError, 401, "invalid_api_key", retryable=False),
    "openai-file-search": Answer(
        ["file_search_call", "text 138", "citation"], (1188, 55, 0, 0, 0), "stop", "completed"
    ),
    "openai-function-outputs": Answer(["text 175"], (335, 44, 0, 0, 0), "stop", "completed"),
    "openai-image-input": Answer(["text 76"], (663, 20, 0, 0, 0), "stop", "completed"),
    "openai-incomplete-max-tokens": Answer(
        ["text 77"], (18, 16, 0, 0, 0), "length", "max_output_tokens"
    ),
    "openai-json-schema": Answer(["text 41"], (89, 16, 0, 0, 0), "stop", "completed"),
    "openai-parallel-function-calls": Answer(
        ["get_location(loc_name)", "get_location(loc_name)"],
        (0, 0, 0, 0, 0),
        "tool_calls",
        "completed",
    ),
    "openai-pdf-input": Answer(["text 48"], (51, 11, 0, 0, 0), "stop", "completed"),
    "openai-plain-text": Answer(["text 31"], (14, 8, 0, 0, 0), "stop", "completed"),
    "openai-reasoning-summary": Answer(
        ["reasoning 3494", "text 1225"], (13, 2199, 0, 0, 1920), "stop", "completed"
    ),
    "openai-stream-function-call": Answer(
        ["reasoning 0", "get_weather(location)"], (53, 33, 0, 0, 10), "tool_calls", "completed"
    ),
    "openai-stream-text": Answer(["text 50"], (100, 19, 0, 0, 0), "stop", "completed"),
    "openai-url-citations": Answer(
        ["web_search_call", "text 162", "citation"], (8236, 74, 0, 0, 34), "stop", "completed"
    ),
    "reconstructed-stream-error-event": Failure(ServerError, None, "server_error", retryable=True),
    "reconstructed-stream-failed": Failure(ServerError, None, "server_error", retryable=True),
    "xai-parallel-function-calls": Answer(
        ["reasoning 106", "weather(latitude, longitude)", "best_language_to_learn()"],
        (396, 240, 192, 0, 210),
        "tool_calls",
        "completed",
    ),
    "xai-stream-reasoning": Answer(
        ["reasoning 35", "text 8"], (199, 160, 128, 0, 152), "stop", "completed"
    ),
}
ANSWERS = [case for case, expected in EXPECTED.items() if isinstance(expected, Answer)]
STREAMS = [case for case in ANSWERS if "stream" in case]


def whole_of(response: dict[str, Any]) -> dict[str, Any]:
    """The answer in one piece: a stream's last event holds it."""
    if "body" in response:
        body: dict[str, Any] = response["body"]
        return body
    data = [line for line in response["sse"].splitlines() if line.startswith("data: {")]
    last: dict[str, Any] = json.loads(data[-1].removeprefix("data: "))["response"]
    return last


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

    async with serve(script) as server, responses_model(document, server.url) as model:
        seen = [await outcome(model, is_streamed(document)) for _ in forms]
    for each in seen:
        assert described(each) == EXPECTED[case]
    assert all(without_new_ids(each) == without_new_ids(seen[0]) for each in seen)


@pytest.mark.parametrize("case", STREAMS)
async def test_a_recorded_stream_makes_the_message_of_the_plain_answer(
    case: str, shared: Path
) -> None:
    document = document_of(shared, API, case)
    forms = iter([replies(document["response"])[0], Reply.json(whole_of(document["response"]))])
    async with (
        serve(lambda _: next(forms)) as server,
        responses_model(document, server.url) as model,
    ):
        items = [item async for item in model.stream(REQUEST)]
        plain = await model.invoke(REQUEST)
    assert isinstance(items[-1], StreamCompleted)
    assert items[-1].response == plain
    merger = StreamMerger()
    for item in items[:-1]:
        assert item != MessageDelta()
        merger.add(item)
    merged = merger.message()
    assert (merged.text, merged.usage) == (plain.message.text, plain.usage)
    assert [(c.id, c.name, c.arguments) for c in merged.tool_calls] == [
        (c.id, c.name, c.arguments) for c in plain.message.tool_calls
    ]
    thoughts = [m.content for m in (merged, plain.message)]
    told = [[b.text for b in content if b.type == "reasoning" and b.text] for content in thoughts]
    assert told[0] == told[1]
    assert len([item for item in items if isinstance(item, UsageDelta)]) == 1


@pytest.mark.parametrize("case", ANSWERS)
async def test_a_recorded_answer_goes_back_field_by_field_as_it_came(
    case: str, shared: Path
) -> None:
    document = document_of(shared, API, case)
    whole = whole_of(document["response"])
    async with (
        serve(Reply.json(whole)) as server,
        responses_model(document, server.url) as model,
    ):
        answer = await outcome(model, streamed=False)
        assert isinstance(answer, ModelResponse)
        stored = load_messages(dump_messages([answer.message]))
        history = ModelRequest(
            messages=[*REQUEST.messages, *stored, UserMessage(content="on")],
            settings=ModelSettings(provider_options={"store": True}),
        )
        await model.invoke(history)
        sent = orjson.loads(server.requests[1].body)["input"][1:-1]
    assert json.dumps(sent) == json.dumps(whole["output"])
