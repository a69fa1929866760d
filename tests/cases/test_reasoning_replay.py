"""Reasoning parts, signatures and extras of calls: saved, loaded and sent back as they came."""

from typing import Any

import pytest

from tests.harness.providers.server import Reply, serve
from tinyagents import AgentHarness, UserMessage, tool
from tinyagents.harness.message import dump_messages, load_messages
from tinyagents.harness.providers import OpenAIChatModel

from .wire import END, END_CALLS, in_turn, piece, streamed, text, whole

DETAILS: list[dict[str, Any]] = [
    {"type": "reasoning.text", "text": "", "signature": "s1", "index": 0},
    {"type": "reasoning.encrypted", "data": "zz", "index": 1},
]
CALL: dict[str, Any] = {
    "id": "k1",
    "type": "function",
    "function": {"name": "look", "arguments": '{"n":1}'},
    "extra_content": {"google": {"thought_signature": "g1"}},
    "thought_signature": "g1",
}
SAID: dict[str, Any] = {"content": "hi", "reasoning_details": DETAILS, "tool_calls": [CALL]}


def in_a_stream() -> Reply:
    return streamed(
        piece({"reasoning_details": [DETAILS[0]]}),
        piece({"reasoning_details": [DETAILS[1]]}),
        text("hi"),
        piece({"tool_calls": [{"index": 0, **CALL}]}),
        END_CALLS,
    )


@tool
async def look(n: int) -> int:
    """Look."""
    return n


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "plain"])
async def test_reasoning_parts_and_extras_of_calls_survive_saving_and_go_back_as_they_came(
    stream: bool,
) -> None:
    # C44
    if stream:
        replies = in_turn(in_a_stream(), streamed(text("ok"), END))
    else:
        replies = in_turn(whole(SAID, "tool_calls"), whole({"content": "ok"}))
    async with serve(replies) as server, serve(whole({"content": "ok"})) as elsewhere:

        def model(provider: str, url: str) -> OpenAIChatModel:
            return OpenAIChatModel(
                "m", provider=provider, api_key="k-12345678", base_url=f"{url}/v1"
            )

        async with model("openrouter", server.url) as own, model("groq", elsewhere.url) as other:
            agent = AgentHarness(model=own, tools=[look])
            run = await (agent.stream(None, "go").result() if stream else agent.invoke(None, "go"))

            saved = dump_messages(run.messages)
            loaded = load_messages(saved)
            assert loaded == run.messages
            assert dump_messages(loaded) == saved
            history = [*loaded, UserMessage(content="and now?")]
            await agent.invoke(None, history) if not stream else await agent.stream(
                None, history
            ).result()
            await AgentHarness(model=other, tools=[look]).invoke(None, history)
    replayed = [request.document["messages"][1] for request in server.requests[1:]]
    assert len(replayed) == 2
    for message in replayed:
        assert message == {"role": "assistant", **SAID}
        assert list(message["reasoning_details"][0]) == list(DETAILS[0])
    # The order of the fields too: what was saved and loaded is sent in the same bytes.
    first, second = (
        request.body[request.body.index(b'{"role":"assistant"') :].split(b'{"role":"tool"')[0]
        for request in server.requests[1:]
    )
    assert first == second

    (foreign,) = (m for m in elsewhere.requests[0].document["messages"] if "tool_calls" in m)
    plain = {name: value for name, value in CALL.items() if name in ("id", "type", "function")}
    assert foreign == {"role": "assistant", "content": "hi", "tool_calls": [plain]}
