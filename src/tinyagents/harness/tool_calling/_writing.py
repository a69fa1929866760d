"""What the dialects write alike: results for a model to read, and what it is told about choosing."""

from collections.abc import Iterable, Sequence
from html import escape

from ..message import Block, ToolMessage
from ..model import NamedTool, ToolChoice
from ..text import dump_json
from ._markers import neutralized

RESULTS_MARK = "[Tool results]"
"""The first line of a message that holds results, and nothing that a user has said."""


def result_elements(results: Sequence[ToolMessage]) -> str:
    """Return results as elements ``<tool_result name="…">``, in which nothing can pass for a mark."""
    return "\n".join([RESULTS_MARK, *map(_element, results)])


def choice_sentences(choice: ToolChoice, *, parallel: bool) -> list[str]:
    """Return in words whether a tool may or must be called, and how many at once."""
    sentences: list[str] = []
    match choice:
        case NamedTool(name):
            sentences.append(f"In this reply you must call the tool `{name}`.")
        case "required":
            sentences.append("In this reply you must call at least one tool.")
        case _:
            sentences.append("If no tool is needed, answer in plain text without any tag.")
    if parallel:
        sentences.append("You can make several calls in one reply, one after the other.")
    else:
        sentences.append("Make at most one call in one reply.")
    return sentences


def content_text(blocks: Iterable[Block]) -> str:
    """Return what of some blocks can be said in text."""
    parts: list[str] = []
    for block in blocks:
        match block.type:
            case "text" | "refusal":
                parts.append(block.text)
            case "json":
                parts.append(dump_json(block.value))
            case _:
                pass
    return "".join(parts)


def _element(result: ToolMessage) -> str:
    name = escape(result.name or "", quote=True).replace("\n", "&#10;")
    status = ' status="error"' if result.is_error else ""
    # A tag may be cut at the end of the content: it must not go on in what follows.
    content = neutralized(content_text(result.content))
    return f'<tool_result name="{name}"{status}>\n{content}\n</tool_result>'
