"""Which type of content something is: by what was said of it, by its name, by its first bytes."""

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Final

UNKNOWN: Final = "application/octet-stream"

_SAYS_NOTHING = frozenset({"", UNKNOWN, "binary/octet-stream", "application/x-download"})
_OTHER_NAMES: Final[Mapping[str, str]] = {
    "image/jpg": "image/jpeg",
    "image/pjpeg": "image/jpeg",
    "image/x-png": "image/png",
    "image/x-bmp": "image/bmp",
    "image/x-ms-bmp": "image/bmp",
    "application/csv": "text/csv",
    "text/x-markdown": "text/markdown",
    "application/x-pdf": "application/pdf",
    "application/x-zip-compressed": "application/zip",
    "application/x-zip": "application/zip",
}
_OFFICE = "application/vnd.openxmlformats-officedocument"
_BY_EXTENSION: Final[Mapping[str, str]] = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".webp": "image/webp",
    ".gif": "image/gif",
    ".bmp": "image/bmp",
    ".pdf": "application/pdf",
    ".txt": "text/plain",
    ".text": "text/plain",
    ".log": "text/plain",
    ".csv": "text/csv",
    ".md": "text/markdown",
    ".markdown": "text/markdown",
    ".zip": "application/zip",
    ".xlsx": f"{_OFFICE}.spreadsheetml.sheet",
    ".docx": f"{_OFFICE}.wordprocessingml.document",
    ".pptx": f"{_OFFICE}.presentationml.presentation",
}
_EXTENSION_OF = {kind: name for name, kind in reversed(list(_BY_EXTENSION.items()))}
_BY_BEGINNING: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
    (b"PK\x05\x06", "application/zip"),  # an empty one
)


def image_type(said: str, name: str, content: bytes) -> str | None:
    """Return the type of an image, or of what is none; ``None`` where nothing tells.

    What providers refuse is an image of another type than they are told, so plain first bytes count for
    more than what was said.
    """
    return _by_beginning(content) or _named_type(said) or _by_extension(name)


def file_type(said: str, name: str, content: bytes) -> str:
    """Return the type of a file: as was said, by its extension, by its bytes, or as text."""
    found = _named_type(said) or _by_extension(name) or _by_beginning(content)
    if found is not None:
        return found
    return "text/plain" if decoded(content) is not None else UNKNOWN


def extension_of(kind: str) -> str:
    """Return the usual extension of a type, with its dot; nothing where it has none here."""
    return _EXTENSION_OF.get(kind, "")


def decoded(content: bytes) -> str | None:
    """Return the text of bytes that are UTF-8, or UTF-16 with a mark; ``None`` for others."""
    encoding = "utf-16" if content.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def _named_type(said: str) -> str | None:
    kind = said.partition(";")[0].strip().lower()
    return None if kind in _SAYS_NOTHING else _OTHER_NAMES.get(kind, kind)


def _by_extension(name: str) -> str | None:
    return _BY_EXTENSION.get(PurePosixPath(name).suffix.lower())


def _by_beginning(content: bytes) -> str | None:
    for beginning, kind in _BY_BEGINNING:
        if content.startswith(beginning):
            return kind
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    # Two letters alone begin many texts: a bitmap also says its size and where its pixels are.
    if content[:2] == b"BM" and content[6:10] == bytes(4) and len(content) >= 26:
        return "image/bmp"
    return None
