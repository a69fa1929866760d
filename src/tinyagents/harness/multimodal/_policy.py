"""What may become part of a message, and how much of it."""

import os
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from ..errors import MediaInputError
from ..guarded_fetch import GuardedFetch

MEBIBYTE: Final = 2**20

Extractor: TypeAlias = Callable[[bytes], str | Awaitable[str]]
"""From the bytes of a file to its text. A plain function runs in a worker thread. What it raises is
logged, and the file then stands in the message without its text."""

IMAGE_TYPES: Final = frozenset({"image/png", "image/jpeg", "image/webp", "image/gif", "image/bmp"})
_OFFICE = "application/vnd.openxmlformats-officedocument"
FILE_TYPES: Final = frozenset(
    {
        *("application/pdf", "text/plain", "text/csv", "text/markdown", "application/zip"),
        f"{_OFFICE}.spreadsheetml.sheet",
        f"{_OFFICE}.wordprocessingml.document",
        f"{_OFFICE}.presentationml.presentation",
        "application/octet-stream",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageLimits:
    """How many images one message may have, how large, and of which types."""

    max_images: int = 4
    """Held between 1 and 16."""
    max_bytes: int = 8 * MEBIBYTE
    """Of each, unpacked; held between 1 and 20 MiB."""
    types: Collection[str] = IMAGE_TYPES
    """Media types: PNG, JPEG, WebP, GIF and BMP."""

    def effective(self) -> "ImageLimits":
        """Return the limits as they hold, each between its bounds."""
        return replace(
            self,
            max_images=_between(1, self.max_images, 16),
            max_bytes=_between(MEBIBYTE, self.max_bytes, 20 * MEBIBYTE),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FileLimits:
    """How many files one message may have, how large, of which types, and how much of their text."""

    max_files: int = 4
    """Held between 1 and 16; 0 turns files off."""
    max_bytes: int = 16 * MEBIBYTE
    """Of each, unpacked; held between 1 and 50 MiB."""
    max_characters: int = 50_000
    """Of a file's text; held between 1,000 and 200,000. What is behind is left out, with a note."""
    types: Collection[str] = FILE_TYPES
    """Media types: PDF, plain text, CSV, Markdown, ZIP, Word, Excel, PowerPoint, and
    ``application/octet-stream`` for whatever is not known."""

    @property
    def enabled(self) -> bool:
        """Whether there may be files at all."""
        return self.max_files > 0

    def effective(self) -> "FileLimits":
        """Return the limits as they hold, each between its bounds; see :attr:`enabled` for 0."""
        return replace(
            self,
            max_files=_between(1, self.max_files, 16),
            max_bytes=_between(MEBIBYTE, self.max_bytes, 50 * MEBIBYTE),
            max_characters=_between(1_000, self.max_characters, 200_000),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class InputPolicy:
    """Where images and files may come from, and what becomes of them. By default: data URIs only."""

    root: str | os.PathLike[str] | None = None
    """The folder that local files must be inside of; ``None`` reads no file."""
    fetch: GuardedFetch | None = None
    """What fetches addresses, by its own policy; ``None`` fetches none."""
    images: ImageLimits = ImageLimits()
    files: FileLimits = FileLimits()
    extractors: Mapping[str, Extractor] = field(default_factory=dict[str, Extractor])
    """By media type, what gets the text out of a file. Plain text, CSV and Markdown need none."""
    send_whole: Collection[str] = ()
    """Media types of files that go into a message as they are, for models that read them."""

    def check_count(self, *, images: int = 0, files: int = 0) -> None:
        """Check how many references one message has; :func:`resolve_markers` does so itself.

        Raises:
            MediaInputError: There are too many, or files although they are turned off.
        """
        most = self.images.effective().max_images
        if images > most:
            raise MediaInputError(
                f"a message has {images} images, and `max_images` is {most}",
                media="image",
                reason="count",
                limit=most,
            )
        most = self.files.effective().max_files if self.files.enabled else 0
        if files > most:
            raise MediaInputError(
                f"a message has {files} files, and `max_files` is {most}",
                media="file",
                reason="count",
                limit=most,
            )


def _between(least: int, value: int, most: int) -> int:
    return min(max(value, least), most)
