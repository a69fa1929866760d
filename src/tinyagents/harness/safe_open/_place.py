"""Where a path leads: walked to from the root without ever leaving it."""

import errno
import os
import stat
from collections import deque
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePath
from typing import Final

from ._paths import check_stays_inside, parts_inside, shown, unsafe

DEEPEST = 128
"""Folders on the way, each of which is held open."""
_MOST_LINKS = 40
"""As Linux follows at most."""
CHANGED = "leads through links in a circle, or was changed while it was opened"
_LINK_ERRORS: Final = frozenset(
    {errno.ELOOP, errno.EINVAL, errno.EMLINK, getattr(errno, "EFTYPE", errno.ELOOP)}
)
"""A link where none is followed (EMLINK and EFTYPE are BSD's), or none where one was (EINVAL)."""

# Without waiting for a pipe's other end, and without becoming the terminal of this process.
READ: Final = (
    os.O_RDONLY
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_BINARY", 0)
)
FOLDER: Final = READ | getattr(os, "O_DIRECTORY", 0)


@dataclass(frozen=True, slots=True)
class Place:
    """A name in a folder that is held open, and what was there."""

    given: str
    folder: int | None
    """The folder's handle; ``None`` where the system has no such handles."""
    name: str
    """What ``folder`` calls it, ``.`` for itself; without handles the real path."""
    status: os.stat_result | None
    """``None`` where nothing is there."""
    way: str | None = None
    """Without handles, the path that led to the real one."""

    @property
    def mode(self) -> int:
        """What kind of thing it is.

        Raises:
            FileNotFoundError: Nothing is there.
        """
        if self.status is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), shown(self.given))
        return self.status.st_mode

    def open(self, flags: int, mode: int = 0o666) -> int:
        """Open it, and see that it still is where it was."""
        handle = open_at(self.name, flags, self.folder, self.given, mode)
        if self.way is not None:
            try:
                still = os.path.realpath(self.way) == self.name
                if not still or not os.path.samestat(os.fstat(handle), os.lstat(self.name)):
                    raise unsafe("link", self.given, CHANGED)
            except BaseException:
                os.close(handle)
                raise
        return handle


@contextmanager
def located(
    root: str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    within: Sequence[str],
    follow: bool = True,
    create: bool = False,
) -> Generator[Place]:
    """Hold open the folder that a path leads to.

    Args:
        root: A folder that the caller trusts; it may be a link itself.
        path: Relative to the root, or an absolute path that begins with it.
        within: The folders that the root is in and is walked to from, the outermost first.
        follow: Whether a link that the path ends with is followed.
        create: Make the folders on the way that are missing.
    """
    root, given = os.path.abspath(root), os.fspath(path)
    roots = [*map(os.path.abspath, within), root]
    parts = parts_inside(root, given, given)
    if create:
        check_stays_inside(parts, given)
    handles: list[int] = []
    try:
        if {os.open, os.stat, os.readlink, os.mkdir} <= os.supports_dir_fd:
            _enter_roots(roots, given, handles)
            yield _walk(root, parts, given, handles, follow=follow, create=create)
        else:
            _check_roots(roots, given)
            yield _checked(root, parts, given, follow=follow, create=create)
    except OSError as exc:
        if exc.errno == errno.ENAMETOOLONG:
            raise unsafe("name", given, "is too long") from exc
        if exc.errno in _LINK_ERRORS:
            raise unsafe("link", given, CHANGED) from exc
        raise
    finally:
        for handle in handles:
            os.close(handle)


def open_at(name: str, flags: int, folder: int | None, given: str, mode: int = 0o666) -> int:
    """Open a name in a folder."""
    try:
        return os.open(name, flags, mode, dir_fd=folder)
    except NotADirectoryError as exc:
        if folder is None:
            raise
        raise unsafe("link", given, CHANGED) from exc  # it was a folder a moment ago


def _enter_roots(roots: list[str], given: str, handles: list[int]) -> None:
    # The outermost one is the caller's word: links on the way to it are followed.
    handles.append(open_at(os.path.realpath(roots[0]), FOLDER, None, given))
    for outer, inner in pairwise(roots):
        place = _walk(outer, parts_inside(outer, inner, given), given, handles)
        handles.append(place.open(FOLDER))


def _check_roots(roots: list[str], given: str) -> None:
    for outer, inner in pairwise(map(os.path.realpath, roots)):
        if not PurePath(inner).is_relative_to(outer):
            raise unsafe("outside", given, "is outside the root")


def _walk(
    root: str,
    parts: list[str],
    given: str,
    handles: list[int],
    *,
    follow: bool = True,
    create: bool = False,
) -> Place:
    """Go from the root, the last of the handles, to a path's end; the others are of the way."""
    waiting, links, floor = deque(parts), 0, len(handles)
    while waiting:
        name = waiting.popleft()
        if name == os.pardir:
            # To the folder that was entered before, wherever this one stands by now.
            if len(handles) == floor:
                raise unsafe("outside", given, "is outside the root")
            os.close(handles.pop())
            continue
        status = _status(name, handles[-1], create=create and bool(waiting))
        if status is not None and stat.S_ISLNK(status.st_mode) and (follow or waiting):
            links += 1
            if links > _MOST_LINKS:
                raise unsafe("link", given, "leads through too many links")
            target = os.readlink(name, dir_fd=handles[-1])
            if os.path.isabs(target):
                while len(handles) > floor:
                    os.close(handles.pop())
            waiting.extendleft(reversed(parts_inside(root, target, given)))
        elif not waiting:
            return Place(given, handles[-1], name, status)
        elif status is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), shown(given))
        elif not stat.S_ISDIR(status.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), shown(given))
        elif len(handles) - floor >= DEEPEST:
            raise unsafe("name", given, f"is more than {DEEPEST} folders deep")
        else:
            handles.append(open_at(name, FOLDER, handles[-1], given))
    return Place(given, handles[-1], os.curdir, os.fstat(handles[-1]))


def _status(name: str, folder: int, *, create: bool) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        if not create:
            return None
    try:
        os.mkdir(name, dir_fd=folder)
    except FileExistsError:
        pass  # somebody was quicker: it is looked at all the same
    return os.stat(name, dir_fd=folder, follow_symlinks=False)


def _checked(root: str, parts: list[str], given: str, *, follow: bool, create: bool) -> Place:
    """Take the real path, where there is no way to walk."""
    real_root = os.path.realpath(root)
    path = os.path.join(root, *parts)
    real = os.path.realpath(path)
    if not follow and parts and parts[-1] != os.pardir:
        real = os.path.join(os.path.realpath(os.path.dirname(path)), parts[-1])
    if not PurePath(real).is_relative_to(real_root):
        raise unsafe("outside", given, "is outside the root")
    if create:
        os.makedirs(os.path.dirname(real), exist_ok=True)
    try:
        status = os.lstat(real)
    except FileNotFoundError:
        status = None
    return Place(given, None, real, status, path)
