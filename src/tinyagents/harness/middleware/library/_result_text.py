"""The text of a tool's result, changed for the model."""

from ...artifacts import READ_TAG
from ...handoff import EXTRACT_TAG
from ...message import TextBlock
from ...text import defused
from ...tool import ToolResult
from .._base import ToolCall

_READING = frozenset((READ_TAG, EXTRACT_TAG))


def stays(call: ToolCall, result: ToolResult) -> bool:
    """Whether a result is not to be put elsewhere: it is trusted, or read from such a place."""
    reads = call.tool is not None and not _READING.isdisjoint(call.tool.tags)
    return result.trusted_verbatim or reads


def replace_text(result: ToolResult, text: str) -> None:
    """Put one text in the place of all text of a result; images, audio and files stay."""
    others = [block for block in result.content if block.type not in ("text", "json")]
    result.content = [TextBlock(text=text), *others]


def text_without(marker: str, result: ToolResult) -> str:
    """Return the text of a result, changed where it has one of our own markers in it.

    What a tool returns cannot be taken for ours then.
    """
    text = result.joined_text()
    if marker in text:
        text = defused(text, marker)
        replace_text(result, text)
    return text
