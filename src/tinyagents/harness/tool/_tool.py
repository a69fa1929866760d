"""A tool: what a model sees of it, how a call is checked, and how it runs."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Concatenate, Literal, NamedTuple, TypeVar, cast

from pydantic import JsonValue, TypeAdapter
from pydantic.errors import PydanticUserError

from ..concurrency import within
from ..errors import ConfigurationError, ToolArgumentsError, ToolSchemaError
from ..json_schema import SchemaCheck, describe, object_schema, without_properties
from ..model import ToolSchema
from ..text import JsonObject, dump_json
from ._arguments import (
    Arguments,
    ArgumentsInvalid,
    RawArguments,
    model_arguments,
    parameters_of,
)
from ._attempts import run_attempts
from ._body import Body, bind_names, bind_whole, make_body
from ._context import ToolContext, without_questions
from ._docstring import parse_docstring
from ._inject import Injected
from ._policy import ToolPolicy
from ._result import ToolResult, cut_result, own_result
from ._signature import (
    Signature,
    first_parameter,
    function_docstring,
    function_name,
    read_signature,
)

ModelT = TypeVar("ModelT")


class BoundCall(NamedTuple):
    """The arguments of one call, checked."""

    arguments: dict[str, Any]
    """The values that the function gets, by the name of the parameter."""
    dropped: tuple[str, ...] = ()
    """Parameters for the application to fill that the model supplied values for in vain."""


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class Tool:
    """Something that a model can call. Immutable, and shared freely between runs.

    Made by :func:`tool`, :meth:`from_schema` or :meth:`from_model`; ``dataclasses.replace`` gives
    changed copies.
    """

    schema: ToolSchema
    """What models see: parameters that the application fills are not in it."""
    declared_parameters: JsonObject
    """JSON Schema of all parameters, those included that the application fills."""
    policy: ToolPolicy = field(default_factory=ToolPolicy)
    tags: frozenset[str] = frozenset()
    """For middleware and hosts to choose tools by."""
    metadata: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """The application's own data about the tool."""
    injected: frozenset[str] = frozenset()
    """The parameters that the application fills."""
    returns: Any = inspect.Signature.empty
    """The type of what the tool returns, where it is known."""
    declared_output: JsonObject | None = None
    """JSON Schema of what it returns, where that was given as such."""
    is_external: bool = False
    """It has no function: the application makes its calls, outside the run."""
    unbound: bool = False
    """A method without its instance: what the instance gives under its name is the tool."""
    _arguments: Arguments
    _body: Body
    _output: SchemaCheck | None = None

    def __post_init__(self) -> None:
        _check_name(self.schema.name)

    @classmethod
    def from_schema(
        cls,
        handler: Callable[..., Any],
        *,
        name: str,
        description: str = "",
        parameters: Mapping[str, Any] | None = None,
        injected: Mapping[str, Injected] | None = None,
        policy: ToolPolicy | None = None,
        strict: bool | None = None,
        thread: bool = True,
        tags: Iterable[str] = (),
        metadata: Mapping[str, JsonValue] | None = None,
    ) -> "Tool":
        """Make a tool of a JSON Schema, such as a tool server hands out.

        Args:
            handler: Gets the arguments as one ``dict``, and after it what it declares of
                :class:`ToolContext` and :class:`Injected` parameters.
            name: The tool's name.
            description: What it does, for the model.
            parameters: The schema, by default in the dialect of 2020-12; an object schema.
            injected: Properties of the schema that the application fills and no model sees.
            policy: What the tool does and needs.
            strict: Ask the provider to enforce the schema; ``None`` leaves it to the adapter.
            thread: Run a handler that is not async in a worker thread.
            tags: See :class:`Tool`.
            metadata: See :class:`Tool`.

        Raises:
            ToolSchemaError: The schema is not valid or not one of an object, or the handler has
                a parameter that nobody fills.
        """
        filled = injected or {}
        declared = object_schema(parameters, parameters_of(name), ToolSchemaError)
        shown = without_properties(declared, filled)
        signature = _handler_signature(handler, name)
        resolvers = {key: mark.resolver() for key, mark in filled.items()}
        bind = bind_whole(handler, injected=signature.injected, filled=resolvers)
        return Tool(
            schema=ToolSchema(name=name, description=description, parameters=shown, strict=strict),
            declared_parameters=declared,
            policy=policy or ToolPolicy(),
            tags=frozenset(tags),
            metadata=dict(metadata or {}),
            injected=frozenset(filled),
            returns=signature.returns,
            _arguments=RawArguments(shown, name),
            _body=make_body(handler, bind, thread=thread),
        )

    @classmethod
    def from_model(
        cls,
        model: Callable[..., ModelT],
        handler: Callable[Concatenate[ModelT, ...], Any],
        *,
        name: str | None = None,
        description: str | None = None,
        policy: ToolPolicy | None = None,
        strict: bool | None = None,
        thread: bool = True,
        tags: Iterable[str] = (),
        metadata: Mapping[str, JsonValue] | None = None,
    ) -> "Tool":
        """Make a tool whose arguments are one pydantic model, dataclass or ``TypedDict``.

        Args:
            model: The class; its fields are the parameters.
            handler: Gets the instance, and after it what it declares of :class:`ToolContext` and
                :class:`Injected` parameters.
            name: The tool's name; the handler's by default.
            description: What it does; the docstring of the handler or the model by default.
            policy: What the tool does and needs.
            strict: Ask the provider to enforce the schema; ``None`` leaves it to the adapter.
            thread: Run a handler that is not async in a worker thread.
            tags: See :class:`Tool`.
            metadata: See :class:`Tool`.

        Raises:
            ToolSchemaError: The class has no JSON Schema, or the handler has a parameter that
                nobody fills.
        """
        name = name or function_name(handler)
        signature = _handler_signature(handler, name)
        parameter = first_parameter(handler)
        arguments = model_arguments(model, parameter, name)
        if description is None:
            text = function_docstring(handler) or getattr(model, "__doc__", None)
            description = parse_docstring(text).description
        bind = bind_names(handler, positional=(parameter,), injected=signature.injected)
        return Tool(
            schema=ToolSchema(
                name=name, description=description, parameters=arguments.parameters, strict=strict
            ),
            declared_parameters=arguments.parameters,
            policy=policy or ToolPolicy(),
            tags=frozenset(tags),
            metadata=dict(metadata or {}),
            returns=signature.returns,
            _arguments=arguments,
            _body=make_body(handler, bind, thread=thread),
        )

    @classmethod
    def external(
        cls,
        *,
        name: str,
        description: str = "",
        parameters: Mapping[str, Any] | type | None = None,
        output: Any = None,
        policy: ToolPolicy | None = None,
        strict: bool | None = None,
        tags: Iterable[str] = (),
        metadata: Mapping[str, JsonValue] | None = None,
    ) -> "Tool":
        """Make a tool whose calls are made outside the run: by a browser, a device, a person.

        A run that comes to a call of it runs the other calls of the turn and ends
        ``interrupted``; it is resumed with the result.

        Args:
            name: The tool's name.
            description: What it does, for the model.
            parameters: A JSON Schema of an object, or a pydantic model, dataclass or ``TypedDict``.
            output: What its result is checked against: a type, or a JSON Schema.
            policy: What the tool does and needs.
            strict: Ask the provider to enforce the schema; ``None`` leaves it to the adapter.
            tags: See :class:`Tool`.
            metadata: See :class:`Tool`.

        Raises:
            ToolSchemaError: A schema is not valid, or that of the parameters is not of an object.
        """
        arguments: Arguments
        if isinstance(parameters, type):
            arguments = model_arguments(parameters, "arguments", name)
        else:
            declared = object_schema(parameters, parameters_of(name), ToolSchemaError)
            arguments = RawArguments(declared, name)
        described = _output_schema(output, name)
        what = f"the output of `{name}`"
        return Tool(
            schema=ToolSchema(
                name=name, description=description, parameters=arguments.parameters, strict=strict
            ),
            declared_parameters=arguments.parameters,
            policy=policy or ToolPolicy(),
            tags=frozenset(tags),
            metadata=dict(metadata or {}),
            declared_output=described,
            is_external=True,
            _arguments=arguments,
            _body=_refuse_to_run,
            _output=None if described is None else SchemaCheck(described, what, ToolSchemaError),
        )

    @property
    def name(self) -> str:
        """The application's name for the tool; adapters derive one that their provider takes."""
        return self.schema.name

    @property
    def description(self) -> str:
        """What the tool does, for the model."""
        return self.schema.description

    @property
    def output_schema(self) -> JsonObject | None:
        """JSON Schema of what the tool returns; ``None`` where its type is not known or has none."""
        if self.declared_output is not None:
            return self.declared_output
        if self.returns is inspect.Signature.empty:
            return None
        try:
            return describe(TypeAdapter(self.returns), "serialization")
        except (PydanticUserError, NameError, TypeError):
            return None

    @property
    def timeout(self) -> float | None | Literal["inherit"]:
        """Seconds for a call with its retries; ``None`` for no limit, or what the run says."""
        return self.policy.runtime.timeout

    @property
    def exclusive(self) -> bool:
        """Whether no other tool of the turn may run at the same time."""
        return self.policy.runtime.exclusive

    @property
    def is_gated(self) -> bool:
        """Whether somebody outside the run has a say in its calls."""
        return self.is_external or self.policy.access.approval_required

    @property
    def idempotent(self) -> bool:
        """Whether doing it twice is the same as doing it once."""
        return self.policy.runtime.idempotent

    @property
    def retries(self) -> int:
        """How often a failed call is made again: 0 unless the tool is idempotent."""
        runtime = self.policy.runtime
        return runtime.max_retries if runtime.idempotent else 0

    @property
    def max_result_chars(self) -> int | None:
        """How much text of a result the model gets."""
        return self.policy.runtime.max_result_chars

    def validate(self, arguments: Mapping[str, JsonValue] | JsonValue) -> BoundCall:
        """Check the arguments that a model gave.

        Values are taken by the rules of JSON: a text is no number, a boolean is none, and dates,
        enums, models and such are made from their JSON form. What the model supplies for
        parameters that the application fills is dropped first.

        Raises:
            ToolArgumentsError: They do not fit; the message is for the model, with the schema.
        """
        dropped: tuple[str, ...] = ()
        if self.injected and isinstance(arguments, Mapping):
            dropped = tuple(name for name in arguments if name in self.injected)
            if dropped:
                arguments = {k: value for k, value in arguments.items() if k not in dropped}
        try:
            return BoundCall(self._arguments.check(arguments), dropped)
        except ArgumentsInvalid as exc:
            expected = dump_json(self.schema.parameters)
            raise ToolArgumentsError(
                f"the arguments of `{self.name}` do not fit its parameters: {exc}. "
                f"Expected, as JSON Schema: {expected}",
                tool=self.name,
                errors=exc.errors,
            ) from exc.__cause__

    def validate_output(self, value: JsonValue) -> None:
        """Check the result of a call that was made outside; without a schema anything fits.

        Raises:
            ToolArgumentsError: It does not fit; the message says where.
        """
        problems = [] if self._output is None else self._output.problems(value, "output")
        if problems:
            raise ToolArgumentsError(
                f"the result does not fit the output of `{self.name}`: {'; '.join(problems)}",
                tool=self.name,
                errors=problems,
            )

    async def execute(
        self,
        bound: BoundCall,
        ctx: ToolContext[Any],
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - holds for all attempts, and raises its own
    ) -> ToolResult:
        """Run one call and convert what it returns.

        What the tool raises passes through. A call of an idempotent tool that failed for a reason
        that may pass is made again, after a wait that doubles each time. When the call is cancelled
        or out of time a worker thread runs on, but nothing of it is heard any more.

        Args:
            bound: The arguments, from :meth:`validate`.
            ctx: The context of this call.
            timeout: Seconds for the whole call, retries and waits included.

        Raises:
            DeadlineExpired: The time is up; what was running has been cancelled.
            ToolError: The tool says it could not do it, or returned what has no JSON form.
        """
        runtime = self.policy.runtime
        ctx.restarted(1)
        try:
            if timeout is None and not runtime.max_retries:
                value = await self._body(bound.arguments, ctx)
            else:
                call = partial(self._body, bound.arguments, ctx)
                attempts = partial(run_attempts, call, ctx, retries=self.retries)
                value = await within(timeout, attempts)
        except BaseExceptionGroup as group:
            if (told := without_questions(group)) is group:
                raise
            raise told from None
        result = own_result(value)
        if runtime.max_result_chars is not None:
            return cut_result(result, runtime.max_result_chars)
        return result

    async def call(self, bound: BoundCall, ctx: ToolContext[Any]) -> Any:
        """Call the function once, and return what it returns as it is.

        What it raises passes through.
        """
        return await self._body(bound.arguments, ctx)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"


def _check_name(name: str) -> None:
    if not name.strip():
        raise ConfigurationError("a tool needs a name: give one as `name=`")
    if not name.isprintable():
        raise ConfigurationError(f"the tool name {name!r} has characters in it that do not print")


def _output_schema(output: Any, name: str) -> JsonObject | None:
    if output is None or isinstance(output, Mapping):
        return cast("JsonObject | None", output)
    try:
        return describe(TypeAdapter(output), "serialization")
    except (PydanticUserError, NameError, TypeError) as exc:
        raise ToolSchemaError(f"the output of `{name}` cannot be described: {exc}") from exc


async def _refuse_to_run(arguments: dict[str, Any], ctx: ToolContext[Any]) -> Any:
    raise ToolSchemaError(f"`{ctx.tool_name}` is made outside the run and has no function to call")


def _handler_signature(handler: Callable[..., Any], name: str) -> Signature:
    signature = read_signature(handler, skip_first=True, descriptions={}, bags=True)
    unfilled = signature.required - signature.injected.keys()
    if unfilled:
        raise ToolSchemaError(
            f"nobody fills `{min(unfilled)}` of the handler of `{name}`: it gets the arguments "
            "first, and what is annotated `ToolContext` or `Injected`"
        )
    return signature
