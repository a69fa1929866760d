"""A gate that chooses the tools of each model call by what is known of the run."""

import inspect
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import Any, TypeAlias

from ...context import RunContext
from ...model import ModelRequest
from ...tool import Tool
from .._base import Middleware, ToolCall
from .._hiding import hide_tools, known_tools
from ._tool_names import NameRule


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSelectionContext:
    """What a choice of tools may depend on."""

    run_id: str
    depth: int
    """How many runs this one is inside of."""
    tags: tuple[str, ...]
    requested_model: str | None
    """The model that the last request names.

    ``None`` where it names none, and in a run that was resumed until the model is asked again.
    """


ToolPredicate: TypeAlias = Callable[[ToolSelectionContext, Tool], bool | Awaitable[bool]]
"""Whether the model may see and call a tool."""


class ContextualToolSelectionMiddleware(Middleware[Any]):
    """Hides the tools that a function of the run's circumstances does not admit, and refuses them.

    Hooks: ``before_model`` and ``before_tool``. It changes the tools and the tool choice of a request;
    tools that hooks have put there, and that the run does not have, are left alone. Events:
    ``tool.filtered``, ``tool.refused``.

    Args:
        admits: Whether the model may see and call a tool; plain or async. What it raises ends the
            run.
    """

    def __init__(self, admits: ToolPredicate) -> None:
        self._admits: ToolPredicate | None = admits
        self._rule = NameRule()

    @classmethod
    def inheriting(
        cls,
        parent_allow: Collection[str] | None = None,
        parent_deny: Collection[str] = (),
        child_allow: Collection[str] | None = None,
        child_deny: Collection[str] = (),
    ) -> "ContextualToolSelectionMiddleware":
        """Choose by the names of the tools, so that a child can only narrow what its parent allows.

        Tools are admitted that both lists of allowed tools hold, or the one that is not ``None``, or
        all tools; and that neither list of denied ones holds.

        Raises:
            ConfigurationError: Names are given as one text.
        """
        outer, inner = NameRule.of(parent_allow, parent_deny), NameRule.of(child_allow, child_deny)
        made = cls.__new__(cls)
        made._admits = None
        made._rule = outer.narrowed(inner)
        return made

    async def before_model(self, ctx: RunContext[Any], request: ModelRequest) -> None:
        """Hide the tools that are not admitted."""
        ctx.scratch[self] = request.model
        hidden = [name for name in known_tools(ctx, request) if not await self._admitted(ctx, name)]
        hide_tools(ctx, request, hidden, by=self.name)

    async def before_tool(self, ctx: RunContext[Any], call: ToolCall) -> None:
        """Refuse a call of a tool that is not admitted, hidden before or not."""
        if call.tool is not None and not await self._admitted(ctx, call.tool.name):
            call.refuse("it is not available here")

    async def _admitted(self, ctx: RunContext[Any], name: str) -> bool:
        tool = ctx.tools.find(name)
        if self._admits is None or tool is None:
            return self._rule.admits(name)
        context = ToolSelectionContext(
            run_id=ctx.run_id,
            depth=ctx.depth,
            tags=ctx.config.tags,
            requested_model=ctx.scratch.get(self),
        )
        verdict = self._admits(context, tool)
        return bool(await verdict if inspect.isawaitable(verdict) else verdict)
