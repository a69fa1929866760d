"""Reading a streamed answer: from bytes to the items of a stream, whichever the API."""

from collections.abc import Mapping
from typing import Any, Protocol

import orjson

from ..errors import MalformedResponseError, ModelError, NetworkError
from ..model import ModelResponse, ModelStreamItem, StreamCompleted
from ..text import parse_json
from ._endpoint import Origin
from ._json import as_object
from ._sse import JsonLineParser, ServerSentEvent, SseParser
from ._transport import HttpStream

_DONE = b"[DONE]"
_DOCUMENT_STARTS = frozenset({b"{", b"[", b'"', b"<"})
_EVENT_STARTS = frozenset({b"", b":", b"d", b"e", b"i", b"r", b"\xef"})
"""First bytes of an event stream: a comment, a field's name, a byte order mark, or a blank line."""


class AnswerAssembler(Protocol):
    """Puts an answer of one API together."""

    @property
    def started(self) -> bool:
        """Whether anything of an answer has come."""
        ...

    @property
    def complete(self) -> bool:
        """Whether the stream may end here without a loss."""
        ...

    @property
    def ended(self) -> bool:
        """Whether the API's own end mark has come: what follows is not read."""
        ...

    def add(self, document: Mapping[str, Any], /) -> list[ModelStreamItem]:
        """Take a piece of a stream and return its items; raise a ``ModelError`` that it holds."""
        ...

    def add_whole(self, document: Mapping[str, Any], /) -> list[ModelStreamItem]:
        """Take an answer that came in one piece."""
        ...

    def finish(self) -> tuple[list[ModelStreamItem], ModelResponse]:
        """Return the last items, and the response."""
        ...


def read_whole(
    body: bytes, assembler: AnswerAssembler, origin: Origin
) -> tuple[list[ModelStreamItem], ModelResponse]:
    """Read an answer that came in one piece: its items, without the last, and the response."""
    items = assembler.add_whole(origin.document(body))
    last, response = assembler.finish()
    return [*items, *last], response


class AnswerReader:
    """Reads a streamed answer, as many items at a time as came at once.

    Args:
        response: The answer, with a status of success. Closed by whoever opened it.
        parser: Cuts its bytes into events.
        assembler: Takes the document of each event.
        origin: Whose answer it is.
    """

    __slots__ = ("_assembler", "_begun", "_ended", "_failure", "_origin", "_parser", "_response")

    def __init__(
        self,
        response: HttpStream,
        parser: SseParser | JsonLineParser,
        assembler: AnswerAssembler,
        origin: Origin,
    ) -> None:
        self._response = response
        self._parser = parser
        self._assembler = assembler
        self._origin = origin
        self._failure: ModelError | None = None
        self._begun = False
        self._ended = False

    async def next_items(self) -> list[ModelStreamItem]:
        """Return the next items; none after the last one, which is ``StreamCompleted``.

        Raises:
            ModelError: The call failed. All items before the failure were returned.
        """
        while not self._ended:
            if self._failure is not None:
                raise self._failure
            chunk = await self._response.next_chunk()
            if not self._begun:
                self._begun = True
                if chunk is not None and self._is_document(chunk):
                    return await self._whole(chunk)
            events = self._parser.finish() if chunk is None else self._parser.feed(chunk)
            items, done = self._take(events)
            if done or (chunk is None and not self._has_failed()):
                items += await self._finish(done=done)
            if items:
                return items
        return []

    def _has_failed(self) -> bool:
        # Asked by a call, since type checkers hold that nothing has changed since the first look.
        return self._failure is not None

    def _is_document(self, first: bytes) -> bool:
        """Whether a server answers a streaming request with a plain document after all."""
        if isinstance(self._parser, JsonLineParser):
            return False  # every line is a document, and so is a single one
        head = first.lstrip()[:1]
        if head in _DOCUMENT_STARTS:
            return True
        if "event-stream" in self._response.headers.get("content-type", ""):
            return False
        return head not in _EVENT_STARTS

    def _take(self, events: list[ServerSentEvent]) -> tuple[list[ModelStreamItem], bool]:
        """Return the items of the events, and whether the end mark was among them."""
        items: list[ModelStreamItem] = []
        try:
            for event in events:
                if event.data == _DONE:
                    return items, True
                document = self._decode(event)
                if document is not None:
                    items += self._assembler.add(document)
                    if self._assembler.ended:
                        return items, True
        except ModelError as exc:
            # What came before the failure is the reader's; it raises when asked for more.
            self._failure = exc
        return items, False

    def _decode(self, event: ServerSentEvent) -> dict[str, Any] | None:
        """Return the event's document; ``None`` for a keep-alive."""
        try:
            document = as_object(orjson.loads(event.data))
        except orjson.JSONDecodeError:
            document = as_object(self._decode_oddity(event))
        if event.event == b"error" and document is not None and not document.get("error"):
            return {"error": document}
        return document

    def _decode_oddity(self, event: ServerSentEvent) -> Any:
        if event.event == b"error":
            return {"error": event.data.decode("utf-8", "replace")}
        # A line that is no JSON keeps a connection alive among events; among documents it is wrong.
        by_line = isinstance(self._parser, JsonLineParser)
        if not by_line and not event.data.lstrip().startswith((b"{", b"[")):
            return None
        try:
            # The escapes of half a character, which orjson refuses and models do send.
            return parse_json(event.data)
        except ValueError as exc:
            # Skipping it would lose a piece of the answer without a sign.
            raise MalformedResponseError(
                f"a chunk of the stream is no JSON: {exc}", retryable=True, **self._origin.facts
            ) from exc

    async def _whole(self, first: bytes) -> list[ModelStreamItem]:
        """Take a plain document, which a server sent although it was asked for a stream."""
        self._ended = True
        body = await self._response.read(first)
        items, response = read_whole(body, self._assembler, self._origin)
        return [*items, StreamCompleted(response)]

    async def _finish(self, *, done: bool) -> list[ModelStreamItem]:
        if not done and not self._assembler.complete:
            self._failure = NetworkError(
                "the stream ended before the answer was complete", **self._origin.facts
            )
            return []
        if not self._assembler.started:
            raise MalformedResponseError("the stream holds no answer", **self._origin.facts)
        if done:
            await self._response.drain()
        try:
            items, response = self._assembler.finish()
        except ModelError as exc:
            self._failure = exc
            return []
        self._ended = True
        return [*items, StreamCompleted(response)]
