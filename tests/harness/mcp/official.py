"""A server made with the official package: over its standard streams, or at a port of loopback."""

import base64
import os
import sys
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError

server = MCPServer("official")


def leave(witness: str, word: str) -> None:
    Path(witness).write_text(word)


@server.tool(annotations=types.ToolAnnotations(read_only_hint=True, title="Sum"))
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool(annotations=types.ToolAnnotations(destructive_hint=True, idempotent_hint=True))
def mcp_wipe_disk() -> str:
    """Destroy all."""
    return "gone"


@server.tool()
async def wait(witness: str, ctx: Context[Any]) -> str:
    """Report, and wait; leave a word when it is cancelled."""
    await ctx.report_progress(1, 3, "on its way")
    leave(witness, "begun")
    try:
        await anyio.sleep(60)
    except BaseException:
        leave(witness, "cancelled")
        raise
    return "never"


@server.tool()
def crash() -> str:
    """Leave in the middle of the call."""
    print("about to crash", file=sys.stderr, flush=True)
    os._exit(3)


@server.tool()
def fail() -> str:
    """Say that it does not work."""
    raise ToolError("no such luck")


@server.tool(structured_output=False)
def parts() -> types.CallToolResult:
    """Return a part of every kind."""
    data = base64.b64encode(b"bytes").decode()
    text = types.TextResourceContents(uri="file:///notes.txt", text="notes")
    blob = types.BlobResourceContents(
        uri="file:///a/report.pdf", blob=data, mime_type="application/pdf"
    )
    return types.CallToolResult(
        content=[
            types.TextContent(text="words"),
            types.ImageContent(data=data, mime_type="image/png"),
            types.AudioContent(data=data, mime_type="audio/wav"),
            types.EmbeddedResource(resource=text),
            types.EmbeddedResource(resource=blob),
            types.ResourceLink(name="more", uri="https://example.com/more", description="the rest"),
        ],
        structured_content={"pages": 3},
    )


@server.tool(structured_output=False)
def big(size: int) -> str:
    """Return a text of this size."""
    return "x" * size


@server.tool(structured_output=False)
async def grow(ctx: Context[Any]) -> str:
    """Offer another tool from now on."""
    server.add_tool(lambda: "fresh", name="fresh", description="New.")
    await ctx.notify_tools_changed()
    return "grown"


if __name__ == "__main__":
    if sys.argv[1:]:
        server.run("streamable-http", port=int(sys.argv[1]))
    else:
        server.run("stdio")
