"""Messages as the content blocks of the Messages API.

What a message looks like there depends on the message and the provider alone, so each block is
encoded to bytes once; a request joins them to turns.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from ..errors import InvalidRequestError
from ..message import (
    AssistantMessage,
    AudioBlock,
    Block,
    CitationBlock,
    FileBlock,
    ImageBlock,
    JsonBlock,
    MediaBlock,
    Message,
    ProviderExtensionBlock,
    ReasoningBlock,
    RefusalBlock,
    SystemMessage,
    TextBlock,
    ToolCallBlock,
    ToolMessage,
    ToolResultBlock,
)
from ..model import told_media
from ..text import JsonObject, dump_json, encode_json
from ._anthropic_models import MessagesPreset
from ._json import as_object, as_text
from ._openai_wire import safe_id, wire_name

_PDF: Final = "application/pdf"
_FAILED_SILENTLY: Final = "The tool failed and said nothing."
_MARKABLE: Final = frozenset({"text", "image", "document", "tool_use", "tool_result"})
"""Kinds of block that take ``cache_control``."""


@dataclass(slots=True)
class WireMessage:
    """A message as it is sent: a turn, or the beginning or the end of one."""

    parts: list[bytes]
    """The JSON of each content block."""
    markable: int
    """The last part that can carry a cache marker; -1 for none."""
    has_marker: bool
    """That part carries one of the application's own."""
    marks: int
    """How many of the application's own are in it."""
    files: bool
    """A part names an uploaded file."""
    container: str | None
    """Where the provider ran code for this answer."""

    def marked(self, marker: bytes) -> list[bytes]:
        """Return the parts, the last one that can carry it with a cache marker."""
        at = self.markable
        if at < 0 or self.has_marker:
            return self.parts
        part = self.parts[at][:-1] + b"," + marker + b"}"
        return [*self.parts[:at], part, *self.parts[at + 1 :]]


class ContentEncoder:
    """Encodes the blocks of messages for one model of one provider."""

    __slots__ = ("_data_name", "_model", "_provider", "_sealed")

    def __init__(self, preset: MessagesPreset, model: str) -> None:
        self._provider = preset.name
        self._data_name = preset.data_name
        self._sealed = preset.sealed_thinking
        self._model = model

    def encode(self, message: Message) -> WireMessage:
        """Return a message's content blocks.

        Raises:
            InvalidRequestError: The API has no form for one of its blocks there.
        """
        match message:
            case AssistantMessage():
                parts = self._assistant(message)
            case ToolMessage():
                parts = [self._tool_result(message)]
            case SystemMessage():
                parts = self._parts(message.content, "a system message", media=False)
            case _:
                parts = self._parts(message.content, "a user message", media=True)
        kinds = [as_text(part.get("type")) in _MARKABLE for part in parts]
        last = len(kinds) - 1 - kinds[::-1].index(True) if True in kinds else -1
        own = as_object((message.provider_data or {}).get(self._data_name)) or {}
        container = as_object(own.get("container")) or {}
        return WireMessage(
            parts=[encode_json(part) for part in parts],
            markable=last,
            has_marker=last >= 0 and "cache_control" in parts[last],
            marks=sum(map(marks_in, parts)),
            files=any(_has_file(part) for part in parts),
            container=as_text(container.get("id")),
        )

    def refusal(self, what: str) -> InvalidRequestError:
        """Return the error for a request that cannot work."""
        return InvalidRequestError(f"`{self._model}` at {self._provider} cannot take {what}")

    # What the application says

    def _parts(self, blocks: Iterable[Block], where: str, *, media: bool) -> list[JsonObject]:
        parts: list[JsonObject] = []
        for block in blocks:
            match block:
                case TextBlock(text=text) | RefusalBlock(text=text):
                    if text:  # the API refuses empty texts
                        parts.append({"type": "text", "text": text, **self._own(block)})
                case JsonBlock(value=value):
                    parts.append({"type": "text", "text": dump_json(value), **self._own(block)})
                case ReasoningBlock() | CitationBlock():
                    continue  # said by a model, and no one else can say it
                case ProviderExtensionBlock():
                    parts.extend(self._extension(block))
                case ImageBlock() if media:
                    parts.append(self._image(block, where))
                case FileBlock() if media:
                    parts.append(self._document(block, where))
                case _:
                    raise self._unsupported(block, where)
        return parts

    def _tool_result(self, message: ToolMessage) -> JsonObject:
        result: JsonObject = {
            "type": "tool_result",
            "tool_use_id": safe_id(message.tool_call_id),
        }
        parts = self._parts(message.content, "a tool result", media=True)
        if len(parts) == 1 and parts[0].keys() == {"type", "text"}:
            result["content"] = parts[0]["text"]
        elif parts:
            result["content"] = [*parts]
        elif message.is_error:
            # An error result without content is refused by the API.
            result["content"] = _FAILED_SILENTLY
        if message.is_error:
            result["is_error"] = True
        own = as_object((message.provider_data or {}).get(self._data_name)) or {}
        return {**result, **own}

    def _image(self, block: MediaBlock, where: str) -> JsonObject:
        source = _source(block)
        if source is None:
            raise self._unsupported(block, where, "only as base64 data, by address or by file_id")
        return {"type": "image", "source": source, **self._own(block)}

    def _document(self, block: FileBlock, where: str) -> JsonObject:
        source = _source(block)
        media_type = _media_type(block)
        if media_type is not None and media_type.startswith("image/"):
            return self._image(block, where)
        if media_type is not None and media_type.startswith("text/"):
            source = self._plain_text(block, where)
        elif media_type not in (None, _PDF):
            raise self._unsupported(block, where, f"not as `{media_type}`: only PDF and text")
        if source is None:
            raise self._unsupported(block, where, "only as base64 data, by address or by file_id")
        title: JsonObject = {} if block.name is None else {"title": block.name}
        return {"type": "document", "source": source, **title, **self._own(block)}

    def _plain_text(self, block: FileBlock, where: str) -> JsonObject:
        try:
            text = (block.decode() or b"").decode()
        except ValueError as exc:
            raise self._unsupported(block, where, f"its text cannot be read: {exc}") from exc
        return {"type": "text", "media_type": "text/plain", "data": text}

    # What the model said before

    def _assistant(self, message: AssistantMessage) -> list[JsonObject]:
        # What another provider ran itself has no form here, neither the call nor its result.
        ran = {b.tool_call_id for b in message.content if isinstance(b, ToolResultBlock)}
        parts: list[JsonObject] = []
        for block in message.content:
            match block:
                case ReasoningBlock():
                    parts.extend(self._reasoning(block))
                case ToolCallBlock() if block.id not in ran:
                    parts.append(self._call(block))
                case ToolCallBlock() | ToolResultBlock():
                    continue
                case ImageBlock() | AudioBlock() | FileBlock():
                    # Another provider's: the API takes none in what an assistant said.
                    if text := told_media(block).text:
                        parts.append({"type": "text", "text": text})
                case _:
                    parts.extend(self._parts((block,), "an assistant message", media=False))
        return parts

    def _reasoning(self, block: ReasoningBlock) -> list[JsonObject]:
        """Return reasoning as it came from this provider; nothing where another one thought.

        A block that was cut off has no seal.
        """
        own = self._own(block)
        match own.get("type"):
            case "thinking" if block.signature is not None:
                seal: JsonObject = {"thinking": block.text, "signature": block.signature}
                return [{"type": "thinking", **seal, **own}]
            case "thinking" if not self._sealed:
                return [{"type": "thinking", "thinking": block.text, **own}]
            case "redacted_thinking" if block.data is not None:
                return [{"type": "redacted_thinking", "data": block.data, **own}]
            case _:
                return []

    def _call(self, block: ToolCallBlock) -> JsonObject:
        arguments: JsonObject = block.arguments
        if block.invalid is not None:
            arguments = {"invalid_arguments": block.invalid.raw}
        return {
            "type": "tool_use",
            "id": safe_id(block.id),
            "name": wire_name(block.name),
            "input": arguments,
            **self._own(block),
        }

    def _extension(self, block: ProviderExtensionBlock) -> list[JsonObject]:
        data = block.data
        return [data] if block.provider == self._data_name and isinstance(data, dict) else []

    def _own(self, block: Block | MediaBlock) -> JsonObject:
        data = block.provider_data
        return as_object(data.get(self._data_name)) or {} if data else {}

    def _unsupported(
        self, block: Block | MediaBlock, where: str, how: str = ""
    ) -> InvalidRequestError:
        told = f" ({how})" if how else ""
        return self.refusal(f"a `{block.type}` block in {where}{told}")


def marks_in(part: Mapping[str, JsonValue]) -> int:
    """Return how many cache markers are in a part, on what it is made of too.

    The results of a tool hold parts; so does a request, and a marker of its own stands for one on
    the last part. Not looked into is what a tool was called with.
    """
    count = int(part.get("cache_control") is not None)
    for name in ("content", "tools"):
        inner = part.get(name)
        if isinstance(inner, list):
            count += sum(marks_in(each) for each in inner if isinstance(each, dict))
    return count


def _source(block: MediaBlock) -> JsonObject | None:
    if block.file_id is not None:
        return {"type": "file", "file_id": block.file_id}
    if block.data is not None:
        return _base64(block.media_type or "", block.data)
    url = block.url or ""
    if not url.startswith("data:"):
        return {"type": "url", "url": url}
    head, _, body = url.partition(",")
    return _base64(_media_type(block) or "", body) if head.endswith(";base64") else None


def _base64(media_type: str, data: str) -> JsonObject:
    return {"type": "base64", "media_type": media_type, "data": data}


def _media_type(block: MediaBlock) -> str | None:
    """Return the media type of bytes that are at hand; ``None`` for what the provider fetches."""
    if block.data is not None:
        return block.media_type
    if block.url is not None and block.url.startswith("data:"):
        return block.url[5:].partition(",")[0].partition(";")[0]
    return None


def _has_file(part: Mapping[str, JsonValue]) -> bool:
    source = as_object(part.get("source")) or {}
    if source.get("type") == "file" or part.get("type") == "container_upload":
        return True
    content = part.get("content")
    if part.get("type") != "tool_result" or not isinstance(content, list):
        return False
    return any(isinstance(inner, dict) and _has_file(inner) for inner in content)
