"""``@tool``: a tool from a function."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import (
    Any,
    Concatenate,
    Generic,
    Literal,
    ParamSpec,
    Protocol,
    TypeAlias,
    TypeVar,
    cast,
    overload,
)

from pydantic import JsonValue, ValidationError

from ..errors import ConfigurationError, ToolSchemaError
from ..json_schema import object_schema
from ..model import ToolSchema
from ..text import JsonObject
from ._arguments import Arguments, RawArguments, parameters_of, typed_arguments
from ._body import Body, bind_names, make_body
from ._context import ToolContext
from ._docstring import parse_docstring
from ._policy import ToolPolicy, ToolRuntime
from ._signature import Signature, function_docstring, function_name, is_method, read_signature
from ._tool import Tool

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class FunctionTool(Tool, Generic[P, R_co]):
    """A tool that is still the function it was made of: calling it calls the function.

    In a class body it is a method: what an instance gives under its name is bound to it.
    """

    function: Callable[P, R_co]
    _make_body: Callable[[Callable[..., Any]], Body]

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("__module__", "__name__", "__qualname__", "__doc__"):
            self.__dict__[name] = getattr(self.function, name, None)
        self.__dict__["__wrapped__"] = self.function

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Call the function itself: nothing is checked, injected or converted."""
        return self.function(*args, **kwargs)

    @overload
    def __get__(self, instance: None, owner: type, /) -> "FunctionTool[P, R_co]": ...
    @overload
    def __get__(
        self: "FunctionTool[Concatenate[Any, Q], R]", instance: object, owner: type | None = None, /
    ) -> "FunctionTool[Q, R]": ...
    def __get__(self, instance: object, owner: type | None = None, /) -> "FunctionTool[..., Any]":
        """Bind a method to its instance, or a class method to its class."""
        takes_class = isinstance(self.function, classmethod)
        if not self.unbound or (instance is None and not takes_class):
            return self
        bound: Callable[..., Any] = cast("Any", self).function.__get__(instance, owner)
        own: FunctionTool[..., Any] = self
        return replace(own, function=bound, unbound=False, _body=self._make_body(bound))


class ToolDecorator(Protocol):
    """What ``@tool(...)`` gives."""

    def __call__(self, function: Callable[P, R], /) -> FunctionTool[P, R]:
        """Make the tool."""
        ...


ToolLike: TypeAlias = Tool | Callable[..., Any]
"""A tool, or a function that :func:`as_tool` makes one of."""


@overload
def tool(
    function: Callable[P, R],
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    output: Any = None,
    policy: ToolPolicy | None = None,
    timeout: float | None | Literal["inherit"] = "inherit",
    retries: int | None = None,
    idempotent: bool | None = None,
    exclusive: bool | None = None,
    max_result_chars: int | None = None,
    thread: bool = True,
    strict: bool | None = None,
    tags: Iterable[str] = (),
    metadata: Mapping[str, JsonValue] | None = None,
) -> FunctionTool[P, R]: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    output: Any = None,
    policy: ToolPolicy | None = None,
    timeout: float | None | Literal["inherit"] = "inherit",
    retries: int | None = None,
    idempotent: bool | None = None,
    exclusive: bool | None = None,
    max_result_chars: int | None = None,
    thread: bool = True,
    strict: bool | None = None,
    tags: Iterable[str] = (),
    metadata: Mapping[str, JsonValue] | None = None,
) -> ToolDecorator: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    output: Any = None,
    policy: ToolPolicy | None = None,
    timeout: float | None | Literal["inherit"] = "inherit",
    retries: int | None = None,
    idempotent: bool | None = None,
    exclusive: bool | None = None,
    max_result_chars: int | None = None,
    thread: bool = True,
    strict: bool | None = None,
    tags: Iterable[str] = (),
    metadata: Mapping[str, JsonValue] | None = None,
) -> Any:
    """Make a tool of a function: ``@tool``, ``@tool(timeout=5)`` or ``tool(shop.buy, name="buy")``.

    Models see the function's name, its docstring and its parameters, described by their
    annotations (pydantic's, with ``Annotated`` and ``Field``) and by the docstring in Google,
    NumPy or Sphinx style. A parameter annotated :class:`ToolContext`, ``RunContext`` or
    ``Annotated[..., Injected(...)]`` is filled by the application and never seen.

    The function may be async; an async generator, whose texts are progress and whose last other
    value is the result (its last text if there is none); or a plain function or generator, which
    runs in a worker thread with the caller's context variables.

    Args:
        function: A function, a method or a callable object.
        name: The tool's name; the function's by default.
        description: What it does, for the model; the docstring by default.
        parameters: JSON Schema that replaces what the annotations say. The arguments are then
            checked against it and passed by name as they are.
        output: The type of what it returns, where the annotation does not say it.
        policy: What the tool does and needs. The settings below go into its ``runtime``.
        timeout: Seconds for a call with its retries, ``None`` for no limit. By default the run's.
        retries: How often a failed call is made again; the tool must be ``idempotent``.
        idempotent: Doing it twice is the same as doing it once.
        exclusive: No other tool of the turn may run at the same time.
        max_result_chars: How much text of a result the model gets.
        thread: Run a function that is not async in a worker thread; ``False`` is for quick ones.
        strict: Ask the provider to enforce the schema; ``None`` leaves it to the adapter.
        tags: For middleware and hosts to choose tools by.
        metadata: The application's own data about the tool.

    Raises:
        ToolSchemaError: The parameters cannot be described to a model.
        ConfigurationError: The name or a setting cannot work.
    """
    settings: dict[str, Any] = {
        "max_retries": retries,
        "idempotent": idempotent,
        "exclusive": exclusive,
        "max_result_chars": max_result_chars,
    }
    settings = {key: value for key, value in settings.items() if value is not None}
    if timeout != "inherit":
        settings["timeout"] = timeout

    def make(function: Callable[P, R], /) -> FunctionTool[P, R]:
        target, unbound = _target(function)
        tool_name = name or function_name(function)
        docs = parse_docstring(function_docstring(target))
        signature = read_signature(
            target, skip_first=unbound, descriptions=docs.parameters, bags=parameters is not None
        )
        arguments = _arguments(signature, parameters, tool_name, target)

        def body(function: Callable[..., Any]) -> Body:
            bind = bind_names(
                function, positional=signature.positional, injected=signature.injected
            )
            return make_body(function, bind, thread=thread)

        return FunctionTool(
            schema=ToolSchema(
                name=tool_name,
                description=docs.description if description is None else description,
                parameters=arguments.parameters,
                strict=strict,
            ),
            declared_parameters=_declared(arguments, signature, tool_name, target),
            policy=_with_settings(policy or ToolPolicy(), settings, tool_name),
            tags=frozenset(tags),
            metadata=dict(metadata or {}),
            injected=frozenset(signature.injected),
            returns=signature.returns if output is None else output,
            function=function,
            unbound=unbound,
            _arguments=arguments,
            _body=_refuse_unbound if unbound else body(target),
            _make_body=body,
        )

    return make if function is None else make(function)


def as_tool(source: ToolLike) -> Tool:
    """Return a tool as it is, and make one of a function.

    Raises:
        ToolSchemaError: It is a method without its instance, or cannot be described.
    """
    made = source if isinstance(source, Tool) else _method_tool(source) or tool(source)
    if made.unbound:
        raise ToolSchemaError(
            f"`{made.name}` is a method: take it from an instance, as in `thing.{made.name}`"
        )
    return made


def _method_tool(source: Any) -> Tool | None:
    """Return the tool of a class method: since Python 3.13 ``classmethod`` does not let it bind."""
    found: Any = getattr(source, "__func__", None)
    if not isinstance(found, Tool):
        return None
    bound: Tool = cast("Any", found).__get__(source.__self__)
    return bound


def _target(function: Any) -> tuple[Callable[..., Any], bool]:
    """Return what is called, and whether it still needs its instance or class."""
    if isinstance(function, Tool):
        raise ToolSchemaError(f"`{function.name}` is a tool already")
    if isinstance(function, staticmethod | classmethod):
        return cast("Any", function).__func__, isinstance(function, classmethod)
    if inspect.isclass(function):
        raise ToolSchemaError(
            f"`{function.__name__}` is a class: make a tool of an instance that can be called, "
            "or use `Tool.from_model`"
        )
    if not callable(function):
        raise ToolSchemaError(f"a tool is made of a function, got `{type(function).__name__}`")
    return function, is_method(function)


async def _refuse_unbound(arguments: dict[str, Any], ctx: ToolContext[Any]) -> Any:
    raise ToolSchemaError(f"`{ctx.tool_name}` is a method without its instance")


def _arguments(
    signature: Signature,
    parameters: Mapping[str, Any] | None,
    name: str,
    function: Callable[..., Any],
) -> Arguments:
    if parameters is None:
        return typed_arguments(signature.fields, name, function.__module__)
    schema = object_schema(parameters, parameters_of(name), ToolSchemaError)
    properties = cast("JsonObject", schema["properties"])
    unknown = properties.keys() - signature.fields.keys()
    if unknown and not signature.bag:
        raise ToolSchemaError(f"`{name}` has no parameter `{min(unknown)}`, which its schema has")
    missing = signature.required - signature.injected.keys() - properties.keys()
    if missing:
        raise ToolSchemaError(f"the schema of `{name}` lacks its parameter `{min(missing)}`")
    if by_position := signature.fields.keys() & set(signature.positional):
        raise ToolSchemaError(
            f"`{min(by_position)}` of `{name}` can only be passed by position, and arguments of a "
            "schema are passed by name"
        )
    return RawArguments(schema, name)


def _declared(
    arguments: Arguments, signature: Signature, name: str, function: Callable[..., Any]
) -> JsonObject:
    """Return the schema with those injected parameters that JSON has a form for."""
    described: dict[str, Any] = {}
    for parameter, annotation in signature.declared.items():
        try:
            typed_arguments({parameter: annotation}, name, function.__module__)
        except ToolSchemaError:  # a connection, a session
            continue
        described[parameter] = annotation
    if not described or isinstance(arguments, RawArguments):
        return arguments.parameters
    return typed_arguments(signature.fields | described, name, function.__module__).parameters


def _with_settings(policy: ToolPolicy, settings: dict[str, Any], name: str) -> ToolPolicy:
    runtime = policy.runtime
    if settings:
        try:
            runtime = ToolRuntime.model_validate({**runtime.model_dump(), **settings})
        except ValidationError as exc:
            setting = str(exc.errors()[0]["loc"][0]).replace("max_retries", "retries")
            said = exc.errors()[0]["msg"]
            raise ConfigurationError(f"`{setting}` of the tool `{name}`: {said}") from exc
        policy = policy.model_copy(update={"runtime": runtime, "classified": True})
    if runtime.max_retries and not runtime.idempotent:
        raise ConfigurationError(
            f"the tool `{name}` has retries but is not marked `idempotent=True`: "
            "making its call again may do its work twice"
        )
    return policy
