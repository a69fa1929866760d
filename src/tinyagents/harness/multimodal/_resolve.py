"""From a text with markers to a message with what they name."""

from functools import partial

from ..concurrency import run_together
from ..message import BlockBase, TextBlock, UserMessage
from ._load import load_file, load_image
from ._markers import Marker, parse_markers
from ._policy import InputPolicy

_AT_ONCE = 4


async def resolve_markers(text: str, *, policy: InputPolicy) -> UserMessage:
    """Return the text without its markers as a message, followed by what each marker names.

    Images become image blocks. Files become text blocks, of their text or of a line that describes
    them; those of ``policy.send_whole`` become file blocks. Several are loaded at once; what a file
    says is never looked through for markers.

    Raises:
        MediaInputError: There are too many references, or one may not or could not be loaded: then
            there is no message at all.
    """
    marked = parse_markers(text)
    policy.check_count(images=len(marked.images), files=len(marked.files))
    calls = [partial(_block_of, marker, policy) for marker in marked.markers]
    blocks = await run_together(calls, limit=_AT_ONCE)
    said = [TextBlock(text=marked.text)] if marked.text else []
    return UserMessage(content=[*said, *blocks])


async def _block_of(marker: Marker, policy: InputPolicy) -> BlockBase:
    if marker.media == "image":
        return await load_image(marker.reference, policy=policy)
    file = await load_file(marker.reference, policy=policy)
    return file.as_block() if file.media_type in policy.send_whole else file.as_text()
