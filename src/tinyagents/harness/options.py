"""Checks of what a constructor is given; each refusal names the option, the value, and what to pass."""

import math
from collections.abc import Collection, Iterable
from typing import TypeVar, overload

from .errors import ConfigurationError

__all__ = (
    "check_above_zero",
    "check_at_least",
    "check_choice",
    "check_kind",
    "check_list",
    "names_of",
)

NameT = TypeVar("NameT", bound=str)


def check_at_least(least: int, /, **options: float | None) -> None:
    """Refuse options that are below a number; ``None`` is none.

    Raises:
        ConfigurationError: One is, or is no finite number.
    """
    for option, value in options.items():
        if value is not None and not (_is_number(value) and value >= least):
            raise ConfigurationError(f"`{option}` is {value!r}: it is a number of {least} or more")


def check_above_zero(**options: float | None) -> None:
    """Refuse options that are not above 0; ``None`` is none.

    Raises:
        ConfigurationError: One is not, or is no finite number.
    """
    for option, value in options.items():
        if value is not None and not (_is_number(value) and value > 0):
            raise ConfigurationError(f"`{option}` is {value!r}: it is a number above 0")


def check_choice(option: str, value: object, choices: Iterable[str]) -> None:
    """Refuse a word that is none of the choices.

    Raises:
        ConfigurationError: It is none.
    """
    known = tuple(choices)
    if value not in known:
        *first, last = map(repr, known)
        raise ConfigurationError(
            f"`{option}` is {value!r}; it may be {' or '.join([', '.join(first), last])}"
        )


def check_kind(option: str, value: object, kind: type, *, like: str) -> None:
    """Refuse a value of another class.

    Raises:
        ConfigurationError: It is of another; the message tells to pass something ``like`` that.
    """
    if not isinstance(value, kind):
        raise ConfigurationError(
            f"`{option}` is {value!r}: pass a `{kind.__name__}`, such as `{like}`"
        )


def check_list(option: str, value: object) -> None:
    """Refuse one thing where a list is meant.

    Raises:
        ConfigurationError: It is no list.
    """
    if not isinstance(value, Iterable):
        raise ConfigurationError(f"`{option}` takes a list: pass [{value!r}]")


@overload
def names_of(option: str, given: Collection[NameT]) -> frozenset[NameT]: ...
@overload
def names_of(option: str, given: Collection[NameT] | None) -> frozenset[NameT] | None: ...
def names_of(option: str, given: Collection[NameT] | None) -> frozenset[NameT] | None:
    """Return the names of an option; ``None`` where it is left out.

    Raises:
        ConfigurationError: They are one text, whose letters would be taken for names.
    """
    if isinstance(given, str):
        raise ConfigurationError(f"`{option}` holds names: pass [{given!r}]")
    return None if given is None else frozenset(given)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
