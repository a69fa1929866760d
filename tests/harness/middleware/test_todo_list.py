"""The middleware that gives an agent a list of steps."""

from typing import Any

import pytest

from tinyagents import AgentHarness, AgentRun, RunConfig, RunContext, ToolContext, tool
from tinyagents.harness.context import Pause
from tinyagents.harness.errors import ConfigurationError, DuplicateNameError
from tinyagents.harness.events import Custom
from tinyagents.harness.middleware import (
    PromptCacheGuardMiddleware,
    TodoListMiddleware,
    ToolCall,
    after_tool,
)
from tinyagents.harness.tools import InMemoryTodoStore, Todo, todo_tools
from tinyagents.testkit import ScriptedModel, call, say

STEPS = [{"content": "look", "status": "completed"}, {"content": "act", "status": "in_progress"}]
LIST = (Todo(content="look", status="completed"), Todo(content="act", status="in_progress"))


def write(*steps: dict[str, str]) -> Any:
    return call("write_todos", todos=list(steps or STEPS))


def updates(run: AgentRun[Any, Any]) -> list[Any]:
    return [event.payload for event in run.events if isinstance(event, Custom)]


async def test_the_model_has_the_tools_is_told_of_them_and_the_list_is_kept() -> None:
    todos = TodoListMiddleware()
    model = ScriptedModel([write(), call("read_todos"), say("At it.")])
    agent = AgentHarness(model=model, middleware=[todos], system="You help.")
    run = await agent.invoke(None, "Do it.")
    assert agent.tools.names == ("read_todos", "write_todos")
    roles = [message.role for message in model.requests[0].messages]
    assert roles == ["system", "system", "user"]
    assert "`write_todos`" in model.requests[0].messages[1].text
    assert todos.todos(run.snapshot) == LIST
    assert run.messages[4].text == "1 of 2 done:\n1. [x] look\n2. [>] act"


async def test_each_change_is_told_in_numbers() -> None:
    model = ScriptedModel([write(), write({"content": "act"}), say("x")])
    run = await AgentHarness(model=model, middleware=[TodoListMiddleware()]).invoke(None, "?")
    assert updates(run) == [
        {"total": 2, "pending": 0, "in_progress": 1, "completed": 1, "cancelled": 0},
        {"total": 1, "pending": 1, "in_progress": 0, "completed": 0, "cancelled": 0},
    ]


async def test_a_list_that_cannot_be_changes_nothing_and_is_not_told() -> None:
    todos = TodoListMiddleware()
    model = ScriptedModel([write(), write({"content": "a"}, {"content": "a"}), say("x")])
    run = await AgentHarness(model=model, middleware=[todos]).invoke(None, "?")
    assert todos.todos(run.snapshot) == LIST
    assert len(updates(run)) == 1


async def test_a_run_that_is_resumed_still_has_its_list() -> None:
    @after_tool
    def pause(ctx: RunContext[Any], call: ToolCall, result: Any) -> None:
        if call.name == "write_todos":
            ctx.request_control(Pause("wait"))

    def agent(*script: Any) -> AgentHarness:
        return AgentHarness(model=ScriptedModel(script), middleware=[TodoListMiddleware(), pause])

    first = await agent(write()).invoke(None, "?")
    stored = first.snapshot.model_dump_json()
    run = await agent(call("read_todos"), say("x")).resume(stored, None)
    assert run.messages[-2].text.startswith("1 of 2 done")


async def test_a_run_inside_another_one_has_a_list_of_its_own() -> None:
    todos = TodoListMiddleware()
    inner = AgentHarness(model=ScriptedModel([call("read_todos"), say("x")]), middleware=[todos])

    @tool
    async def ask(*, ctx: ToolContext[Any]) -> str:
        """Ask another agent."""
        run = await inner.invoke(None, "?", context=ctx.run)
        return run.messages[-2].text

    outer = AgentHarness(
        model=ScriptedModel([write(), call("ask"), say("x")]), tools=[ask], middleware=[todos]
    )
    run = await outer.invoke(None, "?")
    assert run.messages[4].text == "The list is empty."
    assert todos.todos(run.snapshot) == LIST


async def test_a_store_keeps_the_list_of_a_thread_over_its_runs() -> None:
    todos = TodoListMiddleware(store=InMemoryTodoStore())
    agent = AgentHarness(
        model=ScriptedModel([write(), say("x"), call("read_todos"), say("y")]), middleware=[todos]
    )
    config = RunConfig(thread_id="t1")
    first = await agent.invoke(None, "?", config=config)
    second = await agent.invoke(None, "Go on.", config=config)
    assert second.messages[2].text.startswith("1 of 2 done")
    assert first.snapshot.notes == {}
    assert len(updates(first)) == 1
    with pytest.raises(ConfigurationError, match="load it from there"):
        todos.todos(first.snapshot)


async def test_what_the_model_is_told_can_be_another_and_stays_the_same_for_the_cache() -> None:
    model = ScriptedModel([write(), say("x")])
    told = TodoListMiddleware(instructions="Plan.")
    agent = AgentHarness(model=model, middleware=[told, PromptCacheGuardMiddleware()])
    run = await agent.invoke(None, "?")
    assert [request.messages[0].text for request in model.requests] == ["Plan.", "Plan."]
    assert "cache.layout_preserved" in [event.kind for event in run.events]
    model = ScriptedModel([say("x")])
    await AgentHarness(model=model, middleware=[TodoListMiddleware(instructions="")]).invoke(
        None, "?"
    )
    assert model.requests[0].messages[0].role == "user"


async def test_where_the_tools_are_not_offered_the_model_is_not_told_of_them() -> None:
    model = ScriptedModel([say("x")])
    agent = AgentHarness(model=model, middleware=[TodoListMiddleware()])
    await agent.invoke(None, "?", tools=[])
    assert [message.role for message in model.requests[0].messages] == ["user"]


@tool
async def look() -> str:
    """Look."""
    return "nothing"


def test_a_changed_copy_has_the_tools_of_its_middlewares() -> None:
    agent = AgentHarness(model=ScriptedModel([]), tools=[look], middleware=[TodoListMiddleware()])
    assert agent.replace(name="b").tools.names == ("look", "read_todos", "write_todos")
    assert agent.replace(tools=[]).tools.names == ("read_todos", "write_todos")
    assert agent.replace(middleware=[]).tools.names == ("look",)
    plain = AgentHarness(model=ScriptedModel([]), tools=[look])
    assert plain.replace(middleware=[TodoListMiddleware()]).tools.names == agent.tools.names


def test_a_tool_of_the_same_name_is_refused() -> None:
    with pytest.raises(DuplicateNameError, match="`read_todos`"):
        AgentHarness(model=ScriptedModel([]), tools=todo_tools(), middleware=[TodoListMiddleware()])
