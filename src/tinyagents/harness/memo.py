"""What was worked out for a message or a list of tools, kept so that it is done once."""

import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

from .message import Message
from .model import JsonSchemaFormat, ToolSchema

__all__ = ("FormatCache", "MessageCache", "ToolsetCache")

_KEPT_TOOLSETS = 8

_Key = TypeVar("_Key")
_Made = TypeVar("_Made")


class MessageCache(Generic[_Key, _Made]):
    """Keeps what was made of a message for as long as the message lives.

    Shared between threads and event loops: at worst it is made twice.

    Args:
        make: Makes it, of the message and of what else it depends on. It must not return the message
            itself, which would live as long as the cache.
    """

    __slots__ = ("_known", "_make")

    def __init__(self, make: Callable[[Message, _Key], _Made]) -> None:
        self._make = make
        self._known: dict[int, tuple[weakref.ref[Message], tuple[int, _Key], _Made]] = {}

    def of(self, message: Message, key: _Key) -> _Made:
        """Return what is made of a message."""
        place = id(message)
        # A message is frozen, but its list of blocks can be appended to.
        facts = (len(message.content), key)
        known = self._known.get(place)
        if known is not None and known[0]() is message and known[1] == facts:
            return known[2]
        made = self._make(message, key)
        forget = partial(_forget, self._known, place)
        self._known[place] = (weakref.ref(message, forget), facts, made)
        return made

    def has(self, message: Message, key: _Key) -> bool:
        """Whether it was made of a message before."""
        known = self._known.get(id(message))
        facts = (len(message.content), key)
        return known is not None and known[0]() is message and known[1] == facts


class ToolsetCache(Generic[_Made]):
    """Keeps what was made of the last few lists of tools: a run offers the same ones each time.

    Args:
        make: Makes it of a list.
    """

    __slots__ = ("_known", "_make")

    def __init__(self, make: Callable[[Sequence[ToolSchema]], _Made]) -> None:
        self._make = make
        self._known: list[tuple[tuple[ToolSchema, ...], _Made]] = []

    def of(self, tools: Sequence[ToolSchema]) -> _Made:
        """Return what is made of a list of tools; lists of the same tools are the same list."""
        for listed, made in self._known:
            if len(listed) == len(tools) and all(
                a is b for a, b in zip(listed, tools, strict=True)
            ):
                return made
        made = self._make(tools)
        # A new list, since other threads may be reading the old one.
        self._known = [(tuple(tools), made), *self._known[: _KEPT_TOOLSETS - 1]]
        return made


class FormatCache(Generic[_Made]):
    """Keeps what was made of the last few forms of an answer.

    Args:
        make: Makes it.
    """

    __slots__ = ("_known", "_make")

    def __init__(self, make: Callable[[JsonSchemaFormat], _Made]) -> None:
        self._make = make
        self._known: list[tuple[JsonSchemaFormat, _Made]] = []

    def of(self, wanted: JsonSchemaFormat) -> _Made:
        """Return what is made of a form; those with the very same schema are told apart by the rest."""
        for known, made in self._known:
            if known.schema is wanted.schema and _about(known) == _about(wanted):
                return made
        made = self._make(wanted)
        self._known = [(wanted, made), *self._known[: _KEPT_TOOLSETS - 1]]
        return made


def _about(wanted: JsonSchemaFormat) -> tuple[object, ...]:
    return wanted.name, wanted.description, wanted.strict


def _forget(cache: dict[int, Any], key: int, _gone: object) -> None:
    cache.pop(key, None)
