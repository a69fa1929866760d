"""What goes wrong with Gemini: failures, answers that are none, and streams that are cut."""

from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from tests.harness.providers.gemini.answers import (
    REQUEST,
    SSE,
    answer,
    answering,
    failure,
    items_of,
    model,
    whole,
)
from tests.harness.providers.server import Reply, cut, eventually, joined, serve, single_bytes
from tinyagents.harness.errors import (
    AuthenticationError,
    ContextOverflowError,
    MalformedResponseError,
    ModelError,
    NetworkError,
    RateLimitError,
    ServerError,
)
from tinyagents.harness.model import (
    MessageDelta,
    ModelStreamItem,
    StreamCompleted,
)
from tinyagents.harness.providers import GeminiModel


def refusal(code: int, status: str, message: str, *details: Any) -> dict[str, Any]:
    error = {"code": code, "status": status, "message": message, "details": [*details]}
    return {"error": error}


@pytest.mark.parametrize(
    ("document", "cls", "retryable", "wait"),
    [
        (
            refusal(429, "RESOURCE_EXHAUSTED", "Too fast.", {"retryDelay": "1.5s"}),
            RateLimitError,
            True,
            1.5,
        ),
        (
            refusal(
                429,
                "RESOURCE_EXHAUSTED",
                "You exceeded your current quota.",
                {"violations": [{"quotaId": "RequestsPerDayPerProject"}]},
                {"retryDelay": "40s"},
            ),
            RateLimitError,
            False,
            40.0,
        ),
        (
            refusal(400, "INVALID_ARGUMENT", "Bad key.", {"reason": "API_KEY_INVALID"}),
            AuthenticationError,
            False,
            None,
        ),
        (refusal(403, "PERMISSION_DENIED", "No."), AuthenticationError, False, None),
        (
            refusal(
                400,
                "INVALID_ARGUMENT",
                "The input token count (9) exceeds the maximum number of tokens allowed (8).",
            ),
            ContextOverflowError,
            False,
            None,
        ),
        (refusal(503, "UNAVAILABLE", "Overloaded."), ServerError, True, None),
    ],
)
async def test_a_failure_has_its_class_with_and_without_a_stream(
    document: dict[str, Any], cls: type[ModelError], retryable: bool, wait: float | None
) -> None:
    with pytest.raises(ModelError) as caught:
        await whole(document, document["error"]["code"])
    seen, inside = await failure(joined([answer({"text": "a"}, finish=None), document], done=False))
    assert seen[1:] == [MessageDelta("a")]
    for error in (caught.value, inside):
        assert type(error) is cls
        assert (error.retryable, error.retry_after) == (retryable, wait)
        assert error.status == document["error"]["code"]
        assert "the-key-of-a-test" not in f"{error!r}{error.raw}"


async def test_no_error_repeats_the_key() -> None:
    key = "the-key-of-a-test"
    leaks = [
        refusal(400, "INVALID_ARGUMENT", f"Bad key {key}."),
        {"promptFeedback": {"blockReason": "OTHER", "blockReasonMessage": key, "echo": key}},
        answer(finish="MALFORMED_FUNCTION_CALL", finishMessage=key),
        {"echo": key},
    ]
    for document in leaks:
        for data in (joined([document], done=False), Reply.json(document).pieces[0]):
            _, error = await failure(data)
            assert key not in f"{error}{error!r}{error.raw}"
    with pytest.raises(ModelError) as caught:
        await whole(leaks[0], 400)
    assert key not in f"{caught.value}{caught.value.raw}"


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"candidates": []},
        {"usageMetadata": {"promptTokenCount": 1}},
        {"candidates": ["x"]},
        {"candidates": [{"content": {"parts": ["x"]}}]},
        answer({"functionCall": {"name": "t", "partialArgs": []}}),
        answer({"functionCall": {}}),
        [answer({"text": "a"})],
    ],
)
async def test_a_document_that_is_no_answer_is_malformed(document: Any) -> None:
    with pytest.raises(MalformedResponseError):
        await whole(document)


async def test_a_stream_that_ends_without_a_reason_is_broken() -> None:
    seen, error = await failure(joined([answer({"text": "a"}, finish=None)], done=False))
    assert seen[1:] == [MessageDelta("a")]
    assert isinstance(error, NetworkError)
    _, nothing = await failure(b"")
    assert isinstance(nothing, NetworkError)


def _stream() -> bytes:
    return joined(
        [
            answer({"text": "hm", "thought": True, "thoughtSignature": "s"}, finish=None),
            answer({"text": "é"}, finish=None),
            {
                **answer({"functionCall": {"id": "g1", "name": "t", "args": {"a": "é"}}}),
                "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 2},
            },
        ],
        done=False,
    )


async def test_a_stream_cut_anywhere_gives_the_same_message_or_an_error() -> None:
    data = _stream()
    complete = await items_of([data])
    outcomes: set[str] = set()
    for end in range(len(data)):
        seen: list[ModelStreamItem] = []
        try:
            async with answering([data[:end]], SSE) as client:
                async for item in model(client).stream(REQUEST):
                    seen.append(item)
        except ModelError:
            outcomes.add("error")
            assert seen == complete[: len(seen)]
            assert not any(isinstance(item, StreamCompleted) for item in seen)
        else:
            outcomes.add("message")
            assert seen == complete
            assert end >= len(data.rstrip())
    assert outcomes == {"error", "message"}


@pytest.mark.parametrize("form", ["lines", "carriage returns", "bytes", "random"])
async def test_however_the_bytes_arrive_the_items_are_the_same(form: str) -> None:
    data = _stream()
    complete = await items_of([data])
    pieces: Sequence[bytes] = {
        "lines": data.splitlines(keepends=True),
        "carriage returns": [data.replace(b"\n", b"\r\n")],
        "bytes": single_bytes(data),
        "random": cut(data, seed=3),
    }[form]
    assert await items_of(pieces) == complete


async def test_leaving_or_cancelling_a_stream_closes_its_connection() -> None:
    silent = Reply.events(answer({"text": "a"}, finish=None), done=False, then="hang")
    async with (
        serve(silent) as server,
        GeminiModel("m", api_key="k", base_url=server.url) as asked,
    ):
        async with anyio.create_task_group() as group:

            async def read() -> None:
                async for _ in asked.stream(REQUEST):
                    pass

            group.start_soon(read)
            await eventually(lambda: len(server.requests) == 1)
            group.cancel_scope.cancel()
        await eventually(lambda: len(server.gone) == 1)
        with anyio.move_on_after(0.05):
            await asked.invoke(REQUEST)
        await eventually(lambda: len(server.gone) == 2)
