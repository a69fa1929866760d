"""From the items of a Responses answer to the blocks of a message.

What an item holds besides the fields of its block is kept as :mod:`._responses_items` needs it.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ..message import (
    Block,
    CitationBlock,
    ImageBlock,
    ProviderExtensionBlock,
    ReasoningBlock,
    RefusalBlock,
    TextBlock,
    ToolCallBlock,
)
from ..text import JsonObject, dump_json
from ..tool_calling import repair_arguments
from ._json import as_integer, as_list, as_object, as_text
from ._openai_wire import WireTools
from ._pieces import under_name

_FILE_CITATIONS: Final = frozenset({"file_citation", "container_file_citation", "file_path"})


class BlockReader:
    """Reads the items of one answer.

    Args:
        name: What is kept for the provider is kept under this name.
        tools: The tools that were offered.
    """

    __slots__ = ("_length", "_name", "_tools", "logprobs")

    def __init__(self, name: str, tools: WireTools) -> None:
        self._name = name
        self._tools = tools
        self._length = 0
        """Characters of text so far: citations count from the beginning of their part."""
        self.logprobs: list[Any] = []
        """Of all texts, in order."""

    def read(self, item: JsonObject, call_id: str) -> Iterator[Block]:
        """Return the blocks of an item.

        Args:
            item: The item.
            call_id: The id of the call, should it be one.
        """
        match item.get("type"):
            case "message" if parts_of(item, "content") or as_text(item.get("content")):
                yield from self._message(item)
            case "reasoning":
                yield self._reasoning(item)
            case "function_call":
                yield self._call(item, call_id)
            case "image_generation_call" if (data := as_text(item.get("result"))) is not None:
                kind = as_text(item.get("output_format")) or "png"
                own = self._own({"item": {**item, "result": None}})
                yield ImageBlock(data=data, media_type=f"image/{kind}", provider_data=own)
            case _:
                yield ProviderExtensionBlock(provider=self._name, data=item)

    def _message(self, item: JsonObject) -> Iterator[Block]:
        if (text := as_text(item.get("content"))) is not None:
            yield self._text(text, None)
            return
        frame: JsonObject = {**item, "content": []}
        for part in parts_of(item, "content"):
            match part.get("type"):
                case "output_text":
                    yield from self._output_text(part, frame)
                case "refusal":
                    own = self._own({"item": frame, "part": {**part, "refusal": ""}})
                    yield RefusalBlock(text=_text_of(part, "refusal"), provider_data=own)
                case _:
                    data: JsonObject = {"item": frame, "part": part}
                    yield ProviderExtensionBlock(provider=self._name, data=data)

    def _output_text(self, part: JsonObject, frame: JsonObject) -> Iterator[Block]:
        kept: JsonObject = {**part, "text": ""}
        if logprobs := as_list(part.get("logprobs")):
            self.logprobs += logprobs
            kept["logprobs"] = []
        offset = self._length
        yield self._text(_text_of(part, "text"), {"item": frame, "part": kept})
        for note in parts_of(part, "annotations"):
            yield from self._citation(note, offset)

    def _text(self, text: str, own: JsonObject | None) -> TextBlock:
        block = TextBlock(text=text, provider_data=self._own(own) if own else None)
        self._length += len(block.text)
        return block

    def _citation(self, note: JsonObject, offset: int) -> Iterator[Block]:
        start, end = as_integer(note.get("start_index")), as_integer(note.get("end_index"))
        if start is not None:
            start += offset
        if end is not None:
            end += offset
        kind = as_text(note.get("type"))
        if kind == "url_citation":
            url, title = as_text(note.get("url")), as_text(note.get("title"))
            yield CitationBlock(url=url, title=title, start=start, end=end)
        elif kind in _FILE_CITATIONS:
            title = as_text(note.get("filename"))
            yield CitationBlock(title=title, start=start, end=end, provider_data=self._own(note))

    def _reasoning(self, item: JsonObject) -> ReasoningBlock:
        kept = dict(item)
        data = as_text(item.get("encrypted_content"))
        if data is not None:
            kept["encrypted_content"] = ""
        text = "\n\n".join(filter(None, reasoning_texts(item)))
        return ReasoningBlock(text=text, data=data, provider_data=self._own({"item": kept}))

    def _call(self, item: JsonObject, call_id: str) -> ToolCallBlock:
        raw = arguments_of(item)
        arguments, invalid = repair_arguments(raw)
        # The text is kept only where it is not the one that these arguments would be sent as.
        kept = "" if invalid is None and dump_json(arguments) == raw else raw
        return ToolCallBlock(
            id=call_id,
            name=self._tools.user_name(as_text(item.get("name")) or ""),
            arguments=arguments,
            invalid=invalid,
            provider_data=self._own({"item": {**item, "arguments": kept}}),
        )

    def _own(self, own: JsonObject) -> Any:
        return under_name(self._name, own)


def parts_of(item: Mapping[str, Any], field: str) -> Sequence[JsonObject]:
    """Return the objects that a field lists."""
    return [*filter(None, map(as_object, as_list(item.get(field)) or ()))]


def reasoning_texts(item: Mapping[str, Any]) -> list[str]:
    """Return the parts of reasoning that are shown: summaries, then the text itself."""
    listed = [*parts_of(item, "summary"), *parts_of(item, "content")]
    return [_text_of(part, "text") for part in listed]


def arguments_of(item: Mapping[str, Any]) -> str:
    """Return the text of a call's arguments; some send the object itself."""
    given = item.get("arguments")
    return given if isinstance(given, str) else "" if given is None else dump_json(given)


def _text_of(part: Mapping[str, Any], field: str) -> str:
    return as_text(part.get(field)) or ""
