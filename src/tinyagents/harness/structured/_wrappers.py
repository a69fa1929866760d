"""What an answer must be, and the ways to say how the model is asked for it."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, ClassVar, Generic, Literal, TypeAlias, TypeVar, overload

from typing_extensions import TypedDict, Unpack

from ..errors import ConfigurationError
from ._validators import OutputValidator, check_validators

T = TypeVar("T")

StructuredStrategy: TypeAlias = Literal["native", "tool", "prompted"]
"""Have the provider hold the answer to the schema, offer the schema as a tool to call, or tell the
schema in the prompt and read the JSON out of the text."""

_SCHEMA_PLACE = "{schema}"


class OutputOptions(TypedDict, total=False):
    """What can be said of an output besides its type."""

    name: str | None
    """What the model and errors call it; the name of the type or function by default."""
    description: str | None
    """What the model is told of it; the docstring by default."""
    strict: bool | None
    """Ask the provider to enforce the schema; ``None`` leaves it to the adapter."""
    validators: Sequence[OutputValidator]
    """Look at the answer before it is used, in turn."""
    retry_message: str | None
    """What the model is told of an answer that is not accepted, with ``{errors}`` where the problems
    go; the problems themselves by default."""


class Output(Generic[T]):
    """What the final answer must be, asked for in the way that suits each model; never changed.

    The subclasses choose the way: :class:`NativeOutput`, :class:`ToolOutput` and
    :class:`PromptedOutput`.

    Args:
        output: Anything that pydantic can describe; a function, which is called with the answer as
            its arguments and whose result is the run's output; a JSON schema as a mapping; or a
            list of these, of which the model chooses one.
        options: See :class:`OutputOptions`.

    Raises:
        ConfigurationError: A validator is none.
        TypeError: There is no such option.
    """

    strategy: ClassVar[StructuredStrategy | None] = None
    """How the model is asked; ``None`` where its profile decides."""

    @overload
    def __init__(
        self, output: Callable[..., Awaitable[T]], **options: Unpack[OutputOptions]
    ) -> None: ...
    @overload
    def __init__(self, output: "OutputType[T]", **options: Unpack[OutputOptions]) -> None: ...
    @overload
    def __init__(self, output: Any, **options: Unpack[OutputOptions]) -> None: ...
    def __init__(self, output: Any, **options: Unpack[OutputOptions]) -> None:
        if unknown := options.keys() - OutputOptions.__annotations__:
            raise TypeError(
                f"`{type(self).__name__}` has no option `{min(unknown)}`; there are "
                + ", ".join(f"`{option}`" for option in OutputOptions.__annotations__)
            )
        self.output: Any = output
        self.name: str | None = options.get("name")
        self.description: str | None = options.get("description")
        self.strict: bool | None = options.get("strict")
        self.validators: tuple[OutputValidator, ...] = check_validators(
            options.get("validators", ())
        )
        self.retry_message: str | None = options.get("retry_message")
        self.compiled: Any = None
        """The :class:`OutputSpec` of it, once a run has needed that: a wrapper can be shared."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.output!r})"


class NativeOutput(Output[T]):
    """An answer that the provider holds to its schema.

    A model whose profile says that it takes no schema is refused before any call, or told of the
    schema in words where ``RunPolicy.unsupported`` is to degrade.
    """

    strategy: ClassVar[StructuredStrategy | None] = "native"


class ToolOutput(Output[T]):
    """An answer that the model gives by calling a tool, one for each of several types.

    A model whose profile says that it calls no tools is refused before any call, or told of the
    tool in words where ``RunPolicy.unsupported`` is to degrade.
    """

    strategy: ClassVar[StructuredStrategy | None] = "tool"


class PromptedOutput(Output[T]):
    """An answer that the prompt asks for, in words that every model takes.

    Models that take "any JSON object" as the form of their answer are asked for that as well.

    Args:
        output: As for :class:`Output`.
        template: The instruction, with ``{schema}`` where the JSON Schema goes; ``None`` for the
            usual one.
        options: See :class:`OutputOptions`.

    Raises:
        ConfigurationError: The template has no place for the schema, or a validator is none.
    """

    strategy: ClassVar[StructuredStrategy | None] = "prompted"

    @overload
    def __init__(
        self,
        output: Callable[..., Awaitable[T]],
        *,
        template: str | None = ...,
        **options: Unpack[OutputOptions],
    ) -> None: ...
    @overload
    def __init__(
        self,
        output: "OutputType[T]",
        *,
        template: str | None = ...,
        **options: Unpack[OutputOptions],
    ) -> None: ...
    @overload
    def __init__(
        self, output: Any, *, template: str | None = ..., **options: Unpack[OutputOptions]
    ) -> None: ...
    def __init__(
        self, output: Any, *, template: str | None = None, **options: Unpack[OutputOptions]
    ) -> None:
        if template is not None and _SCHEMA_PLACE not in template:
            raise ConfigurationError(
                f"the template of a prompted output has no `{_SCHEMA_PLACE}` in it, where the JSON "
                "Schema goes"
            )
        super().__init__(output, **options)
        self.template: str | None = template

    def instruction(self, schema: str) -> str | None:
        """Return the instruction with the schema in its place; ``None`` for the usual one."""
        return self.template and self.template.replace(_SCHEMA_PLACE, schema)


OutputType: TypeAlias = (
    type[T]
    | Callable[..., Awaitable[T]]
    | Callable[..., T]
    | Output[T]
    | Sequence[type[T] | Callable[..., Awaitable[T]] | Callable[..., T] | Output[T]]
)
"""A type, a function whose parameters are the answer, one of these in a wrapper, or several to choose
from."""
