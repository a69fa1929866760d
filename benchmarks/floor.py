"""The least that the work costs: a bare asyncio loop over dicts, nothing validated or recorded."""

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

from benchmarks.work import Run, Work

Message = dict[str, Any]


def build(work: Work) -> Run:
    """An agent for ``work``."""

    async def add_one(number: int) -> int | str:
        return work.add_one(number)

    tools = {"add_one": add_one}

    async def model(messages: list[Message]) -> AsyncGenerator[str | Message]:
        last = messages[-1]
        numbers = await work.ask(last["content"] if last["role"] == "tool" else None)
        if numbers:
            yield {
                "role": "assistant",
                "tool_calls": [
                    {
                        "id": f"call-{len(messages)}-{number}",
                        "name": "add_one",
                        "arguments": json.dumps({"number": number}),
                    }
                    for number in numbers
                ],
            }
            return
        for piece in work.pieces:
            yield piece

    async def call_tool(call: Message) -> Message:
        result = await tools[call["name"]](**json.loads(call["arguments"]))
        return {"role": "tool", "tool_call_id": call["id"], "content": str(result)}

    async def loop(prompt: str) -> AsyncGenerator[str]:
        messages: list[Message] = [{"role": "user", "content": prompt}]
        while True:
            calls: list[Message] = []
            pieces: list[str] = []
            async for item in model(messages):
                if isinstance(item, str):
                    pieces.append(item)
                    yield item
                else:
                    messages.append(item)
                    calls = item["tool_calls"]
            if not calls:
                messages.append({"role": "assistant", "content": "".join(pieces)})
                return
            if len(calls) == 1:
                messages.append(await call_tool(calls[0]))
            else:
                messages.extend(await asyncio.gather(*map(call_tool, calls)))

    async def run() -> tuple[str, int]:
        pieces = [piece async for piece in loop("count")]
        return "".join(pieces), len(pieces)

    return run
