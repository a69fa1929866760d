"""What finds things in a text, whole or while it grows."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeAlias

from ..errors import ConfigurationError

Span: TypeAlias = tuple[int, int]
"""Where something begins, and where it ends, exclusive."""

CONTEXT = 64
"""So many characters before a text that is still held back are kept for detectors to look at."""

_AHEAD = 2
"""So many characters behind a match patterns may look at."""

_LABEL = re.compile(r"[A-Z][A-Z0-9_]*")


class Detector(Protocol):
    """Finds one kind of thing. Pure and quick: it is asked for each piece of a streamed text."""

    @property
    def label(self) -> str:
        """What it finds, such as ``EMAIL``: capital letters, digits and underscores."""
        ...

    def find(self, text: str, start: int = 0) -> Iterable[Span]:
        """Return where matches are that begin at ``start`` or later; they may overlap.

        What stands before ``start`` is context, of which a growing text keeps :data:`CONTEXT`
        characters.
        """
        ...

    def open_from(self, text: str, start: int = 0) -> int:
        """Return from where on a match may still begin, grow or vanish when the text goes on.

        From ``start`` to ``len(text)``, which is nowhere. Matches that begin before it are the same
        whatever follows.
        """
        ...


def checked_label(label: str) -> str:
    """Return the label.

    Raises:
        ConfigurationError: It is none.
    """
    if not _LABEL.fullmatch(label):
        raise ConfigurationError(
            f"the label `{label}` is to be of capital letters, digits and underscores, as `EMAIL` is"
        )
    return label


class PatternDetector:
    """Finds what a pattern matches, where the text's end shows how much may still become a match.

    Args:
        label: What it finds.
        pattern: Matches of at most ``longest`` characters, which look at most two further ones ahead.
        tail: Matches, up to the end of a text, all that may be the beginning of a match.
        longest: In characters.
        accept: Whether a match is one, by its text.
            Where the pattern has a group ``secret`` that takes part, it is the match.
    """

    def __init__(
        self,
        label: str,
        pattern: str,
        *,
        tail: str,
        longest: int,
        accept: Callable[[str], bool] | None = None,
    ) -> None:
        self.label: str = checked_label(label)
        self._pattern = re.compile(pattern)
        self._tail = re.compile(rf"(?:{tail})\Z")
        self._reach = longest + _AHEAD
        self._accept = accept
        self._named = "secret" in self._pattern.groupindex
        # What leads to a secret was passed on already where another match at its place was open.
        self._lead = CONTEXT // 2 if self._named else 0

    def find(self, text: str, start: int = 0) -> Iterator[Span]:
        """Return the matches."""
        for match in self._pattern.finditer(text, max(0, start - self._lead)):
            begin, end = match.span()
            if self._named and match["secret"] is not None:
                begin, end = match.span("secret")
            if begin >= start and (self._accept is None or self._accept(text[begin:end])):
                yield begin, end

    def open_from(self, text: str, start: int = 0) -> int:
        """Return where the text's end may be the beginning of a match."""
        found = self._tail.search(text, max(start, len(text) - self._reach))
        return found.start() if found is not None else len(text)


class WindowDetector:
    """Finds what a function finds, in a text of which the last characters are held back.

    Args:
        label: What it finds.
        find: Gives the spans of a text's matches.
        longest: The most characters that a match has; so much of a streamed text is held back.

    Raises:
        ConfigurationError: The label is none, or ``longest`` is below 1.
    """

    def __init__(
        self, label: str, find: Callable[[str], Iterable[Span]], *, longest: int = 256
    ) -> None:
        if longest < 1:
            raise ConfigurationError("`longest` is the most characters of a match, and at least 1")
        self.label: str = checked_label(label)
        self._function = find
        self._longest = longest

    def find(self, text: str, start: int = 0) -> Iterator[Span]:
        """Return the function's matches."""
        for begin, end in self._spans(text, start):
            if start <= begin < end <= len(text):
                yield begin, end

    def _spans(self, text: str, start: int) -> Iterable[Span]:
        return self._function(text)

    def open_from(self, text: str, start: int = 0) -> int:
        """Return where the last ``longest`` characters begin, or a match that may go on."""
        edge = max(start, len(text) - self._longest - _AHEAD)
        return min([edge, *(begin for begin, end in self.find(text, start) if end == len(text))])


class _OwnPatternDetector(WindowDetector):
    """Finds what a pattern matches of which nothing is known but how long a match may be."""

    def __init__(self, label: str, pattern: re.Pattern[str], longest: int) -> None:
        self._pattern = pattern
        super().__init__(label, self._whole, longest=longest)

    def _whole(self, text: str) -> Iterable[Span]:
        return self._spans(text, 0)

    def _spans(self, text: str, start: int) -> Iterable[Span]:
        return (match.span() for match in self._pattern.finditer(text, start))


def detect_pattern(
    pattern: str | re.Pattern[str], *, label: str = "CUSTOM", longest: int = 256
) -> Detector:
    """Return a detector of what a pattern of yours matches.

    The pattern is tried at each place of every text: one that can match the same characters in many
    ways is slow there.

    Args:
        pattern: A regular expression; a match that is empty counts for nothing.
        label: What it finds.
        longest: The most characters that a match has, of which streams hold so many back.

    Raises:
        ConfigurationError: It is no regular expression, or it matches nothing at all.
    """
    try:
        compiled = re.compile(pattern)
    except re.error as exc:
        raise ConfigurationError(f"the pattern of `{label}` cannot be read: {exc}") from exc
    if compiled.fullmatch(""):
        raise ConfigurationError(f"the pattern of `{label}` matches the empty text")
    return _OwnPatternDetector(label, compiled, longest)


class LiteralDetector:
    """Finds given texts, those that overlap too. Empty ones are left out.

    Args:
        texts: What must not be seen: keys, passwords, names.
        label: What they are.
    """

    def __init__(self, texts: Iterable[str], *, label: str = "SECRET") -> None:
        if isinstance(texts, str):
            raise ConfigurationError("literal texts are a list of strings")
        self.label: str = checked_label(label)
        # The longest first: at one place, all of it is the match.
        self._texts = sorted({text for text in texts if text}, key=len, reverse=True)
        either = "|".join(map(re.escape, self._texts))
        # Looking ahead takes nothing, so that the next match may begin within this one.
        self._pattern = re.compile(f"(?=({either}))") if self._texts else None

    def __repr__(self) -> str:
        return f"LiteralDetector({len(self._texts)} texts, label={self.label!r})"

    def find(self, text: str, start: int = 0) -> Iterator[Span]:
        """Return where the texts are."""
        if self._pattern is not None:
            for match in self._pattern.finditer(text, start):
                yield match.span(1)

    def open_from(self, text: str, start: int = 0) -> int:
        """Return where the end of the text is the beginning of one of the texts."""
        first = len(text)
        for word in self._texts:
            at = text.find(word[0], max(start, len(text) - len(word) + 1))
            while 0 <= at < first:
                if word.startswith(text[at:]):
                    first = at
                    break
                at = text.find(word[0], at + 1)
        return first
