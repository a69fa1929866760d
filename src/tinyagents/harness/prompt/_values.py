"""Values on their way into a template."""

from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, Final, TypeAlias, TypeGuard, cast

from pydantic_core import to_jsonable_python

from ..errors import PromptError
from ..message import BlockBase
from ..text import dump_json

Values: TypeAlias = Mapping[str, object]
"""What goes into a template, by the names of its variables."""

NO_VALUES: Final[Values] = MappingProxyType({})


def check_known(values: Values, known: Collection[str], template: str) -> None:
    """Check that each value belongs to a variable.

    Raises:
        PromptError: There is no variable of a value's name.
    """
    for name in values:
        if name not in known:
            near = get_close_matches(name, known, 1)
            hint = f": is `{near[0]}` meant?" if near else f"; it has {listed(known)}"
            raise PromptError(
                f"the template `{template}` has no variable `{name}`{hint}",
                template=template,
                variable=name,
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


def value_text(value: object, name: str, template: str) -> str:
    """Return a string as it is, and any other value as compact JSON.

    Raises:
        PromptError: The value has no JSON form.
    """
    if isinstance(value, str):
        return str(value)
    try:
        return dump_json(to_jsonable_python(value))
    except (TypeError, ValueError, RecursionError) as exc:
        # Not chained: what pydantic says of a value may show it.
        why = f"has no form as text ({type(exc).__name__}): it is a `{type(value).__name__}`"
        raise unfit(name, template, f"{why}; pass a string or a JSON value") from None


def is_blocks(value: object) -> TypeGuard[Sequence[BlockBase]]:
    """Whether a value is a list of blocks, such as images, with at least one."""
    if not isinstance(value, list | tuple):
        return False
    items = cast("Sequence[Any]", value)
    return bool(items) and all(isinstance(item, BlockBase) for item in items)


def listed(names: Collection[str]) -> str:
    """Return names for a message."""
    return ", ".join(f"`{name}`" for name in names) or "none"
