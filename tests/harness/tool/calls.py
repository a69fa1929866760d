"""A context for a call outside of any run, and the shortest way from arguments to a result."""

from collections.abc import Callable, Mapping
from typing import Any

import anyio
from pydantic import JsonValue

from tinyagents.harness.cancel import CancellationToken
from tinyagents.harness.clock import Sleep, SystemClock
from tinyagents.harness.context import RunConfig, RunContext
from tinyagents.harness.events import EventOrigin, EventSink
from tinyagents.harness.ids import RandomIds
from tinyagents.harness.limits import RunLimits
from tinyagents.harness.message import Block
from tinyagents.harness.model import ModelRegistry
from tinyagents.harness.tool import Tool, ToolContext, ToolRegistry, ToolResult


def context(
    *,
    data: Any = None,
    state: Any = None,
    configurable: Mapping[str, JsonValue] | None = None,
    answers: Mapping[str, JsonValue] | None = None,
    report: Callable[[str], None] | None = None,
    sleep: Sleep = anyio.sleep,
) -> ToolContext[Any]:
    clock = SystemClock()
    run = RunContext(
        RunConfig(configurable=dict(configurable or {})),
        data,
        state=state,
        events=EventSink("run-1", clock),
        origin=EventOrigin(run_id="run-1", root_run_id="run-1"),
        limits=RunLimits(),
        clock=clock,
        ids=RandomIds(),
        sleep=sleep,
        cancellation=CancellationToken(),
        tools=ToolRegistry(),
        models=ModelRegistry(),
    )
    return ToolContext(run, call_id="k1", tool_name="a_tool", answers=answers, report=report)


async def execute(
    tool: Tool,
    arguments: Mapping[str, JsonValue] | None = None,
    ctx: ToolContext[Any] | None = None,
    **options: Any,
) -> ToolResult:
    bound = tool.validate(arguments or {})
    return await tool.execute(bound, ctx or context(), **options)


async def text_of(tool: Tool, **arguments: JsonValue) -> str:
    return only_text((await execute(tool, arguments)).content)


def only_text(content: list[Block]) -> str:
    (block,) = content
    assert block.type == "text"
    return block.text
