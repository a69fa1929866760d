"""Reasoning parts, signatures and extras of calls: saved, loaded and sent back as they came."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.harness.providers.server import Reply, serve
from tinyagents import AgentHarness, UserMessage, tool
from tinyagents.harness.message import dump_messages, load_messages
from tinyagents.harness.providers import OpenAIChatModel

from .dialects import (
    ANTHROPIC,
    CHAT,
    GEMINI,
    OLLAMA,
    RESPONSES,
    Dialect,
    Json,
    Said,
    both_ways,
)
from .wire import END, END_CALLS, agent_on, in_turn, piece, streamed, text, whole

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


# The same in the other APIs, whose parts are these


THOUGHT = {"type": "thinking", "thinking": "", "signature": "s1"}
REDACTED = {"type": "redacted_thinking", "data": "zz"}
USED = {"type": "tool_use", "id": "k1", "name": "look", "input": {"n": 1}}
USED_EXTRA = {"caller": {"type": "direct"}, "thought_signature": "g1"}
CONTENT: list[Json] = [THOUGHT, REDACTED, {"type": "text", "text": "hi"}, {**USED, **USED_EXTRA}]

PARTS: list[Json] = [
    {"text": "", "thought": True, "thoughtSignature": "s1"},
    {"text": "hi"},
    {
        "functionCall": {"id": "k1", "name": "look", "args": {"n": 1}},
        "thoughtSignature": "g1",
    },
]
OUTPUT: list[Json] = [
    {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "zz"},
    {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "hi", "annotations": []}],
    },
    {
        "id": "fc_1",
        "type": "function_call",
        "status": "completed",
        "call_id": "k1",
        "name": "look",
        "arguments": '{"n":1}',
        "thought_signature": "g1",
    },
]
LINE: Json = {
    "role": "assistant",
    "content": "hi",
    "thinking": "hm",
    "tool_calls": [
        {
            "id": "k1",
            "function": {"index": 0, "name": "look", "arguments": {"n": 1}},
            "thought_signature": "g1",
        }
    ],
}


def anthropic_events() -> list[Json]:
    begun, *end = ANTHROPIC.events(Said())
    signed = {"type": "signature_delta", "signature": "s1"}
    empty = {**USED, **USED_EXTRA, "input": {}}
    return [
        begun,
        *ANTHROPIC.block(0, {**THOUGHT, "signature": ""}, signed),
        *ANTHROPIC.block(1, REDACTED),
        *ANTHROPIC.block(2, {"type": "text", "text": ""}, {"type": "text_delta", "text": "hi"}),
        *ANTHROPIC.block(3, empty, {"type": "input_json_delta", "partial_json": '{"n":1}'}),
        *end,
    ]


def responses_events() -> list[Json]:
    begun, end = RESPONSES.events(Said())
    items = [
        {"type": f"response.output_item.{when}", "output_index": index, "item": item}
        for index, item in enumerate(OUTPUT)
        for when in ("added", "done")
    ]
    return [begun, *items, {**end, "response": {**end["response"], "output": OUTPUT}}]


def ollama_events() -> list[Json]:
    pieces = [{"thinking": "hm"}, {"content": "hi"}, {"tool_calls": LINE["tool_calls"]}]
    return [*(OLLAMA.line(**piece) for piece in pieces), *OLLAMA.events(Said())[1:]]


@dataclass(frozen=True, kw_only=True)
class Replay:
    """An answer with reasoning, in both forms, and what of it goes back."""

    dialect: Dialect
    events: list[Json]
    document: Json
    sent: Any
    """As it stands in the next request."""
    among: Callable[[Json], Any]
    """Where in the request that is."""


REPLAYS = {
    "anthropic": Replay(
        dialect=ANTHROPIC,
        events=anthropic_events(),
        document={**ANTHROPIC.document(Said()), "content": CONTENT, "stop_reason": "tool_use"},
        sent=CONTENT,
        among=lambda body: body["messages"][1]["content"],
    ),
    "gemini": Replay(
        dialect=GEMINI,
        events=[*map(GEMINI.chunk, PARTS), GEMINI.chunk(finish="STOP")],
        document=GEMINI.chunk(*PARTS, finish="STOP"),
        sent=PARTS,
        among=lambda body: body["contents"][1]["parts"],
    ),
    "responses": Replay(
        dialect=RESPONSES,
        events=responses_events(),
        document={**RESPONSES.document(Said()), "output": OUTPUT},
        sent=OUTPUT,
        among=lambda body: body["input"][1:4],
    ),
    "ollama": Replay(
        dialect=OLLAMA,
        events=ollama_events(),
        document={**OLLAMA.document(Said()), "message": LINE},
        sent=LINE,
        among=lambda body: body["messages"][1],
    ),
}


@both_ways
@pytest.mark.parametrize("case", REPLAYS)
async def test_reasoning_of_every_api_survives_saving_and_goes_back_as_it_came(
    case: str, stream: bool
) -> None:
    # C44
    replay = REPLAYS[case]
    dialect = replay.dialect
    first = dialect.streamed(*replay.events) if stream else Reply.json(replay.document)
    last = dialect.answer(Said(text="ok"), stream=stream)
    plain = CHAT.answer(Said(text="ok"), stream=False)
    async with (
        agent_on(first, last, tools=[look], dialect=dialect) as (agent, server),
        agent_on(plain, tools=[look]) as (other, elsewhere),
    ):
        run = await (agent.stream(None, "go").result() if stream else agent.invoke(None, "go"))
        saved = dump_messages(run.messages)
        loaded = load_messages(saved)
        assert loaded == run.messages
        assert dump_messages(loaded) == saved
        history = [*loaded, UserMessage(content="and now?")]
        await (agent.stream(None, history).result() if stream else agent.invoke(None, history))
        await other.invoke(None, history)
    second, third = (replay.among(request.document) for request in server.requests[1:])
    # As text, so that the order of the fields counts too.
    assert json.dumps(second) == json.dumps(replay.sent)
    assert json.dumps(third) == json.dumps(replay.sent)
    body = elsewhere.requests[0].body
    assert [mark for mark in (b'"s1"', b'"zz"', b'"g1"', b'"hm"') if mark in body] == []
    assert b'"hi"' in body
