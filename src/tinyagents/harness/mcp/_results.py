"""What a call of a server's tool gives, as the result of a tool of ours."""

import base64
from pathlib import PurePosixPath
from urllib.parse import urlsplit

import mcp_types as types

from ..message import AudioBlock, Block, FileBlock, ImageBlock, TextBlock
from ..tool import ToolResult

_MAX_BLOCKS = 256


def to_result(answer: types.CallToolResult) -> ToolResult:
    """Return the result that a server's answer stands for.

    Text, images, sound and embedded resources become blocks in their order, links to resources a
    line of text and an entry of ``artifacts``. The structured content is the result's ``value``,
    and its JSON text is the content where there is no other.
    """
    items = answer.content[:_MAX_BLOCKS]
    blocks = [_block(item) for item in items]
    if left := len(answer.content) - len(items):
        blocks.append(TextBlock(text=f"[{left} more parts were left out]"))
    value = answer.structured_content
    if not blocks and answer.is_error:
        return ToolResult.error("", value=value)
    return ToolResult(
        blocks if blocks or value is None else None,
        value=value,
        artifacts=[item.uri for item in items if isinstance(item, types.ResourceLink)],
        is_error=answer.is_error,
    )


def _block(item: types.ContentBlock) -> Block:
    match item:
        case types.TextContent():
            return TextBlock(text=item.text)
        case types.ImageContent() | types.AudioContent():
            return _media(item.data, item.mime_type, None)
        case types.ResourceLink():
            about = f": {item.description}" if item.description else ""
            return TextBlock(text=f"[{item.title or item.name}]({item.uri}){about}")
        case types.EmbeddedResource(resource=types.TextResourceContents() as resource):
            return TextBlock(text=f"[{resource.uri}]\n{resource.text}")
        case types.EmbeddedResource(resource=types.BlobResourceContents() as resource):
            media_type = resource.mime_type or "application/octet-stream"
            name = PurePosixPath(urlsplit(resource.uri).path).name
            return _media(resource.blob, media_type, name or None)
        case _:
            return TextBlock(text=f"[a part of type `{item.type}` was left out]")


def _media(data: str, media_type: str, name: str | None) -> Block:
    try:
        base64.b64decode(data, validate=True)
    except ValueError:
        return TextBlock(text=f"[a part of type `{media_type}` was left out: it is not base64]")
    match media_type.partition("/")[0]:
        case "image":
            return ImageBlock(data=data, media_type=media_type)
        case "audio":
            return AudioBlock(data=data, media_type=media_type)
        case _:
            return FileBlock(data=data, media_type=media_type, name=name)
