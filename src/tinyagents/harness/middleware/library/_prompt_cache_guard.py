"""Tells when a prompt stops being what a provider's prompt cache holds."""

from collections import OrderedDict
from typing import Any

from ...context import RunContext
from ...model import ModelRequest
from ...prompt import PromptCacheLayout
from .._base import Middleware

_MOST_RUNS = 1024


class PromptCacheGuardMiddleware(Middleware[Any]):
    """Compares each prompt of a run with that of the call before, and tells the outcome in an event.

    Events: ``cache.layout_preserved``, ``cache.layout_changed`` or ``cache.prefix_invalidated``,
    one for each call but a run's first one; they hold ids and places, never content. Hooks:
    ``before_model``, and ``after_agent`` and ``on_error`` to forget the run. It changes nothing,
    and does not see what retries and fallbacks send. Register it last: it should see the request
    as the other middlewares leave it.

    Of runs that are abandoned it keeps the latest 1,024.
    """

    def __init__(self) -> None:
        self._last: OrderedDict[str, PromptCacheLayout] = OrderedDict()

    async def before_model(self, ctx: RunContext[Any], request: ModelRequest) -> None:
        """Compare the request with the one before."""
        before = self._last.pop(ctx.run_id, None)
        layout = PromptCacheLayout.of(request, previous=before)
        self._last[ctx.run_id] = layout
        if len(self._last) > _MOST_RUNS:
            self._last.popitem(last=False)
        if before is not None:
            change = before.compare(layout)
            kind, payload = change.event()
            if not change.is_preserved:
                payload["violates_policy"] = ctx.protects_prompt
            ctx.emit(kind, **payload)

    async def after_agent(self, ctx: RunContext[Any], run: object) -> None:
        """Forget the run."""
        self._last.pop(ctx.run_id, None)

    async def on_error(self, ctx: RunContext[Any], error: BaseException) -> None:
        """Forget the run."""
        self._last.pop(ctx.run_id, None)
