"""A typed answer while it is still being written."""

from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue
from pydantic_core import from_json

from ..model import MessageDelta, ToolCallAssembler, ToolCallDelta
from ..text import clean_json, encode_json
from ._member import WRAPPER, OutputMember
from ._output import OutputSpec

_SHARE = 8
"""An answer is read again once it has grown by an eighth, and at its end. What was read then adds up to
less than ten times the whole, however small the pieces are; reading at each would be quadratic."""
_LEAST = 16
"""Characters that it must have grown by in any case."""


@dataclass(frozen=True, slots=True)
class PartialAnswer:
    """What there is of an answer."""

    name: str
    """Which type it is of."""
    json: JsonValue
    value: Any
    """The typed value, where what there is suffices for one; else ``None``."""


class _Source:
    """The text in which an answer is written."""

    __slots__ = ("member", "next", "pieces", "seen", "size")

    def __init__(self, member: OutputMember) -> None:
        self.member = member
        self.pieces: list[str] = []
        self.size = 0
        self.next = 1
        """The size at which it is read again."""
        self.seen: JsonValue = None

    def add(self, piece: str) -> PartialAnswer | None:
        self.pieces.append(piece)
        self.size += len(piece)
        return self.read() if self.size >= self.next else None

    def read(self) -> PartialAnswer | None:
        """Return what there is now, where that is more than was there before."""
        text = "".join(self.pieces)
        self.pieces = [text]
        self.next = self.size + max(_LEAST, self.size // _SHARE)
        start = text.find("{")
        if start < 0:
            return None
        try:
            found: JsonValue = from_json(text[start:], allow_partial="trailing-strings")
            if "\\u" in text:
                found = clean_json(found)
        except ValueError:  # what follows the answer, or no JSON at all
            return None
        if self.member.wrapped:
            if not isinstance(found, dict) or WRAPPER not in found:
                return None
            found = found[WRAPPER]
        if found == self.seen:
            return None
        self.seen = found
        return PartialAnswer(self.member.name, found, _partial_value(self.member, found))


class PartialReader:
    """Reads a typed answer out of the pieces of one model call. It never raises.

    Args:
        spec: What the answer is to be.
        by_tool: Whether it comes as a tool call; else it is the text.
    """

    def __init__(self, spec: OutputSpec[Any], *, by_tool: bool) -> None:
        self._spec = spec
        self._text = None if by_tool else _Source(spec.member(""))
        self._calls = ToolCallAssembler()
        self._sources: dict[int, _Source] = {}
        """The calls that give the answer, by their position among all."""
        self._latest: _Source | None = None

    def take(self, item: MessageDelta | ToolCallDelta) -> PartialAnswer | None:
        """Take a piece, and return the answer so far where that was read again."""
        if isinstance(item, MessageDelta):
            source, piece = self._text, item.text
        else:
            source, piece = self._source_of(item), item.arguments
        if source is None or not piece:
            return None
        self._latest = source
        return source.add(piece)

    def end(self) -> PartialAnswer | None:
        """Return the answer as it is at the end, where that was not shown yet."""
        return None if self._latest is None else self._latest.read()

    def _source_of(self, item: ToolCallDelta) -> _Source | None:
        position = self._calls.add(item)
        if position not in self._sources and item.name in self._spec.tool_names:
            self._sources[position] = _Source(self._spec.member(item.name))
        return self._sources.get(position)


def _partial_value(member: OutputMember, found: JsonValue) -> Any:
    if member.adapter is None:
        return None
    try:
        return member.adapter.validate_json(encode_json(found), experimental_allow_partial="on")
    except Exception:  # noqa: BLE001 - it is not whole yet, and an application's validator may raise anything
        return None
