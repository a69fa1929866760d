"""What messages and tools look like on the wire, kept so that each is encoded once."""

import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

from ..message import Message
from ..model import JsonSchemaFormat, ToolSchema

_KEPT_TOOLSETS = 8

_Key = TypeVar("_Key")
_Wire = TypeVar("_Wire")


class MessageCache(Generic[_Key, _Wire]):
    """Keeps the encoded form of a message for as long as the message lives.

    Shared between threads and event loops: at worst a message is encoded twice.

    Args:
        encode: Makes the form of a message, from it and from what else the form depends on.
    """

    __slots__ = ("_encode", "_known")

    def __init__(self, encode: Callable[[Message, _Key], _Wire]) -> None:
        self._encode = encode
        self._known: dict[int, tuple[weakref.ref[Message], tuple[int, _Key], _Wire]] = {}

    def of(self, message: Message, key: _Key) -> _Wire:
        """Return the form of a message."""
        place = id(message)
        # A message is frozen, but its list of blocks can be appended to.
        facts = (len(message.content), key)
        known = self._known.get(place)
        if known is not None and known[0]() is message and known[1] == facts:
            return known[2]
        wire = self._encode(message, key)
        forget = partial(_forget, self._known, place)
        self._known[place] = (weakref.ref(message, forget), facts, wire)
        return wire


class ToolsetCache(Generic[_Wire]):
    """Keeps the encoded form of the last few lists of tools: a run offers the same ones each time.

    Args:
        encode: Makes the form of a list.
    """

    __slots__ = ("_encode", "_known")

    def __init__(self, encode: Callable[[Sequence[ToolSchema]], _Wire]) -> None:
        self._encode = encode
        self._known: list[tuple[tuple[ToolSchema, ...], _Wire]] = []

    def of(self, tools: Sequence[ToolSchema]) -> _Wire:
        """Return the form of a list of tools; lists of the same tools are the same list."""
        for listed, wire in self._known:
            if len(listed) == len(tools) and all(
                a is b for a, b in zip(listed, tools, strict=True)
            ):
                return wire
        made = self._encode(tools)
        # A new list, since other threads may be reading the old one.
        self._known = [(tuple(tools), made), *self._known[: _KEPT_TOOLSETS - 1]]
        return made


class FormatCache(Generic[_Wire]):
    """Keeps the encoded form of the last few forms of an answer.

    Args:
        encode: Makes the form.
    """

    __slots__ = ("_encode", "_known")

    def __init__(self, encode: Callable[[JsonSchemaFormat], _Wire]) -> None:
        self._encode = encode
        self._known: list[tuple[JsonSchemaFormat, _Wire]] = []

    def of(self, wanted: JsonSchemaFormat) -> _Wire:
        """Return what is sent of a form; those with the very same schema are told apart by the rest."""
        for known, wire in self._known:
            if known.schema is wanted.schema and _about(known) == _about(wanted):
                return wire
        made = self._encode(wanted)
        self._known = [(wanted, made), *self._known[: _KEPT_TOOLSETS - 1]]
        return made


def _about(wanted: JsonSchemaFormat) -> tuple[object, ...]:
    return wanted.name, wanted.description, wanted.strict


def _forget(cache: dict[int, Any], key: int, _gone: object) -> None:
    cache.pop(key, None)
