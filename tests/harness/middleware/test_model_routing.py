"""The middleware that chooses the model for each request."""

from typing import Any

import pytest

from tinyagents import AgentHarness, AgentRun, ImageBlock, TextBlock, UserMessage, tool
from tinyagents.harness.errors import ConfigurationError
from tinyagents.harness.events import RouteSelected
from tinyagents.harness.middleware import ModelRoute, ModelRoutingMiddleware, RoutingContext
from tinyagents.testkit import ScriptedModel, assert_event_grammar, call, say

PIXEL = ImageBlock.from_bytes(b"\x89PNG\r\n\x1a\n", "image/png")


@tool
async def look(place: str) -> str:
    """Look somewhere."""
    raise RuntimeError(f"nothing in {place}")


class Models:
    def __init__(self, small: list[Any], large: list[Any]) -> None:
        self.small, self.large = ScriptedModel(small), ScriptedModel(large)

    def agent(self, *middleware: ModelRoutingMiddleware, **options: Any) -> AgentHarness:
        models = {"small": self.small, "large": self.large}
        return AgentHarness(models=models, middleware=middleware, **options)


def routes(run: AgentRun[Any, Any]) -> list[tuple[str, str | None]]:
    return [(e.route, e.model) for e in run.events if isinstance(e, RouteSelected)]


def answered_by(run: AgentRun[Any, Any]) -> str:
    assert run.resolved_model is not None
    return run.resolved_model.name


async def test_the_first_route_that_takes_a_request_is_taken_and_told() -> None:
    gate = ModelRoutingMiddleware(
        [
            ModelRoute(model="large", name="pictures", has_media=True),
            ModelRoute(model="large", name="long", min_tokens=1000),
        ]
    )
    agent = Models([say("a")], [say("b"), say("c")]).agent(gate)
    short = await agent.invoke(None, "Hello?")
    long = await agent.invoke(None, "word " * 2000)
    picture = await agent.invoke(None, UserMessage(content=[TextBlock(text="?"), PIXEL]))
    assert [answered_by(run) for run in (short, long, picture)] == ["small", "large", "large"]
    assert [routes(run) for run in (short, long, picture)] == [
        [],
        [("long", "large")],
        [("pictures", "large")],
    ]
    assert_event_grammar(long)


async def test_a_stronger_model_takes_over_after_turns_and_failures() -> None:
    by_turn = ModelRoutingMiddleware([ModelRoute(model="large", min_turn=3)])
    script = [call("look", place="a"), call("look", place="b")]
    run = await Models(script, [say("Gone.")]).agent(by_turn, tools=[look]).invoke(None, "?")
    assert (answered_by(run), len(routes(run))) == ("large", 1)

    by_failures = ModelRoutingMiddleware([ModelRoute(model="large", min_failures=2)])
    agent = Models([*script, say("Hello.")], [say("Gone.")]).agent(by_failures, tools=[look])
    run = await agent.invoke(None, "?")
    assert (answered_by(run), len(routes(run))) == ("large", 1)
    # What the user says next begins anew.
    again = await agent.invoke(None, [*run.messages, UserMessage(content="Hello?")])
    assert answered_by(again) == "small"


async def test_bounds_are_inside_and_both_hold() -> None:
    gate = ModelRoutingMiddleware([ModelRoute(model="large", max_turn=1, has_tools=True)])
    agent = Models([say("a"), say("b")], [call("look", place="x")]).agent(gate, tools=[look])
    run = await agent.invoke(None, "?")
    assert len(routes(run)) == 1
    assert answered_by(run) == "small"
    assert answered_by(await agent.invoke(None, "?", tools=[])) == "small"


async def test_a_function_may_choose_and_may_leave_the_choice() -> None:
    def by_tag(context: RoutingContext) -> str | None:
        return "large" if "important" in context.request.messages[-1].text else None

    async def later(context: RoutingContext) -> str | None:
        return by_tag(context)

    for choose in (by_tag, later):
        agent = Models([say("a")], [say("b")]).agent(ModelRoutingMiddleware(choose))
        assert answered_by(await agent.invoke(None, "important!")) == "large"
        assert answered_by(await agent.invoke(None, "Hello.")) == "small"


async def test_a_rule_may_end_in_a_function_that_is_asked_last() -> None:
    asked: list[int] = []

    def when(context: RoutingContext) -> bool:
        asked.append(context.tokens)
        return context.run.depth == 0

    gate = ModelRoutingMiddleware([ModelRoute(model="large", has_tools=True, when=when)])
    agent = Models([say("a")], [say("b")]).agent(gate, tools=[look])
    await agent.invoke(None, "?", tools=[])
    assert asked == []
    assert answered_by(await agent.invoke(None, "?")) == "large"
    assert len(asked) == 1


async def test_a_model_that_the_caller_has_chosen_stands() -> None:
    gate = ModelRoutingMiddleware([ModelRoute(model="large")])
    run = await Models([say("a")], []).agent(gate).invoke(None, "?", model="small")
    assert (answered_by(run), routes(run)) == ("small", [])


async def test_streams_are_routed_too() -> None:
    gate = ModelRoutingMiddleware([ModelRoute(model="large")])
    async with Models([], [say("b")]).agent(gate).stream(None, "?") as stream:
        run = await stream.result()
    assert (run.text, routes(run)) == ("b", [("large", "large")])


async def test_a_model_that_is_not_registered_is_refused_before_anything_is_sent() -> None:
    # The second route would not be taken: the mistake shows at the first call all the same.
    listed = ModelRoutingMiddleware(
        [ModelRoute(model="large", max_turn=1), ModelRoute(model="largest", min_turn=9)]
    )
    for gate in (listed, ModelRoutingMiddleware(lambda context: "largest")):
        models = Models([], [])
        with pytest.raises(ConfigurationError, match="`largest`.*there are `large`, `small`"):
            await models.agent(gate).invoke(None, "?")
        assert models.large.requests == []


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ([], "empty"),
        (["large"], "no `ModelRoute`"),
        ([ModelRoute(model="a"), ModelRoute(model="b")], r"route 1 \(`a`\) takes every request"),
    ],
)
def test_routes_that_cannot_work_are_refused(given: Any, told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        ModelRoutingMiddleware(given)
