"""Hiding tools from a model."""

from collections.abc import Iterable
from typing import Any

from ..context import RunContext
from ..model import ModelRequest, NamedTool


def hide_tools(
    ctx: RunContext[Any],
    request: ModelRequest,
    names: Iterable[str],
    *,
    by: str,
    announce: bool = True,
) -> None:
    """Take tools out of a request, and refuse calls of them until the next one; for ``before_model``.

    A choice of tool that is no longer possible becomes ``auto``. That a tool is hidden is part of
    the run's snapshot.

    Args:
        ctx: The run.
        request: What the model is asked next.
        names: The tools, those that the request does not offer too.
        by: Who hides them, for events and errors.
        announce: Emit ``tool.filtered`` where the request has offered one of them.
    """
    hidden = dict.fromkeys(names)
    for name in hidden:
        ctx.hidden_tools.setdefault(name, by)
    excluded = tuple(schema.name for schema in request.tools if schema.name in hidden)
    if not excluded:
        return
    request.tools = tuple(schema for schema in request.tools if schema.name not in hidden)
    choice = request.tool_choice
    if isinstance(choice, NamedTool):
        possible = choice.name not in hidden
    else:
        possible = choice != "required" or bool(request.tools)
    if not possible:
        request.tool_choice = "auto"
    if announce:
        ctx.emit("tool.filtered", by=by, excluded=excluded, remaining=len(request.tools))


def known_tools(ctx: RunContext[Any], request: ModelRequest) -> list[str]:
    """Return the names of the tools that the run has, and of others that the request offers."""
    return list(dict.fromkeys((*ctx.tools.names, *(schema.name for schema in request.tools))))
