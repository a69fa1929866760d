"""MCP: a server of tools as a child process, and an agent that uses them. Needs the extra `mcp`.

The child is this program again, which then serves a tool of its own.
"""

import sys

import anyio

from tinyagents import AgentHarness, ToolContext, tool
from tinyagents.harness.mcp import McpClient, McpServer, McpStdio
from tinyagents.testkit import ScriptedModel, call, say


@tool
async def stock(article: str, *, ctx: ToolContext[dict[str, int]]) -> str:
    """How many of an article there are."""
    return f"{ctx.data.get(article, 0)} x {article}"


async def serve() -> None:
    await McpServer([stock], name="shop", data={"lamp": 3}).serve_stdio()


async def main() -> None:
    shop = McpStdio(sys.executable, [__file__, "serve"])
    async with McpClient(shop, name="shop", prefix="shop_") as client:
        for each in client.tools:
            print(f"{each.name}: {each.description}")
        model = ScriptedModel([call("shop_stock", article="lamp"), say("Three lamps are left.")])
        run = await AgentHarness(model, tools=client.tools).invoke(None, "Are there lamps?")
        print(run.text)


if __name__ == "__main__":
    anyio.run(serve if sys.argv[1:] == ["serve"] else main)
