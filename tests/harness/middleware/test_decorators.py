"""Functions as middleware."""

from itertools import groupby
from typing import Any

import pytest

from tinyagents import AgentHarness, AgentRun, RunContext, ToolContext, ToolResult, tool
from tinyagents.harness import middleware
from tinyagents.harness.errors import AuthenticationError
from tinyagents.harness.middleware import (
    Middleware,
    ModelHandler,
    ToolCall,
    ToolHandler,
    after_agent,
    after_model,
    after_tool,
    before_agent,
    before_model,
    before_tool,
    on_error,
    on_model_delta,
    on_tool_delta,
    wrap_model,
    wrap_tool,
)
from tinyagents.harness.model import ModelRequest, ModelResponse
from tinyagents.testkit import ScriptedModel, call, fail, say


@tool
async def ping(ctx: ToolContext[Any]) -> str:
    """Ping."""
    ctx.progress("half")
    return "pong"


async def test_every_hook_can_be_a_function_plain_or_async() -> None:
    seen: list[str] = []

    @before_agent
    async def begin(ctx: RunContext[Any]) -> None:
        seen.append("before_agent")

    @after_agent
    def end(ctx: RunContext[Any], run: AgentRun[Any, Any]) -> None:
        seen.append(f"after_agent {run.text}")

    @wrap_model
    async def around(
        ctx: RunContext[Any], request: ModelRequest, call_next: ModelHandler
    ) -> ModelResponse:
        seen.append("wrap_model")
        return await call_next(request)

    @wrap_tool
    def around_tool(ctx: RunContext[Any], call: ToolCall, call_next: ToolHandler) -> Any:
        seen.append("wrap_tool")
        return call_next(call)

    stack: list[Middleware[Any]] = [
        begin,
        end,
        around,
        around_tool,
        before_model(lambda ctx, request: seen.append("before_model")),
        on_model_delta(lambda ctx, delta: seen.append("on_model_delta")),
        after_model(lambda ctx, response: seen.append("after_model")),
        before_tool(lambda ctx, call: seen.append(f"before_tool {call.name}")),
        on_tool_delta(lambda ctx, delta: seen.append(f"on_tool_delta {delta.content}")),
        after_tool(lambda ctx, call, result: seen.append("after_tool")),
    ]
    model = ScriptedModel([call("ping"), say("done")], chunk_size=None)
    agent = AgentHarness(model=model, tools=[ping], middleware=stack)
    await agent.stream(None, "go").result()
    # A call comes in two pieces.
    assert [hook for hook, _ in groupby(seen)] == [
        "before_agent",
        "before_model",
        "wrap_model",
        "on_model_delta",
        "after_model",
        "before_tool ping",
        "wrap_tool",
        "on_tool_delta half",
        "after_tool",
        "before_model",
        "wrap_model",
        "on_model_delta",
        "after_model",
        "after_agent done",
    ]


async def test_a_function_is_told_of_errors() -> None:
    seen: list[BaseException] = []
    agent = AgentHarness(
        model=ScriptedModel([fail(AuthenticationError("no key"))]),
        middleware=[on_error(lambda ctx, error: seen.append(error))],
    )
    with pytest.raises(AuthenticationError) as caught:
        await agent.invoke(None, "go")
    assert seen == [caught.value]


async def test_events_call_a_middleware_by_the_name_of_its_function() -> None:
    @before_agent
    def greet(ctx: RunContext[Any]) -> None:
        """Say hello."""

    assert greet.name == "greet"
    assert greet.__doc__ == "Say hello."
    agent = AgentHarness(model=ScriptedModel([say("x")]), middleware=[greet])
    run = await agent.invoke(None, "go")
    started = next(e for e in run.events if e.kind == "middleware.started")
    assert (started.name, started.hook) == ("greet", "before_agent")  # type: ignore[attr-defined]


def test_a_made_middleware_overrides_its_hook_alone() -> None:
    made = before_agent(lambda ctx: None)
    stack = middleware.MiddlewareStack([made])
    assert len(stack.before_agent) == 1
    assert stack.before_model == stack.wrap_tool == stack.on_error == ()


async def test_a_wrap_as_a_function_may_answer_itself() -> None:
    @wrap_tool
    async def refuse(ctx: RunContext[Any], call: ToolCall, call_next: ToolHandler) -> ToolResult:
        return ToolResult.error("closed")

    model = ScriptedModel([call("ping"), say("done")])
    run = await AgentHarness(model=model, tools=[ping], middleware=[refuse]).invoke(None, "go")
    assert run.messages[2].text == "closed"
