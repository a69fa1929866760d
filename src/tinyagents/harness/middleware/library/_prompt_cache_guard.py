"""Tells when a prompt stops being what a provider's prompt cache holds."""

from typing import Any, Final

from pydantic import ValidationError

from ...context import RunContext
from ...model import ModelRequest
from ...prompt import PromptCacheLayout
from .._base import Middleware

_NOTE: Final = "prompt_cache_guard"


class PromptCacheGuardMiddleware(Middleware[Any]):
    """Compares each prompt of a run with that of the call before, and tells the outcome in an event.

    Events: ``cache.layout_preserved``, ``cache.layout_changed`` or ``cache.prefix_invalidated``,
    one for each call but a run's first one; they hold ids and places, never content. Hooks:
    ``before_model``. It changes nothing, and does not see what retries and fallbacks send. Register
    it last: it should see the request as the other middlewares leave it.

    What it knows of a run it keeps with that run: digests, in the snapshot too, so that the first
    call of a run that is resumed is compared with the last one before.
    """

    async def before_model(self, ctx: RunContext[Any], request: ModelRequest) -> None:
        """Compare the request with the one before."""
        before = ctx.scratch.get(self) or _kept(ctx)
        layout = PromptCacheLayout.of(request, previous=before)
        ctx.scratch[self] = layout
        ctx.notes[_NOTE] = layout.dump()
        if before is not None:
            kind, payload = before.compare(layout).event()
            ctx.emit(kind, **payload)


def _kept(ctx: RunContext[Any]) -> PromptCacheLayout | None:
    """Return the layout that a run which was resumed has brought along."""
    try:
        return PromptCacheLayout.load(ctx.notes[_NOTE])
    except (KeyError, ValidationError):
        return None  # a new run, or a snapshot that somebody else wrote
