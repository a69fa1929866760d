"""Looking into decoded JSON whose shape is not known: a value of the wanted kind, or ``None``."""

from typing import Any

from typing_extensions import TypeIs


def as_object(value: Any) -> dict[str, Any] | None:
    """Return the value if it is an object."""
    return value if _is_object(value) else None


def as_list(value: Any) -> list[Any] | None:
    """Return the value if it is an array."""
    return value if _is_list(value) else None


def as_text(value: Any) -> str | None:
    """Return the value if it is a string that says anything."""
    return value if isinstance(value, str) and value else None


def as_integer(value: Any) -> int | None:
    """Return the value if it is a whole number."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _is_object(value: object) -> TypeIs[dict[str, Any]]:
    return isinstance(value, dict)


def _is_list(value: object) -> TypeIs[list[Any]]:
    return isinstance(value, list)
