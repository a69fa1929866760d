"""What was given as an output, taken apart: the types to choose from and the way to ask."""

from collections.abc import Sequence
from functools import partial
from typing import Any, TypeGuard

from ..errors import InvalidRequestError
from ._member import OutputMember, member_of, union_members
from ._wrappers import Output, StructuredStrategy, ToolOutput


def given_members(given: Output[Any]) -> tuple[OutputMember, ...]:
    """Compile the types that an output may have: those of a list, of a union of objects, or the one.

    Raises:
        InvalidRequestError: There is none, one cannot be described, or two share a name.
    """
    output = given.output
    if _is_list(output):
        members = tuple(_listed(each) for each in output)
    elif is_wrapper(output):
        raise InvalidRequestError(f"{given!r}: one wrapper stands in another; use one of them")
    else:
        whole = partial(member_of, output, name=given.name, description=given.description)
        members = union_members(output) or (whole(),)
    if not members:
        raise InvalidRequestError("the list of output types is empty")
    if given.name is not None and given.strategy == "tool" and len(members) > 1:
        raise InvalidRequestError(
            f"`{given.name}` cannot name {len(members)} tools: put each type into a `ToolOutput` with "
            "a name of its own, in a list"
        )
    names = [member.name for member in members]
    if twice := [name for name in names if names.count(name) > 1]:
        raise InvalidRequestError(
            f"two of the output types are named `{twice[0]}`: give one a name with "
            "`ToolOutput(..., name=...)`"
        )
    return members


def _listed(each: Any) -> OutputMember:
    if not is_wrapper(each):
        return member_of(each)
    if each.validators or each.strategy not in (None, "tool"):
        raise InvalidRequestError(
            f"{each!r} stands in a list, where a wrapper can only name and describe its type: put "
            "validators and the strategy into a wrapper around the list"
        )
    return member_of(each.output, name=each.name, description=each.description)


def given_strategy(given: Output[Any]) -> StructuredStrategy | None:
    """Return how every model is asked; ``None`` where its profile decides."""
    output = given.output
    if given.strategy is None and _is_list(output):
        return "tool" if any(isinstance(each, ToolOutput) for each in output) else None
    return given.strategy


def as_wrapper(output: Any) -> Output[Any]:
    """Return the output in a wrapper."""
    return output if is_wrapper(output) else Output[Any](output)


def is_wrapper(output: Any) -> TypeGuard[Output[Any]]:
    """Whether an output stands in a wrapper already."""
    return isinstance(output, Output)


def _is_list(output: Any) -> TypeGuard[Sequence[Any]]:
    return isinstance(output, list | tuple)
