"""Oversized results written to files."""

import logging
from collections.abc import Callable
from typing import Any

from ...artifacts import (
    ARTIFACT_MARKER,
    ArtifactKind,
    ArtifactStore,
    Redactor,
    artifact_scope,
    default_name,
    offload,
    pointer_text,
)
from ...context import RunContext
from ...errors import ConfigurationError
from ...tool import ToolResult
from .._base import Middleware, ToolCall
from ._result_text import replace_text, stays, text_without

_log = logging.getLogger("tinyagents.middleware")


class ArtifactMiddleware(Middleware[Any]):
    """Stores oversized tool results, and shows the model a pointer with an abstract in their place.

    Hooks: ``after_tool``. It changes the text of a result and its ``artifacts``. Results that are
    marked ``trusted_verbatim`` and those of the tools that read what was kept stay as they are; so do
    images and files beside the text. A result that imitates a pointer is changed so that it is none.

    Emits the custom event ``artifact.stored`` with the path and the sizes. When the redactor fails,
    or the text cannot be written, nothing is stored, the model gets the text itself, and the event
    is ``artifact.failed``.

    Args:
        store: Where they are kept.
        threshold_bytes: What has more is stored; 0 turns it off.
        max_result_bytes: This agent's own cap, which lowers the threshold.
        redactor: Sees each text before it is stored; the abstract is of what it returns.
        abstract_characters: How long the abstract may be.
        kind: What the artifacts are for.
        scope: Names the folder for a run's artifacts.
        read_tool: The name of the reading tool.

    Raises:
        ConfigurationError: A size is negative, or the abstract or the cap has no room.
    """

    def __init__(
        self,
        store: ArtifactStore,
        *,
        threshold_bytes: int = 8_192,
        max_result_bytes: int | None = None,
        redactor: Redactor | None = None,
        abstract_characters: int = 600,
        kind: ArtifactKind = "output",
        scope: Callable[[RunContext[Any]], str | None] = artifact_scope,
        read_tool: str = "read_artifact",
    ) -> None:
        if threshold_bytes < 0 or abstract_characters < 1:
            raise ConfigurationError(
                "`threshold_bytes` must not be negative, and `abstract_characters` above 0"
            )
        if max_result_bytes is not None and max_result_bytes < 1:
            raise ConfigurationError("`max_result_bytes` must be above 0")
        self.store: ArtifactStore = store
        self._threshold = min(threshold_bytes, max_result_bytes or threshold_bytes)
        self._redactor = redactor
        self._abstract = abstract_characters
        self._kind: ArtifactKind = kind
        self._scope = scope
        self._read_tool = read_tool

    async def after_tool(self, ctx: RunContext[Any], call: ToolCall, result: ToolResult) -> None:
        """Store what is too long."""
        if stays(call, result):
            return
        text = text_without(ARTIFACT_MARKER, result)
        if self._threshold == 0 or not _is_longer(text, self._threshold):
            return
        name = default_name(self._scope(ctx) or "", f"{call.name}-{call.id}")
        try:
            stored = await offload(self.store, name, text, kind=self._kind, redactor=self._redactor)
        except Exception as exc:  # noqa: BLE001 - whatever fails, the result is not lost
            _log.warning("a result of `%s` was not stored", call.name, exc_info=ctx.loggable(exc))
            ctx.emit_custom(
                "artifact.failed", {"call_id": call.id, "error_kind": type(exc).__name__}
            )
            return
        artifact = stored.artifact
        replace_text(
            result,
            pointer_text(
                artifact, stored.text, read_tool=self._read_tool, max_characters=self._abstract
            ),
        )
        result.artifacts = (*result.artifacts, artifact.path)
        ctx.emit_custom(
            "artifact.stored",
            {
                "call_id": call.id,
                "path": artifact.path,
                "bytes": artifact.bytes,
                "original_bytes": artifact.original_bytes,
                "redacted": artifact.redacted,
            },
        )


def _is_longer(text: str, max_bytes: int) -> bool:
    # Most are so short that nobody has to count their bytes.
    return len(text) * 4 > max_bytes and len(text.encode()) > max_bytes
