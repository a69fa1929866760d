"""Artifacts as files below one folder."""

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path, PurePath, PurePosixPath
from typing import Final

from ..concurrency import in_thread
from ..errors import ConfigurationError
from ..safe_open import open_inside, write_inside
from ..text import clean_text
from ._names import checked_name, unsafe
from ._types import ArtifactKind, StoredArtifact

_FOLDERS: Final[dict[ArtifactKind, str]] = {"output": "outputs", "scratch": "workspace"}
_MOST_OF_A_NAME = 100
"""How many artifacts may want the same name."""


class FileArtifactStore:
    """Keeps texts as files, in ``outputs/`` and ``workspace/`` below a folder.

    Files are opened from handles of the folders above them, and a link on the way that leads out is
    refused, even one that somebody puts there at this moment. A file is there with all of its text or
    not at all.

    Args:
        root: The folder, which is made when it is needed.
        render_root: Paths are shown relative to this folder, for a model whose other tools work
            there; what is outside of it is shown with its absolute path. By default ``root`` itself.
        internal: Folders that no artifact may be in, absolute or relative to the root.
        max_bytes: How large a text may be.

    Raises:
        ConfigurationError: The root is in one of the internal folders.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        render_root: str | os.PathLike[str] | None = None,
        internal: Sequence[str | os.PathLike[str]] = (),
        max_bytes: int = 32 * 2**20,
    ) -> None:
        self._root = os.path.abspath(root)
        self._render_root = None if render_root is None else os.path.abspath(render_root)
        self._internal = [os.path.join(self._root, folder) for folder in internal]
        self._max_bytes = max_bytes
        if any(_is_inside(self._root, folder) for folder in self._internal):
            raise ConfigurationError("the root of the artifacts is in a folder that is internal")

    async def write(self, name: str, text: str, *, kind: ArtifactKind = "output") -> StoredArtifact:
        """Store a text, under ``name-2`` and so on where there is one of this name already.

        Raises:
            UnsafePathError: The name is blank (``empty``), absolute (``absolute``), holds ``..``
                (``parent``) or leads to an internal folder (``internal``) or through a link out of the
                root (``outside``); or the text is too large (``size``). Nothing was written.
            OSError: It cannot be written.
        """
        return await in_thread(partial(self._write, checked_name(name), clean_text(text), kind))

    async def read(self, path: str, *, scope: str | None = None) -> str:
        """Return a text; what is no UTF-8 in it as U+FFFD.

        Raises:
            UnsafePathError: The path leads out of the root, or of the scope; or the file is too large.
            OSError: There is no such file, or it cannot be read.
        """
        return await in_thread(partial(self._read, path, scope))

    def _write(self, name: PurePosixPath, text: str, kind: ArtifactKind) -> StoredArtifact:
        content = text.encode()
        if len(content) > self._max_bytes:
            raise unsafe("size", str(name), f"has more than {self._max_bytes} bytes")
        folder = os.path.join(self._root, _FOLDERS[kind])
        self._refuse_internal(os.path.join(folder, name), str(name))
        Path(self._root).mkdir(parents=True, exist_ok=True)
        for number in range(1, _MOST_OF_A_NAME + 1):
            own = name if number == 1 else name.with_name(f"{name.stem}-{number}{name.suffix}")
            try:
                write_inside(self._root, f"{_FOLDERS[kind]}/{own}", content, overwrite=False)
            except FileExistsError:
                continue
            absolute = os.path.join(folder, own)
            return StoredArtifact(
                kind=kind,
                path=f"{_FOLDERS[kind]}/{own}",
                absolute_path=absolute,
                shown_path=self._shown(absolute),
                bytes=len(content),
                original_bytes=len(content),
            )
        raise FileExistsError(f"there are {_MOST_OF_A_NAME} artifacts of the name {str(name)!r}")

    def _read(self, path: str, scope: str | None) -> str:
        name = checked_name(self._relative(path))
        folder, *rest = name.parts
        if folder not in _FOLDERS.values() or not rest:
            raise unsafe("outside", path, "is in no folder of artifacts")
        self._refuse_internal(os.path.join(self._root, name), path)
        within = [self._root]
        if scope is not None:
            if rest.pop(0) != scope or not rest:
                raise unsafe("outside", path, "belongs to somebody else")
            within.append(os.path.join(self._root, folder))
            folder = f"{folder}/{scope}"
        with open_inside(os.path.join(self._root, folder), "/".join(rest), within=within) as file:
            content = file.read(self._max_bytes + 1)
        if len(content) > self._max_bytes:
            raise unsafe("size", path, f"has more than {self._max_bytes} bytes")
        return clean_text(content.decode("utf-8", "replace"))

    def _refuse_internal(self, path: str, name: str) -> None:
        if any(_is_inside(path, folder) for folder in self._internal):
            raise unsafe("internal", name, "is in an internal folder")

    def _shown(self, absolute: str) -> str:
        base = self._render_root or self._root
        inside = PurePath(absolute).is_relative_to(base)
        return PurePath(absolute).relative_to(base).as_posix() if inside else absolute

    def _relative(self, path: str) -> str:
        """Return a path that was shown relative to the root."""
        if self._render_root is None or "\0" in path:
            return path
        for absolute in (os.path.join(self._render_root, path), os.path.join(self._root, path)):
            if PurePath(absolute).is_relative_to(self._root):
                return PurePath(absolute).relative_to(self._root).as_posix()
        return path


def _is_inside(path: str, folder: str) -> bool:
    """Whether a path is in a folder, as it is written or as its links lead."""
    pairs = (path, folder), (os.path.realpath(path), os.path.realpath(folder))
    return any(PurePath(os.path.normpath(p)).is_relative_to(os.path.normpath(f)) for p, f in pairs)
