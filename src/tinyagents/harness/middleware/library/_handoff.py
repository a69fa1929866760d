"""Oversized results held back from the model."""

import logging
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...concurrency import in_thread
from ...context import RunContext
from ...errors import ConfigurationError
from ...handoff import (
    HANDOFF_MARKER,
    HandoffStore,
    InMemoryHandoffStore,
    cleaned,
    placeholder,
    token_estimate,
)
from ...text import defused
from ...tool import ToolResult
from .._base import Middleware, ToolCall
from ._result_text import replace_text, stays, text_without

_log = logging.getLogger("tinyagents.middleware")


class HandoffMiddleware(Middleware[Any]):
    """Keeps oversized tool results and shows the model a placeholder in their place.

    Hooks: ``after_tool``. It changes the text of a result. A page of HTML is first cleaned of its
    markup, and may then fit. Errors, results that are marked ``trusted_verbatim`` and those of the
    tools that read what was kept stay as they are; so do images and files beside the text. A result
    that imitates a placeholder is changed so that it is none.

    Emits the custom event ``handoff.stored`` with the id and the size. When the store fails, the model
    gets the text itself, and the event is ``handoff.failed``.

    Args:
        store: Where the texts are kept, for the extracting tool to find them; by default in memory.
        threshold_tokens: What has more, with four bytes to a token, is held back.
        preview_characters: How much of its beginning the model sees.
        extract_tool: The name of the extracting tool.

    Raises:
        ConfigurationError: A size is not above 0.
    """

    def __init__(
        self,
        store: HandoffStore | None = None,
        *,
        threshold_tokens: int = 50_000,
        preview_characters: int = 1_500,
        extract_tool: str = "extract_from_result",
    ) -> None:
        if threshold_tokens < 1 or preview_characters < 1:
            raise ConfigurationError("`threshold_tokens` and `preview_characters` must be above 0")
        self.store: HandoffStore = store if store is not None else InMemoryHandoffStore()
        self._threshold = threshold_tokens
        self._preview = preview_characters
        self._tool = extract_tool

    async def after_tool(self, ctx: RunContext[Any], call: ToolCall, result: ToolResult) -> None:
        """Hold back what is too long."""
        if stays(call, result):
            return
        text = text_without(HANDOFF_MARKER, result)
        # A text of so few characters cannot have more bytes than that: most results end here.
        fits = len(text) <= self._threshold or token_estimate(text) <= self._threshold
        if fits or result.is_error or text.startswith("Error"):
            return
        found = await in_thread(partial(_judged, text, self._threshold))
        shown = found.text
        if found.oversized:
            shown = await self._held_back(ctx, call, found.text)
        if shown != text:
            replace_text(result, shown)

    async def _held_back(self, ctx: RunContext[Any], call: ToolCall, text: str) -> str:
        """Keep a text, and return what the model gets to see."""
        try:
            result_id = await self.store.put(ctx.run_id, text)
        except Exception as exc:  # noqa: BLE001 - whatever fails, the result is not lost
            _log.warning(
                "a result of `%s` was not held back", call.name, exc_info=ctx.loggable(exc)
            )
            ctx.emit_custom(
                "handoff.failed", {"call_id": call.id, "error_kind": type(exc).__name__}
            )
            return text
        ctx.emit_custom(
            "handoff.stored",
            {"call_id": call.id, "result_id": result_id, "bytes": len(text.encode())},
        )
        return placeholder(text, result_id, tool=self._tool, preview_characters=self._preview)


@dataclass(frozen=True, slots=True)
class _Judged:
    text: str
    oversized: bool


def _judged(text: str, threshold: int) -> _Judged:
    clean = defused(cleaned(text), HANDOFF_MARKER)
    return _Judged(clean, token_estimate(clean) > threshold)
