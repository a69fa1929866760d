"""What a model's stream is made of, and how it becomes one message."""

from collections.abc import AsyncGenerator, AsyncIterable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, TypeVar

import anyio

from ..concurrency import CLEAN_UP_SECONDS
from ..errors import ModelError
from ..message import (
    AssistantMessage,
    Block,
    ReasoningBlock,
    RefusalBlock,
    TextBlock,
    ToolCallBlock,
)
from ..usage import Usage
from ._arguments import parse_arguments, parse_repeated
from ._response import ModelResponse


@dataclass(slots=True)
class StreamStarted:
    """The provider has begun to answer."""

    response_id: str | None = None
    model: str | None = None


@dataclass(slots=True)
class MessageDelta:
    """A piece of the answer. Where one holds several, reasoning came before text before refusal."""

    text: str = ""
    reasoning: str = ""
    refusal: str = ""


@dataclass(slots=True)
class ToolCallDelta:
    """A piece of a tool call. Any part may be missing: see :class:`ToolCallAssembler`."""

    call_id: str = ""
    name: str = ""
    arguments: str = ""
    index: int | str | None = None


@dataclass(slots=True)
class UsageDelta:
    """The usage so far: it replaces what an earlier one said."""

    usage: Usage


@dataclass(slots=True)
class StreamCompleted:
    """The whole answer, which has the last word over the pieces. Nothing follows it."""

    response: ModelResponse


@dataclass(slots=True)
class StreamFailed:
    """The call failed after it had begun. Nothing follows it."""

    error: ModelError


ModelStreamItem: TypeAlias = (
    StreamStarted | MessageDelta | ToolCallDelta | UsageDelta | StreamCompleted | StreamFailed
)


PieceKind: TypeAlias = Literal["text", "reasoning", "refusal", "tool_call"]
"""What a piece of an answer can be of."""


class _Call:
    __slots__ = ("fragments", "id", "index", "name", "position")

    def __init__(self, position: int) -> None:
        self.position = position
        self.index: str | None = None
        self.id = ""
        self.name = ""
        self.fragments: list[str] = []

    def block(self) -> ToolCallBlock:
        raw = "".join(self.fragments)
        arguments, invalid = parse_repeated(raw)
        return ToolCallBlock(
            id=self.id or f"call_{self.position}",
            name=self.name,
            arguments=arguments,
            invalid=invalid,
        )

    def is_complete(self) -> bool:
        """Whether the arguments are an object already, so that nothing can be missing."""
        if not self.fragments or not self.fragments[-1].rstrip().endswith("}"):
            return False
        return parse_arguments("".join(self.fragments))[1] is None


class ToolCallAssembler:
    """Puts streamed pieces of tool calls together.

    A piece belongs to the call of its index, except that a new id at a known index begins another
    call, which later pieces of that index without an id follow; without an index to the call of its
    id; with neither to the call that was opened last, unless it has another name or that call's
    arguments are complete. Empty ids and names change nothing, and arguments that come a second
    time, whole, count once.
    """

    __slots__ = ("_by_id", "_by_index", "_calls")

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._by_id: dict[str, _Call] = {}
        self._by_index: dict[str, _Call] = {}

    def __len__(self) -> int:
        return len(self._calls)

    def add(self, delta: ToolCallDelta) -> int:
        """Take one piece and return the position of the call that it belongs to."""
        call = self._call_of(delta)
        if delta.call_id and not call.id:
            call.id = delta.call_id
            self._by_id[delta.call_id] = call
        if delta.name and not call.name:
            call.name = delta.name
        if delta.arguments:
            call.fragments.append(delta.arguments)
        return call.position

    @property
    def characters(self) -> int:
        """How many characters of names and arguments have come."""
        return sum(len(call.name) + sum(map(len, call.fragments)) for call in self._calls)

    def id_of(self, position: int) -> str:
        """Return the id of the call at ``position``; empty while none is known."""
        return self._calls[position].id

    def blocks(self) -> dict[int, ToolCallBlock]:
        """Return the calls so far by position, without those that have no name nor arguments."""
        return {call.position: call.block() for call in self._calls if call.name or call.fragments}

    def _call_of(self, delta: ToolCallDelta) -> _Call:
        if delta.index is not None:
            # "0" and 0 are the same index; some gateways mix them.
            index = str(delta.index)
            call = self._by_index.get(index)
            if call is None or (delta.call_id and call.id and call.id != delta.call_id):
                call = self._by_id.get(delta.call_id)
                # Some models give all of their calls one id: then the index tells them apart.
                if call is None or call.index not in (None, index):
                    call = self._open()
                call.index = index
                self._by_index[index] = call
            return call
        if delta.call_id:
            return self._by_id.get(delta.call_id) or self._open()
        if not self._calls:
            return self._open()
        last = self._calls[-1]
        begins_another = delta.name and (
            last.name not in ("", delta.name) or (delta.arguments and last.is_complete())
        )
        return self._open() if begins_another else last

    def _open(self) -> _Call:
        call = _Call(len(self._calls))
        self._calls.append(call)
        return call


class StreamMerger:
    """Builds the message of a stream from its items, one after the other.

    Text, reasoning and refusal are joined as long as they follow each other; a piece of another
    kind begins a new block. Calls stand in the order in which they began. However the pieces are
    cut, the same blocks result.
    """

    __slots__ = ("_blocks", "_kind", "_pieces", "calls", "completed", "started", "usage")

    def __init__(self) -> None:
        self._blocks: list[TextBlock | ReasoningBlock | RefusalBlock | int] = []
        """What is closed; a number is the position of a call."""
        self._kind = ""
        self._pieces: list[str] = []
        self.calls: ToolCallAssembler = ToolCallAssembler()
        self.started: StreamStarted | None = None
        self.usage: Usage | None = None
        self.completed: ModelResponse | None = None

    @property
    def empty(self) -> bool:
        """Whether no piece of an answer has come yet."""
        return not (self._blocks or self._pieces)

    @property
    def characters(self) -> int:
        """How many characters have come, reasoning and tool calls included."""
        closed = sum(len(block.text) for block in self._blocks if not isinstance(block, int))
        return closed + sum(map(len, self._pieces)) + self.calls.characters

    @property
    def kinds(self) -> set[PieceKind]:
        """Of what the pieces so far were."""
        kinds: set[PieceKind] = {
            "tool_call" if isinstance(block, int) else block.type for block in self._blocks
        }
        if self._pieces:
            kinds.add(self._open_block().type)
        return kinds

    def add(self, item: ModelStreamItem) -> None:
        """Take the next item.

        Raises:
            ModelError: The item says that the call failed.
        """
        match item:
            case MessageDelta():
                if item.reasoning:
                    self.pieces_of("reasoning").append(item.reasoning)
                if item.text:
                    self.pieces_of("text").append(item.text)
                if item.refusal:
                    self.pieces_of("refusal").append(item.refusal)
            case ToolCallDelta():
                if not (item.call_id or item.name or item.arguments):
                    return  # it says nothing, and must not cut the text around it in two
                known = len(self.calls)
                position = self.calls.add(item)
                if position == known:
                    self._close()
                    self._blocks.append(position)
            case UsageDelta():
                self.usage = item.usage if self.usage is None else self.usage.updated(item.usage)
            case StreamCompleted():
                self.completed = item.response
            case StreamFailed():
                raise item.error
            case StreamStarted():
                self.started = item

    def pieces_of(self, kind: Literal["text", "reasoning", "refusal"]) -> list[str]:
        """Return where to put pieces of this kind, for as long as they follow each other."""
        if kind != self._kind:
            self._close()
            self._kind = kind
        return self._pieces

    def response(self) -> ModelResponse:
        """Return the answer: the provider's own, or what the pieces make when none came.

        Usage that the answer lacks is taken from the stream.
        """
        done = self.completed
        if done is None:
            started = self.started or StreamStarted()
            return ModelResponse(
                message=self.message(), response_id=started.response_id, model=started.model
            )
        if self.usage is not None and done.message.usage is None:
            return replace(done, message=done.message.model_copy(update={"usage": self.usage}))
        return done

    def message(self, *, partial: bool = False) -> AssistantMessage:
        """Return the message that the pieces so far make; more of them may follow.

        Args:
            partial: Mark it as cut off, and leave out its calls, which are not complete.
        """
        calls = {} if partial else self.calls.blocks()
        content: list[Block] = []
        for block in self._blocks:
            if not isinstance(block, int):
                content.append(block)
            elif block in calls:
                content.append(calls[block])
        if self._pieces:
            content.append(self._open_block())
        return AssistantMessage(
            content=content, usage=self.usage, state="partial" if partial else None
        )

    def _close(self) -> None:
        if self._pieces:
            self._blocks.append(self._open_block())
            self._pieces = []
        self._kind = ""

    def _open_block(self) -> TextBlock | ReasoningBlock | RefusalBlock:
        text = "".join(self._pieces)
        match self._kind:
            case "text":
                return TextBlock(text=text)
            case "reasoning":
                return ReasoningBlock(text=text)
            case _:
                return RefusalBlock(text=text)


def merge_stream(items: Iterable[ModelStreamItem]) -> ModelResponse:
    """Return the one answer that the items of a stream make.

    Raises:
        ModelError: The stream failed; a failure outranks a completion.
    """
    merger = StreamMerger()
    for item in items:
        merger.add(item)
    return merger.response()


_Stream = TypeVar("_Stream", bound=AsyncIterable[ModelStreamItem])


async def drain(stream: AsyncIterable[ModelStreamItem]) -> ModelResponse:
    """Read a stream to its end and return the answer: how a plain call is made from a stream.

    The completed answer is the end; the stream is closed then, as it is when it fails or its
    reader is cancelled.

    Raises:
        ModelError: The stream failed.
    """
    merger = StreamMerger()
    async with closing_stream(stream):
        async for item in stream:
            merger.add(item)
            if merger.completed is not None:
                break
    return merger.response()


@asynccontextmanager
async def closing_stream(stream: _Stream) -> AsyncGenerator[_Stream]:
    """Close ``stream`` when the block is left, even by a cancellation, if it can be closed.

    Closing may take as long as any clean-up does, and then is left.
    """
    try:
        yield stream
    finally:
        close = getattr(stream, "aclose", None)
        if close is not None:
            with anyio.move_on_after(CLEAN_UP_SECONDS, shield=True):
                await close()
