"""The tools of a server as tools of ours: which ones, under what names, and what they may do."""

import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeAlias

import mcp_types as types
from pydantic import JsonValue

from ..errors import ConfigurationError, DuplicateNameError, InvalidRequestError
from ..text import clean_text, encode_json
from ..tool import Tool, ToolContext, ToolResult
from ._choice import ToolChoice

_log = logging.getLogger("tinyagents.mcp")

_MAX_NAME = 128
_MAX_DESCRIPTION = 8192
_MAX_SCHEMA_BYTES = 131_072

Call: TypeAlias = Callable[[str, dict[str, JsonValue], ToolContext[Any]], Awaitable[ToolResult]]
"""Calls a tool of the server by the server's own name for it."""


def make_tools(
    listed: Iterable[types.Tool], choice: ToolChoice, call: Call, *, server: str
) -> tuple[Tool, ...]:
    """Return the chosen tools of a listing.

    One that cannot be described to a model is left out, and the log says why.

    Raises:
        DuplicateNameError: Two of them have one name.
    """
    tools: dict[str, Tool] = {}
    for item in listed:
        if not choice.takes(item.name):
            continue
        try:
            made = _make(item, choice, call, server)
        except InvalidRequestError as exc:
            _log.warning("the tool server `%s` lists a tool that is left out: %s", server, exc)
            continue
        if made.name in tools:
            raise DuplicateNameError(
                f"the tool server `{server}` lists two tools `{made.name}`", name=made.name
            )
        tools[made.name] = made
    return tuple(tools.values())


def _make(item: types.Tool, choice: ToolChoice, call: Call, server: str) -> Tool:
    name = item.name
    if len(name) > _MAX_NAME:
        raise ConfigurationError(f"a name of {len(name)} characters, {name[:40]!r}…")
    if (size := len(encode_json(item.input_schema))) > _MAX_SCHEMA_BYTES:
        raise ConfigurationError(f"the parameters of `{name}` take {size} bytes")

    async def run(arguments: dict[str, JsonValue], ctx: ToolContext[Any]) -> ToolResult:
        return await call(name, arguments, ctx)

    hints = item.annotations
    told = {} if hints is None else hints.model_dump(exclude_none=True, exclude={"title"})
    title = item.title or (hints.title if hints is not None else None)
    return Tool.from_schema(
        run,
        name=choice.prefix + name,
        description=_cut(clean_text(item.description or "")),
        parameters=item.input_schema,
        policy=choice.policy_of(name, told, title=title),
        tags=("mcp",),
        metadata={"mcp_server": server, "mcp_tool": name, "mcp_hints": told},
    )


def _cut(description: str) -> str:
    if len(description) <= _MAX_DESCRIPTION:
        return description
    return f"{description[:_MAX_DESCRIPTION]}\n[cut: the first {_MAX_DESCRIPTION} characters]"
