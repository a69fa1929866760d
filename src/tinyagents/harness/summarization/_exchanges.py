"""The pieces that a conversation can be cut into without breaking it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ..message import AssistantMessage, Message, ToolMessage


@dataclass(frozen=True, slots=True)
class Exchange:
    """Messages that stay or go together: one message, or an answer with calls and their results."""

    start: int
    """The place of its first message."""
    messages: tuple[Message, ...]

    @property
    def end(self) -> int:
        """The place after its last message."""
        return self.start + len(self.messages)

    @property
    def trusted(self) -> bool:
        """Whether it holds a result that compaction leaves alone."""
        return any(m.role == "tool" and m.trusted_verbatim for m in self.messages)


def exchanges(messages: Sequence[Message]) -> list[Exchange]:
    """Return the messages as exchanges, in order; joined they are the messages again.

    An answer is together with the results of its calls, a result that belongs to no call with
    what is before it, and an answer that ends in reasoning, or in the middle of what a provider's
    own tool does, with the answer that goes on from there.
    """
    groups: list[list[int]] = []
    for place, message in enumerate(messages):
        if groups and _belongs(message, messages[groups[-1][-1]]):
            groups[-1].append(place)
        else:
            groups.append([place])
    return [Exchange(group[0], tuple(messages[p] for p in group)) for group in groups]


def _belongs(message: Message, before: Message) -> bool:
    """Whether a message cannot stand without the one before it."""
    if message.role == "tool":
        return before.role in ("assistant", "tool")
    # Reasoning that was told apart from what it led to is refused by providers when it is alone, and
    # so is what a provider's own tool was asked, without what came of it.
    return message.role == "assistant" and _leads_on(before)


def _leads_on(message: Message) -> bool:
    return (
        isinstance(message, AssistantMessage)
        and bool(message.content)
        and message.content[-1].type in ("reasoning", "provider_extension")
    )


def is_well_paired(messages: Sequence[Message]) -> bool:
    """Whether every result follows a call of its id, and every call has exactly one result.

    Calls of tools that the provider ran itself have their result in the same message.
    """
    waiting: Counter[str] = Counter()
    for message in messages:
        if isinstance(message, ToolMessage):
            if not waiting[message.tool_call_id]:
                return False
            waiting[message.tool_call_id] -= 1
            continue
        if any(waiting.values()):
            return False
        if isinstance(message, AssistantMessage):
            waiting = Counter(call.id for call in message.open_calls)
    return not any(waiting.values())
