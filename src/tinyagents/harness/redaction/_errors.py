"""Exceptions and log records without what was found in them."""

import logging
from collections.abc import Callable
from typing import Any, cast

from ..text import error_text, map_texts

_HIDDEN = "[an error whose text cannot be shown]"


def redact_error(text: Callable[[str], str], error: BaseException) -> BaseException:
    """Take what is found out of an exception, in place, and out of those that it was raised from.

    That is their arguments and attributes: strings, and lists, tuples and objects of strings. One in the
    chain whose text cannot be changed is cut off, and so is a group with such a one in it. Frames of
    tracebacks still hold what the code held.

    Args:
        text: Returns a text without what is to be hidden.
        error: The exception.

    Returns:
        The exception; where its own text cannot be changed, a ``RuntimeError`` that names its class.
    """
    seen: set[int] = set()
    _clean(text, error, seen)
    if _shows(text, error):
        return RuntimeError(f"{_HIDDEN}: `{type(error).__name__}`")
    return error


def _clean(text: Callable[[str], str], error: BaseException, seen: set[int]) -> None:
    if id(error) in seen:
        return
    seen.add(id(error))
    _clean_values(text, error)
    for inner in cast("tuple[BaseException, ...]", getattr(error, "exceptions", ())):
        if isinstance(cast("object", inner), BaseException):
            _clean(text, inner, seen)
    for link in ("__cause__", "__context__"):
        linked = getattr(error, link)
        if linked is None:
            continue
        _clean(text, linked, seen)
        # A run inside this one has put its transcript there, which is its own and not looked at here.
        linked.__dict__.pop("run", None)
        if _shows(text, linked):
            suppressed = error.__suppress_context__
            setattr(error, link, None)
            error.__suppress_context__ = suppressed


def _shows(text: Callable[[str], str], error: BaseException) -> bool:
    said = error_text(error)
    if text(said) != said:
        return True
    # A group is printed with all that is in it, and with what those were raised from.
    if not isinstance(error, BaseExceptionGroup):
        return False
    group = cast("BaseExceptionGroup[BaseException]", error)
    return any(_shows(text, inner) for inner in group.exceptions)


def _clean_values(text: Callable[[str], str], error: BaseException) -> None:
    args = map_texts(error.args, text)
    if args is not error.args:
        error.args = args
    names = [name for name in getattr(error, "__dict__", ()) if name != "run"]
    if isinstance(error, OSError):
        names += ("strerror", "filename", "filename2")
    for cls in type(error).__mro__:
        slots: Any = cls.__dict__.get("__slots__", ())
        names += (slots,) if isinstance(slots, str) else slots
    for name in names:
        value = getattr(error, name, None)
        new = _cleaned(text, value)
        if new is not value:
            try:
                object.__setattr__(error, name, new)
            except (AttributeError, TypeError):
                continue  # seen by whoever asks whether the text still shows it


def _cleaned(text: Callable[[str], str], value: Any) -> Any:
    if isinstance(value, bytes):
        decoded = value.decode("utf-8", "replace")
        new = text(decoded)
        return value if new == decoded else new.encode()
    return map_texts(value, text)


class RedactingFilter(logging.Filter):
    """Takes what is found out of log records: messages, their values, and tracebacks.

    Put it on a handler, whose records come from every logger: a filter of a logger sees those of that
    logger alone.

    Args:
        text: Returns a text without what is to be hidden, such as a
            :class:`~tinyagents.harness.redaction.Redactor`.
    """

    def __init__(self, text: Callable[[str], str]) -> None:
        super().__init__()
        self._text = text
        self._formatter = logging.Formatter()

    def filter(self, record: logging.LogRecord) -> bool:
        """Clean the record, and let it pass."""
        try:
            message = record.getMessage()
        except Exception:  # noqa: BLE001 - logging itself would print the values to stderr
            message = f"[a log message that cannot be formatted: {record.pathname}:{record.lineno}]"
        record.msg, record.args = self._text(message), None
        if record.exc_info and not record.exc_text:
            record.exc_text = self._formatter.formatException(record.exc_info)
        if record.exc_text:
            record.exc_text = self._text(record.exc_text)
            record.exc_info = None
        if record.stack_info:
            record.stack_info = self._text(record.stack_info)
        for name, value in record.__dict__.items():
            if name not in _PLAIN:
                record.__dict__[name] = _cleaned(self._text, value)
        return True


_PLAIN = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime"}
