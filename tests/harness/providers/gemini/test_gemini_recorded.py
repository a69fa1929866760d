"""What recorded answers of Gemini become: the table is what is expected of each.

The folder is not part of the repository, and nothing of its texts is: a block is told by its kind
and length, a call by its name and the names of its arguments.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.harness.providers import recorded
from tests.harness.providers.recorded import (
    REQUEST,
    Answer,
    Failure,
    cases,
    described,
    document_of,
    gemini_model,
    is_streamed,
    outcome,
    replies,
    without_new_ids,
)
from tests.harness.providers.server import Reply, Seen, serve
from tinyagents.harness.errors import (
    AuthenticationError,
    BadRequestError,
    ContentFilterError,
    MalformedResponseError,
    RateLimitError,
    ServerError,
)
from tinyagents.harness.message import Block, CitationBlock, ProviderExtensionBlock
from tinyagents.harness.model import (
    MessageDelta,
    ModelRequest,
    ModelResponse,
    StreamCompleted,
    StreamMerger,
    UsageDelta,
)

API = "google_gemini"

EXPECTED: dict[str, Answer | Failure] = {
    "cached-content": Answer(["text 6"], (3520, 44, 3512, 0, 42), "stop", "STOP"),
    "code-execution": Answer(
        [
            "executableCode",
            "codeExecutionResult",
            "executableCode",
            "codeExecutionResult",
            "text 131 signed",
        ],
        (1989, 943, 0, 0, 773),
        "stop",
        "STOP",
    ),
    "error-400-bad-key": Failure(AuthenticationError, 400, "INVALID_ARGUMENT", retryable=False),
    "error-404": Failure(BadRequestError, 404, "NOT_FOUND", retryable=False),
    "error-429-retry-info": Failure(
        RateLimitError, 429, "RESOURCE_EXHAUSTED", retryable=True, retry_after=48.0
    ),
    "function-responses": Answer(
        ["generate_topic() signed"], (348, 50, 0, 0, 40), "tool_calls", "STOP"
    ),
    "grounding": Answer(
        ["text 103", "citation 0-31", "citation 32-103"], (303, 297, 0, 0, 257), "stop", "STOP"
    ),
    "image-input": Answer(["text 17"], (1817, 5, 0, 0, 0), "stop", "STOP"),
    "json-schema": Answer(["text 50"], (8, 20, 0, 0, 0), "stop", "STOP"),
    "max-tokens-empty": Answer([], (15, 2, 0, 0, 2), "length", "MAX_TOKENS"),
    "parallel-function-calls": Answer(
        ["generate_topic() signed", "generate_topic()", "generate_topic()"],
        (83, 220, 0, 0, 190),
        "tool_calls",
        "STOP",
    ),
    "plain-text": Answer(["text 32"], (13, 8, 0, 0, 0), "stop", "STOP"),
    "prompt-blocked": Failure(ContentFilterError, 200, "MODEL_ARMOR", retryable=False),
    "reconstructed-error-500": Failure(ServerError, 500, "INTERNAL", retryable=True),
    "reconstructed-error-503": Failure(ServerError, 503, "UNAVAILABLE", retryable=True),
    "reconstructed-malformed-function-call": Failure(
        MalformedResponseError, 200, "MALFORMED_FUNCTION_CALL", retryable=True
    ),
    "reconstructed-stream-error": Failure(ServerError, 503, "UNAVAILABLE", retryable=True),
    "safety-block": Answer([], (14, 0, 0, 0, 0), "content_filter", "SAFETY"),
    "stream-function-call": Answer(
        ["get_capital(country)"], (52, 5, 0, 0, 0), "tool_calls", "STOP"
    ),
    "stream-text": Answer(["text 34"], (79, 12, 0, 0, 0), "stop", "STOP"),
    "stream-thoughts": Answer(
        ["reasoning 1575", "text 117 signed", "text 1821"], (34, 1256, 0, 0, 787), "stop", "STOP"
    ),
    "stream-url-context": Answer(
        ["text 37", "citation 0-37"], (4642, 62, 0, 0, 37), "stop", "STOP"
    ),
    "unexpected-tool-call": Answer(
        ["list_files() signed"], (22, 449, 0, 0, 446), "tool_calls", "UNEXPECTED_TOOL_CALL"
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

    async with serve(script) as server, gemini_model(document, server.url) as model:
        seen = [await outcome(model, is_streamed(document)) for _ in forms]
    for each in seen:
        assert described(each, told) == EXPECTED[case]
    assert all(without_new_ids(each) == without_new_ids(seen[0]) for each in seen)
    asked = document["request"]["path"].rpartition("/models/")[2]
    assert {request.path for request in server.requests} == {f"/v1beta/models/{asked}"}


ANSWERS = [case for case, expected in EXPECTED.items() if isinstance(expected, Answer)]


@pytest.mark.parametrize("case", ANSWERS)
async def test_what_a_recorded_answer_held_goes_back_part_by_part(case: str, shared: Path) -> None:
    document = document_of(shared, API, case)
    async with (
        serve(replies(document["response"])[0]) as server,
        gemini_model(document, server.url) as model,
    ):
        answer = await outcome(model, is_streamed(document))
        assert isinstance(answer, ModelResponse)
        calls = iter(answer.message.tool_calls)
        history = ModelRequest(messages=[*REQUEST.messages, answer.message, *REQUEST.messages])
        async for _ in model.stream(history):
            pass
    sent = [c["parts"] for c in server.requests[-1].document["contents"] if c["role"] == "model"]
    received = _merged(_parts(document["response"]))
    for part in received:
        if "functionCall" in part:
            call = part["functionCall"]
            call["id"] = next(calls).id
    assert [part for parts in sent for part in parts] == received


@pytest.mark.parametrize("case", [case for case in ANSWERS if "stream" in case])
async def test_the_deltas_of_a_recorded_stream_make_the_same_message_as_its_last_item(
    case: str, shared: Path
) -> None:
    document = document_of(shared, API, case)
    merger = StreamMerger()
    async with (
        serve(replies(document["response"])[0]) as server,
        gemini_model(document, server.url) as model,
    ):
        items = [item async for item in model.stream(REQUEST)]
    for item in items[:-1]:
        assert item != MessageDelta()
        merger.add(item)
    assert isinstance(items[-1], StreamCompleted)
    final = items[-1].response.message
    merged = merger.message()
    assert [(c.id, c.name, c.arguments) for c in merged.tool_calls] == [
        (c.id, c.name, c.arguments) for c in final.tool_calls
    ]
    assert merged.text == final.text
    usages = [item.usage for item in items if isinstance(item, UsageDelta)]
    assert usages[-1:] == ([final.usage] if final.usage else [])


def _parts(response: dict[str, Any]) -> list[dict[str, Any]]:
    documents: list[Any] = [response.get("body")]
    if "sse" in response:
        lines = response["sse"].splitlines()
        documents = [json.loads(line[5:]) for line in lines if line.startswith("data:")]
    return [
        part
        for document in documents
        for part in document["candidates"][0]["content"].get("parts", [])
    ]


def _merged(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Join the texts of parts that hold nothing else, as a stream cuts them."""
    merged: list[dict[str, Any]] = []
    for part in parts:
        last = merged[-1] if merged else {}
        plain = part.keys() <= {"text", "thought"} and "text" in part
        if plain and last.keys() == part.keys():
            last["text"] += part["text"]
        else:
            merged.append(dict(part))
    return merged


def told(block: Block) -> str:
    """Tell a block as ever, with its signature and the place that it cites."""
    signed = " signed" if "thoughtSignature" in str(block.provider_data) else ""
    match block:
        case CitationBlock():
            return f"citation {block.start}-{block.end}"
        case ProviderExtensionBlock(data=dict(data)):
            return next(iter(data))
        case _:
            return recorded.told(block) + signed
