"""What recorded answers of real providers become: the table is what is expected of each.

The folder is not part of the repository, and nothing of its texts is: a block is told by its kind
and length, a call by its name and the names of its arguments.
"""

from pathlib import Path

import pytest

from tests.harness.providers.recorded import (
    REQUEST,
    Answer,
    Failure,
    cases,
    chat_model,
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
    MalformedResponseError,
    NetworkError,
    RateLimitError,
    ServerError,
)
from tinyagents.harness.model import (
    MessageDelta,
    StreamCompleted,
    StreamMerger,
    UsageDelta,
)

API = "openai_chat"

EXPECTED: dict[str, Answer | Failure] = {
    "azure-content-filter": Answer([], (15, 19, 0, 0, 0), "content_filter", "content_filter"),
    "azure-error-429-retry-after": Failure(
        RateLimitError, 429, "RateLimitReached", retryable=True, retry_after=1.0
    ),
    "azure-grok-stream": Answer(["text 8"], (7, 8, 7, 0, 0), "stop", "stop"),
    "azure-stream-prompt-filter": Answer(["text 120"], None, "stop", "stop"),
    "cerebras-tool-call": Answer(
        ["final_result(city, country)"], (364, 33, 0, 0, 0), "tool_calls", "tool_calls"
    ),
    "deepseek-error-401": Failure(
        AuthenticationError, 401, "invalid_request_error", retryable=False
    ),
    "deepseek-reasoning-text": Answer(
        ["reasoning 1997", "text 1568"], (12, 789, 0, 0, 415), "stop", "stop"
    ),
    "deepseek-reasoning-tool-calls": Answer(
        ["reasoning 105", "text 38", "get_player_name()", "roll_dice()"],
        (875, 79, 0, 0, 26),
        "tool_calls",
        "tool_calls",
    ),
    "deepseek-stream-tool-call": Answer(
        ["weather(latitude, longitude)"], (348, 65, 0, 0, 0), "tool_calls", "tool_calls"
    ),
    "gemini-compat-tool-call-no-id": Answer(
        ["get_current_time()"], (35, 74, 0, 0, 62), "tool_calls", "tool_calls"
    ),
    "gpustack-reasoning-tool-call": Answer(
        ["reasoning 432", "weather(latitude, longitude)"],
        (269, 137, 66, 0, 99),
        "tool_calls",
        "tool_calls",
    ),
    "groq-error-400-tool-use-failed": Failure(
        BadRequestError, 400, "tool_use_failed", retryable=False
    ),
    "groq-error-404": Failure(BadRequestError, 404, "model_not_found", retryable=False),
    "groq-reasoning-field": Answer(
        ["reasoning 376", "text 1"], (84, 105, 0, 0, 95), "stop", "stop"
    ),
    "groq-stream-error-event": Failure(BadRequestError, 400, "tool_use_failed", retryable=False),
    "groq-think-tags": Answer(["reasoning 4036", "text 1925"], (21, 1414, 0, 0, 0), "stop", "stop"),
    "huggingface-length": Answer(["reasoning 442"], (4, 100, 0, 0, 0), "length", "length"),
    "huggingface-tool-call": Answer(
        ["final_result(response)"], (19, 29, 0, 0, 0), "tool_calls", "tool_calls"
    ),
    "mistral-error-401": Failure(AuthenticationError, 401, None, retryable=False),
    "mistral-list-content-thinking": Answer(
        ["reasoning 174", "text 3"], (31, 66, 0, 0, 0), "stop", "stop"
    ),
    "mistral-stream-tool-call": Answer(
        ["weather(latitude, longitude)"], (159, 28, 128, 0, 0), "tool_calls", "tool_calls"
    ),
    "mistral-tool-result": Answer(["text 95"], (100, 29, 99, 0, 0), "stop", "stop"),
    "odd-200-plain-text": Failure(MalformedResponseError, 200, None, retryable=False),
    "odd-200-wrong-json": Failure(MalformedResponseError, 200, None, retryable=False),
    "ollama-compat-json-schema": Answer(
        ["reasoning 508", "text 40"], (136, 15, 0, 0, 0), "stop", "stop"
    ),
    "ollama-compat-tool-call": Answer(
        ["reasoning 763", "final_result(city, country)"],
        (206, 194, 0, 0, 0),
        "tool_calls",
        "tool_calls",
    ),
    "openai-audio-input": Answer(["text 41"], (64, 9, 0, 0, 0), "stop", "stop"),
    "openai-cached-tokens": Answer(["text 2"], (4020, 4, 4012, 0, 0), "stop", "stop"),
    "openai-error-400": Failure(BadRequestError, 400, "invalid_request_error", retryable=False),
    "openai-error-404": Failure(BadRequestError, 404, "model_not_found", retryable=False),
    "openai-image-input": Answer(["text 25"], (503, 8, 0, 0, 0), "stop", "stop"),
    "openai-json-schema": Answer(["text 41"], (92, 15, 0, 0, 0), "stop", "stop"),
    "openai-legacy-function-call": Answer(
        ["Joke(setup, punchline)"], (76, 35, 0, 0, 0), "tool_calls", "function_call"
    ),
    "openai-parallel-tool-calls": Answer(
        ["delete_file(path)", "create_file(path)"], (71, 46, 0, 0, 0), "tool_calls", "tool_calls"
    ),
    "openai-parallel-tool-results": Answer(["text 78"], (133, 19, 0, 0, 0), "stop", "stop"),
    "openai-pdf-input": Answer(["text 53"], (235, 13, 0, 0, 0), "stop", "stop"),
    "openai-plain-text": Answer(["text 31"], (24, 8, 0, 0, 0), "stop", "stop"),
    "openai-refusal": Answer(["refusal 48"], (65, 12, 0, 0, 0), "refusal", "stop"),
    "openai-stream-after-tool-results": Answer(
        ["get_weather(city)"], (423, 15, 0, 0, 0), "tool_calls", "tool_calls"
    ),
    "openai-stream-moderation": Answer(["text 6"], (13, 11, 0, 0, 0), "stop", "stop"),
    "openai-stream-parallel-tool-calls": Answer(
        ["get_country()", "get_product_name()"], (364, 40, 0, 0, 0), "tool_calls", "tool_calls"
    ),
    "openai-stream-text": Answer(["text 37"], (14, 8, 0, 0, 0), "stop", "stop"),
    "openai-tool-result-then-output-tool": Answer(
        ["final_result(city, country)"], (89, 36, 0, 0, 0), "tool_calls", "tool_calls"
    ),
    "openai-web-search-options": Answer(["text 852"], (12, 293, 0, 0, 0), "stop", "stop"),
    "openrouter-error-400-context": Failure(
        ContextOverflowError, 400, "context_overflow", retryable=False
    ),
    "openrouter-error-429": Failure(RateLimitError, 429, "429", retryable=True),
    "openrouter-reasoning-details": Answer(
        ["reasoning 1180", "text 691"], (43, 402, 0, 0, 0), "stop", "stop"
    ),
    "openrouter-stream-error-chunk": Failure(BadRequestError, 400, "400", retryable=False),
    "openrouter-stream-reasoning-details": Answer(
        ["reasoning 51", "text 9"], (43, 36, 0, 0, 13), "stop", "stop"
    ),
    "openrouter-url-citations": Answer(
        ["text 39", "citation", "citation", "citation", "citation", "citation"],
        (2315, 40, 0, 0, 0),
        "stop",
        "stop",
    ),
    "perplexity-citations": Answer(
        ["text 758", "citation", "citation", "citation", "citation", "citation", "citation"],
        (8, 178, 0, 0, 0),
        "stop",
        "stop",
    ),
    "reconstructed-error-429-bare-string": Failure(RateLimitError, 429, None, retryable=True),
    "reconstructed-error-429-no-quota": Failure(
        RateLimitError, 429, "insufficient_quota", retryable=False
    ),
    "reconstructed-error-429-retry-after": Failure(
        RateLimitError, 429, "rate_limit_exceeded", retryable=True, retry_after=7.0
    ),
    "reconstructed-error-500": Failure(ServerError, 500, "server_error", retryable=True),
    "reconstructed-error-502-html": Failure(ServerError, 502, None, retryable=True),
    "reconstructed-error-503": Failure(
        ServerError, 503, "service_unavailable", retryable=True, retry_after=3.0
    ),
    "reconstructed-refusal-stream": Answer(["refusal 23"], None, "refusal", "stop"),
    "reconstructed-stream-error-no-choices": Failure(ServerError, 502, "502", retryable=True),
    "reconstructed-stream-finish-error": Failure(ServerError, None, "server_error", retryable=True),
    "reconstructed-stream-no-done": Failure(NetworkError, None, None, retryable=True),
    "snowflake-empty-finish-reason": Answer(
        ["reasoning 39", "text 32", "get_weather(city)"], (597, 81, 0, 0, 0), "tool_calls", None
    ),
    "together-eos": Answer(["text 115"], (18, 35, 0, 0, 0), "stop", "eos"),
    "vllm-plain": Answer(["text 151"], (43, 36, 0, 0, 0), "stop", "stop"),
    "zai-reasoning-history": Answer(
        ["reasoning 304", "text 15"], (198, 134, 0, 0, 122), "stop", "stop"
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
    expected = EXPECTED[case]

    def script(_seen: Seen) -> Reply:
        return forms[len(server.requests) - 1]

    async with serve(script) as server, chat_model(document, server.url) as model:
        seen = [await outcome(model, is_streamed(document)) for _ in forms]
    for each in seen:
        assert described(each) == expected
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
        chat_model(document, server.url) as model,
    ):
        items = [item async for item in model.stream(REQUEST)]
    for item in items[:-1]:
        assert item != MessageDelta()
        merger.add(item)
    assert isinstance(items[-1], StreamCompleted)
    final = items[-1].response.message
    merged = merger.message()
    assert (merged.text, merged.tool_calls) == (final.text, final.tool_calls)
    assert merged.refusal == final.refusal
    usages = [item.usage for item in items if isinstance(item, UsageDelta)]
    assert usages[-1:] == ([final.usage] if final.usage else [])
