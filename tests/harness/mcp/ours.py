"""Tools of this library, served: over the standard streams, or at a port of loopback."""

import sys
from pathlib import Path
from typing import Annotated, Any

import anyio

from tinyagents import (
    AgentHarness,
    ImageBlock,
    JsonBlock,
    Middleware,
    RunContext,
    TextBlock,
    ToolContext,
    ToolError,
    ToolResult,
    tool,
)
from tinyagents.harness.mcp import CallContext, McpServer, ServedCall
from tinyagents.harness.middleware import ToolCall
from tinyagents.harness.providers import MockModel
from tinyagents.harness.tool import Injected, ToolAccess, ToolLike, ToolPolicy


@tool(policy=ToolPolicy.read_only())
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
async def who(
    *, ctx: ToolContext[str], session: Annotated[str, Injected(lambda ctx: ctx.data.upper())]
) -> str:
    """Say who is served, with reports."""
    for step in ("one", "two"):
        ctx.progress(step)
    return f"{ctx.data} {session} {ctx.run.state}"


@tool
def parts() -> ToolResult:
    """Return several parts."""
    image = ImageBlock(data="Ynl0ZXM=", media_type="image/png")
    return ToolResult([TextBlock(text="words"), image, JsonBlock(value=[1])], value={"pages": 3})


@tool
def fail() -> str:
    """Not work."""
    raise ToolError("no such luck")


@tool
async def wait(witness: str) -> str:
    """Wait; leave a word when it is cancelled."""
    leave(witness, "begun")
    try:
        await anyio.sleep(60)
    except BaseException:
        leave(witness, "cancelled")
        raise
    return "never"


def leave(witness: str, word: str) -> None:
    Path(witness).write_text(word)


@tool
async def ask(*, ctx: ToolContext[Any]) -> str:
    """Ask somebody."""
    return str(ctx.ask("sure?"))


@tool(policy=ToolPolicy(access=ToolAccess(approval_required=True)))
def launch() -> str:
    """Needs an approval."""
    return "launched"


@tool
def chatty() -> str:
    """Print where the protocol is spoken."""
    print("this is not of the protocol")
    return "said"


class Guard(Middleware[Any]):
    """Refuses sums of large numbers."""

    async def before_tool(self, ctx: RunContext[Any], call: ToolCall) -> None:
        if call.arguments.get("a") == 666:
            raise RuntimeError("a secret of the application")

    async def wrap_tool(self, ctx: RunContext[Any], call: ToolCall, call_next: Any) -> ToolResult:
        if call.arguments.get("a") == 13:
            return ToolResult.error("unlucky")
        result: ToolResult = await call_next(call)
        return result


def context_of(served: ServedCall) -> CallContext:
    headers = served.headers or {}
    if served.tool == "fail" and "x-user" in headers:
        raise ToolError("not for you")
    return CallContext(data=headers.get("x-user", served.client or "nobody"), state="state")


TOOLS: list[ToolLike] = [add, who, parts, fail, wait, ask, launch, chatty]
harness = AgentHarness(MockModel(), tools=TOOLS, middleware=[Guard()])
server = McpServer(
    harness,
    name="ours",
    version="1.2",
    instructions="Use with care.",
    context_factory=context_of,
    allow_approval_required=sys.argv[1] == "allow",
)

if __name__ == "__main__":
    if sys.argv[2].isdecimal():
        anyio.run(lambda: server.serve_http(port=int(sys.argv[2])))
    else:
        anyio.run(server.serve_stdio, backend=sys.argv[2])
