from collections.abc import Sequence
from typing import Any

import anyio
import pytest
from hypothesis import assume, given, strategies as st

from tinyagents import AgentHarness, Middleware, RunConfig, RunLimits, ToolContext, tool
from tinyagents.harness.errors import LimitExceededError, NetworkError
from tinyagents.harness.events import (
    AgentEvent,
    MiddlewareCompleted,
    MiddlewareStarted,
    ModelCompleted,
    ModelDelta,
    ModelStarted,
    OutputInvalid,
    OutputRecovered,
    RetryScheduled,
    RunCompleted,
    RunInterrupted,
    RunStarted,
    SubAgentCompleted,
    SubAgentStarted,
    ToolApproval,
    ToolCompleted,
    ToolInterrupted,
    ToolProgress,
    ToolStarted,
    load_event,
)
from tinyagents.testkit import (
    DeterministicIds,
    EventRecorder,
    FakeSleep,
    FakeTool,
    ScriptedModel,
    assert_event_grammar,
    call,
    delay,
    fail,
    say,
)


def log(*made: AgentEvent) -> list[AgentEvent]:
    """Give the events their places."""
    return [renumbered(event, offset) for offset, event in enumerate(made)]


def renumbered(event: AgentEvent, offset: int) -> AgentEvent:
    return event.model_copy(update={"offset": offset, "id": f"{event.root_run_id}-evt-{offset}"})


def made(kind: type[AgentEvent], run: str = "r", **fields: Any) -> AgentEvent:
    parent = {"r": None, "child": "r", "grandchild": "child"}[run]
    depth = {"r": 0, "child": 1, "grandchild": 2}[run]
    return kind.model_validate(
        {
            "id": "",
            "offset": 0,
            "time_ms": 0,
            "run_id": run,
            "root_run_id": "r",
            "parent_run_id": parent,
            "depth": depth,
            **fields,
        }
    )


def model(kind: type[AgentEvent], call_id: str = "m", run: str = "r", **fields: Any) -> AgentEvent:
    more: dict[type[AgentEvent], dict[str, Any]] = {
        ModelStarted: {"model": "default"},
        RetryScheduled: {"attempt": 1},
        OutputRecovered: {"schema_name": "A", "step": "slice"},
        OutputInvalid: {"schema_name": "A", "attempt": 1, "problems": 1, "asks_again": True},
    }
    return made(kind, run, call_id=call_id, **more.get(kind, {}), **fields)


def tool_event(kind: type[AgentEvent], call_id: str = "t", name: str = "a") -> AgentEvent:
    more: dict[type[AgentEvent], dict[str, Any]] = {
        ToolApproval: {"action": "approved", "interrupt_id": "i", "arguments_hash": "0f"},
        ToolInterrupted: {"interrupt_id": "i"},
        ToolProgress: {"message": "x"},
    }
    return made(kind, call_id=call_id, tool_name=name, **more.get(kind, {}))


def hook(kind: type[AgentEvent], name: str, hook: str = "before_model") -> AgentEvent:
    return made(kind, name=name, hook=hook)


START, END = made(RunStarted), made(RunCompleted)
CHILD_START, CHILD_END = made(RunStarted, "child"), made(RunCompleted, "child")
RESUMED, INTERRUPTED = made(RunStarted, resumed=True), made(RunInterrupted)


VALID: dict[str, list[AgentEvent]] = {
    "a run": log(START, END),
    "a model call with deltas": log(
        START, model(ModelStarted), model(ModelDelta), model(ModelCompleted), END
    ),
    "a retry within a call": log(
        START, model(ModelStarted), model(RetryScheduled), model(ModelCompleted), END
    ),
    "an answer that is read leniently and does not fit": log(
        START,
        model(ModelStarted),
        model(ModelCompleted),
        model(OutputRecovered),
        model(OutputInvalid),
        model(RetryScheduled),
        model(ModelStarted, "m2"),
        model(ModelCompleted, "m2"),
        END,
    ),
    "a retry after an answer": log(
        START,
        model(ModelStarted),
        model(ModelCompleted),
        model(RetryScheduled),
        model(ModelStarted, "m2"),
        model(ModelCompleted, "m2"),
        END,
    ),
    "parallel tools": log(
        START,
        tool_event(ToolStarted, "1"),
        tool_event(ToolStarted, "2"),
        tool_event(ToolProgress, "1"),
        tool_event(ToolCompleted, "2"),
        tool_event(ToolCompleted, "1"),
        END,
    ),
    "hooks within hooks": log(
        START,
        hook(MiddlewareStarted, "a"),
        hook(MiddlewareStarted, "b"),
        hook(MiddlewareCompleted, "b"),
        hook(MiddlewareCompleted, "a"),
        END,
    ),
    "hooks around tools that run at once": log(
        START,
        hook(MiddlewareStarted, "a", "wrap_tool"),
        hook(MiddlewareStarted, "b", "wrap_tool"),
        hook(MiddlewareCompleted, "a", "wrap_tool"),
        hook(MiddlewareCompleted, "b", "wrap_tool"),
        END,
    ),
    "an interrupt and its continuation": log(
        START,
        tool_event(ToolStarted),
        tool_event(ToolInterrupted),
        INTERRUPTED,
        RESUMED,
        tool_event(ToolStarted),
        tool_event(ToolCompleted),
        END,
    ),
    "a continuation alone": [
        renumbered(event, offset) for offset, event in enumerate([RESUMED, END], 7)
    ],
    "runs inside runs": log(
        START,
        made(SubAgentStarted, name="s"),
        CHILD_START,
        made(RunStarted, "grandchild"),
        made(RunCompleted, "grandchild"),
        CHILD_END,
        made(SubAgentCompleted, name="s"),
        END,
    ),
}


@pytest.mark.parametrize("name", VALID)
def test_a_log_in_order_is_accepted(name: str) -> None:
    assert_event_grammar(VALID[name])


@pytest.mark.parametrize(
    ("events", "problem"),
    [
        ([], "there are no events"),
        (log(START), "the run `r` that it began has no end"),
        (log(END), "the run `r` has not been started"),
        (log(START, END, END), "ended with `run.completed` at offset 1, and nothing follows"),
        (log(START, END, model(ModelStarted)), "nothing follows an end"),
        (log(START, START, END), "started before, and has not ended"),
        (log(START, INTERRUPTED, START, END), "this does not resume it"),
        (log(START, END, RESUMED, END), "ended with `run.completed` is not resumed"),
        (log(START, model(ModelStarted), END), "no end to `model.started` of the call `m`"),
        (log(START, tool_event(ToolStarted), END), "no end to `tool.started` of the call `t`"),
        (log(START, hook(MiddlewareStarted, "a"), END), "`middleware.started` of `a`, before_mod"),
        (
            log(START, hook(MiddlewareStarted, "a", "wrap_tool"), END),
            "no end to `middleware.started` of `a`, wrap_tool",
        ),
        (log(START, made(SubAgentStarted, name="s"), END), "no end to `subagent.started` of `s`"),
        (log(START, made(SubAgentCompleted, name="s"), END), "no sub-agent `s` has begun"),
        (log(START, model(ModelCompleted), END), "the model call `m` is not open"),
        (log(START, model(ModelDelta), END), "the model call `m` is not open"),
        (
            log(START, model(ModelStarted), model(ModelCompleted), model(ModelStarted), END),
            "the model call `m` was started before",
        ),
        (log(START, model(ModelStarted), model(OutputInvalid)), "`m` has not ended yet"),
        (log(START, model(RetryScheduled), END), "neither open nor the one answered last"),
        (
            log(
                START,
                model(ModelStarted),
                model(ModelCompleted),
                model(ModelStarted, "m2"),
                model(RetryScheduled),
            ),
            "neither open nor the one answered last",
        ),
        (log(START, tool_event(ToolCompleted), END), "the tool call `t` is not open"),
        (log(START, tool_event(ToolProgress), END), "the tool call `t` is not open"),
        (
            log(START, tool_event(ToolStarted), tool_event(ToolApproval), END),
            "the tool call `t` has begun already",
        ),
        (
            log(
                START,
                tool_event(ToolStarted),
                tool_event(ToolCompleted),
                tool_event(ToolApproval),
                END,
            ),
            "the tool call `t` has ended with `tool.completed` at offset 2",
        ),
        (
            log(START, tool_event(ToolStarted), tool_event(ToolStarted), END),
            "the tool call `t` is open already",
        ),
        (
            log(START, tool_event(ToolStarted), tool_event(ToolCompleted, name="b"), END),
            "was started as one of `a`",
        ),
        (
            log(START, tool_event(ToolStarted), tool_event(ToolCompleted), tool_event(ToolStarted)),
            "the tool call `t` has ended with `tool.completed` at offset 2",
        ),
        (
            log(
                START,
                hook(MiddlewareStarted, "a"),
                hook(MiddlewareStarted, "b"),
                hook(MiddlewareCompleted, "a"),
            ),
            "the innermost is `b`, before_model",
        ),
        (log(START, hook(MiddlewareCompleted, "a"), END), "the innermost is none"),
        (log(START, hook(MiddlewareCompleted, "a", "wrap_tool"), END), "no hook of `a` is open"),
        (log(START, CHILD_START, END), "ends while the run `child` inside it goes on"),
        (log(START, END, CHILD_START, CHILD_END), "its parent `r` has ended before"),
        (log(START, made(RunStarted, "grandchild")), "its parent `child` has not been started"),
        (log(START, CHILD_START.model_copy(update={"depth": 2})), "its depth is 2, inside a run"),
        (
            log(START, CHILD_START.model_copy(update={"parent_run_id": None})),
            "a run beside the root run has a parent",
        ),
        (log(START, END.model_copy(update={"thread_id": "x"})), "its `thread_id` differs"),
        ([log(START, END)[0], renumbered(END, 0)], "offsets rise, and the one before is 0"),
        ([renumbered(START, 0), renumbered(END, 2)], "missing, while no model call was open"),
        ([START, END], "its id is ``, not the root run's id and its offset"),
    ],
)
def test_a_log_out_of_order_is_refused_with_the_rule(
    events: list[AgentEvent], problem: str
) -> None:
    with pytest.raises(AssertionError) as raised:
        assert_event_grammar(events)
    assert problem in str(raised.value)


def test_the_event_that_breaks_the_grammar_is_named() -> None:
    with pytest.raises(AssertionError, match=r"event 2, `model\.started` of the run `r`, breaks"):
        assert_event_grammar(log(START, END, model(ModelStarted)))


def test_deltas_may_be_missing_but_nothing_else() -> None:
    full = VALID["a model call with deltas"]
    assert_event_grammar([event for event in full if not isinstance(event, ModelDelta)])
    two = log(
        START, *[model(ModelStarted), model(ModelDelta), model(ModelDelta)], model(ModelCompleted)
    )
    for lost in (2, 3):
        with pytest.raises(AssertionError, match="are missing, and not all deltas"):
            assert_event_grammar([event for event in two if event.offset != lost])


def test_a_log_that_goes_on_is_accepted_when_it_may() -> None:
    assert_event_grammar(log(START, model(ModelStarted)), complete=False)
    assert_event_grammar([], complete=False)


def test_logs_of_several_root_runs_may_be_mixed() -> None:
    other = [
        load_event({**event.model_dump(), "run_id": "q", "root_run_id": "q", "id": f"q-evt-{n}"})
        for n, event in enumerate(log(START, END))
    ]
    first, second = log(START, END)
    assert_event_grammar([first, other[0], second, other[1]])


# What the harness itself emits


class Watching(Middleware[Any]):
    """Overrides hooks of every kind."""

    async def before_agent(self, ctx: Any) -> None: ...
    async def before_model(self, ctx: Any, request: Any) -> None: ...
    async def after_tool(self, ctx: Any, call: Any, result: Any) -> None: ...
    async def on_error(self, ctx: Any, error: Any) -> None: ...

    async def wrap_model(self, ctx: Any, request: Any, call_next: Any) -> Any:
        return await call_next(request)

    async def wrap_tool(self, ctx: Any, call: Any, call_next: Any) -> Any:
        return await call_next(call)


class Inner(Watching): ...


@tool
async def ask(ctx: ToolContext[Any]) -> str:
    """Ask."""
    ctx.progress("asking")
    return str(ctx.ask("really?"))


@tool
async def delegate(ctx: ToolContext[Any]) -> str:
    """Ask another agent."""
    inner = AgentHarness(model=ScriptedModel([call("look"), "found"]), tools=[FakeTool("look")])
    run = await inner.invoke(None, "go", context=ctx.run)
    return run.text


async def real_log(*, streamed: bool) -> EventRecorder:
    """Run through most of what can happen, each root run with the ids of its own."""
    recorder = EventRecorder()
    tools = [
        ask,
        delegate,
        FakeTool("fine"),
        FakeTool.failing("no", name="told"),
        FakeTool.failing(KeyError, name="broken"),
    ]

    async def run(script: Sequence[Any], run_id: str, **options: Any) -> Any:
        harness = AgentHarness(
            model=ScriptedModel(script),
            tools=tools,
            middleware=[Watching(), Inner()],
            listeners=[recorder],
            sleep=FakeSleep(),
            **options,
        )
        config = RunConfig(run_id=run_id)
        if not streamed:
            return harness, await harness.invoke(None, "hi", config=config)
        async with harness.stream(None, "hi", config=config) as stream:
            return harness, await stream.result()

    many = [delay(0, [call("fine"), call("told"), call("broken"), call("fine")]), "done"]
    await run(many, "many")
    await run([say("Sun") + fail(NetworkError), say("Sunny")], "retried")
    await run([call("delegate"), call("delegate"), "done"], "nested")
    await run([say(finish_reason="length"), "done"], "truncated")
    with pytest.raises(NetworkError):
        await run([NetworkError] * 9, "failed")
    with pytest.raises(LimitExceededError):
        await run(many, "limited", limits=RunLimits(max_model_calls=1))
    harness, waiting = await run([[call("ask"), call("fine")], "done"], "asks")
    (question,) = waiting.interrupts
    await harness.resume(waiting.snapshot, None, answers={question.id: "yes"})

    hanging = FakeTool.hanging(name="hang")
    tools = [hanging, FakeTool("fine")]
    async with anyio.create_task_group() as group:
        group.start_soon(run, [[call("hang"), call("fine")]], "cancelled")
        await hanging.started.wait()
        group.cancel_scope.cancel()
    return recorder


@pytest.mark.parametrize("streamed", [False, True])
async def test_whatever_happens_in_a_run_its_events_keep_to_the_grammar(streamed: bool) -> None:
    recorder = await real_log(streamed=streamed)
    assert_event_grammar(recorder)
    assert ("model.delta" in recorder.kinds) is streamed
    kept = [event for event in recorder.events if not isinstance(event, ModelDelta)]
    assert_event_grammar(kept)


async def test_the_events_that_a_run_keeps_keep_to_the_grammar() -> None:
    harness = AgentHarness(
        model=ScriptedModel([call("fine"), "a long answer"]), tools=[FakeTool("fine")]
    )
    async with harness.stream(None, "hi") as stream:
        run = await stream.result()
    assert_event_grammar(run)
    assert_event_grammar(run.events)


def structural(events: Sequence[AgentEvent]) -> list[int]:
    """Return the places of the events that the grammar speaks of."""
    model = ("model.started", "model.completed", "model.failed")
    tool = ("tool.started", "tool.completed", "tool.failed", "tool.interrupted")
    words = ("run.", *model, *tool, "middleware.")
    return [place for place, event in enumerate(events) if event.kind.startswith(words)]


def model_call_is_open(events: Sequence[AgentEvent]) -> bool:
    calls = [event.kind for event in events if event.kind.startswith("model.")]
    return bool(calls) and calls[-1] == "model.started"


@pytest.fixture(scope="module")
def logs() -> list[list[AgentEvent]]:
    """Logs of single root runs, without gaps."""
    recorder = anyio.run(lambda: real_log(streamed=True))
    roots = dict.fromkeys(event.root_run_id for event in recorder.events)
    return [[e for e in recorder.events if e.root_run_id == root] for root in roots]


@given(st.data())
def test_a_log_that_lost_an_event_is_refused(
    logs: list[list[AgentEvent]], data: st.DataObject
) -> None:
    events = data.draw(st.sampled_from(logs))
    place = data.draw(st.integers(0, len(events) - 1))
    rest = [*events[:place], *events[place + 1 :]]
    if not any(isinstance(event, ModelDelta) for event in rest):
        # Within a model call a gap stands for deltas that were not kept.
        assume(not model_call_is_open(events[:place]))
    with pytest.raises(AssertionError):
        assert_event_grammar(rest)


@given(st.data(), st.booleans())
def test_a_log_that_lost_or_repeats_an_event_is_refused_even_when_counted_anew(
    logs: list[list[AgentEvent]], data: st.DataObject, lost: bool
) -> None:
    events = data.draw(st.sampled_from(logs))
    place = data.draw(st.sampled_from(structural(events)))
    changed = [*events[:place], *([] if lost else [events[place]] * 2), *events[place + 1 :]]
    with pytest.raises(AssertionError):
        assert_event_grammar([renumbered(event, n) for n, event in enumerate(changed)])


@given(st.data())
def test_a_log_with_an_event_moved_behind_its_end_or_before_its_start_is_refused(
    logs: list[list[AgentEvent]], data: st.DataObject
) -> None:
    events = data.draw(st.sampled_from(logs))
    place = data.draw(st.sampled_from(structural(events)))
    end = data.draw(st.sampled_from([0, len(events)]))
    assume(not (place == 0 and end == 0) and not (place == len(events) - 1 and end))
    changed = [*events[:place], *events[place + 1 :]]
    changed.insert(end, events[place])
    with pytest.raises(AssertionError):
        assert_event_grammar([renumbered(event, n) for n, event in enumerate(changed)])


@given(st.data())
def test_a_log_with_two_events_swapped_is_refused(
    logs: list[list[AgentEvent]], data: st.DataObject
) -> None:
    events = list(data.draw(st.sampled_from(logs)))
    first = data.draw(st.integers(0, len(events) - 1))
    second = data.draw(st.integers(0, len(events) - 1))
    assume(first != second)
    events[first], events[second] = events[second], events[first]
    with pytest.raises(AssertionError):
        assert_event_grammar(events)


async def test_ids_of_runs_inside_each_other_can_be_fixed() -> None:
    model = ScriptedModel([call("delegate"), "done"])
    run = await AgentHarness(model=model, tools=[delegate], ids=DeterministicIds()).invoke(
        None, "x"
    )
    assert run.run_id == "run-0"
    assert_event_grammar(run)
