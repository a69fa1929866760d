"""What middlewares take out of everything that leaves a run. Loaded only where one does."""

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from ..message import AssistantMessage, Message
from ..middleware import Redaction
from ..redaction import redact_error


class RunRedaction:
    """The redactions of a run, one after the other."""

    def __init__(self, items: Sequence[Redaction]) -> None:
        self._items = items
        self._clean: dict[int, tuple[weakref.ref[Message], int]] = {}
        """The messages that were looked at, each as long as it lives, and how many blocks they had."""

    def text(self, text: str) -> str:
        """Return a text without what is to be hidden."""
        for item in self._items:
            text = item.text(text)
        return text

    def messages(self, messages: Sequence[Message]) -> list[Message]:
        """Return messages without what is to be hidden."""
        return [self.message(message) for message in messages]

    def message(self, message: Any) -> Any:
        """Return a message without what is to be hidden, of the same kind."""
        known, count = self._clean.get(id(message)), len(message.content)
        if known is not None and known[0]() is message and known[1] == count:
            return message
        for item in self._items:
            message = item.message(message)
        place = id(message)
        here = weakref.ref(message, lambda _: self._clean.pop(place, None))
        self._clean[place] = here, len(message.content)
        return message

    def partial(self, message: AssistantMessage) -> AssistantMessage:
        """Return an answer that was broken off without what is to be hidden, or was begun."""
        for item in self._items:
            message = item.partial(message)
        return message

    def check(self) -> None:
        """Stop the run where something was found that it must not go on with."""
        for item in self._items:
            item.check()

    def error(self, error: BaseException) -> BaseException:
        """Take what is to be hidden out of an exception, in place: see :func:`redact_error`."""
        return redact_error(self.text, error)


def hidden_by(outer: Callable[[str], str] | None, own: RunRedaction) -> Callable[[str], str]:
    """Return what hides the texts of a run's events: its own redaction, then that around it."""
    if outer is None:
        return own.text
    return lambda text: outer(own.text(text))
