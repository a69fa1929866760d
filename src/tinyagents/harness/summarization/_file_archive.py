"""An archive of dropped messages in files."""

import hashlib
import os
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from ..concurrency import in_thread
from ..message import Message, dump_messages, load_messages
from ._records import message_digest

_NAME_DIGITS: Final = 32


class JsonlContextArchive:
    """Keeps messages as lines of JSON: a file for each conversation, which is only ever added to.

    A line that a crash has cut is passed over. Several processes may add to one file; one that adds
    what another has added already leaves it there twice, and it is loaded once. Nothing deletes old
    files: that is yours to do.

    Args:
        root: The folder, which is made when it is needed. Names of files are hashes of their keys.
        max_bytes: How much of the end of a file is loaded.
    """

    def __init__(self, root: str | os.PathLike[str], *, max_bytes: int = 64 * 2**20) -> None:
        self._root = Path(root)
        self._max_bytes = max_bytes

    def path(self, key: str) -> Path:
        """Return the file of a conversation."""
        digest = hashlib.sha256(key.encode()).hexdigest()
        return self._root / f"{digest[:_NAME_DIGITS]}.jsonl"

    async def add(self, key: str, messages: Sequence[Message]) -> None:
        """Keep messages of a conversation.

        Raises:
            OSError: They cannot be written.
        """
        if messages:
            await in_thread(partial(self._append, self.path(key), tuple(messages)))

    async def load(self, key: str) -> Sequence[Message]:
        """Return what is kept of a conversation.

        Raises:
            OSError: The file is there and cannot be read.
        """
        return await in_thread(partial(self._read, self.path(key)))

    def _append(self, path: Path, messages: Sequence[Message]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = "".join(f"{_line(message)}\n" for message in messages).encode()
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
        with os.fdopen(os.open(path, flags, 0o600), "r+b", buffering=0) as file:
            # What a crash has cut stays a line of its own.
            if file.seek(0, os.SEEK_END) and _last_byte(file.fileno()) != b"\n":
                lines = b"\n" + lines
            view = memoryview(lines)
            while view:
                view = view[file.write(view) :]

    def _read(self, path: Path) -> Sequence[Message]:
        try:
            with path.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(0, size - self._max_bytes))
                lines = file.read().split(b"\n")
        except FileNotFoundError:
            return ()
        if size > self._max_bytes:
            del lines[0]
        return _distinct(lines)


def _line(message: Message) -> str:
    return dump_messages([message])[1:-1]


def _last_byte(descriptor: int) -> bytes:
    size = os.lseek(descriptor, 0, os.SEEK_END)
    os.lseek(descriptor, size - 1, os.SEEK_SET)
    return os.read(descriptor, 1)


def _distinct(lines: Iterable[bytes]) -> Sequence[Message]:
    found: dict[str, Message] = {}
    for line in lines:
        if not line.strip():
            continue
        try:
            (message,) = load_messages(b"[" + line + b"]")
        except ValueError:  # no message, or more than one: pydantic's error is one of these
            continue
        found.setdefault(message_digest(message), message)
    return tuple(found.values())
