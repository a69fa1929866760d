"""A choice of tools by the request that they are for."""

import inspect
from collections.abc import Awaitable, Callable, Collection
from typing import Any, TypeAlias, cast

from ...context import RunContext
from ...errors import MiddlewareError
from ...model import ModelRequest
from .._base import Middleware
from .._hiding import hide_tools, known_tools

ToolSelector: TypeAlias = Callable[
    [RunContext[Any], ModelRequest], "Collection[str] | Awaitable[Collection[str]]"
]
"""Returns the names of the tools that the model may see and call."""


class DynamicToolSelectionMiddleware(Middleware[Any]):
    """Offers only the tools that a function chooses for each request, and refuses the others.

    Hooks: ``before_model``. It changes the tools and the tool choice of a request, and no event tells
    of it; a refused call has its ``tool.refused``. Names that there are no tools of are passed over.

    Args:
        select: Returns the names of the tools to offer; plain or async. What it raises ends the
            run, and so does anything else than a collection of names.
    """

    def __init__(self, select: ToolSelector) -> None:
        self._select = select

    async def before_model(self, ctx: RunContext[Any], request: ModelRequest) -> None:
        """Hide the tools that are not chosen."""
        chosen = self._select(ctx, request)
        if inspect.isawaitable(chosen):
            chosen = await chosen
        kept = _checked(chosen, self.name)
        hidden = [name for name in known_tools(ctx, request) if name not in kept]
        hide_tools(ctx, request, hidden, by=self.name, announce=False)


def _checked(chosen: object, who: str) -> frozenset[object]:
    if isinstance(chosen, str) or not isinstance(chosen, Collection):
        raise MiddlewareError(
            f"`{who}`: the function returned a `{type(chosen).__name__}`, "
            "and not a collection of names"
        )
    return frozenset(cast("Collection[object]", chosen))
