"""Opening a file to read it."""

import os
import stat
from collections.abc import Sequence
from typing import BinaryIO

from ._paths import unsafe
from ._place import READ, Place, located


def open_inside(
    root: str | os.PathLike[str], path: str | os.PathLike[str], *, within: Sequence[str] = ()
) -> BinaryIO:
    """Open a regular file inside ``root`` for reading its bytes.

    Args:
        root: A folder that the caller trusts; it may be a link itself.
        path: Relative to the root, or an absolute path that begins with it.
        within: Folders that the root is in, the outermost first: the root is walked to from there, so
            that a link which somebody puts in its place does not lead out of them.

    Raises:
        UnsafePathError: The path or a link in it leads out of the root, or it names no regular file.
        OSError: The file is missing, or cannot be read (``FileNotFoundError``, ``PermissionError``).
    """
    with located(root, path, within=within) as place:
        return os.fdopen(open_file(place), "rb")


def open_file(place: Place) -> int:
    """Open what was seen to be a file, and see again what was opened."""
    # Devices are not even opened: with some, that does something.
    check_regular(place.mode, place.given)
    handle = place.open(READ)
    try:
        check_regular(os.fstat(handle).st_mode, place.given)
    except BaseException:
        os.close(handle)
        raise
    return handle


def check_regular(mode: int, given: str) -> None:
    """Refuse what is no regular file.

    Raises:
        UnsafePathError: Saying what it is.
    """
    if stat.S_ISREG(mode):
        return
    if stat.S_ISDIR(mode):
        raise unsafe("not_regular", given, "is a folder")
    if stat.S_ISLNK(mode):
        raise unsafe("not_regular", given, "is a link: name what it leads to")
    raise unsafe("not_regular", given, "is no regular file")
