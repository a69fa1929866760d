"""The calls of an answer, out of its text."""

from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import replace

from ..ids import IdGenerator
from ..message import AssistantMessage, Block, TextBlock, ToolCallBlock
from ..model import (
    MessageDelta,
    ModelRequest,
    ModelResponse,
    ModelStreamItem,
    StreamCompleted,
    StreamFailed,
    StreamMerger,
    ToolCallDelta,
    closing_stream,
)
from ..text import dump_json
from ._dialect import ReplyPiece, ReplyReader, TextCall, ToolDialect
from ._replay import looks_for_calls

_KIND = "tacall"
"""No provider's own ids begin so."""


def guided_response(
    response: ModelResponse, request: ModelRequest, dialect: ToolDialect, ids: IdGenerator
) -> ModelResponse:
    """Return an answer with the calls that its text makes as tool calls.

    They are looked for only where tools were offered and the answer has no calls of its own. An
    answer without any is returned as it is. The arguments are not checked here: those that are no
    object make a call with ``invalid`` set.

    Args:
        response: What the model answered; it is not changed.
        request: The request, as it was before :func:`guided_request`.
        dialect: How the tools were written.
        ids: Where the ids of the calls come from.
    """
    if not looks_for_calls(request) or response.message.tool_calls:
        return response
    reader = dialect.reader(request.tools)
    content = _read_content(response.message, reader, ids)
    notices = (*response.notices, *reader.notices)
    if content is None:
        return replace(response, notices=notices) if reader.notices else response
    reason = response.finish_reason
    return replace(
        response,
        message=response.message.model_copy(update={"content": content}),
        # A reason that tells of a cut or a filter outranks the calls.
        finish_reason="tool_calls" if reason in (None, "stop", "other") else reason,
        notices=notices,
    )


async def guided_stream(
    items: AsyncIterable[ModelStreamItem],
    request: ModelRequest,
    dialect: ToolDialect,
    ids: IdGenerator,
) -> AsyncIterator[ModelStreamItem]:
    """Yield a stream in which the calls that the text makes are tool calls, and no text.

    Text is held back only while it may be part of a call. The last item is the whole answer, as
    :func:`guided_response` makes it; ``items`` is closed before it.

    Args:
        items: What the model streams.
        request: The request, as it was before :func:`guided_request`.
        dialect: How the tools were written.
        ids: Where the ids of the calls come from.
    """
    merger = StreamMerger()
    scrubber = _Scrubber(dialect.reader(request.tools) if looks_for_calls(request) else None, ids)
    async with closing_stream(items):
        async for item in items:
            if isinstance(item, StreamFailed):
                yield item
                return
            merger.add(item)
            if merger.completed is not None:
                break
            for shown in scrubber.take(item):
                yield shown
    for shown in scrubber.finish():
        yield shown
    known = _KnownIds(scrubber.ids, ids)
    yield StreamCompleted(guided_response(merger.response(), request, dialect, known))


def _read_content(
    message: AssistantMessage, reader: ReplyReader, ids: IdGenerator
) -> list[Block] | None:
    """Return the content with the calls of its text in their places; ``None`` without any."""
    read: list[tuple[Block, list[ReplyPiece]]] = []
    last: list[ReplyPiece] = []
    for block in message.content:
        if block.type == "text":
            last = reader.feed(block.text)
        read.append((block, last if block.type == "text" else []))
    last.extend(reader.finish())
    if not any(isinstance(piece, TextCall) for _, pieces in read for piece in pieces):
        return None
    content: list[Block] = []
    for block, pieces in read:
        if block.type == "text" and "".join(map(_text, pieces)) != block.text:
            content.extend(_piece_block(piece, ids) for piece in pieces)
        else:
            content.append(block)
    return content


def _text(piece: ReplyPiece) -> str:
    return piece if isinstance(piece, str) else ""


def _piece_block(piece: ReplyPiece, ids: IdGenerator) -> Block:
    if isinstance(piece, str):
        return TextBlock(text=piece)
    return ToolCallBlock(
        id=ids.new(_KIND), name=piece.name, arguments=piece.arguments, invalid=piece.invalid
    )


class _Scrubber:
    """Makes of the items of a stream those that are shown.

    Args:
        reader: Reads the text; ``None`` for a stream that is shown as it is.
        ids: Where the ids of the calls come from.
    """

    def __init__(self, reader: ReplyReader | None, ids: IdGenerator) -> None:
        self._reader = reader
        self._new_id = ids.new
        self.ids: list[str] = []
        """The ids of the calls so far."""

    def take(self, item: ModelStreamItem) -> list[ModelStreamItem]:
        """Take the next item."""
        if self._reader is None:
            return [item]
        if isinstance(item, ToolCallDelta) and (item.call_id or item.name or item.arguments):
            # The model makes calls of its own, so its text is text.
            held, self._reader = self._reader.finish(), None
            return [*(MessageDelta(text=text) for text in held if isinstance(text, str)), item]
        if not isinstance(item, MessageDelta) or not item.text:
            return [item]
        pieces = self._reader.feed(item.text)
        if pieces == [item.text]:
            return [item]
        shown = [self._item(piece) for piece in pieces]
        if item.reasoning:
            shown.insert(0, MessageDelta(reasoning=item.reasoning))
        if item.refusal:
            shown.append(MessageDelta(refusal=item.refusal))
        return shown

    def finish(self) -> list[ModelStreamItem]:
        """Return what was held back; the stream has ended."""
        return (
            [] if self._reader is None else [self._item(piece) for piece in self._reader.finish()]
        )

    def _item(self, piece: ReplyPiece) -> ModelStreamItem:
        if isinstance(piece, str):
            return MessageDelta(text=piece)
        call_id = self._new_id(_KIND)
        self.ids.append(call_id)
        arguments = dump_json(piece.arguments) if piece.invalid is None else piece.invalid.raw
        return ToolCallDelta(call_id, piece.name, arguments, len(self.ids) - 1)


class _KnownIds:
    """Gives the ids that a stream has shown once more, and new ones after them."""

    def __init__(self, known: list[str], ids: IdGenerator) -> None:
        self._known = iter(known)
        self._ids = ids

    def new(self, kind: str, /) -> str:
        """Return the next id."""
        return next(self._known, None) or self._ids.new(kind)
