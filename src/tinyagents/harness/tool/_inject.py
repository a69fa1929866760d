"""Parameters that the application fills and models never see."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from operator import attrgetter
from types import UnionType
from typing import Annotated, Any, Literal, TypeAlias, Union, get_args, get_origin

from typing_extensions import TypeAliasType

from ..context import RunContext
from ..errors import ConfigurationError
from ._context import ToolContext

Resolver: TypeAlias = Callable[[ToolContext[Any]], Any]
"""Gives the value of a parameter for one call."""

_NOTHING: Any = object()


@dataclass(frozen=True, slots=True)
class Injected:
    """Marks a parameter that the application fills: ``Annotated[Session, Injected("data")]``.

    Models never see the parameter, and what one supplies for it is dropped. A parameter annotated
    :class:`ToolContext` or :class:`~tinyagents.RunContext` needs no mark.

    Args:
        source: ``"state"`` or ``"data"`` for what the run was started with, or a function that
            gets the call's context: ``Injected(lambda ctx: ctx.data.session)``.
        configurable: The key of a value in ``RunConfig.configurable`` instead; where the run
            has none the parameter's own default is used.
    """

    source: Literal["state", "data"] | Resolver | None = None
    _: KW_ONLY
    configurable: str | None = None

    def __post_init__(self) -> None:
        if (self.source is None) == (self.configurable is None):
            raise ConfigurationError("`Injected` needs either a source or `configurable=`")
        if self.source not in (None, "state", "data") and not callable(self.source):
            raise ConfigurationError(
                f'`Injected` takes "state", "data" or a function, got {self.source!r}'
            )

    def resolver(self, default: Any = _NOTHING) -> Resolver:
        """Return the function that gives the value; ``default`` is the parameter's own."""
        if self.configurable is not None:
            return _configured(self.configurable, default)
        return self.source if callable(self.source) else attrgetter(str(self.source))


def injection(annotation: Any, default: Any = _NOTHING) -> Resolver | None:
    """Return how the application fills a parameter of this type, or ``None`` for a model's own."""
    origin = get_origin(annotation)
    if origin is Annotated:
        inner, *marks = get_args(annotation)
        for mark in marks:
            if isinstance(mark, Injected):
                return mark.resolver(default)
            if mark is Injected:
                raise ConfigurationError('`Injected` needs a source, such as `Injected("state")`')
        return injection(inner, default)
    if origin in (Union, UnionType):
        found = (injection(member) for member in get_args(annotation))
        return next((resolver for resolver in found if resolver is not None), None)
    kind = origin or annotation
    if isinstance(kind, TypeAliasType):
        return injection(kind.__value__, default)
    if kind is ToolContext:
        return _whole_context
    return _run_context if kind is RunContext else None


def _whole_context(ctx: ToolContext[Any]) -> Any:
    return ctx


def _run_context(ctx: ToolContext[Any]) -> Any:
    return ctx.run


def _configured(key: str, default: Any) -> Resolver:
    def read(ctx: ToolContext[Any]) -> Any:
        if key in ctx.config.configurable:
            return ctx.config.configurable[key]
        if default is _NOTHING:
            raise ConfigurationError(
                f"the tool `{ctx.tool_name}` needs `{key}` in the run's `RunConfig.configurable`"
            )
        return default

    return read
