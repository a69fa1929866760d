"""Assertions on prompts, as a provider's prompt cache sees them."""

from ..model import ModelRequest
from ..prompt import LayoutChange, PromptCacheLayout
from ..text import dump_json

_SHOWN = 80


def assert_prompt_prefix_preserved(before: ModelRequest, after: ModelRequest) -> None:
    """Assert that what a prompt cache holds of one request serves another one.

    With segments that is the cacheable ones, by id and content, the tools, and the history, which
    may go on; without, all messages and the tools. What stands from the first volatile segment on
    may change, and so may what follows the last segment.

    Raises:
        AssertionError: Something in the common part is another; the message says which segment,
            which message, and what it was and is.
    """
    laid_out = bool(before.segments and after.segments)
    first, second = (_without_tail(each) if laid_out else each for each in (before, after))
    change = PromptCacheLayout.of(first).compare(PromptCacheLayout.of(second))
    if not change.is_preserved:
        raise AssertionError(f"the prompt's prefix changed: {_told(change, first, second)}")


def _without_tail(request: ModelRequest) -> ModelRequest:
    segments = list(request.segments)
    end = sum(segment.messages for segment in segments)
    return ModelRequest(request.messages[:end], request.tools, segments=segments)


def _told(change: LayoutChange, before: ModelRequest, after: ModelRequest) -> str:
    match change.reason:
        case "segments":
            return f"the cacheable segments were {list(change.before)} and are {list(change.after)}"
        case "tools":
            return f"the tools: {_about_tools(before, after)}"
        case _:
            segment = "" if change.segment is None else f"in the segment `{change.segment}`, "
            place = change.message or 0
            was, now = (_shown(each, place) for each in (before, after))
            return f"{segment}message {place} was {was} and is {now}"


def _about_tools(before: ModelRequest, after: ModelRequest) -> str:
    names, names_after = ([tool.name for tool in each.tools] for each in (before, after))
    if names != names_after:
        return f"they were {names} and are {names_after}"
    changed = [
        tool.name for tool, other in zip(before.tools, after.tools, strict=True) if tool != other
    ]
    return f"{changed} have another description or schema"


def _shown(request: ModelRequest, place: int) -> str:
    if place >= len(request.messages):
        return "not there"
    message = request.messages[place]
    text = message.text or dump_json([block.model_dump(mode="json") for block in message.content])
    return f"{message.role} {text[:_SHOWN]!r}{'…' if len(text) > _SHOWN else ''}"
