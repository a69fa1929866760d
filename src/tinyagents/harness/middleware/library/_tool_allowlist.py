"""A gate that lets only listed tools run."""

from collections.abc import Collection
from typing import Any

from ...context import RunContext
from .._base import Middleware, ToolCall
from ._tool_names import NameRule


class ToolAllowlistMiddleware(Middleware[Any]):
    """Refuses calls of tools that are not listed. The model sees all tools; nothing is hidden.

    Hooks: ``before_tool``. Events: ``tool.refused``. A call of a tool that does not exist is left to
    the policy for unknown tools.

    Args:
        allow: The tools that may run.
        deny: Tools that may not, whatever ``allow`` says.

    Raises:
        ConfigurationError: Names are given as one text.
    """

    def __init__(self, allow: Collection[str] | None, *, deny: Collection[str] = ()) -> None:
        self._rule = NameRule.of(allow, deny)

    async def before_tool(self, ctx: RunContext[Any], call: ToolCall) -> None:
        """Refuse a call of a tool that is not listed."""
        if call.tool is not None and not self._rule.admits(call.tool.name):
            call.refuse("it is not on the list of tools that may run")
