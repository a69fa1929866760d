"""Server-sent events and lines of JSON, from bytes as they come off the wire.

The format of events is WHATWG's (https://html.spec.whatwg.org/multipage/server-sent-events.html) with one
difference that real servers need: an event that is not followed by a blank line when the stream
ends counts as complete.
"""

from typing import NamedTuple

from ..errors import MalformedResponseError

_BOM = b"\xef\xbb\xbf"


class ServerSentEvent(NamedTuple):
    """One event. Its ``data`` stays bytes: JSON is decoded straight from them."""

    data: bytes
    event: bytes = b""
    """The event's name; empty where the server gave none."""


class SseParser:
    """Cuts a byte stream into events, however it was cut into chunks.

    Memory is bounded: by one line while it is incomplete, and by one event.

    Args:
        max_event_bytes: The most that one line, and the data of one event, may hold.
    """

    __slots__ = (
        "_data",
        "_data_size",
        "_event",
        "_limit",
        "_pieces",
        "_size",
        "_skip_newline",
        "_started",
    )

    def __init__(self, *, max_event_bytes: int) -> None:
        self._limit = max_event_bytes
        self._pieces: list[bytes] = []
        self._size = 0
        self._data: list[bytes] = []
        self._data_size = 0
        self._event = b""
        self._skip_newline = False
        self._started = False

    def feed(self, chunk: bytes) -> list[ServerSentEvent]:
        """Take the next bytes and return the events that they complete.

        Raises:
            MalformedResponseError: A line or an event is larger than the bound.
        """
        if not chunk:
            return []
        if self._skip_newline:
            # The chunk before ended in CR, which was taken as a line end: this LF belongs to it.
            self._skip_newline = False
            if chunk[0] == 0x0A:
                chunk = chunk[1:]
        if b"\r" in chunk:
            self._skip_newline = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if b"\n" not in chunk:
            self._hold(chunk)
            return []
        lines = chunk.split(b"\n")
        if self._pieces:
            self._pieces.append(lines[0])
            lines[0] = b"".join(self._pieces)
            self._pieces.clear()
        rest = lines.pop()
        self._size = 0
        if rest:
            self._hold(rest)
        return self._take(lines)

    def finish(self) -> list[ServerSentEvent]:
        """Return the event that the end of the stream completes, if there is one."""
        lines = [b"".join(self._pieces)] if self._pieces else []
        self._pieces.clear()
        return self._take([*lines, b""])

    def _take(self, lines: list[bytes]) -> list[ServerSentEvent]:
        events: list[ServerSentEvent] = []
        if not self._started and lines:
            self._started = True
            lines[0] = lines[0].removeprefix(_BOM)
        for line in lines:
            if not line:
                if self._data:
                    events.append(ServerSentEvent(b"\n".join(self._data), self._event))
                    self._data.clear()
                    self._data_size = 0
                self._event = b""
            elif line.startswith(b"data:"):
                self._data.append(line[6:] if line[5:6] == b" " else line[5:])
                self._data_size += len(line)
                if self._data_size > self._limit:
                    self._refuse()
            elif line.startswith(b"event:"):
                self._event = line[6:].strip()
            elif line == b"data":
                self._data.append(b"")
        return events

    def _hold(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self._limit:
            self._refuse()
        self._pieces.append(piece)

    def _refuse(self) -> None:
        raise _too_large(self._limit)


class JsonLineParser:
    """Cuts a byte stream into lines, each of which is one JSON document.

    A line is handed out as an event without a name, so that a reader need not know which of the two
    forms it reads. Empty lines are none. Memory is bounded by one line.

    Args:
        max_event_bytes: The most that one line may hold.
    """

    __slots__ = ("_limit", "_pieces", "_size")

    def __init__(self, *, max_event_bytes: int) -> None:
        self._limit = max_event_bytes
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[ServerSentEvent]:
        """Take the next bytes and return the lines that they complete.

        Raises:
            MalformedResponseError: A line is larger than the bound.
        """
        *lines, rest = chunk.split(b"\n")
        if lines:
            lines[0] = b"".join([*self._pieces, lines[0]])
            self._pieces.clear()
            self._size = 0
        self._size += len(rest)
        if self._size > self._limit or any(len(line) > self._limit for line in lines):
            raise _too_large(self._limit)
        if rest:
            self._pieces.append(rest)
        return _as_events(lines)

    def finish(self) -> list[ServerSentEvent]:
        """Return the line that the end of the stream completes, if there is one."""
        last = b"".join(self._pieces)
        self._pieces.clear()
        return _as_events([last])


def _as_events(lines: list[bytes]) -> list[ServerSentEvent]:
    texts = (line.removeprefix(_BOM).strip() for line in lines)
    return [ServerSentEvent(text) for text in texts if text]


def _too_large(limit: int) -> MalformedResponseError:
    return MalformedResponseError(
        f"the stream holds an event of more than {limit} bytes (`max_event_bytes`)"
    )
