"""What does not fit a schema, in sentences that a model can act on: each begins with the path."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from ..text import dump_json

_MOST_PROBLEMS = 20
"""A model that got more than that wrong is not helped by a longer list."""


def explain_errors(
    error: ValidationError, value: Any, root: str, *, member: str = "parameter"
) -> list[str]:
    """Return a sentence for each problem that pydantic found.

    Args:
        error: What pydantic raised.
        value: The JSON value that was checked.
        root: What paths begin with.
        member: What a property of the value is called.
    """
    details = error.errors(include_url=False, include_context=False)
    return [_problem(detail, value, root, member) for detail in details[:_MOST_PROBLEMS]]


def explain_found(found: Iterable[Any], root: str, member: str) -> list[str]:
    """Return the sentences about what jsonschema found, each once."""
    told = dict.fromkeys(said for error in found for said in _said(error, root, member))
    return list(told)[:_MOST_PROBLEMS]


def unexpected_problem(error: Exception, root: str) -> str:
    """Return what to say of an error that a check is not meant to raise, such as a validator's."""
    return f"{root}: could not be checked: {type(error).__name__}: {error}"


def kind_of(value: object) -> str:
    """Return the name that JSON Schema has for the kind of a value."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case Mapping():
            return "object"
        case list():
            return "array"
        case _:
            return type(value).__name__


def _problem(detail: ErrorDetails, value: Any, root: str, member: str) -> str:
    path = _path(detail, value, root)
    match detail["type"]:
        case "missing" | "missing_argument":
            return f"{path} is missing"
        case "extra_forbidden":
            return f"{path} is not a {member}"
        case _:
            said = detail["msg"]
            return f"{path}: {said[:1].lower()}{said[1:]}, got {kind_of(detail['input'])}"


def _path(detail: ErrorDetails, value: Any, root: str) -> str:
    """Return the path, without the labels of union members that pydantic puts in."""
    path, here = root, value
    for step in detail["loc"]:
        try:
            here = here[step]
        except (LookupError, TypeError):
            if detail["type"] != "missing" or step != detail["loc"][-1]:
                continue
        path += _step(step)
    return path


def _step(step: str | int) -> str:
    return f"[{step}]" if isinstance(step, int) else f".{step}"


def _said(error: Any, root: str, member: str) -> Iterator[str]:
    """Yield the sentences about one problem that jsonschema found."""
    path = root + "".join(map(_step, error.absolute_path))
    wanted: Any = error.validator_value
    got: Any = error.instance
    match error.validator:
        case "type":
            kinds = wanted if isinstance(wanted, str) else " or ".join(wanted)
            yield f"{path}: {kinds} is needed, got {kind_of(got)}"
        case "enum":
            yield f"{path}: must be one of {dump_json(wanted)}, got {kind_of(got)}"
        case "required":
            yield from (f"{path}.{name} is missing" for name in wanted if name not in got)
        case "additionalProperties" if wanted is False and "patternProperties" not in error.schema:
            known = error.schema.get("properties", {})
            yield from (f"{path}.{name} is not a {member}" for name in got if name not in known)
        case _:
            yield f"{path}: {error.message}"
