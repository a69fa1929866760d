"""The check of values against a schema that was given as such."""

from collections.abc import Callable, Iterator
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from pydantic import JsonValue

from ..errors import InvalidRequestError
from ..text import JsonObject
from ._problems import explain_found, unexpected_problem

if TYPE_CHECKING:
    from jsonschema.protocols import Validator
    from referencing import Registry

_MOST_REFERENCES = 10_000
"""How many references one check follows. Each can stand for two others, and those for two more, so that
a short schema, which may be a stranger's, could take for ever."""
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")

_Keyword: TypeAlias = Callable[[Any, Any, Any, Any], "Iterator[Any] | None"]

_followed: ContextVar[list[int]] = ContextVar("followed")
"""How many references the check at hand has followed."""


class _TooMuchError(Exception):
    """The check of a value would take too long."""


class SchemaCheck:
    """A JSON Schema, compiled once. Nothing is ever downloaded.

    Args:
        schema: The schema, by default in the dialect of 2020-12. It is kept, and must not change.
        what: What it is, for messages: "the parameters of ..."
        error: The class of the error.

    Raises:
        InvalidRequestError: It is no JSON Schema, or a reference in it leads out of it or to
            nothing; it is an ``error``.
    """

    __slots__ = ("_validator",)

    def __init__(
        self,
        schema: JsonObject,
        what: str,
        error: type[InvalidRequestError] = InvalidRequestError,
    ) -> None:
        self._validator = _compiled(schema, what, error)

    def problems(self, value: Any, root: str, *, member: str = "parameter") -> list[str]:
        """Return a sentence for each problem of a JSON value; none where it fits.

        Args:
            value: The value.
            root: What the path in each sentence begins with.
            member: What a property of the value is called.
        """
        before = _followed.set([0])
        try:
            return explain_found(self._validator.iter_errors(value), root, member)
        except _TooMuchError as exc:
            return [f"{root}: could not be checked: {exc}"]
        except Exception as exc:  # noqa: BLE001 - a validator may raise anything, such as by depth
            return [unexpected_problem(exc, root)]
        finally:
            _followed.reset(before)


def _compiled(schema: JsonObject, what: str, error: type[InvalidRequestError]) -> "Validator":
    # Here and not above: loading it costs 0.1 s, and most applications need none of it.
    from jsonschema import SchemaError
    from jsonschema.validators import Draft202012Validator, validator_for
    from referencing import Registry

    try:
        kind = validator_for(schema, default=Draft202012Validator)
        kind.check_schema(schema)
    except SchemaError as exc:
        where = "".join(f"[{step!r}]" for step in exc.absolute_path)
        raise error(f"{what}{where}: no JSON Schema: {exc.message}") from exc
    except Exception as exc:
        raise error(f"{what}: no JSON Schema: {exc}") from exc
    # With a registry of its own, a reference to another document is an error and not a download.
    registry: Registry[Any] = Registry()
    if ref := _dangling_reference(schema, kind.META_SCHEMA, registry):
        raise error(f"the reference `{ref}` in {what} leads nowhere")
    return cast("Validator", _bounded(kind)(schema, registry=registry))


@cache
def _bounded(kind: Any) -> Any:
    """Return the kind of validator that counts the references it follows."""
    import attrs
    from jsonschema import validators

    extend = cast("Any", validators).extend
    keywords = {name: kind.VALIDATORS[name] for name in _REFERENCES if name in kind.VALIDATORS}
    bounded = extend(kind, {name: _counting(keyword) for name, keyword in keywords.items()})
    # Its own would take another kind, which does not count, for each part that has a `$schema`.
    bounded.evolve = attrs.evolve
    return bounded


def _counting(keyword: _Keyword) -> _Keyword:
    def follow(validator: Any, value: Any, instance: Any, schema: Any) -> "Iterator[Any] | None":
        count = _followed.get()
        count[0] += 1
        if count[0] > _MOST_REFERENCES:
            raise _TooMuchError(
                f"its schema takes more than {_MOST_REFERENCES} references to follow"
            )
        return keyword(validator, value, instance, schema)

    return follow


def _dangling_reference(schema: JsonObject, meta: Any, registry: "Registry[Any]") -> str | None:
    """Return a reference that leads out of the schema or to nothing in it, if it has one."""
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT202012, specification_with

    dialect = specification_with(meta.get("$schema", ""), default=DRAFT202012)
    root = dialect.create_resource(cast("Any", schema))
    ahead: list[tuple[Any, Any]] = [(root, registry.resolver_with_root(root))]
    while ahead:
        part, resolver = ahead.pop()
        contents = cast("JsonValue", part.contents)
        ref = contents.get("$ref") if isinstance(contents, dict) else None
        if isinstance(ref, str):
            try:
                resolver.lookup(ref)
            except (Unresolvable, TypeError, ValueError):
                return ref
        ahead += [(each, resolver.in_subresource(each)) for each in part.subresources()]
    return None
