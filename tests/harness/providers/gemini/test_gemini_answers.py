"""What comes back of Gemini: every shape of answer, whole and streamed, makes the same message."""

from typing import Any

import pytest

from tests.harness.providers.gemini.answers import (
    REQUEST,
    answer,
    answering,
    failure,
    items_of,
    model,
    own,
    streamed,
    whole,
    without_ids,
)
from tests.harness.providers.server import Reply, joined, serve
from tinyagents.harness.errors import (
    ContentFilterError,
    MalformedResponseError,
)
from tinyagents.harness.message import (
    AudioBlock,
    Block,
    CitationBlock,
    FileBlock,
    ImageBlock,
    InvalidArguments,
    ProviderExtensionBlock,
    ReasoningBlock,
    TextBlock,
    ToolCallBlock,
)
from tinyagents.harness.model import (
    MessageDelta,
    ModelRequest,
    StreamCompleted,
    StreamStarted,
    ToolCallDelta,
    UsageDelta,
)
from tinyagents.harness.providers import GeminiModel
from tinyagents.harness.usage import Usage

PICTURE = {"mimeType": "image/png", "data": "QUI="}
CODE = {"executableCode": {"language": "PYTHON", "code": "1"}, "thoughtSignature": "s"}
SHAPES: dict[str, tuple[list[dict[str, Any]], list[Block]]] = {
    "text": ([{"text": "a"}, {"text": "b"}], [TextBlock(text="ab")]),
    "empty text": ([{"text": ""}, {"text": "a"}], [TextBlock(text="a")]),
    "signed text": (
        [{"text": "a"}, {"text": "", "thoughtSignature": "s+/="}, {"text": "b"}],
        [
            TextBlock(text="a"),
            TextBlock(text="", provider_data=own(thoughtSignature="s+/=")),
            TextBlock(text="b"),
        ],
    ),
    "thoughts": (
        [{"text": "h", "thought": True}, {"text": "m", "thought": True}, {"text": "a"}],
        [ReasoningBlock(text="hm", provider_data=own(thought=True)), TextBlock(text="a")],
    ),
    "signed thoughts": (
        [
            {"text": "h", "thought": True, "thoughtSignature": "s"},
            {"text": "m", "thought": True, "thoughtSignature": "s"},
        ],
        [
            ReasoningBlock(text="h", provider_data=own(thought=True, thoughtSignature="s")),
            ReasoningBlock(text="m", provider_data=own(thought=True, thoughtSignature="s")),
        ],
    ),
    "calls": (
        [
            {"functionCall": {"name": "t", "args": {"a": 1}}, "thoughtSignature": "s"},
            {"text": "and"},
            {"functionCall": {"id": "g1", "name": "u", "new": 1}},
            {"functionCall": {"name": "v", "args": "[1]"}},
        ],
        [
            ToolCallBlock(
                id="", name="t", arguments={"a": 1}, provider_data=own(thoughtSignature="s")
            ),
            TextBlock(text="and"),
            ToolCallBlock(id="", name="u", provider_data=own(functionCall={"new": 1})),
            ToolCallBlock(
                id="",
                name="v",
                invalid=InvalidArguments(
                    raw="[1]", reason="the arguments must be a JSON object, not an array"
                ),
            ),
        ],
    ),
    "media": (
        [
            {"inlineData": PICTURE, "thoughtSignature": "s"},
            {"inlineData": {"mimeType": "audio/wav", "data": "QUI="}},
            {"fileData": {"mimeType": "video/mp4", "fileUri": "https://a.example/v"}},
        ],
        [
            ImageBlock(
                data="QUI=", media_type="image/png", provider_data=own(thoughtSignature="s")
            ),
            AudioBlock(data="QUI=", media_type="audio/wav"),
            FileBlock(url="https://a.example/v", media_type="video/mp4"),
        ],
    ),
    "parts that are not understood": (
        [CODE, {"thoughtSignature": "s"}, {"inlineData": {**PICTURE, "displayName": "n"}}],
        [
            ProviderExtensionBlock(provider="gemini", data=CODE),
            ProviderExtensionBlock(provider="gemini", data={"thoughtSignature": "s"}),
            ProviderExtensionBlock(
                provider="gemini", data={"inlineData": {**PICTURE, "displayName": "n"}}
            ),
        ],
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
async def test_a_whole_answer_and_a_streamed_one_make_the_same_message(shape: str) -> None:
    parts, blocks = SHAPES[shape]
    plain = await whole(answer(*parts))
    stream = await streamed(*(answer(part, finish=None) for part in parts), answer())
    assert without_ids(plain.message) == without_ids(stream.message) == blocks
    assert plain.finish_reason == stream.finish_reason
    assert plain.model == stream.model == "served"
    assert plain.message.id == stream.response_id == "r-1"


@pytest.mark.parametrize("shape", SHAPES)
async def test_an_answer_goes_back_as_it_came(shape: str) -> None:
    parts, _ = SHAPES[shape]
    async with serve(Reply.json(answer(*parts))) as server:
        async with GeminiModel("m", api_key="k", base_url=server.url) as asked:
            first = await asked.invoke(REQUEST)
            await asked.invoke(ModelRequest(messages=[*REQUEST.messages, first.message]))
        returned = server.requests[1].document["contents"][1]["parts"]
    ids = [call.id for call in first.message.tool_calls]
    if shape == "calls":
        assert ids[1] == "g1"
        assert returned == [
            {**parts[0], "functionCall": {"id": ids[0], **parts[0]["functionCall"]}},
            parts[1],
            {"functionCall": {"args": {}, **parts[2]["functionCall"]}},
            {"functionCall": {"id": ids[2], "name": "v", "args": {"invalid_arguments": "[1]"}}},
        ]
    elif shape == "text":
        assert returned == [{"text": "ab"}]
    elif shape == "empty text":
        assert returned == [{"text": "a"}]
    elif shape == "thoughts":
        assert returned == [{"text": "hm", "thought": True}, {"text": "a"}]
    else:
        assert returned == parts


async def test_the_items_of_a_stream_come_in_their_order() -> None:
    call = {"functionCall": {"id": "g1", "name": "t", "args": {"a": "é"}}}
    usage = {"promptTokenCount": 3}
    items = await items_of(
        [
            joined(
                [
                    {**answer({"text": "h", "thought": True}, finish=None), "usageMetadata": usage},
                    {**answer({"text": "a"}, finish=None), "usageMetadata": usage},
                    {**answer(call), "usageMetadata": {**usage, "candidatesTokenCount": 2}},
                ],
                done=False,
            )
        ]
    )
    assert items[:-1] == [
        StreamStarted(response_id="r-1", model="served"),
        MessageDelta(reasoning="h"),
        UsageDelta(Usage(input_tokens=3)),
        MessageDelta("a"),
        ToolCallDelta(call_id="g1", name="t", arguments='{"a":"é"}', index=0),
        UsageDelta(Usage(input_tokens=3, output_tokens=2)),
    ]
    last = items[-1]
    assert isinstance(last, StreamCompleted)
    assert last.response.finish_reason == "tool_calls"
    assert last.response.raw_finish_reason == "STOP"


async def test_a_streaming_server_may_answer_in_one_document() -> None:
    async with answering(Reply.json(answer({"text": "a"})).pieces) as client:
        items = [item async for item in model(client).stream(REQUEST)]
    assert items[1] == MessageDelta("a")
    assert isinstance(items[-1], StreamCompleted)


# How an answer ends


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("STOP", "stop"),
        ("MAX_TOKENS", "length"),
        *((r, "content_filter") for r in ("SAFETY", "RECITATION", "BLOCKLIST", "SPII")),
        *((r, "content_filter") for r in ("PROHIBITED_CONTENT", "IMAGE_SAFETY", "MODEL_ARMOR")),
        ("UNEXPECTED_TOOL_CALL", "error"),
        ("TOO_MANY_TOOL_CALLS", "error"),
        ("LANGUAGE", "other"),
        ("OTHER", "other"),
        ("NEW_ONE", "other"),
    ],
)
async def test_a_reason_for_finishing_has_one_word(raw: str, reason: str) -> None:
    ratings = [{"category": "C", "probability": "LOW"}]
    for response in (
        await whole(answer({"text": "a"}, finish=raw, safetyRatings=ratings)),
        await streamed(answer({"text": "a"}, finish=raw, safetyRatings=ratings)),
    ):
        assert (response.finish_reason, response.raw_finish_reason) == (reason, raw)
        assert response.safety == {"safetyRatings": ratings}


async def test_a_call_of_an_unknown_tool_is_a_call() -> None:
    call = {"functionCall": {"name": "nobody", "args": {}}}
    response = await whole(answer(call, finish="UNEXPECTED_TOOL_CALL", finishMessage="undeclared"))
    assert response.finish_reason == "tool_calls"
    assert response.raw["finishMessage"] == "undeclared"
    assert [block.name for block in response.message.tool_calls] == ["nobody"]


async def test_a_call_that_the_model_botched_may_be_tried_again() -> None:
    broken = answer(finish="MALFORMED_FUNCTION_CALL", finishMessage="print(f(")
    with pytest.raises(MalformedResponseError, match=r"print\(f\(") as caught:
        await whole(broken)
    assert caught.value.retryable
    assert caught.value.code == "MALFORMED_FUNCTION_CALL"
    seen, error = await failure(joined([answer({"text": "a"}, finish=None), broken], done=False))
    assert seen[1:] == [MessageDelta("a")]
    assert isinstance(error, MalformedResponseError)


async def test_a_blocked_prompt_is_an_error_with_its_reason() -> None:
    feedback = {"blockReason": "PROHIBITED_CONTENT", "safetyRatings": []}
    blocked = {"promptFeedback": feedback, "usageMetadata": {"promptTokenCount": 4}}
    with pytest.raises(ContentFilterError, match="PROHIBITED_CONTENT") as caught:
        await whole(blocked)
    assert caught.value.code == "PROHIBITED_CONTENT"
    assert caught.value.raw == blocked
    assert not caught.value.retryable
    _, error = await failure(joined([blocked], done=False))
    assert isinstance(error, ContentFilterError)


async def test_feedback_that_blocks_nothing_is_kept() -> None:
    feedback = {"safetyRatings": [{"category": "C"}]}
    response = await whole({**answer({"text": "a"}), "promptFeedback": feedback})
    assert response.safety == {"promptFeedback": feedback}


# What else is said


async def test_sources_become_citations_with_places_in_characters() -> None:
    grounding = {
        "groundingChunks": [
            {"web": {"uri": "https://a.example", "title": "A"}},
            {"retrievedContext": {"uri": "gs://b", "title": "B", "text": "passage"}},
        ],
        "groundingSupports": [
            {"segment": {"endIndex": 3, "text": "äb"}, "groundingChunkIndices": [0, 1, 9]},
            # Of a part further behind: its own text tells where it is.
            {"segment": {"partIndex": 2, "endIndex": 1, "text": "c"}, "groundingChunkIndices": [0]},
            {"segment": {"endIndex": 1, "text": "zzz"}, "groundingChunkIndices": [0]},
        ],
        "webSearchQueries": ["q"],
    }
    cited = {"citationSources": [{"startIndex": 3, "endIndex": 4, "uri": "https://c.example"}]}
    facts: dict[str, Any] = {"groundingMetadata": grounding, "citationMetadata": cited}
    last = answer(**facts)
    response = await streamed(answer({"text": "ä"}, finish=None), answer({"text": "bc"}), last)
    plain = await whole(answer({"text": "äbc"}, **facts))
    assert plain.message == response.message
    assert response.message.content[1:] == [
        CitationBlock(url="https://a.example", title="A", start=0, end=2),
        CitationBlock(url="gs://b", title="B", text="passage", start=0, end=2),
        CitationBlock(url="https://a.example", title="A", start=2, end=3),
        CitationBlock(url="https://a.example", title="A"),
        CitationBlock(url="https://c.example", start=2, end=3),
    ]
    assert response.raw["groundingMetadata"] == grounding
    assert response.raw["citationMetadata"] == cited


async def test_sources_without_passages_are_cited_for_the_whole() -> None:
    grounding = {"groundingChunks": [{"maps": {"uri": "https://m.example", "title": "M"}}]}
    response = await whole(answer({"text": "a"}, groundingMetadata=grounding))
    assert response.message.content[1:] == [CitationBlock(url="https://m.example", title="M")]


async def test_grounding_that_comes_in_several_chunks_is_put_together() -> None:
    chunk = {"web": {"uri": "https://a.example", "title": "A"}}
    support = {"segment": {"endIndex": 1, "text": "a"}, "groundingChunkIndices": [0]}
    response = await streamed(
        answer({"text": "a"}, finish=None, groundingMetadata={"groundingChunks": [chunk]}),
        answer(groundingMetadata={"groundingChunks": [], "groundingSupports": [support]}),
    )
    assert response.message.content[1:] == [
        CitationBlock(url="https://a.example", title="A", start=0, end=1)
    ]


async def test_facts_that_nobody_knows_are_kept() -> None:
    chosen = [{"token": "a", "logProbability": -1}]
    first = answer(
        {"text": "a"}, finish=None, logprobsResult={"chosenCandidates": [*chosen]}, avgLogprobs=-1.5
    )
    second = answer({"text": "b"}, logprobsResult={"chosenCandidates": [*chosen]})
    response = await streamed({**first, "createTime": "now"}, second)
    assert response.raw == {
        "createTime": "now",
        "avgLogprobs": -1.5,
        "logprobsResult": {"chosenCandidates": [*chosen, *chosen]},
    }


@pytest.mark.parametrize(
    ("reported", "usage"),
    [
        (
            {
                "promptTokenCount": 100,
                "cachedContentTokenCount": 80,
                "candidatesTokenCount": 10,
                "thoughtsTokenCount": 5,
                "toolUsePromptTokenCount": 7,
                "totalTokenCount": 122,
            },
            Usage(
                input_tokens=107, output_tokens=15, cache_read_tokens=80, reasoning_tokens=5
            ),
        ),
        ({"promptTokenCount": 4, "totalTokenCount": 4}, Usage(input_tokens=4, output_tokens=0)),
        ({"promptTokenCount": 4, "totalTokenCount": 9}, Usage(input_tokens=4, output_tokens=5)),
        ({"candidatesTokenCount": 4, "totalTokenCount": 9}, Usage(input_tokens=5, output_tokens=4)),
        ({"promptTokenCount": -1, "candidatesTokenCount": "x"}, Usage()),
        ({"trafficType": "ON_DEMAND"}, None),
        ({}, None),
    ],
)  # fmt: skip
async def test_usage_has_one_meaning(reported: Any, usage: Usage | None) -> None:
    for response in (
        await whole({**answer({"text": "a"}), "usageMetadata": reported}),
        await streamed({**answer({"text": "a"}), "usageMetadata": reported}),
    ):
        assert response.usage == usage
    if reported:
        assert response.raw["usage"] == reported


async def test_only_the_first_candidate_is_read() -> None:
    document = answer({"text": "a"})
    document["candidates"].insert(0, {"index": 1, "content": {"parts": [{"text": "other"}]}})
    assert (await whole(document)).text == "a"
