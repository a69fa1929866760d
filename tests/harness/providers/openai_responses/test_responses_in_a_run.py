"""A run of the harness on the Responses API: what goes back after a tool was called."""

from typing import Any

from tests.harness.providers.openai_responses.wire import (
    call,
    events_of,
    message,
    response,
    text,
    thought,
)
from tests.harness.providers.server import Reply, Seen, serve
from tinyagents import AgentHarness, tool
from tinyagents.harness.providers import OpenAIResponsesModel

THOUGHT = thought("Look first.", encrypted_content="gAAA")
CALL = call('{ "place": "sea" }', "look")
ANSWERS: list[dict[str, Any]] = [
    response(THOUGHT, CALL),
    response(message(text("It is wet.")), id="resp_2"),
]


@tool
async def look(place: str) -> str:
    """Look at a place."""
    return f"the {place} is wet"


async def test_a_run_sends_the_reasoning_and_the_call_back_with_the_result() -> None:
    def script(_seen: Seen) -> Reply:
        return Reply.json(ANSWERS[len(server.requests) - 1])

    async with (
        serve(script) as server,
        OpenAIResponsesModel("gpt-5-mini", api_key="k", base_url=f"{server.url}/v1") as model,
    ):
        run = await AgentHarness(model=model, tools=[look]).invoke(None, "How is the sea?")
    assert run.text == "It is wet."
    assert server.requests[1].document["input"] == [
        {"role": "user", "content": "How is the sea?"},
        THOUGHT,
        CALL,
        {"type": "function_call_output", "call_id": "call_1", "output": "the sea is wet"},
    ]
    assert server.requests[1].document["include"] == ["reasoning.encrypted_content"]


async def test_a_streamed_run_sends_the_same() -> None:
    def script(_seen: Seen) -> Reply:
        return Reply.events(*events_of(ANSWERS[len(server.requests) - 1]), done=False)

    async with (
        serve(script) as server,
        OpenAIResponsesModel("gpt-5-mini", api_key="k", base_url=f"{server.url}/v1") as model,
    ):
        run = await AgentHarness(model=model, tools=[look]).stream(None, "How is the sea?").result()
    assert run.text == "It is wet."
    assert server.requests[1].document["input"][1:3] == [THOUGHT, CALL]
