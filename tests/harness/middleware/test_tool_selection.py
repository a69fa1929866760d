"""The middlewares that choose the tools of each model call."""

from collections.abc import Collection
from typing import Any

import pytest

from tinyagents import (
    AgentHarness,
    AgentRun,
    RunConfig,
    RunContext,
    RunPolicy,
    ToolContext,
    ToolMessage,
    UserMessage,
    tool,
)
from tinyagents.harness.approval import Approve
from tinyagents.harness.errors import ConfigurationError, MiddlewareError, ToolRefusedError
from tinyagents.harness.events import ToolsFiltered
from tinyagents.harness.middleware import (
    ContextualToolSelectionMiddleware,
    DynamicToolSelectionMiddleware,
    ToolSelectionContext,
    after_model,
)
from tinyagents.harness.model import ModelRequest, ModelResponse
from tinyagents.harness.tool import Tool, ToolPolicy
from tinyagents.testkit import FakeTool, ScriptedModel, assert_event_grammar, call, say

Ctx = RunContext[Any]
TELL = RunPolicy(refused_tools="return_to_model")


def offered(model: ScriptedModel) -> list[list[str]]:
    return [[tool.name for tool in request.tools] for request in model.requests]


def refused(run: AgentRun[Any, Any]) -> list[bool]:
    return [message.is_error for message in run.messages if isinstance(message, ToolMessage)]


# By the circumstances


async def test_a_choice_sees_the_run_and_the_tool() -> None:
    seen: list[tuple[ToolSelectionContext, str]] = []

    def admits(context: ToolSelectionContext, tool: Tool) -> bool:
        seen.append((context, tool.name))
        return "open" in context.tags

    model = ScriptedModel([say("ok")])
    agent = AgentHarness(
        model=model,
        tools=[FakeTool("a")],
        middleware=[ContextualToolSelectionMiddleware(admits)],
    )
    config = RunConfig(run_id="r1", tags=("open",))
    await agent.invoke(None, "go", config=config, model="default")
    expected = ToolSelectionContext(run_id="r1", depth=0, tags=("open",), requested_model="default")
    assert seen == [(expected, "a")]
    assert offered(model) == [["a"]]


async def test_what_is_not_admitted_is_hidden_announced_and_refused() -> None:
    def admits(context: ToolSelectionContext, tool: Tool) -> bool:
        return tool.name != "b"

    model = ScriptedModel([[call("a"), call("b")], say("ok")])
    tools = [FakeTool("a"), FakeTool("b")]
    agent = AgentHarness(
        model=model,
        tools=tools,
        middleware=[ContextualToolSelectionMiddleware(admits)],
        policy=TELL,
    )
    run = await agent.invoke(None, "go")
    assert offered(model) == [["a"], ["a"]]
    assert refused(run) == [False, True]
    assert not tools[1].calls
    events = [event for event in run.events if isinstance(event, ToolsFiltered)]
    assert [(e.by, e.excluded, e.remaining) for e in events] == [
        ("ContextualToolSelectionMiddleware", ("b",), 1)
    ] * 2
    assert_event_grammar(run)


async def test_nothing_is_announced_where_nothing_is_hidden() -> None:
    agent = AgentHarness(
        model=ScriptedModel([say("ok")]),
        tools=[FakeTool("a")],
        middleware=[ContextualToolSelectionMiddleware(lambda context, tool: True)],
    )
    run = await agent.invoke(None, "go")
    assert "tool.filtered" not in [event.kind for event in run.events]


@pytest.mark.parametrize("verdict", [True, False])
async def test_a_choice_may_be_async(verdict: bool) -> None:
    async def admits(context: ToolSelectionContext, tool: Tool) -> bool:
        return verdict

    model = ScriptedModel([say("ok")])
    agent = AgentHarness(
        model=model, tools=[FakeTool("a")], middleware=[ContextualToolSelectionMiddleware(admits)]
    )
    await agent.invoke(None, "go")
    assert offered(model) == [["a"] if verdict else []]


async def test_a_choice_that_fails_ends_the_run_and_nothing_was_asked() -> None:
    def admits(context: ToolSelectionContext, tool: Tool) -> bool:
        raise LookupError("no table")

    model = ScriptedModel([say("never")])
    agent = AgentHarness(
        model=model, tools=[FakeTool("a")], middleware=[ContextualToolSelectionMiddleware(admits)]
    )
    with pytest.raises(LookupError, match="no table"):
        await agent.invoke(None, "go")
    assert model.requests == []


async def test_a_call_is_judged_again_when_it_is_made() -> None:
    opened = True

    @after_model
    def close(ctx: Ctx, response: ModelResponse) -> None:
        nonlocal opened
        opened = False

    act = FakeTool("act")
    model = ScriptedModel([call("act"), say("ok")])
    gate = ContextualToolSelectionMiddleware(lambda context, tool: opened)
    agent = AgentHarness(model=model, tools=[act], middleware=[gate, close], policy=TELL)
    run = await agent.invoke(None, "go")
    assert offered(model)[0] == ["act"]
    assert refused(run) == [True]
    assert not act.calls


async def test_a_call_that_waited_is_judged_by_the_lists_of_those_who_resume_the_run() -> None:
    act = FakeTool("act", policy=ToolPolicy.affecting("payment", approval_required=True))
    model = ScriptedModel([call("act"), say("ok")])
    agent = AgentHarness(model=model, tools=[act], policy=TELL)
    waiting = await agent.invoke(None, "go")
    narrow = ContextualToolSelectionMiddleware.inheriting(child_deny=["act"])
    answers = {waiting.interrupts[0].id: Approve()}
    stored = waiting.snapshot.model_dump_json()
    run = await agent.replace(middleware=[narrow]).resume(stored, None, answers=answers)
    assert refused(run) == [True]
    assert not act.calls


async def test_each_run_has_choices_of_its_own() -> None:
    gate = ContextualToolSelectionMiddleware(lambda context, tool: tool.name in context.tags)
    inner_model = ScriptedModel([say("inner")])
    inner = AgentHarness(model=inner_model, tools=[FakeTool("a"), FakeTool("b")], middleware=[gate])

    @tool(name="a")
    async def delegate(ctx: ToolContext[Any]) -> str:
        """Ask another agent."""
        config = RunConfig(tags=("b",))
        return (await inner.invoke(None, "go", context=ctx.run, config=config)).text

    model = ScriptedModel([call("a"), say("outer")])
    agent = AgentHarness(model=model, tools=[delegate, FakeTool("c")], middleware=[gate])
    run = await agent.invoke(None, "go", config=RunConfig(tags=("a",)))
    assert offered(model) == [["a"], ["a"]]
    assert offered(inner_model) == [["a", "b"]]  # a child has the tags of its parent too
    assert refused(run) == [False]


# Lists that a child can only narrow

ALL = ["a", "b", "c"]

INHERITED: list[tuple[tuple[Any, Any, Any, Any], list[str]]] = [
    ((None, (), None, ()), ["a", "b", "c"]),
    ((["a", "b"], (), None, ()), ["a", "b"]),
    ((None, (), ["b", "c"], ()), ["b", "c"]),
    ((["a", "b"], (), ["b", "c"], ()), ["b"]),
    ((["a"], (), ["b"], ()), []),
    ((None, ["a"], None, ["b"]), ["c"]),
    ((["a", "b"], ["a"], ["a", "b"], ()), ["b"]),
    ((["a"], (), ["a", "b", "c"], ()), ["a"]),
    (([], (), None, ()), []),
    ((None, ["a"], ["a"], ()), []),
]


@pytest.mark.parametrize(("lists", "expected"), INHERITED)
async def test_a_child_can_only_narrow_what_its_parent_allows(
    lists: tuple[Any, Any, Any, Any], expected: list[str]
) -> None:
    gate = ContextualToolSelectionMiddleware.inheriting(*lists)
    tools = [FakeTool(name) for name in ALL]
    model = ScriptedModel([[call(name) for name in ALL], say("ok")])
    agent = AgentHarness(model=model, tools=tools, middleware=[gate], policy=TELL)
    await agent.invoke(None, "go")
    assert offered(model)[0] == expected
    assert [tool.name for tool in tools if tool.calls] == expected


def test_lists_of_names_are_not_one_text() -> None:
    with pytest.raises(ConfigurationError, match=r"\['abc'\]"):
        ContextualToolSelectionMiddleware.inheriting(child_deny="abc")


# By the request


async def test_a_function_chooses_the_tools_of_each_request_silently() -> None:
    def select(ctx: Ctx, request: ModelRequest) -> list[str]:
        first = isinstance(request.messages[-1], UserMessage)
        return ["a", "gone"] if first else ["b"]

    tools = [FakeTool("a"), FakeTool("b")]
    model = ScriptedModel([[call("a"), call("b")], [call("a"), call("b")], say("ok")])
    agent = AgentHarness(
        model=model,
        tools=tools,
        middleware=[DynamicToolSelectionMiddleware(select)],
        policy=TELL,
    )
    run = await agent.invoke(None, "go")
    assert offered(model) == [["a"], ["b"], ["b"]]
    assert refused(run) == [False, True, True, False]
    assert "tool.filtered" not in [event.kind for event in run.events]


async def test_a_tool_that_was_not_chosen_ends_the_run_when_it_is_called() -> None:
    async def select(ctx: Ctx, request: ModelRequest) -> set[str]:
        return {"a"}

    agent = AgentHarness(
        model=ScriptedModel([call("b")]),
        tools=[FakeTool("a"), FakeTool("b")],
        middleware=[DynamicToolSelectionMiddleware(select)],
    )
    with pytest.raises(ToolRefusedError, match="`DynamicToolSelectionMiddleware`"):
        await agent.invoke(None, "go")


@pytest.mark.parametrize(("chosen", "kind"), [("a", "str"), (None, "NoneType"), (7, "int")])
async def test_a_choice_that_is_no_collection_of_names_ends_the_run(chosen: Any, kind: str) -> None:
    def select(ctx: Ctx, request: ModelRequest) -> Collection[str]:
        value: Collection[str] = chosen
        return value

    agent = AgentHarness(
        model=ScriptedModel([say("never")]),
        tools=[FakeTool("a")],
        middleware=[DynamicToolSelectionMiddleware(select)],
    )
    with pytest.raises(MiddlewareError, match=f"`{kind}`, and not a collection"):
        await agent.invoke(None, "go")
