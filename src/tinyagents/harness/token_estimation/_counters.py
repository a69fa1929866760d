"""Counting the tokens of a text: by a rule of thumb, or with a tokenizer."""

import math
import re
from collections.abc import Callable, Sized
from typing import Protocol, TypeAlias, runtime_checkable

from ..errors import ConfigurationError
from ..usage import CHARACTERS_PER_TOKEN

_SYLLABLES = re.compile(
    "[\u1100-\u11ff\u2e80-\u312f\u3130-\u318f\u31a0-\ua4cf\ua960-\ua97f\uac00-\ud7ff"
    "\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef\U0001b000-\U0001b16f\U00020000-\U0003ffff"
    "\u0900-\u109f\u1200-\u139f\u1700-\u1aff]+"
)
"""Runs of Han, Kana, Hangul and their punctuation; and of the scripts from India to Ethiopia."""
_PICTURES = re.compile("[\u2190-\u2bff\ufe00-\ufe0f\U00010000-\U0001afff\U0001b170-\U0001ffff]+")
"""Runs of symbols and emoji, and of scripts that few texts are in."""
_OTHER = re.compile(
    "[\u0370-\u08ff\u10a0-\u10ff\u13a0-\u16ff\u1b00-\u1dff\u1f00-\u1fff\ua4d0-\ua95f\ua980-\uabff]+"
)
"""Runs of alphabets other than the Latin: Greek, Cyrillic, Hebrew, Arabic, Georgian, …"""

_SYLLABLE_TOKENS = 1.0
_PICTURE_TOKENS = 2.0
_OTHER_TOKENS = 0.5
"""Tokens of one character, on the high side of what OpenAI's ``o200k_base`` and ``cl100k_base`` make
of such text (o200k 0.7 for Chinese, cl100k 1.2; emoji 1 to 3; Russian 0.25 and 0.4; Thai up to 0.8)."""


@runtime_checkable
class TokenCounter(Protocol):
    """Counts the tokens of a text. It may be called from any thread."""

    def count_text(self, text: str, /) -> int:
        """Return how many tokens the text is; 0 for none only."""
        ...


@runtime_checkable
class Encoder(Protocol):
    """A tokenizer, as ``tiktoken``, ``tokenizers`` and ``transformers`` have."""

    def encode(self, text: str, /) -> Sized:
        """Return the tokens of a text, one item each."""
        ...


TokenCounterLike: TypeAlias = TokenCounter | Encoder


class HeuristicTokenCounter:
    """Counts by the script that a text is written in: no tokenizer, and never far too few.

    Characters of Latin text are ``1 / characters_per_token`` of a token each, those of scripts that
    tokenizers know less well are more.

    Args:
        characters_per_token: Of Latin text; 4 is what tokenizers average on English. What is not
            above 0 stands for 4.
    """

    __slots__ = ("characters_per_token",)

    def __init__(self, characters_per_token: float = CHARACTERS_PER_TOKEN) -> None:
        usable = math.isfinite(characters_per_token) and characters_per_token > 0
        self.characters_per_token: float = characters_per_token if usable else CHARACTERS_PER_TOKEN

    def count_text(self, text: str, /) -> int:
        """Return about how many tokens the text is."""
        latin, tokens = len(text), 0.0
        if not text.isascii():
            for pattern, each in (
                (_SYLLABLES, _SYLLABLE_TOKENS),
                (_PICTURES, _PICTURE_TOKENS),
                (_OTHER, _OTHER_TOKENS),
            ):
                found = sum(map(len, pattern.findall(text)))
                latin -= found
                tokens += found * each
        return math.ceil(tokens + latin / self.characters_per_token)


HEURISTIC = HeuristicTokenCounter()


class EncoderTokenCounter:
    """Counts with a tokenizer: any object with ``encode(text)``.

    One that can take special tokens for text, as ``tiktoken`` with ``encode_ordinary``, is asked to.

    Args:
        encoder: The tokenizer.
    """

    __slots__ = ("_encode",)

    def __init__(self, encoder: Encoder) -> None:
        # `encode` of `tiktoken` refuses a text with `<|endoftext|>` in it, which anyone may write.
        self._encode: Callable[[str], Sized] = getattr(encoder, "encode_ordinary", encoder.encode)

    def count_text(self, text: str, /) -> int:
        """Return how many tokens the tokenizer makes of the text."""
        return _length(self._encode(text)) if text else 0


def _length(encoded: Sized) -> int:
    # `tokenizers.Encoding` has its tokens as `ids`, and `transformers` an option for it.
    ids = getattr(encoded, "ids", encoded)
    return len(ids)


def as_token_counter(counter: TokenCounterLike | None) -> TokenCounter:
    """Return the counter; the heuristic one for ``None``, and a tokenizer wrapped in one.

    Raises:
        ConfigurationError: It has neither ``count_text`` nor ``encode``.
    """
    if counter is None:
        return HEURISTIC
    if isinstance(counter, type):
        raise ConfigurationError(f"`{counter.__name__}` is a class: pass an object of it")
    if callable(getattr(counter, "count_text", None)) and isinstance(counter, TokenCounter):
        return counter
    if callable(getattr(counter, "encode", None)) and isinstance(counter, Encoder):
        if isinstance(counter, str):
            raise ConfigurationError(
                f"{counter!r} is a text: pass a counter, such as TiktokenCounter({counter!r})"
            )
        return EncoderTokenCounter(counter)
    raise ConfigurationError(
        f"{counter!r} counts no tokens: pass an object with `count_text(text)` or `encode(text)`"
    )


def estimate_tokens(text: str) -> int:
    """Return about how many tokens a text is, by :class:`HeuristicTokenCounter`."""
    return HEURISTIC.count_text(text)
