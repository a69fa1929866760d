"""Loading one image or one file."""

import os
from functools import partial

from ..concurrency import in_thread
from ..message import ImageBlock, MediaBlock
from ._files import LoadedFile, loaded_file
from ._policy import InputPolicy
from ._source import Media, Request, read_source
from ._types import extension_of, file_type, image_type

_NOTHING_ALLOWED = InputPolicy()


async def load_image(
    reference: str | os.PathLike[str], *, policy: InputPolicy = _NOTHING_ALLOWED
) -> ImageBlock:
    """Load an image into a block that holds its bytes.

    Its type is that of its first bytes where they tell; otherwise what was said of it, or its
    extension. Cancelled, it goes on at once, and a read that has begun ends in its thread.

    Args:
        reference: A path, a ``data:`` URI in base64, or an address of ``http`` or ``https``.
        policy: Where it may come from, and how large it may be.

    Raises:
        MediaInputError: It may not or could not be loaded; ``reason`` says why, and the cause is
            chained.
    """
    request = _request(reference, "image", policy.images.effective().max_bytes)
    source = await read_source(request, policy)
    kind = image_type(source.said, source.name, source.content) if source.content else None
    if kind is None:
        raise request.failed("type", "is no image of a known type")
    if kind not in policy.images.types:
        raise request.failed("type", f"has the type {kind[:100]!r}, which is not allowed")
    return await in_thread(partial(ImageBlock.from_bytes, source.content, kind))


async def load_file(
    reference: str | os.PathLike[str], *, policy: InputPolicy = _NOTHING_ALLOWED
) -> LoadedFile:
    """Load a file and, where there is a way, its text.

    Its type is what was said of it, or else that of its extension, its first bytes, or plain text.

    Args:
        reference: A path, a ``data:`` URI in base64 (in which ``name=`` names it), or an address of
            ``http`` or ``https``.
        policy: Where it may come from, how large it may be, and what gets its text out.

    Raises:
        MediaInputError: It may not or could not be loaded; ``reason`` says why, and the cause is
            chained. A text that cannot be had is no error.
    """
    request = _request(reference, "file", policy.files.effective().max_bytes)
    source = await read_source(request, policy)
    kind = file_type(source.said, source.name, source.content)
    if kind not in policy.files.types:
        raise request.failed("type", f"has the type {kind[:100]!r}, which is not allowed")
    name = source.name or f"file{extension_of(kind)}"
    return await loaded_file(source.content, kind, name, policy)


def data_uri(block: MediaBlock) -> str | None:
    """Return a block's bytes as a ``data:`` URI in base64; ``None`` where it holds none."""
    if block.data is not None:
        return f"data:{block.media_type};base64,{block.data}"
    is_data = block.url is not None and block.url[:5].lower() == "data:"
    return block.url if is_data else None


def _request(reference: str | os.PathLike[str], media: Media, max_bytes: int) -> Request:
    return Request(reference=os.fspath(reference), media=media, max_bytes=max_bytes)
