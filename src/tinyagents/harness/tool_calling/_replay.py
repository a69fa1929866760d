"""A conversation with tools, told in text alone."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import cast

from ..message import (
    AssistantMessage,
    Block,
    Message,
    SystemMessage,
    TextBlock,
    ToolCallBlock,
    ToolMessage,
    UserMessage,
    repair_messages,
)
from ..model import ModelRequest, PromptSegment
from ._dialect import ToolDialect

_GO_ON = "Go on."
_MEDIA = frozenset(("image", "audio", "file"))


def guided_request(request: ModelRequest, dialect: ToolDialect) -> ModelRequest:
    """Return the request for a model without tools: all that concerns tools is text in it.

    The instructions with the tools stand at the end of the first system message, or in a new one.
    Earlier calls and results are text, the results of one turn together in one user message. Where
    no user has said anything, a short user message stands behind the system messages, since many
    chat templates fail without one. A request that has nothing to do with tools is returned as it
    is.

    Args:
        request: The request; it is not changed.
        dialect: How tools are written as text.
    """
    if not request.tools and not any(map(_concerns_tools, request.messages)):
        return request
    repair = repair_messages(request.messages)
    told = _Told(dialect, request)
    told.tell(repair.messages)
    if looks_for_calls(request):
        told.instruct()
    told.ensure_user()
    settings = request.settings
    if settings.parallel_tool_calls is not None:
        settings = settings.model_copy(update={"parallel_tool_calls": None})
    return replace(
        request,
        messages=told.messages,
        tools=(),
        tool_choice="auto",
        settings=settings,
        segments=() if repair.changed else told.segments(),
    )


def looks_for_calls(request: ModelRequest) -> bool:
    """Whether the answer to a request may hold calls: tools were offered and may be called."""
    return bool(request.tools) and request.tool_choice != "none"


def _concerns_tools(message: Message) -> bool:
    return message.role == "tool" or (message.role == "assistant" and bool(message.open_calls))


class _Told:
    """The messages of the new request, and how many of the old ones each of them stands for."""

    def __init__(self, dialect: ToolDialect, request: ModelRequest) -> None:
        self.messages: list[Message] = []
        self._stands_for: list[int] = []
        self._dialect = dialect
        self._request = request
        self._names: dict[str, str] = {}

    def tell(self, messages: Sequence[Message]) -> None:
        """Take over the conversation."""
        for is_result, run in groupby(messages, lambda message: message.role == "tool"):
            if is_result:
                results = list(cast("Iterator[ToolMessage]", run))
                self._add(self._results(results), len(results))
                continue
            for message in run:
                self._add(self._said(message) if message.role == "assistant" else message, 1)

    def instruct(self) -> None:
        """Add the instructions to the first system message, or in a new one."""
        request = self._request
        text = self._dialect.instructions(
            request.tools,
            request.tool_choice,
            parallel=request.settings.parallel_tool_calls is not False,
        )
        for position, message in enumerate(self.messages):
            if message.role == "system":
                block = TextBlock(text=f"\n\n{text}" if message.content else text)
                content = [*message.content, block]
                self.messages[position] = message.model_copy(update={"content": content})
                return
        self._insert(0, SystemMessage(content=text))

    def ensure_user(self) -> None:
        """Make sure that a user has said something."""
        if any(
            message.role == "user" and _says_something(message)
            for message in self._request.messages
        ):
            return
        roles = [message.role for message in self.messages]
        first = next((at for at, role in enumerate(roles) if role != "system"), len(roles))
        self._insert(first, UserMessage(content=_GO_ON))

    def segments(self) -> tuple[PromptSegment, ...]:
        """Return the layout of the request in its new messages."""
        laid_out: list[PromptSegment] = []
        end = reached = position = 0
        for segment in self._request.segments:
            end += segment.messages
            first = position
            while position < len(self._stands_for) and reached + self._stands_for[position] <= end:
                reached += self._stands_for[position]
                position += 1
            laid_out.append(replace(segment, messages=position - first))
        return tuple(laid_out)

    def _add(self, message: Message, stands_for: int) -> None:
        self.messages.append(message)
        self._stands_for.append(stands_for)

    def _insert(self, position: int, message: Message) -> None:
        self.messages.insert(position, message)
        self._stands_for.insert(position, 0)

    def _said(self, message: AssistantMessage) -> AssistantMessage:
        """Return an answer with the calls that the application ran as text."""
        calls = message.open_calls
        if not calls:
            return message
        # Only the latest turn is answered next, and ids may repeat from turn to turn.
        self._names = {call.id: call.name for call in calls}
        content: list[Block] = []
        for is_call, run in groupby(message.content, self._is_open):
            if not is_call:
                content.extend(run)
                continue
            text = self._dialect.write_calls(
                list(cast("Iterator[ToolCallBlock]", run)), self._request.tools
            )
            before = content[-1] if content else None
            on_new_line = before is None or before.type != "text" or before.text.endswith("\n")
            content.append(TextBlock(text=text if on_new_line else f"\n{text}"))
        return message.model_copy(update={"content": content})

    def _is_open(self, block: Block) -> bool:
        return block.type == "tool_call" and block.id in self._names

    def _results(self, results: list[ToolMessage]) -> UserMessage:
        named = [
            result
            if result.name
            else result.model_copy(update={"name": self._names.get(result.tool_call_id)})
            for result in results
        ]
        content: list[Block] = [TextBlock(text=self._dialect.write_results(named))]
        content.extend(block for each in results for block in each.content if block.type in _MEDIA)
        return UserMessage(content=content)


def _says_something(message: UserMessage) -> bool:
    return any(block.type != "text" or block.text.strip() for block in message.content)
