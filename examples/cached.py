"""Answers that are kept in a file: the second run of this program calls no model."""

import sys
import tempfile
from pathlib import Path

import anyio

from tinyagents import AgentHarness
from tinyagents.harness.cache import SqliteResponseCache
from tinyagents.testkit import FakeChatModel


async def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
    model = FakeChatModel("Blue, since air scatters short waves of light.")
    async with SqliteResponseCache(folder / "responses.db") as cache:
        agent = AgentHarness(model, cache=cache)
        for _ in range(2):
            run = await agent.invoke(None, "Which colour has the sky?")
            print(f"{run.text} ({run.cache_hits} from the cache)")
        print(await cache.stats())


if __name__ == "__main__":
    anyio.run(main)
