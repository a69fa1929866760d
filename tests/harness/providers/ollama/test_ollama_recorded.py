"""What recorded answers of Ollama become: the table is what is expected of each.

The folder is not part of the repository, and nothing of its texts is: a block is told by its kind
and length, a call by its name and its arguments' names.
"""

from pathlib import Path

import pytest

from tests.harness.providers.recorded import (
    REQUEST,
    Answer,
    Failure,
    cases,
    described,
    document_of,
    is_streamed,
    ollama_model,
    outcome,
    replies,
    told,
    without_new_ids,
)
from tests.harness.providers.server import Reply, Seen, serve
from tinyagents.harness.errors import BadRequestError, ServerError
from tinyagents.harness.message import AssistantMessage, Message, ToolCallBlock, ToolMessage
from tinyagents.harness.model import ModelRequest, StreamCompleted, StreamMerger
from tinyagents.harness.providers import OllamaModel

API = "ollama"

EXPECTED: dict[str, Answer | Failure] = {
    "plain-text": Answer(["text 256"], (17, 66, 0, 0, 0), "stop", "stop"),
    "reconstructed-error-404": Failure(BadRequestError, 404, None, retryable=False),
    "reconstructed-stream-error-line": Failure(ServerError, None, None, retryable=True),
    "reconstructed-stream-thinking": Answer(
        ["reasoning 22", "text 6"], (12, 9, 0, 0, 0), "stop", "stop"
    ),
    "reconstructed-stream-tool-call": Answer(
        ["get_weather(city)"], (120, 20, 0, 0, 0), "tool_calls", "stop"
    ),
    "stream-text": Answer(["text 212"], (17, 50, 0, 0, 0), "stop", "stop"),
    "tool-result": Answer(["text 535"], (44, 113, 0, 0, 0), "stop", "stop"),
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

    async with serve(script) as server, ollama_model(document, server.url) as model:
        seen = [await outcome(model, is_streamed(document)) for _ in forms]
    assert [described(each) for each in seen] == [EXPECTED[case]] * len(forms)
    assert all(without_new_ids(each) == without_new_ids(seen[0]) for each in seen)


@pytest.mark.parametrize("case", [c for c, e in EXPECTED.items() if isinstance(e, Answer)])
async def test_the_items_of_a_recorded_answer_make_the_message_of_the_last_one(
    case: str, shared: Path
) -> None:
    form = replies(document_of(shared, API, case)["response"])[0]
    merger = StreamMerger()
    # A single document is a stream of one line.
    async with serve(form) as server, OllamaModel("m", base_url=server.url) as model:
        items = [item async for item in model.stream(REQUEST)]
    for item in items[:-1]:
        merger.add(item)
    assert isinstance(items[-1], StreamCompleted)
    final, merged = items[-1].response.message, merger.message()
    assert [told(block) for block in merged.content] == [told(block) for block in final.content]
    assert (merged.text, merged.usage) == (final.text, final.usage)


async def test_a_recorded_history_is_sent_as_it_was(shared: Path) -> None:
    document = document_of(shared, API, "tool-result")
    call, result = document["request"]["body"]["messages"]
    function = call["tool_calls"][0]["function"]
    history: list[Message] = [
        AssistantMessage(content=[ToolCallBlock(id="a", **function)]),
        ToolMessage(tool_call_id="a", content=result["content"]),
    ]
    async with (
        serve(replies(document["response"])[0]) as server,
        OllamaModel("llama3.1", base_url=server.url) as model,
    ):
        await model.invoke(ModelRequest(messages=history))
    assert server.requests[0].document["messages"] == [
        {**call, "tool_calls": [{"id": "a", "function": function}]},
        {**result, "tool_name": function["name"], "tool_call_id": "a"},
    ]
