"""Tools for models whose conversation is made shorter: looking back, and asking for it."""

from typing import Annotated, Final

from pydantic import Field

from ..concurrency import in_thread
from ..errors import ConfigurationError
from ..message import Message
from ..tool import Tool, ToolContext, ToolPolicy, tool
from ._archive import ContextArchive, conversation_key, search_messages
from ._request_note import ask_for_compaction

SEARCH_TAG: Final = "context.search"
"""Marks the tool that looks back."""

Query = Annotated[
    str,
    Field(min_length=1, max_length=2_000, description="What you need, in words that stood there."),
]
Focus = Annotated[
    str,
    Field(max_length=2_000, description="What you still need to know, so that it is kept."),
]


def search_dropped_tool(
    archive: ContextArchive,
    *,
    max_results: int = 5,
    max_characters: int = 8_000,
    name: str = "search_dropped",
) -> Tool:
    """Make the tool that finds what was said earlier and is no longer in the conversation.

    It finds passages by their words (BM25) among what was dropped in the same conversation, that is
    the run's thread, or without one the outermost run.

    Args:
        archive: Where the dropped messages are.
        max_results: How many passages an answer has at most.
        max_characters: How long an answer is at most.
        name: The tool's name.

    Raises:
        ConfigurationError: A number is not above 0.
    """
    if max_results < 1 or max_characters < 1:
        raise ConfigurationError(f"`max_results` and `max_characters` of `{name}` must be above 0")

    @tool(name=name, policy=ToolPolicy.read_only(), tags=[SEARCH_TAG])
    async def search(query: Query, *, ctx: ToolContext) -> str:
        """Search what was said earlier in this conversation and was since left out of it."""
        dropped = await archive.load(conversation_key(ctx.run))
        kept = [message for message in dropped if not _is_search(message, name)]
        if not kept:
            return "Nothing was left out of this conversation."
        found = await in_thread(lambda: search_messages(kept, query, limit=max_results))
        if not found:
            return f"None of the {len(kept)} messages that were left out has a word of the query."
        told = [
            f"--- {each.ref}, {each.role}, part {each.number} of {each.of} ---\n{each.text}"
            for each in found
        ]
        return "\n\n".join(told)[:max_characters]

    return search


def _is_search(message: Message, name: str) -> bool:
    """Whether a message is an earlier search or its result, which has the words of what it found."""
    if message.role == "tool":
        return message.name == name
    calls = message.tool_calls if message.role == "assistant" else []
    return bool(calls) and not message.text and all(call.name == name for call in calls)


def compact_context_tool(*, name: str = "compact_context") -> Tool:
    """Make the tool by which a model asks for its conversation to be made shorter.

    It is done before the next model call, by the run's ``ContextWindowMiddleware`` or
    ``SummarizationMiddleware``; without one of them nothing happens.

    Args:
        name: The tool's name.
    """

    @tool(name=name, policy=ToolPolicy.read_only())
    async def compact(focus: Focus = "", *, ctx: ToolContext) -> str:
        """Have the older part of this conversation summarised, when it holds much you no longer need."""
        ask_for_compaction(ctx.run, focus)
        return "The conversation will be made shorter before you go on."

    return compact
