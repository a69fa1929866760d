"""A conversation with variables in it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from ..errors import PromptError
from ..message import Message, MessageBase
from ._syntax import is_name
from ._template import PromptTemplate
from ._values import NO_VALUES, Values, check_known, missing, unfit


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
            raise PromptError(
                f"{self.name[:40]!r} is no name of a placeholder, which is a letter, then letters, "
                "digits and `_`",
                template=self.name,
                variable=self.name,
                reason="syntax",
            )


class FewShot:
    """Examples for the model: the same templates, once with the values of each example.

    Args:
        templates: What one example is made of: mostly the user's question and the answer to it.
        examples: The values of each example.

    Raises:
        PromptError: An example lacks a value, or has one that belongs to no variable.
    """

    __slots__ = ("_messages",)

    def __init__(
        self, templates: Sequence[PromptTemplate], examples: Sequence[Mapping[str, object]]
    ) -> None:
        one = MessagesTemplate(templates, name="few-shot examples")
        self._messages: tuple[Message, ...] = tuple(
            message for values in examples for message in one.render(values)
        )

    @property
    def messages(self) -> tuple[Message, ...]:
        """The rendered examples: the same objects each time."""
        return self._messages


TemplatePart: TypeAlias = PromptTemplate | MessagesPlaceholder | FewShot | MessageBase
"""What a conversation is made of. Messages stand for themselves."""


class MessagesTemplate:
    """A conversation with variables, rendered in order. It never changes.

    A variable that several of its templates use has the same value in all of them.

    Args:
        parts: Templates, placeholders, examples and messages.
        name: What errors call it.

    Raises:
        PromptError: The name of a placeholder is also that of a variable in a text, or a part is
            none.
    """

    __slots__ = ("_name", "_parts", "_required", "_variables")

    def __init__(self, parts: Sequence[TemplatePart], *, name: str | None = None) -> None:
        self._name: str = "messages" if name is None else name
        self._parts: tuple[TemplatePart, ...] = tuple(parts)
        variables: dict[str, bool] = {}
        lists: set[str] = set()
        for part in self._parts:
            if isinstance(part, PromptTemplate):
                for each in part.variables:
                    variables[each] = variables.get(each, False) or each in part.required
            elif isinstance(part, MessagesPlaceholder):
                lists.add(part.name)
                variables[part.name] = variables.get(part.name, False) or not part.optional
            elif not isinstance(cast("Any", part), FewShot | MessageBase):
                raise PromptError(
                    f"the template `{self._name}`: a part is a `PromptTemplate`, a `MessagesPlaceholder`, a "
                    f"`FewShot` or a message, not a `{type(part).__name__}`",
                    template=self._name,
                    reason="setting",
                )
        self._refuse_two_meanings(lists)
        self._variables: tuple[str, ...] = tuple(variables)
        self._required: tuple[str, ...] = tuple(each for each in variables if variables[each])

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the variables and placeholders, in the order of their first place."""
        return self._variables

    @property
    def required(self) -> tuple[str, ...]:
        """Those that need a value."""
        return self._required

    def __repr__(self) -> str:
        return f"MessagesTemplate({self._name!r}, variables={self._variables})"

    def render(self, values: Values = NO_VALUES, /) -> list[Message]:
        """Return the messages with these values.

        Raises:
            PromptError: A variable has no value, a value no variable, a value no form as text, or
                a placeholder's value is no list of messages.
        """
        check_known(values, self._variables, self._name)
        messages: list[Message] = []
        for part in self._parts:
            match part:
                case PromptTemplate():
                    messages.append(part.render(part.pick(values)))
                case MessagesPlaceholder():
                    messages.extend(self._given(part, values))
                case FewShot():
                    messages.extend(part.messages)
                case _:
                    messages.append(cast("Message", part))
        return messages

    def _given(self, place: MessagesPlaceholder, values: Values) -> Sequence[Message]:
        """Return the messages for a placeholder."""
        if place.name not in values:
            if place.optional:
                return ()
            raise missing(place.name, self._name)
        value = values[place.name]
        if isinstance(value, list | tuple):
            items = cast("Sequence[Any]", value)
            if all(isinstance(item, MessageBase) for item in items):
                return items
        raise unfit(place.name, self._name, "is no list of messages")

    def _refuse_two_meanings(self, lists: set[str]) -> None:
        for part in self._parts:
            for each in part.variables if isinstance(part, PromptTemplate) else ():
                if each in lists:
                    raise PromptError(
                        f"the template `{self._name}`: `{each}` is a placeholder for messages and a variable in a "
                        "text: give one of them another name",
                        template=self._name,
                        variable=each,
                        reason="setting",
                    )
