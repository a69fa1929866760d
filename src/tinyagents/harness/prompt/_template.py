"""A message with variables in it."""

from collections.abc import Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast, get_args

from ..errors import PromptError
from ..message import AssistantMessage, BlockBase, SystemMessage, TextBlock, UserMessage
from ._syntax import Variable, escape, parse
from ._values import NO_VALUES, Filling, Values, check_known, filling, listed, missing

if TYPE_CHECKING:
    from ..context import RunContext

TemplateRole: TypeAlias = Literal["system", "user", "assistant"]
"""Who speaks in a rendered message."""

_SHOWN = 40
_UNNAMED = "template"
_NOT_THERE: Final = object()


class PromptTemplate:
    r"""A message with variables, written ``{{name}}``; ``\{{`` is two braces. It never changes.

    Nothing in a template is executed, and what a value brings along is never read as a template.
    A string goes in as it is, and so does what JSON writes as a string, such as a date; any other
    value is compact JSON. A block, such as an image, or a list of them becomes a part of the message
    where its variable stands.

    Args:
        content: The text, a block, or texts and blocks in order.
        role: Who speaks.
        defaults: Values of the variables that need not be given.
        name: What errors call it; by default its first words.

    Raises:
        PromptError: A variable is not closed or has no proper name, a default belongs to none or
            has no form as text, or there is no such role or content.
    """

    __slots__ = ("_defaults", "_name", "_pieces", "_rendered", "_role", "_variables")

    def __init__(
        self,
        content: str | BlockBase | Sequence[str | BlockBase],
        *,
        role: TemplateRole = "user",
        defaults: Mapping[str, object] | None = None,
        name: str | None = None,
    ) -> None:
        parts = _parts(content, name)
        self._name: str = _title(parts) if name is None else name
        if role not in get_args(TemplateRole):
            raise PromptError(
                f"the template `{self._name}`: `role` is {role!r}; it may be {listed(get_args(TemplateRole))}",
                template=self._name,
                reason="setting",
            )
        self._role: TemplateRole = role
        self._pieces: tuple[str | Variable | BlockBase, ...] = tuple(
            piece
            for part in parts
            for piece in (parse(part, self._name) if isinstance(part, str) else (part,))
        )
        self._variables: tuple[str, ...] = tuple(
            dict.fromkeys(piece.name for piece in self._pieces if isinstance(piece, Variable))
        )
        self._defaults: Mapping[str, Filling] = self._fillings(
            NO_VALUES if defaults is None else defaults
        )
        # Without variables it is one message for good, which providers then encode only once.
        self._rendered = None if self._variables else self._render(NO_VALUES)

    @property
    def role(self) -> TemplateRole:
        """Who speaks."""
        return self._role

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the variables, in the order of their first place."""
        return self._variables

    @property
    def required(self) -> tuple[str, ...]:
        """The variables without a default."""
        return tuple(name for name in self._variables if name not in self._defaults)

    @staticmethod
    def escape(text: str) -> str:
        """Return a template that renders to ``text``.

        Within a longer template it is a part of its own: a backslash at its end would otherwise
        escape a variable behind it.
        """
        return escape(text)

    def __repr__(self) -> str:
        return f"PromptTemplate({self._name!r}, role={self._role!r}, variables={self._variables})"

    def render(
        self, values: Values = NO_VALUES, /
    ) -> SystemMessage | UserMessage | AssistantMessage:
        """Return the message with these values.

        Raises:
            PromptError: A variable has no value, a value no variable, or a value no form as text.
        """
        check_known(values, self._variables, self._name)
        return self._rendered or self._render(values)

    def render_text(self, values: Values = NO_VALUES, /) -> str:
        """Return the text of the message with these values.

        Raises:
            PromptError: As for :meth:`render`; or there are blocks in it.
        """
        message = self.render(values)
        if any(block.type != "text" for block in message.content):
            raise PromptError(
                f"the template `{self._name}` has parts that are no text: use `render`",
                template=self._name,
                reason="value",
            )
        return message.text

    def for_run(self, ctx: "RunContext[Any]") -> str:
        """Return the text with values of a run; ``AgentHarness(system=template)`` calls this.

        Each variable is looked up in ``ctx.data``, as a key of a mapping or else as an attribute,
        then in ``ctx.config.configurable``, then among the defaults.

        Raises:
            PromptError: A variable is in none of them, or its value has no form as text.
        """
        found: dict[str, object] = {}
        for name in self._variables:
            value = _of_data(ctx.data, name)
            if value is _NOT_THERE:
                value = ctx.config.configurable.get(name, _NOT_THERE)
            if value is not _NOT_THERE:
                found[name] = value
        return self.render_text(found)

    def partial(self, values: Values, /) -> "PromptTemplate":
        """Return the template with more defaults; where it has one already, these stand.

        Raises:
            PromptError: A value belongs to no variable, or has no form as text.
        """
        template = copy(self)
        template._defaults = {**self._defaults, **self._fillings(values)}
        return template

    def pick(self, values: Values) -> Values:
        """Return those of the values that belong to a variable of this template."""
        return {name: values[name] for name in self._variables if name in values}

    def _render(self, values: Values) -> SystemMessage | UserMessage | AssistantMessage:
        blocks: list[BlockBase] = []
        text: list[str] = []

        def end_text() -> None:
            if joined := "".join(text):
                blocks.append(TextBlock(text=joined))
            text.clear()

        for piece in self._pieces:
            filled = self._filling(piece.name, values) if isinstance(piece, Variable) else piece
            if isinstance(filled, str):
                text.append(filled)
                continue
            end_text()
            if isinstance(filled, BlockBase):
                blocks.append(filled)
            else:
                blocks.extend(filled)
        end_text()
        match self._role:
            case "system":
                return SystemMessage(content=blocks)
            case "assistant":
                return AssistantMessage(content=blocks)
            case _:
                return UserMessage(content=blocks)

    def _filling(self, name: str, values: Values) -> Filling:
        if name in values:
            return filling(values[name], name, self._name)
        if name not in self._defaults:
            raise missing(name, self._name)
        return self._defaults[name]

    def _fillings(self, values: Values) -> dict[str, Filling]:
        """Return what values are in this template, whatever becomes of the values later."""
        check_known(values, self._variables, self._name)
        return {name: filling(value, name, self._name) for name, value in values.items()}


def _parts(content: object, name: str | None) -> Sequence[str | BlockBase]:
    """Return the texts and blocks of a template."""
    if isinstance(content, str | BlockBase):
        return (content,)
    if isinstance(content, list | tuple):
        parts = cast("Sequence[Any]", content)
        wrong = [part for part in parts if not isinstance(part, str | BlockBase)]
    else:
        parts, wrong = (), [content]
    if wrong:
        called = name or _UNNAMED
        raise PromptError(
            f"the template `{called}` is made of texts and blocks, not of a "
            f"`{type(wrong[0]).__name__}`",
            template=called,
            reason="setting",
        )
    return tuple(parts)


def _title(parts: Sequence[str | BlockBase]) -> str:
    """Return how a template begins."""
    text = next((part for part in parts if isinstance(part, str)), "")
    first = " ".join(text[: 2 * _SHOWN].split()) or _UNNAMED
    return first if len(first) <= _SHOWN else f"{first[: _SHOWN - 1]}…"


def _of_data(data: object, name: str) -> object:
    if isinstance(data, Mapping):
        return cast("Mapping[str, object]", data).get(name, _NOT_THERE)
    return getattr(data, name, _NOT_THERE)
