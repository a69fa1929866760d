"""Fields of an answer that come in pieces, and what is kept of those that are not understood."""

from typing import Any

from pydantic import JsonValue

from ..text import JsonObject, clean_json
from ._json import as_list, as_object


def under_name(provider: str, own: JsonObject) -> dict[str, JsonValue] | None:
    """Return ``provider_data`` that holds a provider's own fields; ``None`` for no fields."""
    return {provider: clean_json(own)} if own else None


def joined(known: Any, value: Any, *, same: bool = False) -> Any:
    """Return a field's value after another piece of it: texts and lists grow, objects are merged.

    ``same``: the field does not come in pieces, so another text takes the place of the first.
    """
    if isinstance(known, str) and isinstance(value, str):
        return value if same or known == value else known + value
    grown, more = as_list(known), as_list(value)
    if grown is not None and more is not None:
        grown += more  # in place: some lists gain an item with every token
        return grown
    before, after = as_object(known), as_object(value)
    if before is not None and after is not None:
        return {**before, **{k: joined(before.get(k), v, same=same) for k, v in after.items()}}
    return value


def says_something(value: Any) -> bool:
    """Whether a field holds anything: some servers fill what they do not use with empty values."""
    document = as_object(value)
    if document is not None:
        return any(says_something(item) and item != 0 for item in document.values())
    return value is not None and value != "" and value != []
