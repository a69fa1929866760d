"""What recorded answers of Ollama become: the table is what is expected of each.

The folder is not part of the repository, and nothing of its texts is: a block is told by its kind
and length, a call by its name and its arguments' names.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.harness.providers.server import Reply, Seen, cut, serve, single_bytes
from tinyagents.harness.errors import BadRequestError, ModelError, ServerError
from tinyagents.harness.message import (
    AssistantMessage,
    Block,
    Message,
    ToolCallBlock,
    ToolMessage,
    UserMessage,
)
from tinyagents.harness.model import (
    ModelRequest,
    ModelResponse,
    StreamCompleted,
    StreamMerger,
    drain,
)
from tinyagents.harness.providers import OllamaModel

REQUEST = ModelRequest(messages=[UserMessage(content="hello")])


@dataclass(frozen=True)
class Answer:
    blocks: list[str]
    usage: tuple[int, int]
    """Input, output."""
    finish: str
    raw_finish: str


@dataclass(frozen=True)
class Failure:
    cls: type[ModelError]
    status: int | None
    retryable: bool


EXPECTED: dict[str, Answer | Failure] = {
    "plain-text": Answer(["text 256"], (17, 66), "stop", "stop"),
    "reconstructed-error-404": Failure(BadRequestError, 404, retryable=False),
    "reconstructed-stream-error-line": Failure(ServerError, None, retryable=True),
    "reconstructed-stream-thinking": Answer(["reasoning 22", "text 6"], (12, 9), "stop", "stop"),
    "reconstructed-stream-tool-call": Answer(
        ["get_weather(city)"], (120, 20), "tool_calls", "stop"
    ),
    "stream-text": Answer(["text 212"], (17, 50), "stop", "stop"),
    "tool-result": Answer(["text 535"], (44, 113), "stop", "stop"),
}


def recorded(shared: Path, case: str) -> Any:
    return json.loads((shared / f"fixtures/providers/ollama/{case}.json").read_text())


def replies(response: dict[str, Any]) -> list[Reply]:
    body = response["sse"].encode() if "sse" in response else orjson.dumps(response["body"])
    forms = [(body,), cut(body, seed=1), cut(body, seed=2, pieces=30), single_bytes(body)]
    headers = response.get("headers", {})
    return [Reply(pieces=each, status=response["status"], headers=headers) for each in forms]


async def outcome(model: OllamaModel, *, stream: bool) -> ModelResponse | ModelError:
    try:
        return await (drain(model.stream(REQUEST)) if stream else model.invoke(REQUEST))
    except ModelError as error:
        return error


def described(found: ModelResponse | ModelError) -> Answer | Failure:
    if isinstance(found, ModelError):
        return Failure(type(found), found.status, found.retryable)
    assert found.usage is not None
    assert found.finish_reason is not None
    return Answer(
        [told(block) for block in found.message.content],
        (found.usage.input_tokens, found.usage.output_tokens),
        found.finish_reason,
        found.raw_finish_reason or "",
    )


def told(block: Block) -> str:
    if isinstance(block, ToolCallBlock):
        return f"{block.name}({', '.join(block.arguments)})"
    return f"{block.type} {len(getattr(block, 'text', ''))}"


def test_every_recorded_case_has_an_expectation(shared: Path) -> None:
    cases = {path.stem for path in (shared / "fixtures/providers/ollama").glob("*.json")}
    assert cases == set(EXPECTED)


@pytest.mark.parametrize("case", EXPECTED)
async def test_a_recorded_answer_is_understood_however_its_bytes_arrive(
    case: str, shared: Path
) -> None:
    document = recorded(shared, case)
    forms = replies(document["response"])
    body = document["request"]["body"]

    def script(_seen: Seen) -> Reply:
        return forms[len(server.requests) - 1]

    async with serve(script) as server, OllamaModel(body["model"], base_url=server.url) as model:
        seen = [await outcome(model, stream=bool(body["stream"])) for _ in forms]
    assert [described(each) for each in seen] == [EXPECTED[case]] * len(forms)


@pytest.mark.parametrize("case", [c for c, e in EXPECTED.items() if isinstance(e, Answer)])
async def test_the_items_of_a_recorded_answer_make_the_message_of_the_last_one(
    case: str, shared: Path
) -> None:
    form = replies(recorded(shared, case)["response"])[0]
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
    document = recorded(shared, "tool-result")
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
