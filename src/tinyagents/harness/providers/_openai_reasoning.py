"""Reasoning in a Chat Completions answer: fields of text, and structured items."""

from collections.abc import Mapping
from typing import Any, Final

from ..message import ReasoningBlock
from ..text import JsonObject
from ._json import as_list, as_object, as_text
from ._pieces import joined, under_name

REASONING_FIELDS: Final = ("reasoning_content", "reasoning")
_DETAIL_TEXTS: Final = frozenset({"text", "summary", "data"})
_REASONING_WORDS: Final = ("text", "content", "summary", "thinking")


class _Detail:
    """One item of structured reasoning, which a stream sends in pieces."""

    __slots__ = ("_facts", "_pieces")

    def __init__(self) -> None:
        self._facts: JsonObject = {}
        self._pieces: dict[str, list[str]] = {}

    def is_continued_by(self, item: Mapping[str, Any]) -> bool:
        """Whether a piece belongs to this item: nothing that tells items apart differs."""
        facts = self._facts
        return all(
            facts.get(name) == item.get(name) or name not in item or name not in facts
            for name in ("type", "index", "id")
        )

    def add(self, item: Mapping[str, Any]) -> None:
        """Take a piece: its texts continue those that are known, other values replace them."""
        for name, value in item.items():
            if name in _DETAIL_TEXTS and isinstance(value, str):
                self._pieces.setdefault(name, []).append(value)
                self._facts.setdefault(name, "")  # keeps its place among the fields
            elif value or name not in self._facts:
                self._facts[name] = value

    def value(self) -> JsonObject:
        """Return the item as it would have come in one piece."""
        return {**self._facts, **{name: "".join(p) for name, p in self._pieces.items()}}


class ReasoningParts:
    """Puts the reasoning beside the content of an answer together."""

    __slots__ = ("_details", "_field", "_raw", "_texts")

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._field: str | None = None
        self._raw: JsonObject = {}
        self._details: list[_Detail] = []

    def add(self, message: Mapping[str, Any], extra: JsonObject, *, whole: bool) -> str:
        """Take the reasoning of a piece and return its text.

        Args:
            message: The piece.
            extra: Takes what is sent under a second name.
            whole: The piece is the whole message, whose items are not continued.
        """
        found = ""
        for name in REASONING_FIELDS:
            value = message.get(name)
            if not value:
                continue
            if found:
                # Some gateways send the same reasoning under both names.
                if value != found:
                    extra[name] = joined(extra.get(name), value)
                continue
            found = reasoning_text(value)
            if isinstance(value, str):
                self._field = self._field or name
            else:
                self._raw[name] = joined(self._raw.get(name), value)
        if details := message.get("reasoning_details"):
            listed = map(as_object, as_list(details) or ())
            told = "".join(
                [self._add_detail(item, whole=whole) for item in listed if item is not None]
            )
            found = found or told
        if found:
            self._texts.append(found)
        return found

    def _add_detail(self, item: Mapping[str, Any], *, whole: bool) -> str:
        """Put a piece of structured reasoning to the piece that it continues; return its text."""
        last = self._details[-1] if self._details else None
        if last is None or whole or not last.is_continued_by(item):
            last = _Detail()
            self._details.append(last)
        last.add(item)
        return as_text(item.get("text")) or as_text(item.get("summary")) or ""

    def block(self, provider: str) -> ReasoningBlock | None:
        """Return the reasoning as a block that is understood by its provider."""
        own: JsonObject = {}
        if self._field is not None:
            own["field"] = self._field
        own.update(self._raw)
        if self._details:
            own["reasoning_details"] = [detail.value() for detail in self._details]
        text = "".join(self._texts)
        if not text and not own:
            return None
        return ReasoningBlock(
            text=text,
            signature=self._only_detail("signature"),
            data=self._only_detail("data"),
            provider_data=under_name(provider, own),
        )

    def _only_detail(self, name: str) -> str | None:
        values = [as_text(detail.value().get(name)) for detail in self._details]
        given = [value for value in values if value is not None]
        return given[0] if len(given) == 1 else None


def reasoning_text(value: Any) -> str:
    """Return the words of reasoning, whichever of its shapes they come in."""
    if isinstance(value, str):
        return value
    if (listed := as_list(value)) is not None:
        return "".join(map(reasoning_text, listed))
    document = as_object(value)
    if document is None:
        return ""
    words = (reasoning_text(document.get(name)) for name in _REASONING_WORDS)
    return next(filter(None, words), "")
