"""The check of values against a schema that was given as such."""

from typing import TYPE_CHECKING, Any, cast

from pydantic import JsonValue

from ..errors import InvalidRequestError
from ..text import JsonObject
from ._problems import explain_found, unexpected_problem

if TYPE_CHECKING:
    from jsonschema.protocols import Validator
    from referencing import Registry


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
        try:
            return explain_found(self._validator.iter_errors(value), root, member)
        except Exception as exc:  # noqa: BLE001 - a validator may raise anything, such as by depth
            return [unexpected_problem(exc, root)]


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
    return kind(schema, registry=registry)


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
