"""Between the blocks of messages and the items of the Responses API, on the way out.

What an answer's item held besides the fields of its block is kept under the provider's name as
``item`` (and ``part``), with empty values where the block's own fields stood: an item that goes back
has every field that came, in the same order.
"""

from collections.abc import Iterable, Sequence
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
    Message,
    ProviderExtensionBlock,
    ReasoningBlock,
    RefusalBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from ..model import parse_arguments, told_media
from ..text import JsonObject, dump_json
from ._openai_wire import Refuse, derived_id, own_of, safe_id, wire_name
from ._responses_presets import ResponsesPreset

_INPUT_PARTS: Final = frozenset({"input_text", "input_image", "input_file", "input_audio"})
_LONGEST_CALL_ID: Final = 64
"""Characters: what OpenAI takes."""
_DEPENDENTS: Final = ("message", "function_call")
"""Items whose id must not be sent without the reasoning that led to them."""


class _Answer:
    """The items of one answer, while they are put together."""

    __slots__ = ("_open", "_texts", "items", "orphaned")

    def __init__(self) -> None:
        self.items: list[JsonObject] = []
        self.orphaned = False
        """Reasoning was left out: what follows it is sent as if nobody had ever seen it."""
        self._open: JsonObject | None = None
        self._texts: list[str] = []

    def say(self, text: str) -> None:
        """Add text that is no item of this provider."""
        self._open = None
        if text:
            self._texts.append(text)

    def add(self, item: JsonObject) -> None:
        """Add a whole item."""
        self.end()
        if self.orphaned and item.get("type") in _DEPENDENTS:
            item = {name: value for name, value in item.items() if name != "id"}
        self.items.append(item)

    def add_part(self, item: JsonObject, part: JsonObject) -> None:
        """Add a part of a message item, which the parts before may belong to as well."""
        if self._texts or self._open != item:
            self.add({**item, "content": []})
            self._open = item
        content = self.items[-1]["content"]
        if isinstance(content, list):
            content.append(part)

    def end(self) -> None:
        """Close what is open."""
        self._open = None
        if self._texts:
            self.items.append({"role": "assistant", "content": "".join(self._texts)})
            self._texts = []


class ItemEncoder:
    """Encodes messages for one provider."""

    __slots__ = ("_name", "_preset", "_refuse")

    def __init__(self, preset: ResponsesPreset, refuse: Refuse) -> None:
        self._preset = preset
        self._name = preset.data_name
        self._refuse = refuse

    # What the application says

    def text(self, message: Message) -> str | None:
        """Return the words of a message of text alone; ``None`` for any other."""
        if not all(isinstance(block, TextBlock | JsonBlock) for block in message.content):
            return None
        content = self._content(message.content, "a system message", media=False)
        return content if isinstance(content, str) else None

    def said(
        self, role: str, blocks: Sequence[Block], where: str, *, media: bool
    ) -> list[JsonObject]:
        """Return the items of a message in a role; none when it says nothing."""
        items: list[JsonObject] = []
        waiting: list[Block] = []
        for block in blocks:
            if isinstance(block, ProviderExtensionBlock) and self._is_item(block):
                self._add_said(items, role, waiting, where, media=media)
                waiting = []
                items.append(_object(block.data))
            else:
                waiting.append(block)
        self._add_said(items, role, waiting, where, media=media)
        return items

    def result(self, call_id: str, blocks: Sequence[Block], given: str | None) -> JsonObject:
        """Return the item of a call's result.

        Args:
            call_id: The call's id in the message.
            blocks: The result.
            given: The provider's own id of the call, where it differs.
        """
        output = self._content(blocks, "a tool result", media=True)
        sent_id = given or _call_id(call_id)
        return {"type": "function_call_output", "call_id": sent_id, "output": output}

    def _is_item(self, block: ProviderExtensionBlock) -> bool:
        kind = _object(block.data).get("type")
        return block.provider == self._name and kind is not None and kind not in _INPUT_PARTS

    def _add_said(
        self, items: list[JsonObject], role: str, blocks: list[Block], where: str, *, media: bool
    ) -> None:
        content = self._content(blocks, where, media=media)
        if content:
            items.append({"role": role, "content": content})

    def _content(self, blocks: Iterable[Block], where: str, *, media: bool) -> JsonValue:
        """Return plain text, or a list of parts where plain text cannot hold the blocks."""
        parts: list[JsonValue] = []
        texts: list[str] = []
        plain = True
        for block in blocks:
            own = _fields(own_of(block, self._name))
            match block:
                case TextBlock(text=text) | RefusalBlock(text=text):
                    plain = plain and not own
                    if text:
                        texts.append(text)
                        parts.append({"type": "input_text", "text": text, **own})
                case JsonBlock(value=value):
                    text = dump_json(value)
                    texts.append(f"\n{text}" if texts else text)
                    parts.append({"type": "input_text", "text": text, **own})
                case ReasoningBlock() | CitationBlock():
                    continue  # said by a model, and no one else can say it
                case ProviderExtensionBlock():
                    if block.provider == self._name:
                        plain = False
                        parts.append(block.data)
                case ImageBlock() | AudioBlock() | FileBlock() if media:
                    plain = False
                    parts.append({**self._part(block, where), **own})
                case _:
                    raise self._unsupported(block, where)
        return "".join(texts) if plain else parts

    def _part(self, block: ImageBlock | AudioBlock | FileBlock, where: str) -> JsonObject:
        match block:
            case ImageBlock() if self._preset.image_input is not False or self._preset.local:
                image: JsonObject = {"type": "input_image", "detail": block.detail or "auto"}
                if block.file_id is not None:
                    return {**image, "file_id": block.file_id}
                return {**image, "image_url": block.url or _data_uri(block)}
            case FileBlock() if self._preset.file_input is not False:
                return {"type": "input_file", **self._file(block, where)}
            case _:
                raise self._unsupported(block, where)

    def _file(self, block: FileBlock, where: str) -> JsonObject:
        if block.file_id is not None:
            return {"file_id": block.file_id}
        if block.url is None or block.url.startswith("data:"):
            return {
                "filename": block.name or "file.pdf",
                "file_data": block.url or _data_uri(block),
            }
        if not self._preset.file_urls:
            raise self._unsupported(block, where, "only as data or by its file_id")
        return {"file_url": block.url}

    # What the model said before

    def answered(
        self, message: AssistantMessage, ids: dict[str, str], *, stored: bool
    ) -> list[JsonObject]:
        """Return the items of an answer.

        Args:
            message: The answer.
            ids: Takes the provider's own ids of calls, where those of the blocks differ.
            stored: The provider keeps answers, so that reasoning may be told by its id alone.
        """
        answer = _Answer()
        for block in message.content:
            self._add_block(answer, block, ids, stored=stored)
        answer.end()
        if self._preset.encrypted_reasoning:
            # An answer that was cut while the model thought: without what it led to, the provider
            # refuses it.
            while answer.items and answer.items[-1].get("type") == "reasoning":
                answer.items.pop()
        return answer.items

    def _add_block(
        self, answer: _Answer, block: Block, ids: dict[str, str], *, stored: bool
    ) -> None:
        own = own_of(block, self._name)
        item = _object(own.get("item"))
        match block:
            case TextBlock(text=text) | RefusalBlock(text=text):
                if not item:
                    answer.say(text)
                    return
                field = "refusal" if isinstance(block, RefusalBlock) else "text"
                answer.add_part(item, {**_object(own.get("part")), field: text})
            case JsonBlock(value=value):
                answer.say(dump_json(value))
            case ReasoningBlock():
                self._add_reasoning(answer, block, item, stored=stored)
            case ToolCallBlock():
                answer.add(self._call(block, item, ids))
            case ToolResultBlock():
                answer.add(
                    self.result(block.tool_call_id, block.content, ids.get(block.tool_call_id))
                )
            case ProviderExtensionBlock():
                if block.provider == self._name:
                    _add_extension(answer, _object(block.data))
            case ImageBlock(data=data) if item:
                answer.add({**item, "result": data})
            case ImageBlock() | AudioBlock() | FileBlock():
                # Another provider's: the API takes none in what an assistant said.
                answer.say(told_media(block).text)
            case CitationBlock():
                return  # its text's item holds it
            case _:
                raise self._unsupported(block, "an assistant message")

    def _add_reasoning(
        self, answer: _Answer, block: ReasoningBlock, item: JsonObject, *, stored: bool
    ) -> None:
        if not item:
            return  # another provider's, which no one else can read
        if block.data is None and self._preset.encrypted_reasoning and not stored:
            # The provider would look for it among what it has stored, and find nothing.
            answer.orphaned = True
            return
        answer.add(item if block.data is None else {**item, "encrypted_content": block.data})

    def _call(self, block: ToolCallBlock, item: JsonObject, ids: dict[str, str]) -> JsonObject:
        given = item.get("call_id")
        call_id = _call_id(block.id)
        if isinstance(given, str) and given != block.id and safe_id(given) == block.id:
            ids[block.id] = call_id = given
        changes: JsonObject = {
            "call_id": call_id,
            "name": wire_name(block.name),
            "arguments": _arguments(block, item),
        }
        return {**(item or {"type": "function_call"}), **changes}

    def _unsupported(self, block: Block, where: str, how: str = "") -> InvalidRequestError:
        told = f" ({how})" if how else ""
        return self._refuse(f"a `{block.type}` block in {where}{told}")


def _add_extension(answer: _Answer, data: JsonObject) -> None:
    item = data.get("item")
    if "type" not in data and isinstance(item, dict):
        answer.add_part(item, _object(data.get("part")))
    elif data:
        answer.add(data)


def _arguments(block: ToolCallBlock, item: JsonObject) -> str:
    """Return the text of a call's arguments: as it came, unless they were changed."""
    if block.invalid is not None:
        # Some servers decode the arguments: what is no object would make every later call fail.
        return dump_json({"invalid_arguments": block.invalid.raw})
    given = item.get("arguments")
    if isinstance(given, str) and given and parse_arguments(given) == (block.arguments, None):
        return given
    return dump_json(block.arguments)


def _call_id(given: str) -> str:
    return given if len(given) <= _LONGEST_CALL_ID else derived_id(given)


def _data_uri(block: ImageBlock | FileBlock) -> str:
    return f"data:{block.media_type};base64,{block.data}"


def _fields(own: JsonObject) -> JsonObject:
    """Return the fields of a part of the input: not those of an answer that is quoted."""
    return {} if "item" in own else own


def _object(value: JsonValue) -> JsonObject:
    return value if isinstance(value, dict) else {}
