"""Oversized results: a pointer for the model, a file without secrets, and a tool that reads it."""

import re
from tempfile import TemporaryDirectory

import anyio

from tinyagents import AgentHarness, RunConfig, tool
from tinyagents.harness.artifacts import FileArtifactStore, read_artifact_tool
from tinyagents.harness.middleware import ArtifactMiddleware
from tinyagents.harness.tools import time_tools, todo_tools
from tinyagents.testkit import ScriptedModel, call, say


@tool
def export_orders() -> str:
    """Export all orders as CSV."""
    rows = (f"{n},customer{n}@example.com,{n * 7 % 100}.00" for n in range(5_000))
    return "\n".join(("id,email,sum", *rows))


def without_addresses(text: str) -> str:
    """What is stored has no addresses of people in it."""
    return re.sub(r"[\w.]+@[\w.]+", "[address]", text)


async def main() -> None:
    with TemporaryDirectory() as folder:
        store = FileArtifactStore(folder)
        path = "outputs/thread-orders/export_orders-call_2-result.md"
        steps = [{"content": "Export", "status": "in_progress"}, {"content": "Sum up"}]
        model = ScriptedModel(
            [
                call("write_todos", todos=steps),
                call("export_orders"),
                call("read_artifact", path=path, start=100),
                call("resolve_time", expr="yesterday"),
                say("5000 orders."),
            ]
        )
        agent = AgentHarness(
            model=model,
            tools=[export_orders, read_artifact_tool(store), *time_tools(), *todo_tools()],
            middleware=[ArtifactMiddleware(store, redactor=without_addresses)],
        )
        config = RunConfig(thread_id="orders")
        run = await agent.invoke(None, "How many orders are there?", config=config)
        for message in run.messages:
            print(f"{message.role}: {message.text[:300]}\n")
        assert "customer1@" not in await store.read(path)


if __name__ == "__main__":
    anyio.run(main)
