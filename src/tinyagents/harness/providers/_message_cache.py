"""What was encoded of a message, for as long as the message lives."""

import weakref
from collections.abc import Callable
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from ..message import Message

_Wire = TypeVar("_Wire")


class _Entry(NamedTuple):
    message: weakref.ref[Message]
    blocks: int
    beside: str | None
    wire: Any


class MessageCache(Generic[_Wire]):
    """Keeps what each message looks like on the wire. Shared between threads and event loops."""

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: dict[int, _Entry] = {}

    def get(
        self,
        message: Message,
        beside: str | None,
        encode: Callable[[Message, str | None], _Wire],
    ) -> _Wire:
        """Return what ``encode`` made of a message, and call it only for what is new.

        Args:
            message: The message; frozen, but its list of blocks can be appended to.
            beside: What else its form depends on.
            encode: Called with both.
        """
        key = id(message)
        known = self._entries.get(key)
        if (
            known is not None
            and known.message() is message
            and known.blocks == len(message.content)
            and known.beside == beside
        ):
            wire: _Wire = known.wire
            return wire
        wire = encode(message, beside)
        forget = partial(_forget, self._entries, key)
        self._entries[key] = _Entry(
            weakref.ref(message, forget), len(message.content), beside, wire
        )
        return wire


def _forget(entries: dict[int, _Entry], key: int, _gone: object) -> None:
    entries.pop(key, None)
