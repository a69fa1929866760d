"""A conversation with variables in it."""

from collections.abc import Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from ..errors import PromptError
from ..message import Message, MessageBase
from ._syntax import is_name
from ._template import PromptTemplate
from ._values import (
    NO_VALUES,
    Filling,
    Values,
    check_known,
    filling,
    is_messages,
    missing,
    unfit,
)


@dataclass(frozen=True, slots=True)
class MessagesPlaceholder:
    """A place in a conversation for a list of messages, such as the history.

    Args:
        name: The variable that holds the list.
        optional: No messages stand there when it has no value.

    Raises:
        PromptError: A variable cannot be called so.
    """

    name: str
    optional: bool = False

    def __post_init__(self) -> None:
        if not is_name(self.name):
            shown = str(self.name)[:40]
            raise PromptError(
                f"{shown!r} is no name of a placeholder, which is a letter from A to Z, then such "
                "letters, digits and `_`",
                template=shown,
                variable=shown,
                reason="syntax",
            )


class FewShot:
    """Examples for the model: the same parts, once with the values of each example.

    Args:
        parts: What one example is made of: mostly templates of the user's question and of the answer
            to it. A placeholder takes what no template can say, such as a call and its result.
        examples: The values of each example.

    Raises:
        PromptError: An example lacks a value, or has one that belongs to no variable.
    """

    __slots__ = ("_messages",)

    def __init__(
        self, parts: "Sequence[TemplatePart]", examples: Sequence[Mapping[str, object]]
    ) -> None:
        one = MessagesTemplate(parts, name="few-shot examples")
        if not isinstance(cast("Any", examples), list | tuple):
            raise _not_made_of("few-shot examples", "mappings of values in a list", examples)
        self._messages: tuple[Message, ...] = tuple(
            message for values in examples for message in one.render(values)
        )

    @property
    def messages(self) -> tuple[Message, ...]:
        """The rendered examples: the same objects each time."""
        return self._messages


class MessagesTemplate:
    """A conversation with variables, rendered in order. It never changes.

    A variable that several of its templates use has the same value in all of them.

    Args:
        parts: Templates, placeholders, examples, messages, and other conversations.
        defaults: Values of the variables and placeholders that need not be given; they come before
            the defaults of the parts.
        name: What errors call it.

    Raises:
        PromptError: The name of a placeholder is also that of a variable in a text, a default
            belongs to neither or does not fit, or a part is none.
    """

    __slots__ = ("_defaults", "_name", "_parts", "_placeholders", "_required", "_variables")

    def __init__(
        self,
        parts: "Sequence[TemplatePart]",
        *,
        defaults: Values | None = None,
        name: str | None = None,
    ) -> None:
        self._name: str = "messages" if name is None else name
        self._parts: tuple[TemplatePart, ...] = _parts(parts, self._name)
        self._placeholders: tuple[str, ...] = tuple(
            dict.fromkeys(each for part in self._parts for each in _placeholders_of(part))
        )
        required: dict[str, bool] = {}
        for part in self._parts:
            for each, needed in _variables_of(part).items():
                required[each] = required.get(each, False) or needed
        self._variables: tuple[str, ...] = tuple(required)
        self._refuse_two_meanings()
        self._defaults: Mapping[str, Filling | Sequence[Message]] = self._checked(
            NO_VALUES if defaults is None else defaults
        )
        self._required: tuple[str, ...] = tuple(each for each in required if required[each])

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the variables and placeholders, in the order of their first place."""
        return self._variables

    @property
    def placeholders(self) -> tuple[str, ...]:
        """Those of them that stand for messages."""
        return self._placeholders

    @property
    def required(self) -> tuple[str, ...]:
        """Those that need a value."""
        return tuple(each for each in self._required if each not in self._defaults)

    def __repr__(self) -> str:
        return f"MessagesTemplate({self._name!r}, variables={self._variables})"

    def render(self, values: Values = NO_VALUES, /) -> list[Message]:
        """Return the messages with these values.

        Raises:
            PromptError: A variable has no value, a value no variable, a value no form as text, or
                a placeholder's value is no list of messages.
        """
        check_known(values, self._variables, self._name)
        values = {**self._defaults, **values}
        messages: list[Message] = []
        for part in self._parts:
            match part:
                case PromptTemplate():
                    messages.append(part.render(part.pick(values)))
                case MessagesTemplate():
                    messages.extend(part.render(part.pick(values)))
                case MessagesPlaceholder():
                    messages.extend(self._given(part, values))
                case FewShot():
                    messages.extend(part.messages)
                case _:
                    messages.append(cast("Message", part))
        return messages

    def partial(self, values: Values, /) -> "MessagesTemplate":
        """Return the conversation with more defaults; where it has one already, these stand.

        Raises:
            PromptError: A value belongs to no variable or placeholder, or does not fit there.
        """
        template = copy(self)
        template._defaults = {**self._defaults, **self._checked(values)}
        return template

    def pick(self, values: Values) -> Values:
        """Return those of the values that belong to a variable or a placeholder."""
        return {name: values[name] for name in self._variables if name in values}

    def _given(self, place: MessagesPlaceholder, values: Values) -> Sequence[Message]:
        """Return the messages for a placeholder."""
        if place.name in values:
            return self._messages(place.name, values[place.name])
        if place.optional:
            return ()
        raise missing(place.name, self._name)

    def _checked(self, values: Values) -> dict[str, Filling | Sequence[Message]]:
        """Return what values are in this conversation, whatever becomes of the values later."""
        check_known(values, self._variables, self._name)
        return {
            name: tuple(self._messages(name, value))
            if name in self._placeholders
            else filling(value, name, self._name)
            for name, value in values.items()
        }

    def _messages(self, name: str, value: object) -> Sequence[Message]:
        if is_messages(value):
            return cast("Sequence[Message]", value)
        raise unfit(name, self._name, f"is no list of messages: it is a `{type(value).__name__}`")

    def _refuse_two_meanings(self) -> None:
        texts = {
            each
            for part in self._parts
            for each in _variables_of(part)
            if each not in _placeholders_of(part)
        }
        for each in self._variables:
            if each in texts and each in self._placeholders:
                raise PromptError(
                    f"the template `{self._name}`: `{each}` is a placeholder for messages and a "
                    "variable in a text: give one of them another name",
                    template=self._name,
                    variable=each,
                    reason="setting",
                )


TemplatePart: TypeAlias = (
    PromptTemplate | MessagesPlaceholder | FewShot | MessagesTemplate | MessageBase
)
"""What a conversation is made of. Messages stand for themselves."""


def _parts(parts: object, template: str) -> tuple[TemplatePart, ...]:
    what = "templates, placeholders, examples and messages in a list"
    if not isinstance(parts, list | tuple):
        raise _not_made_of(template, what, parts)
    for part in cast("Sequence[Any]", parts):
        if not isinstance(part, TemplatePart):
            raise _not_made_of(template, what, part)
    return tuple(cast("Sequence[TemplatePart]", parts))


def _not_made_of(template: str, what: str, found: object) -> PromptError:
    return PromptError(
        f"the template `{template}` is made of {what}, not of a `{type(found).__name__}`",
        template=template,
        reason="setting",
    )


def _variables_of(part: TemplatePart) -> Mapping[str, bool]:
    """Return the variables and placeholders of a part, and whether each needs a value."""
    match part:
        case PromptTemplate() | MessagesTemplate():
            required = part.required
            return {each: each in required for each in part.variables}
        case MessagesPlaceholder():
            return {part.name: not part.optional}
        case _:
            return {}


def _placeholders_of(part: TemplatePart) -> Collection[str]:
    match part:
        case MessagesPlaceholder():
            return (part.name,)
        case MessagesTemplate():
            return part.placeholders
        case _:
            return ()
