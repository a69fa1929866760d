"""What stands between the pieces of a streamed answer and whoever sees them."""

from collections.abc import Iterable
from typing import Any

from tinyagents import AgentHarness, AssistantMessage, RunContext
from tinyagents.harness.errors import ServerError
from tinyagents.harness.events import ModelDelta as ModelDeltaEvent
from tinyagents.harness.middleware import (
    Middleware,
    ModelDelta,
    ModelHandler,
    filter_deltas,
    wrap_model,
)
from tinyagents.harness.model import MessageDelta, ModelRequest, ModelResponse
from tinyagents.harness.policy import PayloadCapture, RunPolicy
from tinyagents.harness.stream import (
    MessageCompleted,
    MessageDiscarded,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
)
from tinyagents.testkit import (
    EventRecorder,
    FakeSleep,
    FakeTool,
    ScriptedModel,
    call,
    fail,
    say,
    think,
)

Ctx = RunContext[Any]


class Held:
    """Holds every piece of text back to the end."""

    def __init__(self) -> None:
        self.text = ""

    def push(self, delta: ModelDelta) -> Iterable[ModelDelta]:
        if isinstance(delta, MessageDelta) and delta.text:
            self.text += delta.text
            return ()
        return (delta,)

    def flush(self) -> Iterable[ModelDelta]:
        return (MessageDelta(text=self.text),)


class Doubled:
    """Shows every piece of text twice."""

    def push(self, delta: ModelDelta) -> Iterable[ModelDelta]:
        return (delta, delta)

    def flush(self) -> Iterable[ModelDelta]:
        return ()


class Nothing:
    """Lets nothing pass."""

    def push(self, delta: ModelDelta) -> Iterable[ModelDelta]:
        return ()

    def flush(self) -> Iterable[ModelDelta]:
        return ()


class Filtered(Middleware[Any]):
    def __init__(self, kind: type[Held] | type[Doubled] | type[Nothing]) -> None:
        self.kind = kind
        self.made = 0

    def filter_deltas(self, ctx: Ctx) -> Held | Doubled | Nothing:
        self.made += 1
        return self.kind()


async def texts(agent: AgentHarness) -> list[str]:
    return [chunk.text async for chunk in agent.stream(None, "go") if isinstance(chunk, TextDelta)]


async def test_what_a_filter_holds_is_shown_at_the_end_of_the_answer() -> None:
    model = ScriptedModel([think("hm") + say("a", "b", "c")])
    agent = AgentHarness(model=model, middleware=[Filtered(Held)])
    chunks = [chunk async for chunk in agent.stream(None, "go")]
    shown = [c.text for c in chunks if isinstance(c, TextDelta | ReasoningDelta)]
    assert shown == ["hm", "abc"]
    assert [c.message.text for c in chunks if isinstance(c, MessageCompleted)] == ["abc"]


async def test_filters_follow_each_other_in_the_order_of_registration() -> None:
    first = AgentHarness(
        model=ScriptedModel([say("a", "b")]), middleware=[Filtered(Doubled), Filtered(Held)]
    )
    assert await texts(first) == ["aabb"]
    second = AgentHarness(
        model=ScriptedModel([say("a", "b")]), middleware=[Filtered(Held), Filtered(Doubled)]
    )
    assert await texts(second) == ["ab", "ab"]


async def test_an_answer_of_which_nothing_was_shown_is_shown_as_hooks_left_it() -> None:
    class Judge(Filtered):
        async def after_model(self, ctx: Ctx, response: ModelResponse) -> None:
            response.message = AssistantMessage(content=response.text.upper())

    agent = AgentHarness(model=ScriptedModel([say("a", "b")]), middleware=[Judge(Nothing)])
    assert await texts(agent) == ["AB"]


async def test_calls_of_which_nothing_was_shown_are_shown_whole() -> None:
    model = ScriptedModel([say("hm") + call("look", q="x"), say("done")])
    agent = AgentHarness(
        model=model, tools=[FakeTool("look", "found")], middleware=[Filtered(Nothing)]
    )
    chunks = [c async for c in agent.stream(None, "go")]
    (delta,) = (c for c in chunks if isinstance(c, ToolCallDelta))
    assert (delta.name, delta.arguments) == ("look", '{"q":"x"}')


async def test_an_answer_that_a_wrap_gives_in_the_models_place_is_streamed() -> None:
    @wrap_model
    async def short(ctx: Ctx, request: ModelRequest, call_next: ModelHandler) -> ModelResponse:
        return ModelResponse(AssistantMessage(content="short"), finish_reason="stop")

    agent = AgentHarness(model=ScriptedModel([]), middleware=[short])
    assert await texts(agent) == ["short"]


async def test_each_attempt_has_a_filter_of_its_own_and_a_failed_one_shows_nothing_more() -> None:
    broken = say("bad") + fail(ServerError("busy"))
    model = ScriptedModel([broken, say("good")])
    held = Filtered(Held)
    agent = AgentHarness(model=model, middleware=[held], sleep=FakeSleep())
    chunks = [chunk async for chunk in agent.stream(None, "go")]
    assert [c.text for c in chunks if isinstance(c, TextDelta)] == ["good"]
    assert held.made == 2
    assert any(isinstance(c, MessageDiscarded) for c in chunks)


async def test_events_hold_what_filters_let_pass() -> None:
    recorder = EventRecorder()
    agent = AgentHarness(
        model=ScriptedModel([say("a", "b")]),
        middleware=[Filtered(Held)],
        listeners=[recorder],
        policy=RunPolicy(capture=PayloadCapture.all()),
    )
    await agent.stream(None, "go").result()
    deltas = [event.text for event in recorder.events if isinstance(event, ModelDeltaEvent)]
    assert deltas == ["ab"]


async def test_a_plain_call_makes_no_filter() -> None:
    held = Filtered(Held)
    run = await AgentHarness(model=ScriptedModel([say("a")]), middleware=[held]).invoke(None, "go")
    assert (run.text, held.made) == ("a", 0)


async def test_a_function_makes_a_middleware_that_may_have_no_filter() -> None:
    agent = AgentHarness(
        model=ScriptedModel([say("a", "b")]), middleware=[filter_deltas(lambda ctx: None)]
    )
    assert await texts(agent) == ["a", "b"]
