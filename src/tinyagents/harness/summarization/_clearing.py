"""Tool results without what they said, and prompts without what was looked up for them."""

from collections.abc import Collection, Sequence
from typing import Final

from ..message import Message, TextBlock, ToolMessage, retrieval_of

CLEARED: Final = "[old tool result content cleared]"
"""What stands in the place of a result."""
_ALL_DROPPED: Final = "[passages that were looked up here are left out]"


def cleared_result(message: ToolMessage, placeholder: str = CLEARED) -> ToolMessage:
    """Return a result with a placeholder for its content; its call and its id stay."""
    return message.model_copy(update={"content": [TextBlock(text=placeholder)], "artifact": None})


def without_blocks(message: Message, places: Collection[int]) -> Message:
    """Return a message without some of its blocks, with a note where none is left."""
    content = [block for place, block in enumerate(message.content) if place not in places]
    return message.model_copy(update={"content": content or [TextBlock(text=_ALL_DROPPED)]})


def drop_retrieved(messages: Sequence[Message], *, keep_turns: int = 1) -> list[Message]:
    """Return a conversation without what was looked up for all but the latest turns of the user.

    That of system messages and of results that are ``trusted_verbatim`` stays.
    """
    first = start_of_turns(messages, keep_turns)
    shorter = list(messages)
    for place, message in enumerate(messages[:first]):
        if message.role == "system" or (message.role == "tool" and message.trusted_verbatim):
            continue
        found = {n for n, block in enumerate(message.content) if retrieval_of(block) is not None}
        if found:
            shorter[place] = without_blocks(message, found)
    return shorter


def start_of_turns(messages: Sequence[Message], turns: int) -> int:
    """Return the place where the latest turns begin: each begins with what the user says."""
    if not turns:
        return len(messages)
    starts = [
        place
        for place, message in enumerate(messages)
        if message.role == "user" and not (place and messages[place - 1].role == "user")
    ]
    return starts[-turns] if len(starts) >= turns else 0
