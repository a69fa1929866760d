"""Writing a file: all of it at once, or nothing."""

import os
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress

from ._open import check_regular, open_file
from ._paths import unsafe
from ._place import Place, located

_CREATE = (
    os.O_WRONLY
    | os.O_CREAT
    | os.O_EXCL
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_BINARY", 0)
)
_PERMISSIONS = 0o777
"""What is kept of a file's mode: no bit that lends the rights of its owner."""


def write_inside(
    root: str | os.PathLike[str],
    path: str | os.PathLike[str],
    content: bytes,
    *,
    overwrite: bool = True,
    mode: int = 0o666,
    within: Sequence[str] = (),
) -> bool:
    """Write a file inside ``root`` and return whether it is a new one.

    Missing folders are made. Whoever reads the file at the same time sees the old content or the
    new one; a crash of the machine may lose the new one. Permissions stay, and the owner where the
    process may set it. A file is replaced and not written into: other hard links keep the old
    content.

    Args:
        root: A folder that the caller trusts; it may be a link itself.
        path: Relative to the root, or an absolute path that begins with it.
        content: All of the file.
        overwrite: Whether a file may be there already.
        mode: The permissions of a new file, less what the process's umask takes away.
        within: Folders that the root is in: see :func:`open_inside`.

    Raises:
        UnsafePathError: The path or a link on its way leads out of the root, or it names a link, a
            folder or another thing that is no regular file. Nothing was written.
        FileExistsError: There is a file, and ``overwrite`` is not set.
        OSError: The file cannot be written.
    """
    with located(root, path, within=within, follow=False, create=True) as place:
        if place.status is not None:
            check_regular(place.mode, place.given)
        _put(place, content, overwrite=overwrite, mode=mode)
        return place.status is None


def change_inside(
    root: str | os.PathLike[str],
    path: str | os.PathLike[str],
    change: Callable[[bytes], bytes],
    *,
    max_bytes: int,
    within: Sequence[str] = (),
) -> None:
    """Replace the content of a file inside ``root`` by what ``change`` makes of it.

    Args:
        root: A folder that the caller trusts; it may be a link itself.
        path: Relative to the root, or an absolute path that begins with it.
        change: Gets the content; what it raises is raised, and the file stays as it is.
        max_bytes: How large the file may be.
        within: Folders that the root is in: see :func:`open_inside`.

    Raises:
        UnsafePathError: As for :func:`write_inside`; or the file is too large (``size``), or
            somebody else changed it at the same time (``changed``). Nothing was written.
        OSError: The file is missing, or cannot be read or written.
    """
    with located(root, path, within=within, follow=False) as place:
        with os.fdopen(open_file(place), "rb") as file:
            content = file.read(max_bytes + 1)
            found = os.fstat(file.fileno())
        if len(content) > max_bytes:
            raise unsafe("size", place.given, f"is larger than {max_bytes} bytes")
        changed = change(content)
        _put(place, changed, unless_changed=found)


def remove_inside(
    root: str | os.PathLike[str], path: str | os.PathLike[str], *, within: Sequence[str] = ()
) -> None:
    """Remove a file inside ``root``, or a link; never what a link leads to.

    Args:
        root: A folder that the caller trusts; it may be a link itself.
        path: Relative to the root, or an absolute path that begins with it.
        within: Folders that the root is in: see :func:`open_inside`.

    Raises:
        UnsafePathError: The path or a link on its way leads out of the root.
        OSError: There is nothing, or it is a folder, or it cannot be removed.
    """
    with located(root, path, within=within, follow=False) as place:
        os.unlink(place.name, dir_fd=place.folder)


def _put(
    place: Place,
    content: bytes,
    *,
    overwrite: bool = True,
    mode: int = 0o666,
    unless_changed: os.stat_result | None = None,
) -> None:
    beside = f".{secrets.token_hex(8)}.tmp"
    if place.folder is None:
        beside = os.path.join(os.path.dirname(place.name), beside)
    # A name that was never there before: what is opened is this file and no other.
    handle = os.open(beside, _CREATE, mode, dir_fd=place.folder)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            if place.status is not None:
                _keep_rights(handle, place.status)
        if unless_changed is not None and not _same(place, unless_changed):
            raise unsafe("changed", place.given, "was changed by somebody else meanwhile")
        _rename(place, beside, overwrite=overwrite)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(beside, dir_fd=place.folder)
        raise


def _keep_rights(handle: int, status: os.stat_result) -> None:
    if os.name == "nt":
        return
    own = os.fstat(handle)
    if (own.st_uid, own.st_gid) != (status.st_uid, status.st_gid):
        with suppress(PermissionError):
            os.fchown(handle, status.st_uid, status.st_gid)
    os.fchmod(handle, status.st_mode & _PERMISSIONS)


def _same(place: Place, status: os.stat_result) -> bool:
    now = os.stat(place.name, dir_fd=place.folder, follow_symlinks=False)
    return os.path.samestat(now, status) and (now.st_mtime_ns, now.st_size) == (
        status.st_mtime_ns,
        status.st_size,
    )


def _rename(place: Place, beside: str, *, overwrite: bool) -> None:
    """Give the new file its name. A link of that name is replaced, not followed."""
    folder = place.folder
    if overwrite:
        os.replace(beside, place.name, src_dir_fd=folder, dst_dir_fd=folder)
        return
    os.link(beside, place.name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    os.unlink(beside, dir_fd=folder)
