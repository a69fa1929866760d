"""A file that was loaded, and the forms in which it goes into a message."""

import hashlib
import logging
from dataclasses import dataclass, field
from functools import partial
from inspect import isawaitable, iscoroutinefunction

from ..concurrency import in_thread
from ..message import FileBlock, TextBlock
from ._policy import Extractor, InputPolicy
from ._types import decoded

_LONGEST_NAME = 200
_DIGEST_DIGITS = 16
_SYNTAX = frozenset('"\\[]<>')

_log = logging.getLogger("tinyagents.multimodal")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedFile:
    """A file's bytes, its text where it has one, and what it is called."""

    name: str
    media_type: str
    content: bytes = field(repr=False)
    digest: str
    """The first 16 hexadecimal digits of its SHA-256."""
    text: str | None = field(default=None, repr=False)
    """As much of its text as the limits allow; ``None`` where no text was to be had."""
    dropped: int = 0
    """How many characters of the text were left out."""

    def header(self) -> str:
        """Return one line that says what the file is.

        In the name, quotes, brackets, backslashes and what is not printable are escaped: no name can
        end the line, or look like a marker.
        """
        return (
            f'[File: name="{_escaped(self.name)}" type={self.media_type} '
            f"size={len(self.content)} sha256={self.digest}]"
        )

    def as_text(self) -> TextBlock:
        """Return the header and the text for a model to read; without a text the header alone."""
        if self.text is None:
            return TextBlock(text=self.header())
        note = f"\n[{self.dropped} more characters were left out]" if self.dropped else ""
        return TextBlock(text=f"{self.header()}\n{self.text}{note}")

    def as_block(self) -> FileBlock:
        """Return the file whole, for models that read its type themselves."""
        return FileBlock.from_bytes(self.content, self.media_type, self.name)


async def loaded_file(content: bytes, kind: str, name: str, policy: InputPolicy) -> LoadedFile:
    """Return a file with its text. A text that cannot be had is none, and no error."""
    text = await _text_of(content, kind, name, policy)
    most = policy.files.effective().max_characters
    return LoadedFile(
        name=name,
        media_type=kind,
        content=content,
        digest=await in_thread(partial(_digest, content)),
        text=None if text is None else text[:most],
        dropped=0 if text is None else max(0, len(text) - most),
    )


async def _text_of(content: bytes, kind: str, name: str, policy: InputPolicy) -> str | None:
    extractor = policy.extractors.get(kind)
    if extractor is None:
        return await in_thread(partial(decoded, content)) if kind.startswith("text/") else None
    try:
        text: object = await _run(extractor, content)
    except Exception:  # noqa: BLE001 - an application's code may raise anything
        _log.warning("no text could be got out of a file of type %s", kind, exc_info=True)
        return None
    if isinstance(text, str):
        return text
    _log.warning("the extractor of %s returned `%s` in place of a text", kind, type(text).__name__)
    return None


async def _run(extractor: Extractor, content: bytes) -> object:
    if iscoroutinefunction(extractor):
        return await extractor(content)
    # In a tuple, since trio takes no awaitable out of a thread: a callable object may return one.
    (result,) = await in_thread(lambda: (extractor(content),))
    return await result if isawaitable(result) else result


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:_DIGEST_DIGITS]


def _escaped(name: str) -> str:
    shown = name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}…"
    return "".join(c if c.isprintable() and c not in _SYNTAX else f"\\u{ord(c):04x}" for c in shown)
