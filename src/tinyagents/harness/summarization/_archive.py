"""Where messages go that a conversation no longer holds, to be searched later."""

import logging
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from ..context import RunContext
from ..handoff import best_chunks, split_text
from ..message import Message
from ..options import check_above_zero
from ._records import is_summary, message_digest, message_ref
from ._render import render_message

_log = logging.getLogger("tinyagents.summarization")

_WHOLE: Final = 1_000_000
"""How much of a message is searched."""
_PASSAGE_BYTES: Final = 2_000


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a message that was found."""

    ref: str
    """The message: see :func:`message_ref`."""
    role: str
    text: str
    number: int
    """Which part of the message it is, from 1."""
    of: int


class ContextArchive(Protocol):
    """Keeps what was dropped from conversations."""

    async def add(self, key: str, messages: Sequence[Message]) -> None:
        """Keep messages of a conversation, in their order; those that it has stay single."""
        ...

    async def load(self, key: str) -> Sequence[Message]:
        """Return what is kept of a conversation, the oldest first; nothing where none is known."""
        ...


class InMemoryContextArchive:
    """Keeps messages in this process: the last of each of the last conversations.

    Args:
        max_messages: How many of a conversation; the oldest go first.
        max_conversations: How many; the one that was used longest ago goes first.

    Raises:
        ConfigurationError: One of them is not above 0.
    """

    def __init__(self, *, max_messages: int = 10_000, max_conversations: int = 64) -> None:
        check_above_zero(max_messages=max_messages, max_conversations=max_conversations)
        self._max_messages = max_messages
        self._max_conversations = max_conversations
        self._kept: OrderedDict[str, dict[str, Message]] = OrderedDict()

    async def add(self, key: str, messages: Sequence[Message]) -> None:
        """Keep messages of a conversation."""
        kept = self._kept.setdefault(key, {})
        self._kept.move_to_end(key)
        for message in messages:
            kept.setdefault(message_digest(message), message)
        while len(kept) > self._max_messages:
            del kept[next(iter(kept))]
        while len(self._kept) > self._max_conversations:
            self._kept.popitem(last=False)

    async def load(self, key: str) -> Sequence[Message]:
        """Return what is kept of a conversation."""
        if key not in self._kept:
            return ()
        self._kept.move_to_end(key)
        return tuple(self._kept[key].values())


def conversation_key(ctx: RunContext[Any]) -> str:
    """Return what archives know a run's conversation by: its thread, or else the outermost run."""
    if ctx.thread_id is not None:
        return f"thread-{ctx.thread_id}"
    return f"run-{ctx.root_run_id}"


def search_messages(messages: Iterable[Message], query: str, *, limit: int = 5) -> list[Passage]:
    """Return the passages of messages that have to do with a query, the best first, by BM25.

    Args:
        messages: What is searched.
        query: Words that stand there.
        limit: How many passages at most.
    """
    passages = [passage for message in messages for passage in _passages(message)]
    ranked = best_chunks([passage.text for passage in passages], query)
    return [passages[place] for place in ranked[:limit]]


def _passages(message: Message) -> Iterator[Passage]:
    parts = split_text(render_message(message, most=_WHOLE), _PASSAGE_BYTES)
    ref = message_ref(message)
    for number, text in enumerate(parts, 1):
        yield Passage(ref, message.role, text, number, len(parts))


async def put_away(
    ctx: RunContext[Any],
    archive: ContextArchive,
    before: Sequence[Message],
    after: Sequence[Message],
) -> None:
    """Archive the messages that were there before and are no more, but for earlier summaries.

    Where that fails the run goes on, and the custom event ``context.archive_failed`` says so.
    """
    left = {id(message) for message in after}
    dropped = [m for m in before if id(m) not in left and not is_summary(m)]
    if not dropped:
        return
    try:
        await archive.add(conversation_key(ctx), dropped)
    except Exception as error:  # noqa: BLE001 - an archive is no reason for a run to fail
        _log.warning("%d messages were not archived", len(dropped), exc_info=ctx.loggable(error))
        ctx.emit_custom(
            "context.archive_failed",
            {"messages": len(dropped), "error_kind": type(error).__name__},
        )
