"""Listing a folder, and walking through all that is below it."""

import errno
import os
import stat
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import BinaryIO, Literal, TypeAlias

from ..errors import UnsafePathError
from ._open import check_regular
from ._paths import shown, unsafe
from ._place import DEEPEST, FOLDER, READ, Place, located, open_at

EntryKind: TypeAlias = Literal["file", "folder", "link", "other"]
"""A link is never followed; pipes, sockets and devices are ``other``."""

_MOST_NAMES = 100_000
"""In one folder, all of which are read to sort them."""

_Folder: TypeAlias = int | str
"""An open handle, or a real path where the system has no such handles."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What a folder holds under one name."""

    path: str
    """From the folder that was listed, its parts joined by ``/``."""
    kind: EntryKind
    _folder: _Folder = field(repr=False)
    _name: str = field(repr=False)

    def status(self) -> os.stat_result:
        """Return what the system knows of it, a link not followed; while it is the latest entry."""
        if isinstance(self._folder, str):
            return os.lstat(os.path.join(self._folder, self._name))
        return os.stat(self._name, dir_fd=self._folder, follow_symlinks=False)

    def open(self) -> BinaryIO:
        """Open the file for reading; while it is the latest entry.

        Raises:
            UnsafePathError: It is no regular file, or no longer one.
            OSError: It is gone, or cannot be read.
        """
        check_regular(self.status().st_mode, self.path)
        try:
            handle = _open_name(self._name, READ, self._folder, self.path)
        except OSError as exc:
            if exc.errno == errno.ELOOP:
                raise unsafe("link", self.path, "is a link: name what it leads to") from exc
            raise
        try:
            check_regular(os.fstat(handle).st_mode, self.path)
        except BaseException:
            os.close(handle)
            raise
        return os.fdopen(handle, "rb")

    def open_folder(self) -> int | str:
        """Open the folder: a handle to close, or without such handles its real path.

        Raises:
            OSError: It is no folder, or no longer one, or cannot be read.
        """
        if isinstance(self._folder, str):
            return os.path.join(self._folder, self._name)
        return os.open(self._name, FOLDER, dir_fd=self._folder)

    def link_target(self) -> str:
        """Return what a link says, wherever that leads; while it is the latest entry."""
        if isinstance(self._folder, str):
            return os.readlink(os.path.join(self._folder, self._name))
        return os.readlink(self._name, dir_fd=self._folder)


def list_inside(
    root: str | os.PathLike[str],
    path: str | os.PathLike[str] = ".",
    *,
    within: Sequence[str] = (),
) -> Generator[Entry]:
    """Yield what a folder inside ``root`` holds, sorted by name.

    Raises:
        UnsafePathError: The path leads out of the root, or the folder holds more than 100 000 names
            (``size``).
        OSError: The folder is missing, is none, or cannot be read.
    """
    with located(root, path, within=within) as place, _opened(place) as folder:
        yield from _entries(folder, "", place.given)


def walk_inside(
    root: str | os.PathLike[str],
    path: str | os.PathLike[str] = ".",
    *,
    skip: Callable[[Entry], bool] | None = None,
    unread: Callable[[Entry], None] | None = None,
    within: Sequence[str] = (),
) -> Generator[Entry]:
    """Yield all that is below a folder inside ``root``: each folder before what it holds, sorted.

    Close it, or run it to its end: folders are held open between.

    Args:
        root: A folder that the caller trusts; it may be a link itself.
        path: Relative to the root, or an absolute path that begins with it.
        skip: Tells which entries to leave out, with all that is below them.
        unread: Told of folders below that cannot be read, or are too deep (128) or too large.
        within: Folders that the root is in: see :func:`open_inside`.

    Raises:
        UnsafePathError: As for :func:`list_inside`.
        OSError: As for :func:`list_inside`.
    """
    with located(root, path, within=within) as place, _opened(place) as folder:
        entries = _entries(folder, "", place.given)
        yield from _walk(entries, 0, skip, unread or (lambda entry: None))


def _walk(
    entries: list[Entry],
    depth: int,
    skip: Callable[[Entry], bool] | None,
    unread: Callable[[Entry], None],
) -> Iterator[Entry]:
    for entry in entries:
        if skip is not None and skip(entry):
            continue
        yield entry
        if entry.kind != "folder":
            continue
        if depth >= DEEPEST:
            unread(entry)
            continue
        try:
            folder = entry.open_folder()
        except OSError:
            unread(entry)
            continue
        try:
            try:
                below = _entries(folder, f"{entry.path}/", entry.path)
            except (OSError, UnsafePathError):
                unread(entry)
                continue
            yield from _walk(below, depth + 1, skip, unread)
        finally:
            _close(folder)


def _entries(folder: _Folder, prefix: str, given: str) -> list[Entry]:
    with os.scandir(folder) as found:
        names = [
            Entry(f"{prefix}{each.name}", _kind(each), folder, each.name)
            for each in islice(found, _MOST_NAMES + 1)
        ]
    if len(names) > _MOST_NAMES:
        raise unsafe("size", given, f"holds more than {_MOST_NAMES} names")
    names.sort(key=lambda entry: entry.path)
    return names


def _kind(entry: "os.DirEntry[str]") -> EntryKind:
    if entry.is_symlink():
        return "link"
    if entry.is_dir(follow_symlinks=False):
        return "folder"
    return "file" if entry.is_file(follow_symlinks=False) else "other"


@contextmanager
def _opened(place: Place) -> Generator[_Folder]:
    if not stat.S_ISDIR(place.mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), shown(place.given))
    if place.folder is None:
        yield place.name
        return
    handle = place.open(FOLDER)
    try:
        yield handle
    finally:
        os.close(handle)


def _open_name(name: str, flags: int, folder: _Folder, given: str) -> int:
    if isinstance(folder, str):
        return os.open(os.path.join(folder, name), flags)
    return open_at(name, flags, folder, given)


def _close(folder: _Folder) -> None:
    if isinstance(folder, int):
        os.close(folder)
