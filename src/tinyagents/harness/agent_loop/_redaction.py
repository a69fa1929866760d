"""What middlewares take out of everything that leaves a run. Loaded only where one does."""

from collections.abc import Callable, Sequence
from typing import Any

from ..message import AssistantMessage, Message
from ..middleware import Redaction
from ..redaction import redact_error


class RunRedaction:
    """The redactions of a run, one after the other."""

    def __init__(self, items: Sequence[Redaction]) -> None:
        self._items = items
        # A message is looked at once, and its object is kept, so that no other gets its id.
        self._clean: dict[int, Message] = {}

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
        if id(message) in self._clean:
            return message
        for item in self._items:
            message = item.message(message)
        self._clean[id(message)] = message
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
