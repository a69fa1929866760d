"""From what a user names (a path, an address, a ``data:`` URI) to the blocks of a message.

Nothing is open by default: local files need a root that they are inside of, and addresses a
:class:`~tinyagents.harness.guarded_fetch.GuardedFetch` with its policy. Sizes are checked before and
while bytes are read. These are helpers for whoever builds messages; the loop calls none of them.
"""

from ._files import LoadedFile
from ._load import data_uri, load_file, load_image
from ._markers import (
    MarkedText,
    Marker,
    image_placeholder,
    parse_markers,
    restore_images,
    stashed_images,
)
from ._policy import Extractor, FileLimits, ImageLimits, InputPolicy
from ._resolve import resolve_markers

__all__ = (
    "Extractor",
    "FileLimits",
    "ImageLimits",
    "InputPolicy",
    "LoadedFile",
    "MarkedText",
    "Marker",
    "data_uri",
    "image_placeholder",
    "load_file",
    "load_image",
    "parse_markers",
    "resolve_markers",
    "restore_images",
    "stashed_images",
)
