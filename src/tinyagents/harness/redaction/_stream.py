"""A text that comes in pieces, of which nothing that is found is ever shown."""

from ._detector import CONTEXT
from ._redactor import Redactor

_SCAN_AGAIN = 16
"""A long text that is held back is looked at again when it has grown by one part in so many."""

_LONG = 2_048


class TextStream:
    """Passes a text on as soon as it is certain that nothing in it is found, or will be.

    What it has passed on in all is what :meth:`Redactor.text` makes of the whole text.
    """

    __slots__ = ("_held", "_new", "_redactor", "_start", "_unseen")

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held = ""
        self._start = 0
        """Where the text begins that was not passed on; what is before it is context."""
        self._new: list[str] = []
        self._unseen = 0

    @property
    def held(self) -> int:
        """How many characters are held back."""
        return len(self._held) - self._start + self._unseen

    def push(self, piece: str) -> str:
        """Take the next piece, and return what can be shown now."""
        self._new.append(piece)
        self._unseen += len(piece)
        held = len(self._held) - self._start
        if held > _LONG and self._unseen * _SCAN_AGAIN < held:
            return ""  # looking at all of it for each character would take for ever
        self._take()
        return self._pass(self._redactor.open_from(self._held, self._start))

    def flush(self) -> str:
        """Return the rest, at the end of the text."""
        self._take()
        return self._pass(len(self._held))

    def drop(self) -> None:
        """Forget the rest, of a text that was broken off and may end amid something."""
        self._held, self._start, self._new, self._unseen = "", 0, [], 0

    def _take(self) -> None:
        self._held += "".join(self._new)
        self._new, self._unseen = [], 0

    def _pass(self, end: int) -> str:
        text = self._held
        if end <= self._start:
            return ""
        parts: list[str] = []
        done = self._start
        for match in self._redactor.find_from(text, done):
            if match.start >= end:
                break
            if match.end > end:
                # It overlaps one that is not certain yet, and they are one.
                end = match.start
                break
            parts += (text[done : match.start], self._redactor.replacement(match, text))
            done = match.end
        parts.append(text[done:end])
        keep = max(0, end - CONTEXT)
        self._held, self._start = text[keep:], end - keep
        return "".join(parts)
