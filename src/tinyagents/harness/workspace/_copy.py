"""A copy of a folder for each run."""

import os
import shutil
import stat
import tempfile
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path, PurePath
from threading import Lock
from typing import BinaryIO, ClassVar

import anyio
from pydantic import BaseModel, ConfigDict, PositiveInt, TypeAdapter

from ..concurrency import in_thread
from ..errors import UnsafePathError, WorkspaceError
from ..safe_open import Entry, open_inside, remove_inside, walk_inside, write_inside
from ._descriptor import SandboxMode, WorkspaceDescriptor
from ._names import safe_name

_PREFIX = "tinyagents-"
_COPY = "files"
_MANIFEST = "manifest.json"
_CHUNK = 1 << 20
_LINK = "link:"
"""Begins what a manifest says of a link; of a file it holds the SHA-256."""


class CopyLimits(BaseModel):
    """How much is copied at most."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    max_files: PositiveInt = 20_000
    """Files, folders and links."""
    max_bytes: PositiveInt = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceChanges:
    """What a run has done to its copy: paths from the root, sorted."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)


class TemporaryCopyWorkspace:
    """Gives each run a copy of a folder, and removes it afterwards.

    What the run did can be looked at with :meth:`changes`, and brought back with :meth:`apply`,
    before the clean-up: that is inside :func:`open_workspace`.

    Links are copied as links if they lead to something inside the folder, and left out if not. Pipes,
    sockets and devices are left out. Files keep their permissions; hard links become files apart.

    Args:
        source: The folder.
        ignore: Names of files and folders that are left out, wherever they are.
        limits: How much is copied at most.
        parent: The folder for the copies; the system's folder for temporary files by default.
        sandbox: Whether programs that tools start must run in a sandbox.
    """

    def __init__(
        self,
        source: str | os.PathLike[str],
        *,
        ignore: tuple[str, ...] = (),
        limits: CopyLimits | None = None,
        parent: str | os.PathLike[str] | None = None,
        sandbox: SandboxMode = "inherit",
    ) -> None:
        self._source = os.path.abspath(source)
        self._ignore = frozenset(ignore)
        self._limits = limits or CopyLimits()
        self._parent = os.path.abspath(parent or tempfile.gettempdir())
        self._sandbox: SandboxMode = sandbox

    async def prepare(self, run_id: str, agent: str) -> WorkspaceDescriptor:
        """Copy the folder.

        Raises:
            WorkspaceError: There is more to copy than allowed (``limit``).
            OSError: Something cannot be read, or the copy not be written.
        """
        copying = _Copying(self._source, self._ignore, self._limits)
        try:
            root = await in_thread(partial(copying.run, self._parent, safe_name(run_id)))
        except anyio.get_cancelled_exc_class():
            home = copying.abandon()
            if home is not None:
                with anyio.CancelScope(shield=True):
                    await in_thread(partial(_remove, home))
            raise
        return WorkspaceDescriptor(root=root, policy_id=run_id, sandbox=self._sandbox)

    async def cleanup(self, workspace: WorkspaceDescriptor) -> None:
        """Remove the copy.

        Raises:
            WorkspaceError: The workspace is none that this provider made (``foreign``).
            OSError: It cannot be removed.
        """
        await in_thread(partial(_remove, self._home(workspace)))

    async def changes(self, workspace: WorkspaceDescriptor) -> WorkspaceChanges:
        """Return what is different in the copy from what was copied.

        Raises:
            WorkspaceError: The workspace is none that this provider made (``foreign``), or has grown
                beyond the limits (``limit``).
        """
        return await in_thread(partial(self._changes, workspace))

    async def apply(self, workspace: WorkspaceDescriptor) -> WorkspaceChanges:
        """Bring the files that were changed in the copy back to the folder, and return which.

        Where one was changed in the folder as well, to something else, nothing is written. Links that
        are new or changed stay in the copy: they may lead anywhere.

        Raises:
            WorkspaceError: Files were changed on both sides (``conflict``): ``paths`` names them. Or as
                for :meth:`changes`.
        """
        return await in_thread(partial(self._apply, workspace))

    def _home(self, workspace: WorkspaceDescriptor) -> Path:
        """Return the folder that holds a copy, if it is one of ours: it is going to be removed."""
        home = Path(workspace.root).parent
        ours = home.parent == Path(self._parent) and home.name.startswith(_PREFIX)
        if not ours or Path(workspace.root).name != _COPY or home.is_symlink():
            raise WorkspaceError(
                f"the workspace {workspace.root!r} is no copy that this provider has made",
                reason="foreign",
            )
        return home

    def _changes(self, workspace: WorkspaceDescriptor) -> WorkspaceChanges:
        before = _manifest(self._home(workspace))
        now = _contents(workspace.root, self._limits)
        return WorkspaceChanges(
            added=tuple(sorted(now.keys() - before.keys())),
            changed=tuple(sorted(p for p in now.keys() & before.keys() if now[p] != before[p])),
            removed=tuple(sorted(before.keys() - now.keys())),
        )

    def _apply(self, workspace: WorkspaceDescriptor) -> WorkspaceChanges:
        before, now = _manifest(self._home(workspace)), _contents(workspace.root, self._limits)
        differing = sorted(p for p in now.keys() | before.keys() if now.get(p) != before.get(p))
        # A link that a run has made may lead anywhere: it stays in the copy.
        files = [path for path in differing if not _is_link(now.get(path) or before[path])]
        conflicts = [
            path
            for path in files
            if _content_of(self._source, path) not in (before.get(path), now.get(path))
        ]
        if conflicts:
            raise WorkspaceError(
                f"{len(conflicts)} files were changed in the folder as well, {conflicts[0]!r} first: "
                "nothing was brought back",
                reason="conflict",
                paths=conflicts,
            )
        for path in files:
            if path in now:
                _bring_back(workspace.root, self._source, path)
            elif _content_of(self._source, path) is not None:
                remove_inside(self._source, path)
        return WorkspaceChanges(
            added=tuple(path for path in files if path not in before),
            changed=tuple(path for path in files if path in before and path in now),
            removed=tuple(path for path in files if path not in now),
        )


class _AbandonedError(Exception):
    """Ends a copy that nobody waits for; nobody sees it."""


class _Copying:
    """One copy under way, in a thread that nobody may be waiting for any more."""

    def __init__(self, source: str, ignore: frozenset[str], limits: CopyLimits) -> None:
        self._abandoned = False
        self._home: Path | None = None
        """The copy, once it is complete."""
        self._lock = Lock()
        self._source = source
        self._real_source = os.path.realpath(source)
        self._ignore = ignore
        self._limits = limits
        self._files = 0
        self._bytes = 0
        self._hashes: dict[str, str] = {}

    def run(self, parent: str, name: str) -> str:
        """Make the copy and return its root; what was made is removed if it fails."""
        home = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{name}-", dir=parent))
        try:
            root = home / _COPY
            root.mkdir()
            self._copy_to(root)
            (home / _MANIFEST).write_bytes(_MANIFEST_FORMAT.dump_json(self._hashes))
            with self._lock:
                if self._abandoned:
                    raise _AbandonedError
                self._home = home
        except BaseException:
            _remove(home)
            raise
        return str(root)

    def abandon(self) -> Path | None:
        """Have the thread stop and remove what it has made; return the copy if it is done already."""
        with self._lock:
            self._abandoned = True
            return self._home

    def _copy_to(self, root: Path) -> None:
        folders: list[tuple[Path, int]] = []
        found = walk_inside(self._source, skip=self._skips)
        with closing(found):
            for entry in found:
                if self._abandoned:
                    raise _AbandonedError
                self._count(1, 0)
                self._copy(entry, root / entry.path, folders)
        # Last, as nothing can be put into a folder that nobody may write to.
        for folder, mode in reversed(folders):
            folder.chmod(mode)

    def _skips(self, entry: Entry) -> bool:
        return PurePath(entry.path).name in self._ignore

    def _copy(self, entry: Entry, to: Path, folders: list[tuple[Path, int]]) -> None:
        match entry.kind:
            case "folder":
                to.mkdir()
                folders.append((to, stat.S_IMODE(entry.status().st_mode)))
            case "link":
                self._copy_link(entry, to)
            case "file":
                self._copy_file(entry, to)
            case "other":
                pass

    def _copy_file(self, entry: Entry, to: Path) -> None:
        digest = sha256()
        with entry.open() as file, to.open("xb") as copy:
            while chunk := file.read(_CHUNK):
                self._count(0, len(chunk))
                digest.update(chunk)
                copy.write(chunk)
            to.chmod(os.fstat(file.fileno()).st_mode & 0o777)
        self._hashes[entry.path] = digest.hexdigest()

    def _copy_link(self, entry: Entry, to: Path) -> None:
        target = entry.link_target()
        folder = os.path.dirname(os.path.join(self._real_source, entry.path))
        real = os.path.realpath(os.path.join(folder, target))
        if not PurePath(real).is_relative_to(self._real_source):
            return
        if os.path.isabs(target):
            target = os.path.relpath(real, folder)
        to.symlink_to(target)
        self._hashes[entry.path] = f"{_LINK}{target}"

    def _count(self, files: int, size: int) -> None:
        self._files += files
        self._bytes += size
        limits = self._limits
        for have, most, name in (
            (self._files, limits.max_files, "max_files"),
            (self._bytes, limits.max_bytes, "max_bytes"),
        ):
            if have > most:
                raise WorkspaceError(
                    f"{self._source!r} holds more than `CopyLimits.{name}` allows ({most}): raise it, "
                    "or leave folders out with `ignore=`",
                    reason="limit",
                )


_MANIFEST_FORMAT: TypeAdapter[dict[str, str]] = TypeAdapter(dict[str, str])


def _manifest(home: Path) -> Mapping[str, str]:
    return _MANIFEST_FORMAT.validate_json((home / _MANIFEST).read_bytes())


def _contents(root: str, limits: CopyLimits) -> dict[str, str]:
    """Return what files and links hold, within the same limits as the copy."""
    contents: dict[str, str] = {}
    left = limits.max_bytes
    with closing(walk_inside(root)) as found:
        for number, entry in enumerate(found):
            if entry.kind == "file":
                left -= entry.status().st_size
            # Before it is read: a file can be said to be larger than anybody can read.
            if number >= limits.max_files or left < 0:
                raise WorkspaceError(
                    f"the workspace {root!r} has grown beyond its `CopyLimits`", reason="limit"
                )
            if entry.kind == "file":
                with entry.open() as file:
                    contents[entry.path] = _digest(file)
            elif entry.kind == "link":
                contents[entry.path] = f"{_LINK}{entry.link_target()}"
    return contents


def _digest(file: BinaryIO) -> str:
    digest = sha256()
    while chunk := file.read(_CHUNK):
        digest.update(chunk)
    return digest.hexdigest()


def _is_link(content: str) -> bool:
    return content.startswith(_LINK)


def _content_of(root: str, path: str) -> str | None:
    """Return the hash of a file; of something else that stands there, what no file has."""
    if os.path.islink(os.path.join(root, path)):
        return _LINK
    try:
        with open_inside(root, path) as file:
            return _digest(file)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except UnsafePathError:
        return ""


def _bring_back(root: str, source: str, path: str) -> None:
    with open_inside(root, path) as file:
        mode = os.fstat(file.fileno()).st_mode & 0o777
        write_inside(source, path, file.read(), mode=mode)


def _remove(home: Path) -> None:
    """Remove a copy, folders that nobody may write to included. Links are not followed."""
    if not home.exists():
        return
    for folder, _, _ in os.walk(home):
        with suppress(OSError):
            os.chmod(folder, 0o700, follow_symlinks=False)
    shutil.rmtree(home)
