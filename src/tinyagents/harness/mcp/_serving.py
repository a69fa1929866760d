"""The package's low-level server around a harness: one run for each call."""

import logging
from dataclasses import replace
from inspect import isawaitable
from typing import Any

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp import MCPError
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.session import ServerSession

from ..agent_loop import RunSnapshot
from ..context import RunContext, StopWithFinal
from ..errors import TinyAgentsError
from ..message import (
    AssistantMessage,
    AudioBlock,
    Block,
    FileBlock,
    ImageBlock,
    JsonBlock,
    TextBlock,
    ToolCallBlock,
    ToolMessage,
)
from ..middleware import Middleware, ToolCall, ToolDelta
from ..runtime import AgentHarness
from ..text import dump_json, error_text
from ..tool import Tool, ToolError, ToolPolicy, ToolResult
from ._served import CallContext, ContextFactory, ServedCall

_log = logging.getLogger("tinyagents.mcp")

_MAX_REPORTS = 64
"""Reports of a tool that wait to be sent; what is more is not sent."""

_Reports = dict[str, MemoryObjectSendStream[str]]


class _OneCall(Middleware[Any]):
    """Passes on what a tool reports, and ends the run after its one call."""

    def __init__(self) -> None:
        self.reports: _Reports = {}
        """Where the reports of a run go, by its id."""

    def on_tool_delta(self, ctx: RunContext[Any], delta: ToolDelta) -> None:
        reports = self.reports.get(ctx.run_id)
        if reports is not None:
            try:
                reports.send_nowait(delta.content)
            except (anyio.WouldBlock, anyio.BrokenResourceError):
                pass

    async def after_tool(self, ctx: RunContext[Any], call: ToolCall, result: ToolResult) -> None:
        ctx.request_control(StopWithFinal(""))


def build_server(
    source: AgentHarness,
    *,
    name: str,
    version: str,
    instructions: str | None,
    context_factory: ContextFactory,
    allow_approval_required: bool,
    max_concurrency: int,
) -> Server[Any]:
    """Return the package's server for the tools of a harness."""
    tools = [
        _approved(tool)
        for tool in source.tools
        if allow_approval_required or not tool.policy.access.approval_required
    ]
    one_call = _OneCall()
    harness = source.replace(tools=tools, middleware=(*source.middleware, one_call))
    listing = types.ListToolsResult(tools=[_described(tool) for tool in harness.tools])
    at_once = anyio.Semaphore(max_concurrency)

    async def list_tools(
        _ctx: ServerRequestContext[Any], _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return listing

    async def call_tool(
        ctx: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        if params.name not in harness.tools:
            raise MCPError(types.INVALID_PARAMS, f"there is no tool `{params.name}`")
        async with at_once:
            try:
                context = context_factory(_served(ctx, params.name))
                if isawaitable(context):
                    context = await context
            except Exception as exc:  # noqa: BLE001 - it must not end the connection
                return _failed(params.name, exc)
            return await _call(harness, one_call.reports, ctx.session, params, context)

    return Server(
        name,
        version=version,
        instructions=instructions,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


async def _call(
    harness: AgentHarness,
    reports: _Reports,
    session: ServerSession,
    params: types.CallToolRequestParams,
    context: CallContext,
) -> types.CallToolResult:
    """Run one call, and send on what its tool reports."""
    snapshot = harness.snapshot("a call over MCP", config=context.config)
    run_id = snapshot.config.run_id
    block = ToolCallBlock(
        id=f"{run_id}-call", name=params.name, arguments=dict(params.arguments or {})
    )
    snapshot = replace(snapshot, phase="call_tools", messages=[AssistantMessage(content=[block])])
    said, saying = anyio.create_memory_object_stream[str](_MAX_REPORTS)
    result = _error(f"`{params.name}` was not executed")
    async with anyio.create_task_group() as tg:
        tg.start_soon(_send_reports, saying, session)
        reports[run_id] = said
        try:
            result = await _run(harness, snapshot, block, context)
        finally:
            reports.pop(run_id, None)
            said.close()
    return result


async def _run(
    harness: AgentHarness, snapshot: RunSnapshot, block: ToolCallBlock, context: CallContext
) -> types.CallToolResult:
    try:
        run = await harness.invoke(context.state, snapshot, data=context.data)
    except Exception as exc:  # noqa: BLE001 - it must not end the connection
        return _failed(block.name, exc)
    if run.status == "interrupted":
        return _error(f"`{block.name}` needs an answer of somebody, who cannot be asked here")
    for message in run.messages:
        if isinstance(message, ToolMessage) and message.tool_call_id == block.id:
            return _answer(message)
    return _error(f"`{block.name}` was not executed: {run.reason or run.status}")


async def _send_reports(saying: MemoryObjectReceiveStream[str], session: ServerSession) -> None:
    count = 0
    async with saying:
        async for text in saying:
            count += 1
            await session.report_progress(count, message=text)


def _served(ctx: ServerRequestContext[Any], tool: str) -> ServedCall:
    params = ctx.session.client_params
    headers = getattr(ctx.request, "headers", None)
    return ServedCall(
        tool=tool,
        client=None if params is None else params.client_info.name,
        headers=None if headers is None else {k.lower(): v for k, v in headers.items()},
    )


def _approved(tool: Tool) -> Tool:
    access = tool.policy.access
    if not access.approval_required:
        return tool
    access = access.model_copy(update={"approval_required": False})
    return replace(tool, policy=tool.policy.model_copy(update={"access": access}))


def _described(tool: Tool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.policy.display.label,
        description=tool.description or None,
        input_schema=tool.schema.parameters,
        annotations=_hints(tool.policy),
    )


def _hints(policy: ToolPolicy) -> types.ToolAnnotations | None:
    if not policy.classified:
        return None
    effects = policy.side_effects
    return types.ToolAnnotations(
        read_only_hint=effects.read_only,
        destructive_hint=effects.destructive,
        idempotent_hint=policy.runtime.idempotent,
        open_world_hint=effects.network or effects.external_service,
    )


def _answer(message: ToolMessage) -> types.CallToolResult:
    # Up to the revision of 2025-11-25 it has to be an object.
    structured = message.artifact if isinstance(message.artifact, dict) else None
    return types.CallToolResult(
        content=[_content(block) for block in message.content],
        structured_content=structured,
        is_error=message.is_error,
    )


def _failed(tool: str, error: Exception) -> types.CallToolResult:
    """Return the result of a call that an exception ended: words that were meant to be read."""
    match error:
        case ToolError():
            return _error(error_text(error) or f"`{tool}` failed")
        case TinyAgentsError():
            return _error(f"`{tool}` failed: {error}")
        case _:
            _log.error("the call of `%s` failed", tool, exc_info=error)
            return _error(f"`{tool}` failed")


def _error(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=True)


def _content(block: Block) -> types.ContentBlock:
    match block:
        case TextBlock():
            return types.TextContent(text=block.text)
        case JsonBlock():
            return types.TextContent(text=dump_json(block.value))
        case ImageBlock(data=str() as data):
            return types.ImageContent(data=data, mime_type=block.media_type or "image/png")
        case AudioBlock(data=str() as data):
            return types.AudioContent(data=data, mime_type=block.media_type or "audio/wav")
        case FileBlock(data=str() as data):
            resource = types.BlobResourceContents(
                uri=f"attachment:{block.name or 'file'}", blob=data, mime_type=block.media_type
            )
            return types.EmbeddedResource(resource=resource)
        case (
            ImageBlock(url=str() as url)
            | AudioBlock(url=str() as url)
            | FileBlock(url=str() as url)
        ):
            return types.ResourceLink(name=block.type, uri=url, mime_type=block.media_type)
        case _:
            return types.TextContent(text=f"[a part of type `{block.type}` cannot be sent]")
