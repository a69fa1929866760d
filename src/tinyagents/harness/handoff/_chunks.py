"""A long text in pieces, and the pieces that have to do with a question."""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from ..errors import ConfigurationError

_IDEOGRAPHS = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
_WORD = re.compile(rf"[{_IDEOGRAPHS}]|[^\W{_IDEOGRAPHS}]{{1,64}}")
"""A word; of what is written without spaces between words, a character."""
_MOST_QUERY_WORDS = 64
_SATURATION = 1.2
_LENGTH_WEIGHT = 0.75
"""The usual values of BM25's k1 and b (Robertson and Zaragoza, 2009, 3.2)."""


def split_text(text: str, max_bytes: int) -> list[str]:
    """Split a text into pieces of at most so many bytes of UTF-8; joined they are the text again.

    It is split between lines, and inside lines that are longer than that between characters.

    Raises:
        ConfigurationError: ``max_bytes`` has no room for every character.
    """
    if max_bytes < 4:
        raise ConfigurationError(f"`max_bytes` must be at least 4, got {max_bytes}")
    chunks: list[str] = []
    open_lines: list[str] = []
    size = 0
    for line in text.splitlines(keepends=True):
        for piece in _pieces(line, max_bytes):
            length = len(piece.encode())
            if size + length > max_bytes:
                chunks.append("".join(open_lines))
                open_lines, size = [], 0
            open_lines.append(piece)
            size += length
    return [*chunks, "".join(open_lines)] if open_lines else chunks


def _pieces(line: str, max_bytes: int) -> Iterator[str]:
    data = line.encode()
    if len(data) <= max_bytes:
        yield line
        return
    start = 0
    while start < len(data):
        end = start + max_bytes
        while end < len(data) and data[end] & 0xC0 == 0x80:  # inside a character
            end -= 1
        yield data[start:end].decode()
        start = end


def best_chunks(chunks: Sequence[str], query: str) -> list[int]:
    """Return the places of the pieces with words of the query, the best first, by BM25."""
    asked = dict.fromkeys(_words(query)[:_MOST_QUERY_WORDS])
    counted: list[Counter[str]] = []
    lengths: list[int] = []
    for chunk in chunks:
        words = _words(chunk)
        lengths.append(len(words))
        counted.append(Counter(word for word in words if word in asked))
    average = max(1.0, sum(lengths) / max(1, len(lengths)))
    holding = Counter(word for words in counted for word in words)

    def score(words: Counter[str], length: int) -> float:
        norm = _SATURATION * (1 - _LENGTH_WEIGHT + _LENGTH_WEIGHT * length / average)
        return sum(
            math.log(1 + (len(chunks) - holding[word] + 0.5) / (holding[word] + 0.5))
            * words[word]
            * (_SATURATION + 1)
            / (words[word] + norm)
            for word in words
        )

    scores = [score(words, length) for words, length in zip(counted, lengths, strict=True)]
    found = [place for place, value in enumerate(scores) if value > 0]
    return sorted(found, key=lambda place: (-scores[place], place))


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())
