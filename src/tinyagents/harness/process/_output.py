"""Keeping the beginning and the end of an output, however long it is."""

from collections import deque


class HeadAndTail:
    """The first and the last bytes of a stream, up to ``limit`` of them together."""

    __slots__ = ("_head", "_head_limit", "_tail", "_tail_limit", "_tail_size", "total")

    def __init__(self, limit: int) -> None:
        self._head_limit = (limit + 1) // 2
        self._tail_limit = limit - self._head_limit
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self.total = 0

    def add(self, chunk: bytes) -> None:
        """Take the next bytes."""
        self.total += len(chunk)
        if room := self._head_limit - len(self._head):
            self._head += chunk[:room]
            chunk = chunk[room:]
        if chunk:
            self._tail.append(chunk)
            self._tail_size += len(chunk)
        # Whole chunks go while the rest is enough, so that no byte is copied twice.
        while self._tail and self._tail_size - len(self._tail[0]) >= self._tail_limit:
            self._tail_size -= len(self._tail.popleft())

    @property
    def dropped(self) -> int:
        """How many bytes in the middle are not kept."""
        return max(0, self.total - self._head_limit - self._tail_limit)

    def text(self) -> str:
        """Return what is kept as text, with a line in the place of what is not."""
        tail = b"".join(self._tail)
        if not self.dropped:
            return (self._head + tail).decode(errors="replace")
        tail = tail[len(tail) - self._tail_limit :]
        head, cut = self._head.decode(errors="replace"), tail.decode(errors="replace")
        return f"{head}\n[… {self.dropped} bytes left out …]\n{cut}"
