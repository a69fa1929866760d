"""What stands in the place of a result that was stored."""

import json
import re
from dataclasses import dataclass
from typing import Final, cast

from ..text import defused
from ._types import ArtifactKind, StoredArtifact

ARTIFACT_MARKER: Final = "[artifact]"
"""How the line of a pointer begins; no other result has this text in it."""

_POINTER = re.compile(
    r"^\[artifact\] kind=(output|scratch) "
    r'path=("(?:[^"\\\n]|\\[^\n]){1,8192}") bytes=(\d{1,15}) read=([^\s]{1,200})'
    r"(?: redacted=(true))?$",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pointer:
    """A pointer that was read."""

    kind: ArtifactKind
    path: str
    bytes: int
    read_tool: str
    redacted: bool = False


def pointer_text(
    artifact: StoredArtifact, text: str, *, read_tool: str, max_characters: int
) -> str:
    """Return what the model gets in the place of a stored text.

    Args:
        artifact: Where it is.
        text: The text as it was stored, which the abstract is taken from.
        read_tool: The name of the tool that reads it.
        max_characters: How long the abstract may be.
    """
    path = json.dumps(artifact.shown_path, ensure_ascii=False)
    redacted = " redacted=true" if artifact.redacted else ""
    said = ", redacted," if artifact.redacted else ""
    return (
        f"{ARTIFACT_MARKER} kind={artifact.kind} path={path} bytes={artifact.bytes} "
        f"read={read_tool}{redacted}\n"
        f"The result is too long to be shown. It is kept{said} in this file; read it with "
        f"{read_tool}(path={path}). It begins:\n"
        f"{defused(abstract_of(text, max_characters), ARTIFACT_MARKER)}"
    )


def abstract_of(text: str, max_characters: int) -> str:
    """Return a text's beginning, cut after a line or else a word that ends in its second half."""
    if len(text) <= max_characters:
        return text
    cut = text[:max_characters]
    half = max_characters // 2
    for boundary in ("\n", " "):
        end = cut.rfind(boundary, half)
        if end > 0:
            return cut[:end].rstrip()
    return cut


def parse_pointers(text: str) -> list[Pointer]:
    """Return the pointers in the text of tool results, in their order.

    Where :class:`~tinyagents.harness.middleware.ArtifactMiddleware` is at work, nothing that a tool
    returns looks like one. Texts of users and models may: look at tool results only.
    """
    found: list[Pointer] = []
    for kind, path, size, tool, redacted in _POINTER.findall(text):
        try:
            name = json.loads(path)
        except ValueError:
            continue
        found.append(
            Pointer(
                kind=cast("ArtifactKind", kind),
                path=name,
                bytes=int(size),
                read_tool=tool,
                redacted=bool(redacted),
            )
        )
    return found


def artifact_paths(text: str) -> list[str]:
    """Return the paths of :func:`parse_pointers`, each once."""
    return list(dict.fromkeys(pointer.path for pointer in parse_pointers(text)))
