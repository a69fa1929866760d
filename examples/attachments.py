"""Attachments: what a user names becomes part of the message, within what the policy allows."""

import struct
import zlib
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio

from tinyagents import AgentHarness
from tinyagents.harness.errors import MediaInputError
from tinyagents.harness.guarded_fetch import GuardedFetch, HostPolicy
from tinyagents.harness.multimodal import InputPolicy, resolve_markers
from tinyagents.testkit import ScriptedModel, say


def red_dot() -> bytes:
    """Return a PNG of one red pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        checksum = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + checksum

    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    pixels = zlib.compress(b"\0\xff\0\0")
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        chunk(kind, data) for kind, data in ((b"IHDR", header), (b"IDAT", pixels), (b"IEND", b""))
    )


def save_uploads(folder: str) -> None:
    """Do what a server does with what its users send."""
    Path(folder, "dot.png").write_bytes(red_dot())
    Path(folder, "sales.csv").write_text("city,sum\nParis,12\n")


async def main() -> None:
    with TemporaryDirectory() as uploads:
        save_uploads(uploads)
        policy = InputPolicy(
            root=uploads,
            # Addresses of these hosts would be fetched; without `fetch` none is.
            fetch=GuardedFetch(hosts=HostPolicy(hosts=["*.example.com"])),
        )

        asked = "What do these show? [IMAGE:dot.png] [FILE:sales.csv]"
        message = await resolve_markers(asked, policy=policy)
        for block in message.content:
            print(block.type, getattr(block, "text", ""))
        agent = AgentHarness(model=ScriptedModel([say("A red dot, and the sales in Paris.")]))
        print((await agent.invoke(None, message)).text)

        for reference in ("../../etc/passwd", "http://169.254.169.254/", "http://dot.test/x.png"):
            try:
                await resolve_markers(f"And this? [IMAGE:{reference}]", policy=policy)
            except MediaInputError as error:
                print(f"{error.reason}: {error}")


if __name__ == "__main__":
    anyio.run(main)
