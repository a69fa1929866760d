"""Values on their way into a template."""

from collections.abc import Collection, Iterator, Mapping, Sequence, Set as AbstractSet
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, Final, TypeAlias, TypeGuard, cast

from pydantic_core import to_jsonable_python

from ..errors import PromptError
from ..message import BlockBase, MessageBase
from ..text import dump_json, encode_json

Values: TypeAlias = Mapping[str, object]
"""What goes into a template, by the names of its variables."""

Filling: TypeAlias = str | Sequence[BlockBase]
"""What a value is in a message: text, or blocks."""

NO_VALUES: Final[Values] = MappingProxyType({})


def check_known(values: Values, known: Collection[str], template: str) -> None:
    """Check that values are a mapping, and that each belongs to a variable.

    Raises:
        PromptError: They are none, or there is no variable of a value's name.
    """
    if not isinstance(cast("Any", values), Mapping):
        raise PromptError(
            f"the template `{template}`: values are a mapping from the names of variables, not a "
            f"`{type(values).__name__}`",
            template=template,
            reason="value",
        )
    for name in values:
        if name not in known:
            near = get_close_matches(str(name), known, 1)
            hint = f": is `{near[0]}` meant?" if near else f"; it has {listed(known)}"
            raise PromptError(
                f"the template `{template}` has no variable `{name}`{hint}",
                template=template,
                variable=str(name),
                reason="unknown",
            )


def missing(name: str, template: str) -> PromptError:
    """Return the error for a variable without a value."""
    return PromptError(
        f"the template `{template}`: the variable `{name}` has neither a value nor a default",
        template=template,
        variable=name,
        reason="missing",
    )


def unfit(name: str, template: str, why: str) -> PromptError:
    """Return the error for a value that has no form in its place."""
    return PromptError(
        f"the template `{template}`: the value of `{name}` {why}",
        template=template,
        variable=name,
        reason="value",
    )


def filling(value: object, name: str, template: str) -> Filling:
    """Return what a value is in a message. It no longer depends on the value.

    A string is text as it is, and so is what JSON writes as a string, such as a date. Of a block or
    a list of blocks, the blocks. Any other value is compact JSON; sets are sorted, since their
    order is another in each process.

    Raises:
        PromptError: The value has no JSON form, or holds blocks or messages among other things.
    """
    if isinstance(value, str):
        # Not `str(value)`: that of a member of an enumeration is the member's name.
        return str.__str__(value)
    if isinstance(value, BlockBase):
        return (value,)
    if _is_blocks(value):
        return tuple(value)
    try:
        plain: object = to_jsonable_python(_steady(value))
        return plain if isinstance(plain, str) else dump_json(plain)
    except _NoText as exc:
        raise unfit(name, template, str(exc)) from None
    except (TypeError, ValueError, RecursionError) as exc:
        # Not chained: what pydantic says of a value may show it.
        why = f"has no form as text ({type(exc).__name__}): it is a `{type(value).__name__}`"
        raise unfit(name, template, f"{why}; pass a string or a JSON value") from None


def is_messages(value: object) -> TypeGuard[Sequence[MessageBase]]:
    """Whether a value is a list of messages; an empty one is."""
    if not isinstance(value, list | tuple):
        return False
    return all(isinstance(item, MessageBase) for item in cast("Sequence[Any]", value))


def listed(names: Collection[str]) -> str:
    """Return names for a message."""
    return ", ".join(f"`{name}`" for name in names) or "none"


class _NoText(Exception):
    """A value holds what is no text; says what, and what helps."""


def _is_blocks(value: object) -> TypeGuard[Sequence[BlockBase]]:
    if not isinstance(value, list | tuple):
        return False
    items = cast("Sequence[Any]", value)
    return bool(items) and all(isinstance(item, BlockBase) for item in items)


def _steady(value: object) -> object:
    """Return a value in a form that is the same each time that it is asked for."""
    match value:
        case BlockBase():
            # As JSON it would be the bytes of an image in the middle of a text.
            raise _NoText("holds a block among other things: pass the block, or a list of blocks")
        case MessageBase():
            raise _NoText("holds a message: use a `MessagesPlaceholder`")
        case Iterator():
            raise _NoText("can be read only once: pass a list")
        case Mapping():
            items = cast("Mapping[object, object]", value).items()
            return {key: _steady(item) for key, item in items}
        case list() | tuple():
            return [_steady(item) for item in cast("Sequence[object]", value)]
        case AbstractSet():
            plain: list[object] = [
                to_jsonable_python(_steady(item)) for item in cast("AbstractSet[object]", value)
            ]
            return sorted(plain, key=lambda item: encode_json(item, sort_keys=True))
        case _:
            return value
