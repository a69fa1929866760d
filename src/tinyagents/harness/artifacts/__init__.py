"""Tool results that are too large for the context: written to files, redacted first.

The model gets a pointer in the place of the result, with an abstract of it, and reads the file with the
tool of :func:`read_artifact_tool`. :class:`~tinyagents.harness.middleware.ArtifactMiddleware` does the
writing; :func:`offload` does it for a tool of your own.
"""

from ._file_store import FileArtifactStore
from ._names import artifact_scope, default_name
from ._offload import Offloaded, Redactor, offload
from ._pointer import (
    ARTIFACT_MARKER,
    Pointer,
    abstract_of,
    artifact_paths,
    parse_pointers,
    pointer_text,
)
from ._read_tool import READ_TAG, read_artifact_tool
from ._types import ArtifactKind, ArtifactStore, StoredArtifact

__all__ = (
    "ARTIFACT_MARKER",
    "READ_TAG",
    "ArtifactKind",
    "ArtifactStore",
    "FileArtifactStore",
    "Offloaded",
    "Pointer",
    "Redactor",
    "StoredArtifact",
    "abstract_of",
    "artifact_paths",
    "artifact_scope",
    "default_name",
    "offload",
    "parse_pointers",
    "pointer_text",
    "read_artifact_tool",
)
