"""Where a JSON value ends in a text that is still coming."""

import re
from typing import Final

from ..text import MAX_JSON_DEPTH

_OUTSIDE: Final = re.compile(r'["{}\[\]]')
_INSIDE: Final = re.compile(r'["\\]')


class JsonEnd:
    """Finds the end of an object or an array by its brackets, each character once.

    Args:
        start: Where it begins in the text.
    """

    __slots__ = ("_at", "_depth", "_inside", "too_deep")

    def __init__(self, start: int) -> None:
        self._at = start
        self._depth = 0
        self._inside = False
        self.too_deep = False
        """Set when it is nested deeper than JSON may be here: it has no end then."""

    def find(self, text: str, limit: int) -> int | None:
        """Return the end in ``text``, which has grown since the last call; ``None`` if not there.

        Args:
            text: The text from its beginning.
            limit: Where to stop looking.
        """
        limit = min(limit, len(text))
        while self._at < limit and not self.too_deep:
            found = (_INSIDE if self._inside else _OUTSIDE).search(text, self._at, limit)
            if found is None:
                self._at = limit
                break
            if found[0] == "\\":
                if found.end() == limit:
                    self._at = found.start()  # what it escapes is yet to come
                    break
                self._at = found.end() + 1
                continue
            self._at = found.end()
            if found[0] == '"':
                self._inside = not self._inside
            elif found[0] in "{[":
                self._depth += 1
                self.too_deep = self._depth > MAX_JSON_DEPTH
            else:
                self._depth -= 1
                if self._depth <= 0:
                    return self._at
        return None

    def shift(self, by: int) -> None:
        """Count from a place of the text that is so much further on."""
        self._at -= by
