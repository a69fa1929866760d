"""What an answer from the response cache costs beside one from a model.

    python benchmarks/cache.py [--seconds 2] [--json]

One run of a harness each, whose answer comes from

- ``hit``: an ``InMemoryResponseCache``;
- ``scripted``: a model in the process that answers at once: the least that any model costs, so that a
  hit, which makes a key and decodes the answer, can only cost more;
- ``http``: a server in a process of its own on loopback, through ``OpenAIChatModel``. It answers at
  once, with no model behind it: a real call takes hundreds of times longer.

The answer is the same in all of them. Prints the median microseconds of a run, and of the answer alone:
without what a run costs around it, measured by a run whose hook gives the answer.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import time
from statistics import median
from typing import Any

from tinyagents import AgentHarness, AssistantMessage, Middleware, RunContext
from tinyagents.harness.cache import InMemoryResponseCache
from tinyagents.harness.model import ModelRequest, ModelResponse
from tinyagents.harness.providers import OpenAIChatModel
from tinyagents.testkit import FakeChatModel

TEXT = "The sky is blue, since air scatters short waves of light more than long ones. " * 4
QUESTION = "Why is the sky blue?"


class Answers(Middleware[Any]):
    """Gives the answer itself, so that a run costs what is around an answer."""

    async def wrap_model(self, ctx: RunContext[Any], request: ModelRequest, call_next: Any) -> Any:
        """Answer without a model."""
        return ModelResponse(AssistantMessage(content=TEXT), "stop")


async def serve() -> None:
    """Answer each request on a loopback port, which is printed."""
    message = {"role": "assistant", "content": TEXT}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    usage = {"prompt_tokens": 9, "completion_tokens": 80, "total_tokens": 89}
    body = json.dumps({"id": "c1", "model": "m", "choices": [choice], "usage": usage}).encode()
    head = (
        f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            size = 0
            while line.strip():
                name, _, value = line.decode("latin-1").partition(":")
                size = int(value) if name.lower() == "content-length" else size
                line = await reader.readline()
            await reader.readexactly(size)
            writer.write(head.encode() + body)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def timed(agent: AgentHarness, seconds: float) -> float:
    """The median microseconds of a run."""
    for _ in range(20):
        assert (await agent.invoke(None, QUESTION)).text == TEXT
    times: list[float] = []
    stop = time.perf_counter() + seconds
    while time.perf_counter() < stop:
        start = time.perf_counter()
        await agent.invoke(None, QUESTION)
        times.append(time.perf_counter() - start)
    return median(times) * 1e6


async def measure(port: int, seconds: float) -> dict[str, float]:
    """The median microseconds of a run by where the answer comes from."""
    model = OpenAIChatModel("m", api_key="k", base_url=f"http://127.0.0.1:{port}/v1")
    async with model:
        http = AgentHarness(model)
        agents = {
            "around": http.replace(middleware=[Answers()]),
            "hit": http.replace(cache=InMemoryResponseCache()),
            "scripted": AgentHarness(FakeChatModel(TEXT, record=False)),
            "http": http,
        }
        return {side: await timed(agent, seconds) for side, agent in agents.items()}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        asyncio.run(serve())
        return
    command = [sys.executable, __file__, "--serve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            results = asyncio.run(measure(int(server.stdout.readline()), given.seconds))
        finally:
            server.kill()
    if given.json:
        print(json.dumps(results, indent=2))
        return
    around, hit = results.pop("around"), results["hit"]
    print("| answer from | µs a run | µs an answer | runs / hit | answers / hit |")
    print("| --- | --: | --: | --: | --: |")
    for side, micros in results.items():
        answer, of_hit = max(micros - around, 0.0), max(hit - around, 0.1)
        ratios = f"{micros / hit:.1f} | {answer / of_hit:.1f}"
        print(f"| {side} | {micros:,.0f} | {answer:,.0f} | {ratios} |")


if __name__ == "__main__":
    main()
