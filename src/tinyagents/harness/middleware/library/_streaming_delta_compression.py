"""Many small pieces of a stream shown as fewer larger ones."""

import re
from collections.abc import Iterable
from typing import Any, Literal, TypeAlias, get_args

from ...context import RunContext
from ...errors import ConfigurationError
from ...model import MessageDelta, ToolCallDelta
from .._base import Middleware, ModelDelta

DeltaUnit: TypeAlias = Literal["characters", "words", "sentences"]
"""Where a piece may end: anywhere, behind a space, or behind the end of a sentence or a line."""

_ENDS: dict[DeltaUnit, re.Pattern[str]] = {
    "words": re.compile(r"\s+"),
    "sentences": re.compile(r"""[.!?…]['")\]]*\s+|[。！？\n]"""),
}
"""What a piece may end with."""


class StreamingDeltaCompressionMiddleware(Middleware[Any]):
    """Joins tiny pieces of a streamed answer, so that whoever shows them has less to do.

    Hook: ``filter_deltas``. It changes no answer, emits nothing, and cannot fail. The first piece is
    shown at once; a piece of another kind, or of another call, ends the one before, and so does the end
    of the answer. No clock is involved: what is held is shown when the next piece comes.

    Args:
        characters: How many a piece has at least, but for the first and the last of its kind.
        unit: Where it may end.
        longest: What is shown in any case when no such end comes.

    Raises:
        ConfigurationError: A size is below 1, or there is no such unit.
    """

    def __init__(
        self,
        characters: int = 40,
        *,
        unit: DeltaUnit = "characters",
        longest: int = 400,
    ) -> None:
        if characters < 1 or longest < characters:
            raise ConfigurationError(
                "`characters` must be at least 1, and `longest` at least `characters`"
            )
        if unit not in get_args(DeltaUnit):
            raise ConfigurationError(f"there is no unit `{unit}`: {', '.join(get_args(DeltaUnit))}")
        self._characters = characters
        self._unit: DeltaUnit = unit
        self._longest = longest

    def filter_deltas(self, ctx: RunContext[Any]) -> "_JoinedDeltas":
        """Join the pieces of an answer."""
        return _JoinedDeltas(self._characters, self._longest, _ENDS.get(self._unit))


_Kind: TypeAlias = tuple[str, str, str, int | str | None]
"""What pieces that can be joined have in common: the kind, and of a call its id, name and index."""


class _JoinedDeltas:
    """Holds pieces of one kind until they are enough."""

    def __init__(self, least: int, longest: int, ends: re.Pattern[str] | None) -> None:
        self._least = least
        self._longest = longest
        self._ends = ends
        self._kind: _Kind = ("", "", "", None)
        self._held = ""
        self._shown: set[_Kind] = set()

    def push(self, delta: ModelDelta) -> Iterable[ModelDelta]:
        for kind, text in _parts(delta):
            if kind != self._kind:
                yield from self.flush()
                self._kind = kind
            if kind not in self._shown:
                self._shown.add(kind)
                yield _piece(kind, text)
                continue
            self._held += text
            if len(self._held) >= self._least:
                yield from self._take(self._ripe())

    def _ripe(self) -> int:
        """Return how many of the held characters are shown now."""
        if self._ends is None or len(self._held) >= self._longest:
            return len(self._held)
        return max((end.end() for end in self._ends.finditer(self._held)), default=0)

    def _take(self, size: int) -> Iterable[ModelDelta]:
        text, self._held = self._held[:size], self._held[size:]
        return (_piece(self._kind, text),) if text else ()

    def flush(self) -> Iterable[ModelDelta]:
        return self._take(len(self._held))


def _parts(delta: ModelDelta) -> Iterable[tuple[_Kind, str]]:
    if isinstance(delta, ToolCallDelta):
        yield ("tool_call", delta.call_id, delta.name, delta.index), delta.arguments
        return
    for kind, text in (
        ("reasoning", delta.reasoning),
        ("text", delta.text),
        ("refusal", delta.refusal),
    ):
        if text:
            yield (kind, "", "", None), text


def _piece(kind: _Kind, text: str) -> ModelDelta:
    match kind:
        case ("reasoning", *_):
            return MessageDelta(reasoning=text)
        case ("text", *_):
            return MessageDelta(text)
        case ("refusal", *_):
            return MessageDelta(refusal=text)
        case (_, call_id, name, index):
            return ToolCallDelta(call_id, name, text, index)
