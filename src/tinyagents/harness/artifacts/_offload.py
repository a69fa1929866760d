"""Storing a text, with what must not be stored taken out before."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from inspect import isawaitable, iscoroutinefunction
from typing import TypeAlias

from ..concurrency import in_thread
from ._types import ArtifactKind, ArtifactStore, StoredArtifact

Redactor: TypeAlias = Callable[[str], str | Awaitable[str]]
"""Returns a text without what must not be stored. One that is not async runs in a worker thread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offloaded:
    """Where a text is, and the text as it is there."""

    artifact: StoredArtifact
    text: str


async def offload(
    store: ArtifactStore,
    name: str,
    text: str,
    *,
    kind: ArtifactKind = "output",
    redactor: Redactor | None = None,
) -> Offloaded:
    """Redact a text and store what is left of it.

    When the redactor fails nothing is stored.

    Raises:
        UnsafePathError: The name leads elsewhere; nothing was stored.
        OSError: It cannot be written.
        TypeError: The redactor returned no text. What it raises passes through.
    """
    redacted = text if redactor is None else await _redacted(redactor, text)
    artifact = await store.write(name, redacted, kind=kind)
    if redactor is not None:
        facts = {"original_bytes": len(text.encode()), "redacted": True}
        artifact = artifact.model_copy(update=facts)
    return Offloaded(artifact=artifact, text=redacted)


async def _redacted(redactor: Redactor, text: str) -> str:
    if iscoroutinefunction(redactor):
        redacted: object = await redactor(text)
    else:
        # In a tuple, since trio takes no awaitable out of a thread: a callable object may return one.
        (given,) = await in_thread(lambda: (redactor(text),))
        redacted = await given if isawaitable(given) else given
    if not isinstance(redacted, str):
        raise TypeError(f"the redactor returned `{type(redacted).__name__}` in place of a text")
    return redacted
