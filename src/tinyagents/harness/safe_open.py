"""Opening files inside a folder whose paths somebody else chose.

A path is walked from an open handle of the root, one part at a time and never through a link that was
not looked at, so that what changes while it is walked cannot lead out of the root. Links that stay
inside are followed.

What no path can tell: a hard link inside the root to a file outside is that file, and so is what was
mounted there. Who may make those has the rights to the file anyway (and Linux forbids hard links to
files of others by default, see ``protected_hardlinks`` in proc(5)).
"""

import errno
import os
import stat
from collections import deque
from pathlib import PurePath
from typing import BinaryIO, Final

from .errors import UnsafePathError

__all__ = ("open_inside",)

_LONGEST_PATH = 4_096
_DEEPEST = 128
"""Folders on the way, each of which is held open."""
_MOST_LINKS = 40
"""As Linux follows at most."""
_LONGEST_SHOWN = 200
_CHANGED = "leads through links in a circle, or was changed while it was opened"
_LINK_ERRORS: Final = frozenset(
    {errno.ELOOP, errno.EINVAL, errno.EMLINK, getattr(errno, "EFTYPE", errno.ELOOP)}
)
"""A link where none is followed (EMLINK and EFTYPE are BSD's), or none where one was (EINVAL)."""

# Without waiting for a pipe's other end, and without becoming the terminal of this process.
_READ: Final = (
    os.O_RDONLY
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_BINARY", 0)
)
_FOLDER: Final = _READ | getattr(os, "O_DIRECTORY", 0)


def open_inside(root: str | os.PathLike[str], path: str | os.PathLike[str]) -> BinaryIO:
    """Open a regular file inside ``root`` for reading its bytes. Blocks: call it in a thread.

    Where the system cannot open relative to a folder (Windows), the real path is checked before and
    after opening. That finds every link that is there, but not all that somebody swaps in and out
    again within that moment.

    Args:
        root: A folder that the caller trusts; it may be a link itself.
        path: Relative to the root, or an absolute path that begins with it.

    Raises:
        UnsafePathError: The path or a link in it leads out of the root, or it names no regular file.
        OSError: The file is missing, or cannot be read (``FileNotFoundError``, ``PermissionError``).
    """
    root, given = os.path.abspath(root), os.fspath(path)
    parts = _parts_inside(root, given, given)
    can_walk = {os.open, os.stat, os.readlink} <= os.supports_dir_fd
    try:
        handle = _walk(root, parts, given) if can_walk else _checked(root, parts, given)
    except OSError as exc:
        if exc.errno == errno.ENAMETOOLONG:
            raise _unsafe("name", given, "is too long") from exc
        if exc.errno in _LINK_ERRORS:
            raise _unsafe("link", given, _CHANGED) from exc
        raise
    return os.fdopen(handle, "rb")


def _parts_inside(root: str, path: str, given: str) -> list[str]:
    """Return the parts of a path below the root, `..` among them."""
    if not path or "\0" in path:
        raise _unsafe("name", given, "is empty or holds NUL")
    try:
        length = len(os.fsencode(path))
    except UnicodeEncodeError as exc:
        raise _unsafe("name", given, "holds half of a character") from exc
    if length > _LONGEST_PATH:
        raise _unsafe("name", given, "is too long")
    pure = PurePath(path)
    if pure.anchor:
        for start in (root, os.path.realpath(root)):
            if pure.is_relative_to(start):
                return list(pure.relative_to(start).parts)
        raise _unsafe("outside", given, "is outside the root")
    return list(pure.parts)


def _walk(root: str, parts: list[str], given: str) -> int:
    # The root is the caller's word: links on the way to it are followed.
    folders = _Folders(_open(os.path.realpath(root), _FOLDER, None, given))
    try:
        waiting, links = deque(parts), 0
        while waiting:
            name = waiting.popleft()
            if name == os.pardir:
                if not folders.leave():
                    raise _unsafe("outside", given, "is outside the root")
                continue
            mode = os.stat(name, dir_fd=folders.current, follow_symlinks=False).st_mode
            if stat.S_ISLNK(mode):
                links += 1
                if links > _MOST_LINKS:
                    raise _unsafe("link", given, "leads through too many links")
                target = os.readlink(name, dir_fd=folders.current)
                if os.path.isabs(target):
                    folders.leave_all()
                waiting.extendleft(reversed(_parts_inside(root, target, given)))
            elif not waiting:
                return _open_file(name, mode, folders.current, given)
            elif not stat.S_ISDIR(mode):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), _shown(given))
            elif folders.depth >= _DEEPEST:
                raise _unsafe("name", given, f"is more than {_DEEPEST} folders deep")
            else:
                folders.enter(_open(name, _FOLDER, folders.current, given))
    finally:
        folders.close()
    raise _unsafe("not_regular", given, "is a folder")


class _Folders:
    """The handles of the folders from the root to where a walk stands."""

    __slots__ = ("_handles",)

    def __init__(self, root: int) -> None:
        self._handles = [root]

    @property
    def current(self) -> int:
        return self._handles[-1]

    @property
    def depth(self) -> int:
        return len(self._handles) - 1

    def enter(self, handle: int) -> None:
        self._handles.append(handle)

    def leave(self) -> bool:
        """Go to the folder that was entered before, wherever this one stands by now."""
        if self.depth == 0:
            return False
        os.close(self._handles.pop())
        return True

    def leave_all(self) -> None:
        while self.leave():
            pass

    def close(self) -> None:
        self.leave_all()
        os.close(self._handles.pop())


def _open_file(name: str, mode: int, inside: int | None, given: str) -> int:
    """Open what was seen to be a file, and see again what was opened."""
    # Devices are not even opened: with some, that does something.
    if not stat.S_ISREG(mode):
        raise _unsafe("not_regular", given, "is no regular file")
    handle = _open(name, _READ, inside, given)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise _unsafe("not_regular", given, "is no regular file")
    return handle


def _open(name: str, flags: int, inside: int | None, given: str) -> int:
    try:
        return os.open(name, flags, dir_fd=inside)
    except NotADirectoryError as exc:
        if inside is None:
            raise
        raise _unsafe("link", given, _CHANGED) from exc  # it was a folder a moment ago


def _checked(root: str, parts: list[str], given: str) -> int:
    """Open by the real path, where there is no way to walk, and check that it still is the same."""
    real_root = os.path.realpath(root)
    path = os.path.join(root, *parts)
    real = os.path.realpath(path)
    if not PurePath(real).is_relative_to(real_root):
        raise _unsafe("outside", given, "is outside the root")
    handle = _open_file(real, os.lstat(real).st_mode, None, given)
    try:
        if os.path.realpath(path) != real or not os.path.samestat(os.fstat(handle), os.lstat(real)):
            raise _unsafe("link", given, _CHANGED)
    except BaseException:
        os.close(handle)
        raise
    return handle


def _unsafe(reason: str, given: str, why: str) -> UnsafePathError:
    shown = _shown(given)
    return UnsafePathError(f"the path {shown!r} {why}", path=shown, reason=reason)


def _shown(given: str) -> str:
    return given if len(given) <= _LONGEST_SHOWN else f"{given[:_LONGEST_SHOWN]}…"
