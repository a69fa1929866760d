"""JSON on its way in and out.

Looking into what was decoded, whose shape is not known, gives a value of the wanted kind or ``None``.
"""

from collections.abc import Collection, Mapping
from typing import Any, Final

import orjson

from ..text import encode_json

# Nothing is known of what they hold, which type checkers would complain of if they saw the classes.
_OBJECT: Final[Any] = dict
_LIST: Final[Any] = list


def as_object(value: Any) -> dict[str, Any] | None:
    """Return the value if it is an object."""
    return value if isinstance(value, _OBJECT) else None


def as_list(value: Any) -> list[Any] | None:
    """Return the value if it is an array."""
    return value if isinstance(value, _LIST) else None


def as_text(value: Any) -> str | None:
    """Return the value if it is a string that says anything."""
    return value if isinstance(value, str) and value else None


def as_integer(value: Any) -> int | None:
    """Return the value if it is a whole number."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def body_bytes(body: Mapping[str, Any], *, ready: Collection[str] = ("messages",)) -> bytes:
    """Encode the body of a call.

    Args:
        body: Its fields.
        ready: Those that are encoded already, or safe.
    """
    try:
        return orjson.dumps(body)
    except TypeError:
        # Integers beyond 64 bits, lone surrogates: only in what the caller passed as it is.
        return orjson.dumps(
            {
                name: value
                if name in ready or isinstance(value, orjson.Fragment)
                else orjson.Fragment(encode_json(value))
                for name, value in body.items()
            }
        )
