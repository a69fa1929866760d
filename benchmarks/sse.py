"""How fast a stream of server-sent events is read, from its bytes to typed pieces of an answer.

    python benchmarks/sse.py [--rounds 3] [--json]

The same body goes through the same ``httpx.AsyncClient`` on a transport in memory: nobody waits for
anything, so processor time is what counts, in megabytes of body per second of it. A side reads the
body to its end and is refused where a piece or the usage is wrong:

- ``split+json`` and ``split+orjson``: bytes are split at blank lines and decoded; nothing is typed,
  checked or put together. The least that the work costs.
- ``openai``: the official client, if it is installed; its chunks or events as pydantic models.
- ``tinyagents``: the items of the stream, and the message that they make, with text and usage.

``event`` hands out each event in a chunk of its own, as a provider sends them; ``64k`` as many as
fit, as a proxy that buffers does.
"""

import argparse
import asyncio
import importlib
import importlib.util
import json
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from statistics import median
from typing import Any

import httpx
import orjson

from tinyagents import UserMessage
from tinyagents.harness.model import MessageDelta, ModelRequest, StreamCompleted
from tinyagents.harness.providers import OpenAIChatModel, OpenAIResponsesModel

ROOT = Path(__file__).resolve().parents[1]
URL = "http://model.example/v1"
KEY = "the-key-of-a-benchmark"
WORDS = [f" word{number % 97}" for number in range(2_000)]
USAGE = {"prompt_tokens": 20, "completion_tokens": 2_000, "total_tokens": 2_020}
SIDES = ("split+json", "split+orjson", "openai", "tinyagents")
APIS = ("chat", "responses")
CHUNKS = {"event": 0, "64k": 65_536}
SECONDS = 1.0

Json = dict[str, Any]
Read = Callable[[httpx.AsyncClient], Awaitable[tuple[int, int]]]
"""Reads one stream: how many pieces of text it had, and the tokens of the answer."""


# The bodies


def chat_events() -> list[bytes]:
    """A streamed answer of Chat Completions with all fields that OpenAI sends."""
    facts: Json = {"id": "chatcmpl-B1x8zCJDk2mS5rT9", "object": "chat.completion.chunk"}
    facts |= {"created": 1_790_000_000, "model": "gpt-5-mini-2025-08-07"}
    facts |= {"service_tier": "default", "system_fingerprint": "fp_0a1b2c3d4e"}

    def chunk(delta: Json, finish: str | None = None) -> Json:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return {**facts, "choices": [choice], "usage": None, "obfuscation": "Xk2d9sQ"}

    chunks: list[Json] = [
        chunk({"role": "assistant", "content": "", "refusal": None}),
        *(chunk({"content": word}) for word in WORDS),
        chunk({}, "stop"),
        {**facts, "choices": [], "usage": USAGE, "obfuscation": "Xk2d9sQ"},
    ]
    return [b"data: %s\n\n" % orjson.dumps(each) for each in chunks] + [b"data: [DONE]\n\n"]


def responses_events() -> list[bytes]:
    """The same answer of the Responses API."""
    part: Json = {"type": "output_text", "text": "".join(WORDS), "annotations": [], "logprobs": []}
    item: Json = {"id": "msg_0a1b2c3d4e5f60718293a4b5", "type": "message", "status": "completed"}
    item |= {"role": "assistant", "content": [part]}
    asked: Json = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    done: Json = {
        "id": "resp_0a1b2c3d4e5f60718293a4b5",
        "object": "response",
        "model": "gpt-5-mini",
    }
    done |= {"created_at": 1_790_000_000, "status": "completed", "output": [item], **asked}
    usage: Json = {"input_tokens": 20, "input_tokens_details": {"cached_tokens": 0}}
    usage |= {"output_tokens": 2_000, "output_tokens_details": {"reasoning_tokens": 0}}
    begun: Json = {**done, "status": "in_progress", "output": []}
    empty: Json = {**item, "status": "in_progress", "content": []}
    place: Json = {"item_id": item["id"], "output_index": 0, "content_index": 0}
    events: list[Json] = [
        {"type": "response.created", "response": begun},
        {"type": "response.output_item.added", "output_index": 0, "item": empty},
        {"type": "response.content_part.added", **place, "part": {**part, "text": ""}},
        *(
            {"type": "response.output_text.delta", **place, "delta": word, "logprobs": []}
            for word in WORDS
        ),
        {"type": "response.output_text.done", **place, "text": part["text"], "logprobs": []},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {
            "type": "response.completed",
            "response": {**done, "usage": {**usage, "total_tokens": 2_020}},
        },
    ]
    return [
        b"event: %s\ndata: %s\n\n"
        % (each["type"].encode(), orjson.dumps({**each, "sequence_number": number}))
        for number, each in enumerate(events)
    ]


BODIES = {"chat": chat_events, "responses": responses_events}


def in_chunks(events: list[bytes], size: int) -> list[bytes]:
    """The events in chunks of so many bytes; 0 leaves each in one of its own."""
    if not size:
        return events
    body = b"".join(events)
    return [body[at : at + size] for at in range(0, len(body), size)]


def client_of(chunks: list[bytes]) -> httpx.AsyncClient:
    """A client whose every request is answered by the chunks."""

    async def body() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    def answer(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, content=body())

    return httpx.AsyncClient(transport=httpx.MockTransport(answer))


# The sides


def split_with(loads: Callable[[bytes], Any], api: str) -> Read:
    """The floor: no parser of events, only a split, with this decoder of JSON."""
    kind = "response.output_text.delta"

    async def read(client: httpx.AsyncClient) -> tuple[int, int]:
        pieces, tokens = 0, 0
        rest = b""
        async with client.stream("POST", URL) as response:
            async for chunk in response.aiter_bytes():
                *events, rest = (rest + chunk).split(b"\n\n")
                for event in events:
                    data = event.partition(b"data: ")[2]
                    if data == b"[DONE]":
                        continue
                    document = loads(data)
                    if api == "chat":
                        choices = document["choices"]
                        pieces += bool(choices and choices[0]["delta"].get("content"))
                        if usage := document["usage"]:
                            tokens = usage["completion_tokens"]
                    elif document["type"] == kind:
                        pieces += bool(document["delta"])
                    elif document["type"] == "response.completed":
                        tokens = document["response"]["usage"]["output_tokens"]
        return pieces, tokens

    return read


def official(api: str) -> Read:
    """OpenAI's own client."""
    openai: Any = importlib.import_module("openai")

    async def read(client: httpx.AsyncClient) -> tuple[int, int]:
        pieces, tokens = 0, 0
        caller: Any = openai.AsyncOpenAI(api_key=KEY, base_url=URL, http_client=client)
        if api == "chat":
            messages = [{"role": "user", "content": "go"}]
            create: Any = caller.chat.completions.create
            async for chunk in await create(model="m", messages=messages, stream=True):
                pieces += bool(chunk.choices and chunk.choices[0].delta.content)
                tokens = chunk.usage.completion_tokens if chunk.usage else tokens
            return pieces, tokens
        async for event in await caller.responses.create(model="m", input="go", stream=True):
            if event.type == "response.output_text.delta":
                pieces += bool(event.delta)
            elif event.type == "response.completed":
                tokens = event.response.usage.output_tokens
        return pieces, tokens

    return read


def ours(api: str) -> Read:
    """This package."""
    make = OpenAIChatModel if api == "chat" else OpenAIResponsesModel
    request = ModelRequest(messages=[UserMessage(content="go")])

    async def read(client: httpx.AsyncClient) -> tuple[int, int]:
        pieces, tokens = 0, 0
        model = make("m", provider="openai", api_key=KEY, base_url=URL, http_client=client)
        async for item in model.stream(request):
            if isinstance(item, MessageDelta):
                pieces += bool(item.text)
            elif isinstance(item, StreamCompleted):
                assert item.response.text == "".join(WORDS)
                assert item.response.usage is not None
                tokens = item.response.usage.output_tokens
        return pieces, tokens

    return read


def reader(side: str, api: str) -> Read:
    """What reads a stream of this API on this side."""
    match side:
        case "split+json":
            return split_with(json.loads, api)
        case "split+orjson":
            return split_with(orjson.loads, api)
        case "openai":
            return official(api)
        case _:
            return ours(api)


# Measuring


async def measure(side: str, api: str) -> dict[str, float]:
    """Megabytes of body per second of processor time, for each way of cutting it."""
    events, read = BODIES[api](), reader(side, api)
    size = sum(map(len, events))
    rates: dict[str, float] = {}
    for name, chunk_size in CHUNKS.items():
        times: list[float] = []
        async with client_of(in_chunks(events, chunk_size)) as client:
            await checked(read, client)
            stop = time.perf_counter() + SECONDS
            while len(times) < 5 or time.perf_counter() < stop:
                start = time.process_time()
                await checked(read, client)
                times.append(time.process_time() - start)
        rates[name] = size / median(times) / 1e6
    return rates


async def checked(read: Read, client: httpx.AsyncClient) -> None:
    """Read once, and refuse anything but the whole answer."""
    found = await read(client)
    assert found == (len(WORDS), 2_000), f"read {found}"


def measure_all(sides: list[str], rounds: int) -> dict[str, dict[str, float]]:
    """The medians of all sides, which take turns, each in a process of its own."""
    values: dict[tuple[str, str], list[float]] = defaultdict(list)
    for number in range(1, rounds + 1):
        for api in APIS:
            for side in sides:
                print(f"round {number}/{rounds}: {api} {side}", file=sys.stderr)
                command = [sys.executable, "-m", "benchmarks.sse", "--one", side, api]
                done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
                for name, rate in json.loads(done.stdout).items():
                    values[f"{api}, {name}", side].append(rate)
    results: dict[str, dict[str, float]] = defaultdict(dict)
    for (row, side), rates in values.items():
        results[row][side] = median(rates)
    return results


def table(results: dict[str, dict[str, float]], sides: list[str]) -> str:
    """The results in Markdown."""
    lines = [f"| MB/s | {' | '.join(sides)} |", f"| --- |{' --: |' * len(sides)}"]
    for row, rates in results.items():
        lines.append(f"| {row} | {' | '.join(f'{rates[side]:.1f}' for side in sides)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--one", nargs=2, metavar=("SIDE", "API"), help="measure here and now")
    given = parser.parse_args()
    if given.one:
        print(json.dumps(asyncio.run(measure(*given.one))))
        return
    has_openai = importlib.util.find_spec("openai") is not None
    sides = [side for side in SIDES if side != "openai" or has_openai]
    results = measure_all(sides, given.rounds)
    print(json.dumps(results, indent=2) if given.json else table(results, sides))


if __name__ == "__main__":
    main()
