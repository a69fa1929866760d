"""The four kinds of message."""

import operator
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, Field, JsonValue, TypeAdapter, WrapValidator

from ..usage import Usage
from ._blocks import (
    Block,
    BlockBase,
    Json,
    OptionalText,
    ProviderData,
    Text,
    ToolCallBlock,
    as_content,
    is_content,
    unset,
)

Content: TypeAlias = Annotated[list[Block], WrapValidator(as_content)]


def _done(outcome: str) -> bool:
    return outcome == "done"


class MessageBase(BaseModel, frozen=True, extra="forbid", defer_build=True):
    """What all messages share."""

    role: str
    """Who speaks; first in the JSON form."""
    id: OptionalText = None
    content: Content = Field(default_factory=list[Block])
    provider_data: ProviderData = None
    """What a provider needs back verbatim with the message, under that provider's name."""

    @property
    def text(self) -> str:
        """The text blocks, joined without a separator; no other block counts as text."""
        return "".join([block.text for block in self.content if block.type == "text"])


class SystemMessage(MessageBase, frozen=True):
    """Instructions of the application."""

    role: Literal["system"] = "system"
    name: OptionalText = None

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            content: str | BlockBase | Sequence[BlockBase] = ...,
            id: str | None = None,
            name: str | None = None,
            provider_data: dict[str, JsonValue] | None = None,
            role: Literal["system"] = "system",
        ) -> None: ...


class UserMessage(MessageBase, frozen=True):
    """What the user says, with any files and images."""

    role: Literal["user"] = "user"
    name: OptionalText = None
    """Tells several users apart, where the provider has a place for it."""

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            content: str | BlockBase | Sequence[BlockBase] = ...,
            id: str | None = None,
            name: str | None = None,
            provider_data: dict[str, JsonValue] | None = None,
            role: Literal["user"] = "user",
        ) -> None: ...


class AssistantMessage(MessageBase, frozen=True):
    """What a model answered."""

    role: Literal["assistant"] = "assistant"
    name: OptionalText = None
    usage: Annotated[Usage | None, Field(exclude_if=unset)] = None
    """What the call that made this message cost in tokens."""
    state: Annotated[Literal["partial"] | None, Field(exclude_if=unset)] = None
    """``partial`` when the answer was cut off by a cancellation or a failure."""

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            content: str | BlockBase | Sequence[BlockBase] = ...,
            id: str | None = None,
            name: str | None = None,
            usage: Usage | None = None,
            state: Literal["partial"] | None = None,
            provider_data: dict[str, JsonValue] | None = None,
            role: Literal["assistant"] = "assistant",
        ) -> None: ...

    @property
    def tool_calls(self) -> list[ToolCallBlock]:
        """The tool calls among the blocks, in order."""
        return [block for block in self.content if block.type == "tool_call"]

    @property
    def open_calls(self) -> list[ToolCallBlock]:
        """The tool calls that the application must answer.

        Those of tools that the provider ran itself have their result among the blocks.
        """
        calls = self.tool_calls
        if not calls:
            return calls
        done = {block.tool_call_id for block in self.content if block.type == "tool_result"}
        return [call for call in calls if call.id not in done] if done else calls

    @property
    def refusal(self) -> str | None:
        """The words in which the model declined, or ``None``."""
        texts = [block.text for block in self.content if block.type == "refusal"]
        return "".join(texts) if texts else None


ToolOutcome: TypeAlias = Literal["done", "interrupted", "not_started"]
"""What became of a call: ``interrupted``, the tool had begun and may have had effects; ``not_started``,
it never ran."""


class ToolMessage(MessageBase, frozen=True):
    """The result of one tool call."""

    role: Literal["tool"] = "tool"
    tool_call_id: Text
    name: OptionalText = None
    """The tool that ran, by the application's name for it."""
    is_error: Annotated[bool, Field(exclude_if=operator.not_)] = False
    outcome: Annotated[ToolOutcome, Field(exclude_if=_done)] = "done"
    trusted_verbatim: Annotated[bool, Field(exclude_if=operator.not_)] = False
    """Compaction and trimming leave the message alone."""
    artifact: Annotated[Json, Field(exclude_if=unset)] = None
    """The structured value behind the content, for the application; models never see it."""

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            tool_call_id: str,
            content: str | BlockBase | Sequence[BlockBase] = ...,
            name: str | None = None,
            is_error: bool = False,
            outcome: ToolOutcome = "done",
            trusted_verbatim: bool = False,
            artifact: JsonValue = None,
            id: str | None = None,
            provider_data: dict[str, JsonValue] | None = None,
            role: Literal["tool"] = "tool",
        ) -> None: ...


_PLAIN_FIELDS_SET = {"tool_call_id", "name", "content"}
"""Shared by all plain results: a message never changes, and its copies get sets of their own."""


def plain_tool_message(tool_call_id: str, name: str, content: list[Block]) -> ToolMessage:
    """Make the message of a plain result: ``ToolMessage(...)`` at a third of the cost.

    A long run makes very many. The id and the name are those of a call, which were checked with it;
    content that is more than blocks is checked here.
    """
    if not is_content(content):
        return ToolMessage(tool_call_id=tool_call_id, name=name, content=content)
    message = object.__new__(ToolMessage)
    put = object.__setattr__
    put(
        message,
        "__dict__",
        {
            "role": "tool",
            "id": None,
            "content": content,
            "provider_data": None,
            "tool_call_id": tool_call_id,
            "name": name,
            "is_error": False,
            "outcome": "done",
            "trusted_verbatim": False,
            "artifact": None,
        },
    )
    put(message, "__pydantic_fields_set__", _PLAIN_FIELDS_SET)
    put(message, "__pydantic_extra__", None)
    put(message, "__pydantic_private__", None)
    return message


Message: TypeAlias = Annotated[
    SystemMessage | UserMessage | AssistantMessage | ToolMessage, Field(discriminator="role")
]
"""Any message, told apart by ``role``."""


@cache
def _messages_adapter() -> "TypeAdapter[list[Message]]":
    # Built at first use: it costs a few milliseconds that an import should not.
    return TypeAdapter(list[Message])


def dump_messages(messages: Iterable[Message]) -> str:
    """Encode messages as a JSON array; what is unset or empty is left out."""
    return _messages_adapter().dump_json(list(messages)).decode()


def load_messages(data: str | bytes | list[Any]) -> list[Message]:
    """Decode what :func:`dump_messages` wrote, or the same as Python values.

    Raises:
        pydantic.ValidationError: The data does not describe messages; the error says where.
    """
    if isinstance(data, list):
        return _messages_adapter().validate_python(data)
    return _messages_adapter().validate_json(data)
