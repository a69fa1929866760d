"""The middleware that tells when a prompt's cached prefix is lost."""

from typing import Any

import anyio
import pytest

from tinyagents import (
    AgentHarness,
    AgentRun,
    Middleware,
    RunConfig,
    RunContext,
    RunSnapshot,
    SystemMessage,
    ToolContext,
    tool,
)
from tinyagents.harness.context import Interrupt
from tinyagents.harness.errors import BadRequestError, ServerError
from tinyagents.harness.events import AgentEvent, CachePrefixInvalidated
from tinyagents.harness.message import UserMessage
from tinyagents.harness.middleware import (
    PromptCacheGuardMiddleware,
    before_model,
    before_tool,
)
from tinyagents.harness.model import ModelRequest, PromptSegment
from tinyagents.harness.prompt import PromptTemplate
from tinyagents.testkit import (
    EventRecorder,
    FakeSleep,
    ScriptedModel,
    assert_event_grammar,
    call,
    fail,
    say,
)


@tool
async def look(place: str) -> str:
    """Look somewhere."""
    return f"nothing in {place}"


def three_calls() -> ScriptedModel:
    return ScriptedModel([call("look", place="a"), call("look", place="b"), say("Gone.")])


async def told(*middleware: Middleware[Any], **options: Any) -> list[AgentEvent]:
    agent = AgentHarness(
        model=three_calls(),
        tools=[look],
        middleware=[*middleware, PromptCacheGuardMiddleware()],
        **options,
    )
    run: AgentRun[Any, Any] = await agent.invoke(None, "Where is it?")
    return [event for event in run.events if event.kind.startswith("cache.")]


async def test_a_run_that_only_grows_preserves_the_layout() -> None:
    events = await told(system="Be brief.")
    assert [event.kind for event in events] == ["cache.layout_preserved"] * 2


async def test_instructions_that_change_with_each_call_are_told() -> None:
    count = iter(range(9))
    events = await told(system=lambda ctx: f"It is {next(count)} o'clock.")
    assert [event.kind for event in events] == ["cache.prefix_invalidated"] * 2
    first = events[0]
    assert isinstance(first, CachePrefixInvalidated)
    assert (first.reason, first.message) == ("messages", 0)
    assert "clock" not in first.model_dump_json()


async def test_an_edit_of_the_history_and_of_the_tools_by_a_hook_is_told_once() -> None:
    @before_model
    def edit(ctx: RunContext[Any], request: ModelRequest) -> None:
        if len(request.messages) > 1:
            request.messages[0] = UserMessage(content="Where?")
        if len(request.messages) > 3:
            request.tools = ()

    events = await told(edit)
    assert [getattr(event, "reason", None) for event in events] == ["messages", "tools"]


async def test_segments_of_a_hook_name_what_changed() -> None:
    count = iter(range(9))

    @before_model
    def lay_out(ctx: RunContext[Any], request: ModelRequest) -> None:
        request.messages.insert(0, SystemMessage(content=f"{next(count)}"))
        request.segments = [PromptSegment(id="rules", role="system", cacheable=True, messages=1)]

    events = await told(lay_out)
    assert [getattr(event, "segment", None) for event in events] == ["rules", "rules"]


async def test_runs_do_not_trip_each_other_and_leave_nothing_behind() -> None:
    guard = PromptCacheGuardMiddleware()
    agent = AgentHarness(
        model=three_calls(),
        tools=[look],
        middleware=[guard],
        system=PromptTemplate("For {{user}}."),
    )
    kinds: list[str] = []

    async def one(user: str) -> None:
        # Each with a script of its own, so that both go through the same calls at once.
        model = three_calls()
        run: AgentRun[Any, Any] = await agent.invoke(None, "?", data={"user": user}, model=model)
        kinds.extend(event.kind for event in run.events if event.kind.startswith("cache."))

    async with anyio.create_task_group() as group:
        for user in ("ada", "bob", "cy"):
            group.start_soon(one, user)
    assert kinds == ["cache.layout_preserved"] * 6

    failing = agent.replace(
        model=ScriptedModel([call("look", place="a"), fail(BadRequestError("no"))])
    )
    with pytest.raises(BadRequestError):
        await failing.invoke(None, "?", data={"user": "di"}, config=RunConfig(run_id="r1"))
    # A run under an id that was used before begins anew.
    again: AgentRun[Any, Any] = await agent.replace(model=ScriptedModel([say("Yes.")])).invoke(
        None, "?", data={"user": "ed"}, config=RunConfig(run_id="r1")
    )
    assert not [event for event in again.events if event.kind.startswith("cache.")]


def layout_events(run: AgentRun[Any, Any]) -> list[str]:
    return [event.kind for event in run.events if event.kind.startswith("cache.")]


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize(
    ("system", "told"),
    [("Be brief.", "cache.layout_preserved"), ("Be kind.", "cache.prefix_invalidated")],
)
async def test_a_run_that_is_resumed_is_compared_with_what_was_sent_before(
    as_json: bool, system: str, told: str
) -> None:
    @before_tool
    def ask(ctx: RunContext[Any], call: Any) -> None:
        if not ctx.answers:
            ctx.request_control(Interrupt("may I?"))

    agent = AgentHarness(
        model=ScriptedModel([call("look", place="a")]),
        tools=[look],
        system="Be brief.",
        middleware=[ask, PromptCacheGuardMiddleware()],
    )
    waiting = await agent.invoke(None, "Where is it?")
    assert (waiting.status, layout_events(waiting)) == ("interrupted", [])
    stored = waiting.snapshot.model_dump_json() if as_json else waiting.snapshot
    assert "Be brief" not in str(waiting.snapshot.notes)
    later = agent.replace(
        model=ScriptedModel([say("Gone.")]),
        system=system,
        middleware=[PromptCacheGuardMiddleware()],
    )
    run = await later.resume(stored, None, answers="yes")
    assert layout_events(run) == [told]


async def test_a_note_of_somebody_else_is_nothing_to_compare_with() -> None:
    @before_model
    def spoil(ctx: RunContext[Any], request: ModelRequest) -> None:
        ctx.notes["prompt_cache_guard"] = {"messages": 1}

    assert [event.kind for event in await told(spoil)] == ["cache.layout_preserved"] * 2


async def test_retries_of_a_call_are_one_call() -> None:
    sleep = FakeSleep()
    agent = AgentHarness(
        model=ScriptedModel(
            [
                call("look", place="a"),
                fail(ServerError("busy")),
                fail(ServerError("busy")),
                say("-"),
            ]
        ),
        tools=[look],
        middleware=[PromptCacheGuardMiddleware()],
        sleep=sleep,
    )
    run = await agent.invoke(None, "?")
    assert len(sleep.delays) == 2
    assert layout_events(run) == ["cache.layout_preserved"]


async def test_a_run_within_a_run_is_compared_with_itself_alone() -> None:
    guard = PromptCacheGuardMiddleware()
    inner = AgentHarness(
        model=three_calls(), tools=[look], system="You look.", middleware=[guard], name="inner"
    )

    @tool
    async def ask(ctx: ToolContext[Any]) -> str:
        """Ask the other one."""
        run = await inner.invoke(None, "Look!", context=ctx.run)
        return run.text

    outer = AgentHarness(
        model=ScriptedModel([call("ask"), say("Gone.")]),
        tools=[ask],
        system="You ask.",
        middleware=[guard],
    )
    run = await outer.invoke(None, "Where is it?")
    assert layout_events(run) == ["cache.layout_preserved"] * 3
    owners = {event.depth for event in run.events if event.kind.startswith("cache.")}
    assert owners == {0, 1}


async def test_phases_that_are_steps_of_their_own_are_compared_too() -> None:
    recorder = EventRecorder()
    agent = AgentHarness(
        model=three_calls(),
        tools=[look],
        middleware=[PromptCacheGuardMiddleware()],
        listeners=[recorder],
    )
    snapshot = agent.snapshot("Where is it?")
    while snapshot.phase != "done":
        stored = snapshot.model_dump_json()
        snapshot = await agent.step(RunSnapshot.model_validate_json(stored), None)
    kinds = [event.kind for event in recorder.events if event.kind.startswith("cache.")]
    assert kinds == ["cache.layout_preserved"] * 2


async def test_a_stream_tells_the_same() -> None:
    agent = AgentHarness(
        model=three_calls(), tools=[look], middleware=[PromptCacheGuardMiddleware()]
    )
    run = await agent.stream(None, "Where is it?").result()
    assert layout_events(run) == ["cache.layout_preserved"] * 2
    assert_event_grammar(run.events)
