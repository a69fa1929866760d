"""Counting with OpenAI's tokenizer, whose vocabularies are never downloaded."""

import hashlib
import os
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ConfigurationError, MissingDependencyError

if TYPE_CHECKING:
    import tiktoken

_ADDRESS = "https://openaipublic.blob.core.windows.net/encodings/{name}.tiktoken"
"""Where `tiktoken` gets a vocabulary; it names the file that it keeps after the address's SHA-1."""

_VOCABULARIES = {
    "r50k_base": "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930",
    "p50k_base": "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069",
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
}
"""The SHA-256 of each, by ``tiktoken_ext/openai_public.py`` of tiktoken 0.14: a file that has another
would be fetched again."""
_SHARED = {"p50k_edit": "p50k_base", "o200k_harmony": "o200k_base"}
"""Encodings that differ from another in their special tokens only."""


class TiktokenCounter:
    """Counts with ``tiktoken``, from a vocabulary that is on this machine already.

    Nothing is downloaded: the file must be where ``tiktoken`` has kept it (``TIKTOKEN_CACHE_DIR``,
    ``DATA_GYM_CACHE_DIR``, or ``data-gym-cache`` in the temporary folder), or an ``Encoding`` is
    given. Loading takes a moment: make the counter once, when the application starts.

    Args:
        encoding: ``o200k_base``, ``o200k_harmony``, ``cl100k_base``, ``p50k_base``, ``p50k_edit`` or
            ``r50k_base``; or a ``tiktoken.Encoding``.

    Raises:
        MissingDependencyError: ``tiktoken`` is not installed.
        ConfigurationError: There is no such encoding, or its file is not on this machine.
    """

    __slots__ = ("_encoding",)

    def __init__(self, encoding: "str | tiktoken.Encoding" = "o200k_base") -> None:
        self._encoding: Any = _load(encoding) if isinstance(encoding, str) else encoding

    def count_text(self, text: str, /) -> int:
        """Return how many tokens the text is; what looks like a special token is text."""
        tokens: list[int] = self._encoding.encode_ordinary(text)
        return len(tokens)


@cache
def _load(name: str) -> Any:
    try:
        import tiktoken
    except ImportError as exc:
        raise MissingDependencyError("tiktoken", extra="tokens") from exc
    file = _SHARED.get(name, name)
    if file not in _VOCABULARIES:
        known = ", ".join(f"`{each}`" for each in sorted((*_VOCABULARIES, *_SHARED)))
        raise ConfigurationError(
            f"there is no encoding {name!r} here; there are {known}; of others pass the `Encoding`"
        )
    path = _kept_in() / hashlib.sha1(_ADDRESS.format(name=file).encode()).hexdigest()
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as exc:
        raise ConfigurationError(
            f"the vocabulary of `{name}` is not on this machine ({path}), and nothing is downloaded: "
            f"call `tiktoken.get_encoding({name!r})` where that may be, and set `TIKTOKEN_CACHE_DIR`"
        ) from exc
    if digest != _VOCABULARIES[file]:
        raise ConfigurationError(f"the vocabulary of `{name}` in {path} is damaged")
    return tiktoken.get_encoding(name)


def _kept_in() -> Path:
    for variable in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"):
        if variable in os.environ:
            folder = os.environ[variable]
            if not folder:
                # `tiktoken` would take that for a wish to download anew each time.
                raise ConfigurationError(f"`{variable}` is empty: set it to a folder, or unset it")
            return Path(folder)
    return Path(tempfile.gettempdir()) / "data-gym-cache"
