"""The middleware whose instructions are made for each model call."""

from typing import Any

import pytest

from tinyagents import AgentHarness, AgentRun, RunContext, SystemMessage, tool
from tinyagents.harness.errors import ConfigurationError
from tinyagents.harness.message import AssistantMessage, UserMessage
from tinyagents.harness.middleware import (
    DynamicPromptMiddleware,
    PromptCacheGuardMiddleware,
    before_model,
)
from tinyagents.harness.model import ModelRequest, PromptSegment
from tinyagents.testkit import ScriptedModel, call, say


@tool
async def look(place: str) -> str:
    """Look somewhere."""
    return f"nothing in {place}"


def three_calls() -> ScriptedModel:
    return ScriptedModel([call("look", place="a"), call("look", place="b"), say("Gone.")])


def texts(request: ModelRequest) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in request.messages if message.text]


async def test_the_text_comes_first_in_each_request_and_is_not_kept() -> None:
    async def later(ctx: RunContext[Any], request: ModelRequest) -> str:
        return f"Be brief, {ctx.data}."

    model = ScriptedModel([say("Yes."), say("Yes.")])
    for function in (lambda ctx, request: f"Be brief, {ctx.data}.", later):
        agent = AgentHarness(
            model=model, middleware=[DynamicPromptMiddleware(function)], system="You help."
        )
        run: AgentRun[Any, Any] = await agent.invoke(None, "?", data="ada")
        assert texts(model.requests[-1]) == [
            ("system", "Be brief, ada."),
            ("system", "You help."),
            ("user", "?"),
        ]
        assert [message.role for message in run.messages] == ["user", "assistant"]


@pytest.mark.parametrize("nothing", [None, ""])
async def test_no_text_adds_nothing(nothing: str | None) -> None:
    model = ScriptedModel([say("Yes.")])
    agent = AgentHarness(
        model=model, middleware=[DynamicPromptMiddleware(lambda ctx, request: nothing)]
    )
    await agent.invoke(None, "?")
    assert texts(model.requests[0]) == [("user", "?")]


async def test_at_the_end_it_leaves_the_prefix_to_the_cache() -> None:
    count = iter(range(9))

    def clock(ctx: RunContext[Any], request: ModelRequest) -> str:
        return f"It is {next(count)} o'clock."

    kinds: dict[str, list[str]] = {}
    model = three_calls()
    for placement in ("start", "end"):
        model = three_calls()
        tell: Any = DynamicPromptMiddleware(clock, placement=placement)
        agent = AgentHarness(
            model=model, tools=[look], middleware=[tell, PromptCacheGuardMiddleware()]
        )
        run: AgentRun[Any, Any] = await agent.invoke(None, "Where?")
        kinds[placement] = [e.kind for e in run.events if e.kind.startswith("cache.")]
    assert kinds == {
        "start": ["cache.prefix_invalidated"] * 2,
        "end": ["cache.layout_preserved"] * 2,
    }
    assert texts(model.requests[-1])[-1] == ("user", "It is 5 o'clock.")


async def test_several_may_add_to_the_end_each_in_a_segment_of_its_own() -> None:
    model = ScriptedModel([say("Yes.")])
    one = DynamicPromptMiddleware(lambda ctx, request: "one", placement="end")
    two = DynamicPromptMiddleware(lambda ctx, request: "two", placement="end")
    await AgentHarness(model=model, middleware=[one, two]).invoke(None, "?")
    (request,) = model.requests
    assert [text for _, text in texts(request)] == ["?", "one", "two"]
    assert [(segment.role, segment.messages) for segment in request.segments] == [
        ("history", 1),
        ("volatile", 1),
        ("volatile", 1),
    ]
    assert len({segment.id for segment in request.segments}) == 3


async def test_segments_that_there_are_keep_their_messages() -> None:
    @before_model
    def lay_out(ctx: RunContext[Any], request: ModelRequest) -> None:
        request.messages.insert(0, SystemMessage(content="rules"))
        request.segments = [PromptSegment(id="rules", role="system", cacheable=True, messages=1)]

    def sizes(model: ScriptedModel) -> list[tuple[str, int]]:
        return [(segment.role, segment.messages) for segment in model.requests[0].segments]

    model = ScriptedModel([say("Yes.")])
    end = DynamicPromptMiddleware(lambda ctx, request: "now", placement="end")
    await AgentHarness(model=model, middleware=[lay_out, end]).invoke(None, "?")
    assert sizes(model) == [("system", 1), ("history", 1), ("volatile", 1)]

    model = ScriptedModel([say("Yes.")])
    start = DynamicPromptMiddleware(lambda ctx, request: "now")
    await AgentHarness(model=model, middleware=[lay_out, start]).invoke(None, "?")
    assert sizes(model) == [("system", 2)]


async def test_an_answer_that_is_to_be_gone_on_with_stays_the_last_message() -> None:
    model = ScriptedModel([say("a dog.")])
    end = DynamicPromptMiddleware(lambda ctx, request: "now", placement="end")
    history = [UserMessage(content="What is it?"), AssistantMessage(content="It is")]
    await AgentHarness(model=model, middleware=[end]).invoke(None, history)
    (request,) = model.requests
    assert [text for _, text in texts(request)] == ["What is it?", "now", "It is"]
    assert [(s.role, s.messages) for s in request.segments] == [("history", 1), ("volatile", 2)]


@pytest.mark.parametrize(
    ("function", "placement", "told"),
    [
        ("Be brief.", "start", "as `system`"),
        (lambda ctx, request: "x", "middle", "`placement` is"),
    ],
)
def test_what_cannot_work_is_refused(function: Any, placement: Any, told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        DynamicPromptMiddleware(function, placement=placement)


async def test_a_function_that_returns_no_text_ends_the_run() -> None:
    wrong: Any = DynamicPromptMiddleware(lambda ctx, request: 5)  # type: ignore[arg-type, return-value]
    with pytest.raises(ConfigurationError, match="returned a `int`"):
        await AgentHarness(model=ScriptedModel([]), middleware=[wrong]).invoke(None, "?")
