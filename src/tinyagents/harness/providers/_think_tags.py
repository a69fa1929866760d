"""Reasoning that a model writes into its text, as in ``<think>…</think>``."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from ..message import ReasoningBlock, TextBlock
from ..model import MessageDelta
from ._pieces import under_name

Kind: TypeAlias = Literal["text", "reasoning"]


class Piece(NamedTuple):
    """A piece of text or of reasoning, without the tags and the line ends beside them."""

    kind: Kind
    text: str

    @property
    def delta(self) -> MessageDelta:
        """The piece as an item of a stream."""
        if self.kind == "text":
            return MessageDelta(text=self.text)
        return MessageDelta(reasoning=self.text)


@dataclass(slots=True)
class Segment:
    """A run of one kind, with the tags as they stood so that it can be sent back as it was."""

    kind: Kind
    opening: str = ""
    closing: str = ""
    pieces: list[str] = field(default_factory=list[str])

    @property
    def text(self) -> str:
        """What stands between the tags."""
        return "".join(self.pieces)


class ThinkTagSplitter:
    """Tells reasoning from text in a stream, however the tags are cut.

    Line ends directly inside and directly after the tags belong to the tags. What could be the
    beginning of a tag or such a line end is held back until it is known.

    Args:
        tag: The name of the tag.
        inside: The stream begins in reasoning, because the prompt has opened the tag.
    """

    __slots__ = ("_at_edge", "_closing", "_held", "_opening", "segments")

    def __init__(self, tag: str = "think", *, inside: bool = False) -> None:
        self._opening = f"<{tag}>"
        self._closing = f"</{tag}>"
        self._held = ""
        self._at_edge = inside
        self.segments: list[Segment] = [Segment("reasoning" if inside else "text")]

    def feed(self, text: str) -> list[Piece]:
        """Take the next piece and return what is known of it."""
        # Nearly every piece of a stream goes this way.
        current = self.segments[-1]
        if current.kind == "text" and not self._held and not self._at_edge and "<" not in text:
            if not text:
                return []
            current.pieces.append(text)
            return [Piece("text", text)]
        self._held += text
        return self._take(final=False)

    def finish(self) -> list[Piece]:
        """Return what was held back; the stream has ended."""
        return self._take(final=True)

    def _take(self, *, final: bool) -> list[Piece]:
        pieces: list[Piece] = []
        while self._held:
            current = self.segments[-1]
            if self._at_edge and not self._skip_line_ends(current):
                break
            tag = self._closing if current.kind == "reasoning" else self._opening
            before, found, after = self._held.partition(tag)
            if found:
                self._held = after
                self._add(current, self._close(current, before), pieces)
                continue
            known = before if final else _without_open_end(before, tag)
            if current.kind == "reasoning" and not final:
                known = known.rstrip("\n")
            self._held = before[len(known) :]
            self._add(current, known, pieces)
            break
        return pieces

    def _skip_line_ends(self, current: Segment) -> bool:
        """Give the line ends at the edge to the tag; whether anything is left."""
        rest = self._held.lstrip("\n")
        ends = self._held[: len(self._held) - len(rest)]
        if current.kind == "reasoning":
            current.opening += ends
        elif len(self.segments) > 1:
            self.segments[-2].closing += ends
        self._held = rest
        self._at_edge = not rest
        return bool(rest)

    def _close(self, current: Segment, before: str) -> str:
        """End the current segment at a tag; return the text that it still gains."""
        self._at_edge = True
        if current.kind == "text":
            self.segments.append(Segment("reasoning", opening=self._opening))
            return before
        kept = before.rstrip("\n")
        current.closing = before[len(kept) :] + self._closing
        self.segments.append(Segment("text"))
        return kept

    @staticmethod
    def _add(current: Segment, text: str, pieces: list[Piece]) -> None:
        if text:
            current.pieces.append(text)
            pieces.append(Piece(current.kind, text))


def segment_blocks(
    segments: Iterable[Segment], provider: str
) -> Iterator[TextBlock | ReasoningBlock]:
    """Return segments as blocks; the provider that wrote the tags gets them back."""
    for segment in segments:
        text = segment.text
        if not text:
            continue
        if segment.kind == "text":
            yield TextBlock(text=text)
        else:
            tags = under_name(provider, {"inline": [segment.opening, segment.closing]})
            yield ReasoningBlock(text=text, provider_data=tags)


def _without_open_end(text: str, tag: str) -> str:
    """Return the text without an end that may turn out to be the tag's beginning."""
    for size in range(min(len(tag) - 1, len(text)), 0, -1):
        if text.endswith(tag[:size]):
            return text[:-size]
    return text
