"""Content blocks of a Messages answer, as they grow in a stream."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ..message import (
    Block,
    CitationBlock,
    ProviderExtensionBlock,
    ReasoningBlock,
    TextBlock,
    ToolCallBlock,
)
from ..model import parse_arguments
from ..text import JsonObject, clean_json
from ..tool_calling import repair_arguments
from ._json import as_list, as_object, as_text
from ._openai_calls import repairs
from ._pieces import joined, under_name

_TEXT_FIELDS: Final[Mapping[str, str]] = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "input_json_delta": "partial_json",
}
"""The field that each kind of delta continues, where that is a text."""


class BlockParts:
    """One content block: what it began with, and what was added to it."""

    __slots__ = ("_facts", "_pieces", "call", "kind")

    def __init__(self, block: Mapping[str, Any], call: int | None) -> None:
        self.kind: str = as_text(block.get("type")) or ""
        self.call = call
        """The position among the calls, for a call that the application answers."""
        self._facts: JsonObject = {**block}
        self._pieces: dict[str, list[str]] = {}

    def add(self, delta: Mapping[str, Any]) -> tuple[str, str]:
        """Take a delta; return the field that it continued and the text that came, if any."""
        kind = as_text(delta.get("type")) or ""
        field = _TEXT_FIELDS.get(kind)
        if field is not None:
            piece = as_text(delta.get(field)) or ""
            if piece:
                self._pieces.setdefault(field, []).append(piece)
            return field, piece
        if kind == "citations_delta":
            known = as_list(self._facts.get("citations")) or []
            self._facts["citations"] = [*known, delta.get("citation")]
            return "", ""
        # Of a kind that is not understood: its fields continue those of the block.
        for name, value in delta.items():
            if name != "type" and value is not None:
                self._facts[name] = joined(self._facts.get(name), value)
        return "", ""

    def text(self, field: str) -> str:
        """Return what has come of a text."""
        begun = as_text(self._facts.get(field)) or ""
        return begun + "".join(self._pieces.get(field, ()))

    def blocks(
        self, provider: str, calls: Mapping[int, ToolCallBlock], offset: int
    ) -> Iterator[Block]:
        """Return the block, and the sources of a text behind it.

        Args:
            provider: Under whose name the own fields are kept.
            calls: The calls by position.
            offset: The characters of text before this block.
        """
        match self.kind:
            case "text":
                yield from self._text_blocks(provider, offset)
            case "thinking":
                # An empty seal is kept as it came: some servers send it for all they thought.
                seal = self.text("signature") or None
                known = ("thinking", "signature") if seal else ("thinking",)
                yield ReasoningBlock(
                    text=self.text("thinking"),
                    signature=seal,
                    provider_data=under_name(provider, self._rest(*known)),
                )
            case "redacted_thinking":
                yield ReasoningBlock(
                    data=self.text("data") or None,
                    redacted=True,
                    provider_data=under_name(provider, self._rest("data")),
                )
            case "tool_use" if self.call is not None and (call := calls.get(self.call)):
                changes = repairs(call)
                if own := self._rest("type", "id", "name", "input"):
                    changes["provider_data"] = under_name(provider, own)
                yield call.model_copy(update=changes) if changes else call
            case _:
                yield ProviderExtensionBlock(provider=provider, data=self._whole())

    def _text_blocks(self, provider: str, offset: int) -> Iterator[Block]:
        text = self.text("text")
        own = self._rest("type", "text")
        citations = as_list(own.get("citations"))
        if not citations:
            own.pop("citations", None)
        if text or own:
            yield TextBlock(text=text, provider_data=under_name(provider, own))
        for citation in map(as_object, citations or ()):
            if citation is not None:
                yield _citation(citation, offset, len(text))

    def _rest(self, *known: str) -> JsonObject:
        return {name: value for name, value in self._facts.items() if name not in known}

    def _whole(self) -> JsonObject:
        """Return the block as it would have come in one piece."""
        whole = dict(self._facts)
        for field, pieces in self._pieces.items():
            if field == "partial_json":
                whole["input"] = _input("".join(pieces))
            else:
                whole[field] = self.text(field) if pieces else whole.get(field)
        cleaned = clean_json(whole)
        return cleaned if isinstance(cleaned, dict) else {}


def _input(raw: str) -> JsonObject:
    """Return the input of a tool that the provider runs: always an object, or it cannot go back."""
    arguments, invalid = parse_arguments(raw)
    if invalid is not None:
        arguments, invalid = repair_arguments(raw)
    return arguments if invalid is None else {"invalid_arguments": raw}


def _citation(citation: Mapping[str, Any], offset: int, length: int) -> CitationBlock:
    title = as_text(citation.get("title")) or as_text(citation.get("document_title"))
    return CitationBlock(
        url=as_text(citation.get("url")) or as_text(citation.get("source")),
        title=title,
        text=as_text(citation.get("cited_text")),
        start=offset,
        end=offset + length,
    )
