"""The parts that messages are made of on Gemini's wire."""

import mimetypes
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final
from urllib.parse import urlsplit

from ..errors import InvalidRequestError
from ..message import (
    AssistantMessage,
    AudioBlock,
    Block,
    CitationBlock,
    FileBlock,
    ImageBlock,
    JsonBlock,
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
from ..text import JsonObject, dump_json
from ..tool import wire_names

_Media = ImageBlock | AudioBlock | FileBlock

# ai.google.dev/gemini-api/docs/thought-signatures: what stands in for a signature where a call is not
# the model's own; Gemini 3 answers status 400 when the first call of a turn has none.
_NO_SIGNATURE: Final = "skip_thought_signature_validator"
# ai.google.dev/gemini-api/docs/function-calling: what a result itself may hold.
_NESTED_TYPES: Final = frozenset(
    {"image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"}
)
_STARTS_WELL: Final = re.compile(r"[A-Za-z_]")


def wire_tool_names(names: Sequence[str]) -> dict[str, str]:
    """Return the name to send for each tool name: one that does not start with a digit or ``-``."""
    # A space makes the shared rule derive another name, with a digest that tells such names apart.
    usable = {name: name if _STARTS_WELL.match(name) else f"tool {name}" for name in names}
    derived = wire_names([*usable.values()])
    return {name: derived[given] for name, given in usable.items()}


class PartEncoder:
    """Encodes the blocks of a message.

    Args:
        provider: Whose ``provider_data`` is sent back.
        base_url: Where uploaded files are.
        refusal: Makes the error for what cannot be sent.
        nested_media: Tool results hold images and documents themselves.
        foreign_calls: A call that is not the model's own has to say so.
    """

    __slots__ = ("_base_url", "_foreign_calls", "_nested_media", "_provider", "_refusal")

    def __init__(
        self,
        provider: str,
        base_url: str,
        refusal: Callable[[str], InvalidRequestError],
        *,
        nested_media: bool,
        foreign_calls: bool,
    ) -> None:
        self._provider = provider
        self._base_url = base_url
        self._refusal = refusal
        self._nested_media = nested_media
        self._foreign_calls = foreign_calls

    def encode(
        self, message: Message, name: str | None
    ) -> tuple[list[JsonObject], list[JsonObject]]:
        """Return the parts of a message, and those that follow the results of its turn.

        Args:
            message: The message.
            name: The tool whose result it is.
        """
        match message:
            case SystemMessage():
                return self._said(message.content, "a system message", media=False), []
            case AssistantMessage():
                return self._answer(message), []
            case ToolMessage():
                return self._result(message, name)
            case _:
                parts = self._said(message.content, "a user message", media=True)
                return parts or [{"text": ""}], []

    def _said(self, blocks: Iterable[Block], where: str, *, media: bool) -> list[JsonObject]:
        parts: list[JsonObject] = []
        for block in blocks:
            match block:
                case TextBlock(text=text) | RefusalBlock(text=text):
                    if text or self._own(block):
                        parts.append({"text": text, **self._own(block)})
                case JsonBlock(value=value):
                    parts.append({"text": dump_json(value)})
                case ReasoningBlock() | CitationBlock():
                    continue  # said by a model, and no one else can say it
                case ProviderExtensionBlock():
                    parts += self._extension(block)
                case ImageBlock() | AudioBlock() | FileBlock() if media:
                    parts.append(self._media(block, where))
                case _:
                    raise self._unsupported(block, where)
        return parts

    # What the model said before

    def _answer(self, message: AssistantMessage) -> list[JsonObject]:
        parts: list[JsonObject] = []
        # Another provider's own tools: neither their calls nor their results have a form here.
        done = {b.tool_call_id for b in message.content if isinstance(b, ToolResultBlock)}
        calls: list[JsonObject] = []
        for block in message.content:
            match block:
                case ReasoningBlock():
                    if own := self._own(block):
                        parts.append({"text": block.text, **own})
                case ToolCallBlock():
                    if block.id not in done:
                        calls.append(self._call(block))
                        parts.append(calls[-1])
                case ToolResultBlock():
                    continue
                case AudioBlock(transcript=str(text)) if not self._own(block):
                    parts.append({"text": text})
                case _:
                    parts += self._said([block], "an assistant message", media=True)
        if self._foreign_calls and calls and not any(map(_is_signed, parts)):
            calls[0]["thoughtSignature"] = _NO_SIGNATURE
        return parts

    def _call(self, block: ToolCallBlock) -> JsonObject:
        arguments: JsonObject = block.arguments
        if block.invalid is not None:
            arguments = {"invalid_arguments": block.invalid.raw}
        own = dict(self._own(block))
        inner = own.pop("functionCall", None)
        call: JsonObject = {"id": block.id, "name": _wire_name(block.name), "args": arguments}
        if isinstance(inner, dict):
            call |= inner
        return {"functionCall": call, **own}

    # What tools returned

    def _result(
        self, message: ToolMessage, name: str | None
    ) -> tuple[list[JsonObject], list[JsonObject]]:
        if name is None:
            raise self._refusal(
                f"the result `{message.tool_call_id}`, whose tool neither it nor a call names"
            )
        nested: list[JsonObject] = []
        follow_up: list[JsonObject] = []
        shown: list[Block] = []
        for block in message.content:
            if not isinstance(block, ImageBlock | AudioBlock | FileBlock):
                shown.append(block)
                continue
            part = self._media(block, "a tool result")
            data = part.get("inlineData")
            fits = isinstance(data, dict) and data["mimeType"] in _NESTED_TYPES
            (nested if self._nested_media and fits else follow_up).append(part)
        result: JsonObject = {
            "id": message.tool_call_id,
            "name": _wire_name(name),
            "response": self._response(shown, is_error=message.is_error, more=bool(follow_up)),
        }
        if nested:
            result["parts"] = [*nested]
        if follow_up:
            follow_up.insert(0, {"text": f"What `{name}` returned:"})
        return [{"functionResponse": result}], follow_up

    def _response(self, blocks: list[Block], *, is_error: bool, more: bool) -> JsonObject:
        """Return the object in which a result is told; the API reads these two keys."""
        key = "error" if is_error else "output"
        if len(blocks) == 1 and isinstance(blocks[0], JsonBlock):
            return {key: blocks[0].value}
        texts: list[str] = []
        for block in blocks:
            before = "\n" if texts and isinstance(block, JsonBlock) else ""
            for part in self._said([block], "a tool result", media=False):
                texts.append(before + (str(part["text"]) if "text" in part else dump_json(part)))
        if not texts and more:
            texts.append("See what follows the results.")
        return {key: "".join(texts)}

    # Media and what is kept for the provider

    def _media(self, block: _Media, where: str) -> JsonObject:
        own = self._own(block)
        if block.data is not None:
            return {"inlineData": {"mimeType": block.media_type, "data": block.data}, **own}
        if block.file_id is not None:
            uri = block.file_id
            if uri.startswith("files/"):
                uri = f"{self._base_url}/{uri}"
            return {"fileData": _file(uri, block.media_type), **own}
        url = block.url or ""
        if not url.startswith("data:"):
            media_type = block.media_type or mimetypes.guess_type(urlsplit(url).path)[0]
            return {"fileData": _file(url, media_type), **own}
        head, _, body = url.removeprefix("data:").partition(",")
        media_type = block.media_type or head.partition(";")[0]
        if not head.endswith(";base64") or not media_type:
            raise self._unsupported(block, where, "a `data:` URI needs a media type and base64")
        return {"inlineData": {"mimeType": media_type, "data": body}, **own}

    def _extension(self, block: ProviderExtensionBlock) -> list[JsonObject]:
        if block.provider != self._provider:
            return []
        return [block.data if isinstance(block.data, dict) else {"text": dump_json(block.data)}]

    def _own(self, block: Block) -> JsonObject:
        data = block.provider_data
        own = data.get(self._provider) if data else None
        return own if isinstance(own, dict) else {}

    def _unsupported(self, block: Block, where: str, how: str = "") -> InvalidRequestError:
        told = f" ({how})" if how else ""
        return self._refusal(f"a `{block.type}` block in {where}{told}")


def _file(uri: str, media_type: str | None) -> JsonObject:
    return {"mimeType": media_type, "fileUri": uri} if media_type else {"fileUri": uri}


def _is_signed(part: JsonObject) -> bool:
    return "thoughtSignature" in part or "thought_signature" in part


def _wire_name(name: str) -> str:
    return wire_tool_names((name,))[name]
