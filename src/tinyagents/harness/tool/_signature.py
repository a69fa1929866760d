"""What a function says about its parameters."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from types import FunctionType, GenericAlias
from typing import Annotated, Any, cast, get_args, get_origin, get_type_hints

from pydantic import Field
from pydantic.fields import FieldInfo
from typing_extensions import Doc

from ..errors import ConfigurationError, ToolSchemaError
from ._inject import Resolver, injection

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_BAGS = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """A function's parameters, apart by who fills them, in the order of their declaration."""

    fields: dict[str, Any]
    """What a model fills: annotations that hold each description and default for pydantic."""
    injected: dict[str, Resolver]
    """What the application fills."""
    required: frozenset[str]
    """The parameters without a default, whoever fills them."""
    bag: bool
    """It takes any further arguments by name."""
    declared: dict[str, Any]
    """The annotations of those injected parameters that have a form in JSON."""
    positional: tuple[str, ...]
    """Those that can only be passed by position."""
    returns: Any
    """The return annotation; ``inspect.Signature.empty`` where there is none that resolves."""


def read_signature(
    function: Callable[..., Any],
    *,
    skip_first: bool = False,
    descriptions: Mapping[str, str],
    bags: bool = False,
) -> Signature:
    """Read the parameters of a function, with their types resolved.

    Args:
        function: What is called in the end; wrappers are looked through.
        skip_first: The first parameter is filled by other means.
        descriptions: What the docstring says about the parameters.
        bags: Pass over ``*args`` and ``**kwargs`` instead of refusing them.

    Raises:
        ToolSchemaError: A parameter cannot be filled by name, or its annotation has no meaning.
    """
    parameters = _parameters(function)
    if skip_first and parameters and parameters[0].kind in _POSITIONAL:
        del parameters[0]
    scope = _Scope(function)
    fields: dict[str, Any] = {}
    injected: dict[str, Resolver] = {}
    declared: dict[str, Any] = {}
    for parameter in parameters:
        if parameter.kind in _BAGS:
            if not bags:
                raise _bag_error(parameter, scope.name)
            continue
        annotation = scope.resolve(parameter.name, parameter.annotation)
        default = () if parameter.default is parameter.empty else (parameter.default,)
        try:
            resolver = injection(annotation, *default)
        except ConfigurationError as exc:
            raise ToolSchemaError(f"`{parameter.name}` of `{scope.name}`: {exc}") from exc
        if resolver is None:
            description = descriptions.get(parameter.name)
            fields[parameter.name] = _field(annotation, default, description)
            continue
        injected[parameter.name] = resolver
        if get_origin(annotation) is Annotated:
            declared[parameter.name] = get_args(annotation)[0]
    return Signature(
        fields=fields,
        injected=injected,
        required=frozenset(
            p.name for p in parameters if p.default is p.empty and p.kind not in _BAGS
        ),
        bag=any(p.kind is p.VAR_KEYWORD for p in parameters),
        declared=declared,
        positional=tuple(p.name for p in parameters if p.kind is p.POSITIONAL_ONLY),
        returns=scope.resolve_return(),
    )


def is_method(function: Any) -> bool:
    """Whether a function stands in a class body and takes the instance or the class first."""
    if not isinstance(function, FunctionType):
        return False
    target = inspect.unwrap(function)
    scope, _, _ = target.__qualname__.rpartition(".")
    if not scope or scope.endswith("<locals>"):
        return False
    return next(iter(inspect.signature(target).parameters), "") in ("self", "cls")


def first_parameter(function: Callable[..., Any]) -> str:
    """Return the name of the parameter that the first positional argument goes to."""
    names = [p.name for p in _parameters(function) if p.kind in _POSITIONAL]
    return names[0] if names else "arguments"


def function_name(function: Any) -> str:
    """Return what a function is called; a callable object is called like its class."""
    function = _without_partials(function)
    name = getattr(function, "__name__", type(function).__name__)
    return "" if name == "<lambda>" else str(name)


def function_docstring(function: Any) -> str | None:
    """Return the docstring of a function; that of a callable object's call, or of its class."""
    function = _without_partials(function)
    if inspect.isroutine(function):
        return inspect.getdoc(function)
    return type(function).__call__.__doc__ or type(function).__doc__


def is_kind(kind: Callable[[Any], bool], function: Any) -> bool:
    """Whether a function, or the call of an object, is of a kind that ``inspect`` tells."""
    function = _without_partials(function)
    return kind(function) or kind(type(function).__call__)


def _without_partials(function: Any) -> Any:
    while isinstance(function, partial):
        function = cast("Any", function).func
    return function


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError) as exc:
        raise ToolSchemaError(f"the parameters of {function!r} are not known: {exc}") from exc
    except NameError as exc:  # Python 3.14 evaluates annotations when they are read
        raise ToolSchemaError(f"an annotation of {function!r} cannot be resolved: {exc}") from exc
    while isinstance(function, partial):
        given: Mapping[str, Any] = function.keywords
        parameters = [p for p in parameters if p.name not in given]
        function = function.func
    return parameters


def _bag_error(parameter: inspect.Parameter, function: str) -> ToolSchemaError:
    stars = "**" if parameter.kind is parameter.VAR_KEYWORD else "*"
    return ToolSchemaError(
        f"`{stars}{parameter.name}` of `{function}` cannot be described to a model: name each "
        "parameter, take one `dict` or `list`, or give the schema as `parameters=`"
    )


def _field(annotation: Any, default: tuple[Any, ...], description: str | None) -> Any:
    """Return the annotation with description and default in the form that pydantic reads."""
    base, marks = annotation, list[Any]()
    if get_origin(annotation) is Annotated:
        base, *marks = get_args(annotation)
    if get_origin(base) is Iterable or base is Iterable:
        # pydantic would check the items while the tool runs.
        base = GenericAlias(list, get_args(base)) if get_args(base) else list
    if default and isinstance(default[0], FieldInfo):
        marks.append(default[0])
    elif default:
        marks.append(Field(default=default[0]))
    for mark in marks:
        if isinstance(mark, str):
            description = mark
        elif isinstance(mark, Doc):
            description = mark.documentation
    marks = [mark for mark in marks if not isinstance(mark, str | Doc)]
    if description is not None:
        # First, so that a description in the user's own `Field` wins.
        marks.insert(0, Field(description=inspect.cleandoc(description)))
    for mark in marks:
        base = Annotated[base, mark]
    return base


class _Scope:
    """Where the annotations of one function get their names from."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = _innermost(function)
        self._globals: dict[str, Any] = getattr(self._function, "__globals__", {})
        self.name: str = getattr(self._function, "__name__", type(self._function).__name__)

    def resolve(self, parameter: str, annotation: Any) -> Any:
        if annotation is inspect.Parameter.empty:
            return Any
        try:
            return self._evaluate(annotation)
        except Exception as exc:  # whatever evaluating the user's text raises
            shown = (
                annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
            )
            hint = " (is it imported for type checking only?)" if isinstance(exc, NameError) else ""
            raise ToolSchemaError(
                f"the annotation `{shown}` of `{parameter}` of `{self.name}` "
                f"cannot be resolved: {exc}{hint}"
            ) from exc

    def resolve_return(self) -> Any:
        annotation = getattr(self._function, "__annotations__", {}).get(
            "return", inspect.Signature.empty
        )
        try:
            return self._evaluate(annotation)
        except Exception:  # noqa: BLE001 - a tool runs without its return type
            return inspect.Signature.empty

    def _evaluate(self, annotation: Any) -> Any:
        def holder() -> None: ...

        holder.__annotations__ = {"it": annotation}
        try:
            hints = get_type_hints(holder, self._globals, {}, include_extras=True)
        except NameError:
            names = _enclosing_names(self._function)
            hints = get_type_hints(holder, self._globals, names, include_extras=True)
        return hints["it"]


def _innermost(function: Any) -> Any:
    """Return the function at the core of partials, methods, callable objects and wrappers."""
    while True:
        if isinstance(function, partial):
            function = cast("Any", function).func
        elif isinstance(function, staticmethod | classmethod) or inspect.ismethod(function):
            function = cast("Any", function).__func__
        elif hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        elif not inspect.isroutine(function) and inspect.isroutine(type(function).__call__):
            function = type(function).__call__
        else:
            return function


def _enclosing_names(function: object) -> dict[str, Any]:
    """Return the local names of the functions and classes that the function is written in.

    Postponed annotations close over nothing, so they are looked up in the frames of those that are
    still running, as they are when a tool is made in the place where it is written.
    """
    if not isinstance(function, FunctionType):
        return {}
    names: dict[str, Any] = {}
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=False)
    for name, cell in cells:
        try:
            names[name] = cell.cell_contents
        except ValueError:  # it has no value yet
            continue
    scope = function.__qualname__.rpartition(".")[0].removesuffix(".<locals>")
    frame = inspect.currentframe()
    while scope and frame is not None and (frame := frame.f_back) is not None:
        if frame.f_code.co_qualname == scope and frame.f_globals is function.__globals__:
            names = {**frame.f_locals, **names}
            scope = scope.rpartition(".")[0].removesuffix(".<locals>")
    return names
