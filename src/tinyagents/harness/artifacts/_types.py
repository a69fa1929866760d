"""What is stored, and where."""

from typing import ClassVar, Literal, Protocol, TypeAlias

from pydantic import BaseModel, ConfigDict

ArtifactKind: TypeAlias = Literal["output", "scratch"]
"""Something to hand on, or something to work with."""


class StoredArtifact(BaseModel):
    """A text that was stored."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    kind: ArtifactKind
    path: str
    """Relative to the root of the store, with ``/`` between its parts."""
    absolute_path: str
    """For the application: no model is told."""
    shown_path: str
    """As a model is told, and reads it."""
    bytes: int
    """As they were stored."""
    original_bytes: int
    """Before redaction."""
    redacted: bool = False
    """Whether a redactor saw the text before it was stored."""


class ArtifactStore(Protocol):
    """Keeps texts under names."""

    async def write(self, name: str, text: str, *, kind: ArtifactKind = "output") -> StoredArtifact:
        """Store a text all at once, under another name where there is one of this name already.

        Args:
            name: Parts with ``/`` between; the first one is its scope.
            text: All of it.
            kind: What it is for.

        Raises:
            UnsafePathError: The name leads elsewhere; nothing was written.
            OSError: It cannot be written.
        """
        ...

    async def read(self, path: str, *, scope: str | None = None) -> str:
        """Return a text.

        Args:
            path: As ``path`` or ``shown_path`` of :class:`StoredArtifact`.
            scope: Nothing else is read than what has this scope.

        Raises:
            UnsafePathError: The path leads elsewhere, or out of the scope.
            OSError: There is no such text, or it cannot be read.
        """
        ...
