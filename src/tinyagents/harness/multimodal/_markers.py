"""Markers in a text that name images and files: ``[IMAGE:ref]`` and ``[FILE:ref]``."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from ..errors import MediaInputError

_MEDIA: Final[Mapping[str, Literal["image", "file"]]] = {"[IMAGE:": "image", "[FILE:": "file"}
_OPENING = re.compile(r"\[(?:IMAGE|FILE):")
_PLACEHOLDER = re.compile(r"\[Image: image #att:([^\]\s]{1,256})\]")
_ID = re.compile(r"[^\]\s]{1,256}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """What one marker names."""

    media: Literal["image", "file"]
    reference: str
    """A path, an address or a data URI, without space around it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedText:
    """A text without its markers, and the markers in their order."""

    text: str
    markers: tuple[Marker, ...]

    @property
    def images(self) -> tuple[str, ...]:
        """The references of the images."""
        return tuple(m.reference for m in self.markers if m.media == "image")

    @property
    def files(self) -> tuple[str, ...]:
        """The references of the files."""
        return tuple(m.reference for m in self.markers if m.media == "file")


def parse_markers(text: str) -> MarkedText:
    """Take the markers out of a text, and the space around what is left.

    A reference ends at the first ``]``, which an address writes as ``%5D``. A marker without a
    reference, or without an end, stays in the text.
    """
    kept: list[str] = []
    markers: list[Marker] = []
    at = 0
    while (opening := _OPENING.search(text, at)) is not None:
        end = text.find("]", opening.end())
        if end < 0:
            break
        reference = text[opening.end() : end].strip()
        if reference:
            kept.append(text[at : opening.start()])
            markers.append(Marker(media=_MEDIA[opening[0]], reference=reference))
        else:
            kept.append(text[at : end + 1])
        at = end + 1
    kept.append(text[at:])
    return MarkedText(text="".join(kept).strip(), markers=tuple(markers))


def image_placeholder(attachment: str) -> str:
    """Return what stands in a stored text for an image that lies elsewhere, under this id.

    Raises:
        ValueError: The id is empty, longer than 256 characters, or holds space or ``]``.
    """
    if not _ID.fullmatch(attachment):
        raise ValueError(f"{attachment[:300]!r} cannot be the id of a placeholder")
    return f"[Image: image #att:{attachment}]"


def stashed_images(text: str) -> tuple[str, ...]:
    """Return the ids of the placeholders in a text, in their order."""
    return tuple(_PLACEHOLDER.findall(text))


def restore_images(text: str, paths: Mapping[str, str]) -> str:
    """Return the text with a marker in the place of each placeholder whose id has a path.

    Raises:
        MediaInputError: A path holds ``]``, so that no marker can name it.
    """

    def marker(placeholder: re.Match[str]) -> str:
        path = paths.get(placeholder[1])
        if path is None:
            return placeholder[0]
        if "]" in path:
            raise MediaInputError(
                f"the path of the image {placeholder[1]!r} holds `]`, which ends a marker",
                media="image",
                reason="bad_reference",
                reference=placeholder[1],
            )
        return f"[IMAGE:{path}]"

    return _PLACEHOLDER.sub(marker, text)
