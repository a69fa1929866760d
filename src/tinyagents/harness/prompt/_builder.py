"""A request put together from parts that change seldom, before parts that change often."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias, cast

from ..errors import DuplicateNameError, InvalidRequestError
from ..message import Message, MessageBase, SystemMessage, UserMessage
from ..model import ModelRequest, PromptSegment, ResponseFormat, SegmentRole, ToolSchema
from ._fingerprint import prompt_fingerprint

PromptContent: TypeAlias = str | MessageBase | Sequence[MessageBase]
"""Text, a message, or messages."""


class PromptBuilder:
    """Lays out a request in segments, for the prompt caches of providers. It never changes.

    Each ``push_…`` returns a builder with one more segment, so that a common beginning can be kept
    and continued in several ways. Segments stand in the order in which they are pushed. A provider
    finds in its cache only what comes before the first difference: push what is stable first.

    A segment's id is its role unless one is given, with a number where the role has one already.
    """

    __slots__ = ("_messages", "_segments", "_tools")

    def __init__(self) -> None:
        self._segments: tuple[PromptSegment, ...] = ()
        self._messages: tuple[Message, ...] = ()
        self._tools: tuple[ToolSchema, ...] = ()

    @property
    def segments(self) -> tuple[PromptSegment, ...]:
        """The layout so far."""
        return self._segments

    @property
    def fingerprint(self) -> str:
        """The SHA-256 of the cacheable segments and the tools: see :func:`prompt_fingerprint`."""
        return prompt_fingerprint(self._request(()))

    def __repr__(self) -> str:
        return f"PromptBuilder({[segment.id for segment in self._segments]})"

    def push_system(self, content: PromptContent, *, id: str | None = None) -> "PromptBuilder":
        """Add who the model is and what always holds; text becomes a system message. Cacheable.

        Raises:
            DuplicateNameError: There is a segment of this id.
            InvalidRequestError: The content is neither text nor messages.
        """
        return self._with("system", _messages(content, SystemMessage), id)

    def push_tools_segment(
        self, tools: Iterable[ToolSchema], *, id: str | None = None
    ) -> "PromptBuilder":
        """Add tools: ``tool.schema`` of each. Cacheable; providers put them before all messages.

        Raises:
            DuplicateNameError: There is a segment of this id, or a tool of the same name.
            InvalidRequestError: A tool is none as models see it.
        """
        tools = (*self._tools, *_schemas(tools))
        for name, times in Counter(tool.name for tool in tools).items():
            if times > 1:
                raise DuplicateNameError(f"two tools are called `{name}`", name=name)
        builder = self._with("tools", (), id)
        builder._tools = tools
        return builder

    def push_instructions(
        self, content: PromptContent, *, id: str | None = None
    ) -> "PromptBuilder":
        """Add what the task is, with examples; text becomes a system message. Cacheable.

        Raises:
            DuplicateNameError: There is a segment of this id.
            InvalidRequestError: The content is neither text nor messages.
        """
        return self._with("instructions", _messages(content, SystemMessage), id)

    def push_history(
        self, messages: Sequence[MessageBase], *, id: str | None = None
    ) -> "PromptBuilder":
        """Add the conversation so far. Not part of the fingerprint, since it grows.

        Raises:
            DuplicateNameError: There is a segment of this id.
            InvalidRequestError: The content is neither text nor messages.
        """
        return self._with("history", _messages(messages, UserMessage), id)

    def push_volatile(self, content: PromptContent, *, id: str | None = None) -> "PromptBuilder":
        """Add what is another each time, such as the date; text becomes a user message.

        A system message would do harm here: providers with a place of its own for it put it before
        the history.

        Raises:
            DuplicateNameError: There is a segment of this id.
            InvalidRequestError: The content is neither text nor messages.
        """
        return self._with("volatile", _messages(content, UserMessage), id)

    def build(
        self, tail: PromptContent = (), *, response_format: ResponseFormat | None = None
    ) -> ModelRequest:
        """Return the request.

        Args:
            tail: What follows all segments: mostly the user's question; text becomes a user message.
            response_format: The form of the answer.

        Raises:
            InvalidRequestError: The tail is neither text nor messages.
        """
        request = self._request(_messages(tail, UserMessage))
        request.response_format = response_format
        request.prompt_fingerprint = prompt_fingerprint(request)
        return request

    def _request(self, tail: Sequence[Message]) -> ModelRequest:
        return ModelRequest([*self._messages, *tail], self._tools, segments=self._segments)

    def _with(
        self, role: SegmentRole, messages: Sequence[Message], id: str | None
    ) -> "PromptBuilder":
        builder = PromptBuilder()
        builder._messages = (*self._messages, *messages)
        builder._tools = self._tools
        segment = PromptSegment(
            id=self._free_id(role, id),
            role=role,
            cacheable=role not in ("history", "volatile"),
            messages=len(messages),
        )
        builder._segments = (*self._segments, segment)
        return builder

    def _free_id(self, role: SegmentRole, id: str | None) -> str:
        taken = {segment.id for segment in self._segments}
        if id is None:
            numbered = (f"{role}-{number}" for number in range(2, len(taken) + 3))
            return next(each for each in (role, *numbered) if each not in taken)
        if id in taken:
            raise DuplicateNameError(f"two segments are called `{id}`", name=id)
        return id


def _messages(
    content: PromptContent, kind: type[SystemMessage] | type[UserMessage]
) -> tuple[Message, ...]:
    """Return content as messages; an empty text is none."""
    if isinstance(content, str):
        return (kind(content=content),) if content else ()
    if isinstance(content, MessageBase):
        return (cast("Message", content),)
    parts: Sequence[Any] = content if isinstance(cast("Any", content), Sequence) else (content,)
    wrong = [part for part in parts if not isinstance(part, MessageBase)]
    if wrong:
        hint = "; render a template first" if hasattr(wrong[0], "render") else ""
        raise InvalidRequestError(
            f"a prompt is built of text and messages, not of a `{type(wrong[0]).__name__}`{hint}"
        )
    return tuple(cast("Sequence[Message]", parts))


def _schemas(tools: Iterable[ToolSchema]) -> tuple[ToolSchema, ...]:
    schemas = tuple(tools)
    for schema in schemas:
        if not isinstance(cast("Any", schema), ToolSchema):
            raise InvalidRequestError(
                f"`push_tools_segment` takes what models see of tools, the `schema` of each, not a "
                f"`{type(schema).__name__}`"
            )
    return schemas
