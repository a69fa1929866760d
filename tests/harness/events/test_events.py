"""The kinds of event, their fields, and the sequences that runs emit."""

import json
from decimal import Decimal
from typing import Any

import anyio
import pytest
from pydantic import ValidationError

from tinyagents import (
    AgentHarness,
    Middleware,
    ModelSettings,
    RunContext,
    RunLimits,
    RunPolicy,
    ToolContext,
    ToolError,
    tool,
)
from tinyagents.harness.cost import CostTotals
from tinyagents.harness.errors import (
    AuthenticationError,
    LimitExceededError,
    ServerError,
    ToolFailedError,
)
from tinyagents.harness.events import (
    AgentEvent,
    Custom,
    ModelAdapted,
    ModelCompleted,
    ModelStarted,
    ToolCompleted,
    event_class,
    event_kinds,
    load_event,
)
from tinyagents.harness.model import ModelResponse
from tinyagents.harness.policy import PayloadCapture, UnknownToolPolicy
from tinyagents.harness.usage import Usage
from tinyagents.testkit import (
    EventRecorder,
    FakeSleep,
    ScriptedModel,
    assert_event_grammar,
    call,
    fail,
    say,
)

DECLARED = [
    "run.started",
    "run.completed",
    "run.failed",
    "model.started",
    "model.delta",
    "model.completed",
    "model.failed",
    "model.override_skipped",
    "model.fallback_selected",
    "model.fallback_skipped",
    "retry.scheduled",
    "rate_limit.waited",
    "cache.hit",
    "cache.miss",
    "tool.filtered",
    "tool.started",
    "tool.completed",
    "tool.failed",
    "tool.progress",
    "tool.unknown",
    "tool.invalid_args",
    "control.applied",
    "agent.steered",
    "subagent.started",
    "subagent.completed",
    "subagent.failed",
    "subagent.reused",
    "middleware.started",
    "middleware.completed",
    "middleware.failed",
    "context.compressed",
    "usage.recorded",
    "cost.recorded",
    "budget.reserved",
    "budget.reconciled",
    "budget.warning",
    "budget.exceeded",
    "limit.reached",
    "workspace.prepared",
    "workspace.violation",
    "workspace.cleanup",
    "state.update",
    "route.selected",
    "memory.loaded",
    "memory.saved",
    "stream.closed",
]
EXTRA = [
    "run.paused",
    "run.interrupted",
    "model.cancelled",
    "model.adapted",
    "context.overflowed",
    "context.pressure",
    "context.summarized",
    "context.window_unknown",
    "tool.approval",
    "tool.cancelled",
    "tool.interrupted",
    "tool.injected_dropped",
    "guardrail.triggered",
    "tool.refused",
    "tool.selection_failed",
    "messages.repaired",
    "output.invalid",
    "output.recovered",
    "cache.skipped",
    "cache.failed",
    "cache.layout_preserved",
    "cache.layout_changed",
    "cache.prefix_invalidated",
    "custom",
]

SAMPLES: dict[str, Any] = {
    "asks_again": True,
    "problems": 1,
    "schema_name": "Answer",
    "step": "slice",
    "guard": "no_prices",
    "verdict": "block",
    "stage": "input",
    "error": "went wrong",
    "error_kind": "server",
    "call_id": "c1",
    "model": "default",
    "action": "approved",
    "arguments_hash": "0f",
    "record_id": "summary-1",
    "messages": 4,
    "tokens": 90,
    "limit": 80,
    "window": 100,
    "recovering": True,
    "notices": ("the schema was relaxed",),
    "requested": "a",
    "resolved": "b",
    "from_model": "a",
    "to_model": "b",
    "attempt": 1,
    "waited_ms": 5.0,
    "key": "k",
    "operation": "get",
    "by": "rules",
    "excluded": ("x",),
    "remaining": 2,
    "tool_name": "t",
    "interrupt_id": "i",
    "message": "half",
    "requested_name": "t",
    "recovery": "fail",
    "names": ("x",),
    "control": "stop_with_final",
    "command_kind": "pause",
    "accepted": True,
    "name": "n",
    "turn": 2,
    "from_tokens": 10,
    "to_tokens": 5,
    "usage": Usage(input_tokens=3, output_tokens=2),
    "cost": CostTotals(input=Decimal("0.01")),
    "estimated_input_tokens": 4,
    "actual_input_tokens": 5,
    "reason": "nearly used up",
    "blocked": False,
    "limit_kind": "model_calls",
    "maximum": 3.0,
    "policy_id": "p",
    "root": "/tmp",
    "path": "/etc",
    "route": "r",
}


def sample(kind: str) -> AgentEvent:
    cls = event_class(kind)
    needed = {
        name: SAMPLES[name]
        for name, field in cls.model_fields.items()
        if field.is_required() and name not in AgentEvent.model_fields
    }
    return cls(id="r-evt-0", offset=0, time_ms=1, run_id="r", root_run_id="r", **needed)


@tool
async def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


@tool
async def broken() -> int:
    """Fail."""
    raise RuntimeError("disk")


def kinds(events: object) -> list[str]:
    return [event.kind for event in events]  # type: ignore[attr-defined]


def test_all_kinds_are_there() -> None:
    assert len(DECLARED) == 46
    assert set(event_kinds()) == {*DECLARED, *EXTRA}


@pytest.mark.parametrize("kind", [*DECLARED, *EXTRA])
def test_every_kind_round_trips_and_loads_without_its_optional_fields(kind: str) -> None:
    event = sample(kind)
    assert event.kind == kind
    assert load_event(event.model_dump_json()) == event
    assert (
        load_event(
            event.model_dump_json(exclude_defaults=True, exclude={"kind"})[:-1]
            + (f',"kind":"{kind}"}}')
        )
        == event
    )
    assert load_event(event.model_dump()) == event


@pytest.mark.parametrize("kind", [k for k in (*DECLARED, *EXTRA) if k.endswith(".started")])
def test_everything_that_starts_can_complete_and_fail(kind: str) -> None:
    stem = kind.removesuffix("started")
    assert {stem + "completed", stem + "failed"} <= set(event_kinds())


def test_an_unknown_kind_and_a_field_that_does_not_fit_are_refused() -> None:
    with pytest.raises(LookupError, match=r"no\.such"):
        load_event({"kind": "no.such"})
    with pytest.raises(LookupError):
        load_event("[]")
    with pytest.raises(ValidationError):
        load_event({**sample("run.started").model_dump(), "surprise": 1})


def test_events_are_frozen() -> None:
    with pytest.raises(ValidationError):
        sample("run.started").offset = 3  # type: ignore[misc]


async def test_the_envelope_says_whose_event_it_is() -> None:
    run = await AgentHarness(model=ScriptedModel([say("x")]), name="helper").invoke(None, "hi")
    for number, event in enumerate(run.events):
        assert event.id == f"{run.run_id}-evt-{number}"
        assert event.offset == number
        assert (event.run_id, event.root_run_id) == (run.run_id, run.run_id)
        assert (event.component, event.depth, event.schema_version) == ("helper", 0, 1)


async def test_events_hold_no_content_unless_it_is_captured() -> None:
    recorder = EventRecorder()
    steps = [call("add", a=98_765_431, b=1), say("secret answer")]
    agent = AgentHarness(model=ScriptedModel(steps), tools=[add], listeners=[recorder])
    await agent.stream(None, "secret question").result()
    text = recorder.to_jsonl()
    for secret in ("secret", "98765431", "98765432"):
        assert secret not in text


async def test_captured_events_hold_prompts_answers_arguments_and_results() -> None:
    recorder = EventRecorder()
    agent = AgentHarness(
        model=ScriptedModel([call("add", a=1, b=2), say("three")]),
        tools=[add],
        policy=RunPolicy(capture=PayloadCapture.all()),
        listeners=[recorder],
    )
    await agent.stream(None, "1 + 2?").result()
    done = recorder.of(ToolCompleted)[0]
    assert (done.input, done.output) == ({"a": 1, "b": 2}, "3")
    last = recorder.of(ModelCompleted)[-1]
    assert "1 + 2?" in json.dumps(last.input)
    assert "three" in json.dumps(last.output)
    deltas = recorder.of("model.delta")
    assert "".join(d.text or "" for d in deltas) == "three"  # type: ignore[attr-defined]
    for event in recorder.events:
        assert load_event(event.model_dump_json()) == event


async def test_one_tool_then_an_answer() -> None:
    model = ScriptedModel([call("add", a=1, b=2), say("three")])
    run = await AgentHarness(model=model, tools=[add]).invoke(None, "go")
    call_events = ["model.started", "usage.recorded", "model.completed"]
    assert kinds(run.events) == [
        "run.started",
        *call_events,
        "tool.started",
        "tool.completed",
        *call_events,
        "run.completed",
    ]
    started = [e for e in run.events if isinstance(e, ModelStarted)]
    assert [e.call_id for e in started] == [f"{run.run_id}-model-1", f"{run.run_id}-model-2"]


async def test_deltas_lie_between_start_and_end_and_are_not_kept() -> None:
    recorder = EventRecorder()
    agent = AgentHarness(model=ScriptedModel([say("one two")]), listeners=[recorder])
    run = await agent.stream(None, "go").result()
    assert recorder.kinds == [
        "run.started",
        "model.started",
        "model.delta",
        "model.delta",
        "usage.recorded",
        "model.completed",
        "run.completed",
    ]
    assert "model.delta" not in kinds(run.events)
    assert_event_grammar(recorder)


async def test_tools_at_once_start_before_any_ends_and_one_by_one_they_alternate() -> None:
    def model() -> ScriptedModel:
        return ScriptedModel([[call("add", a=1, b=1), call("add", a=2, b=2)], say("done")])

    at_once = await AgentHarness(model=model(), tools=[add]).invoke(None, "go")
    serial = await AgentHarness(
        model=model(), tools=[add], limits=RunLimits(max_concurrency=1)
    ).invoke(None, "go")
    started, completed = "tool.started", "tool.completed"
    tools = [k for k in kinds(at_once.events) if k.startswith("tool")]
    assert tools == [started, started, completed, completed]
    assert_event_grammar(serial.events)


async def test_an_unknown_tool_is_told_at_admission_and_takes_its_place_in_the_fold() -> None:
    model = ScriptedModel([[call("nope"), call("add", a=1, b=2)], say("done")])
    agent = AgentHarness(
        model=model,
        tools=[add],
        policy=RunPolicy(unknown_tool=UnknownToolPolicy.return_tool_error()),
    )
    run = await agent.invoke(None, "go")
    tools = [
        (e.kind, getattr(e, "tool_name", None) or getattr(e, "requested_name", None))
        for e in run.events
        if e.kind.startswith("tool.")
    ]
    assert tools == [
        ("tool.unknown", "nope"),
        ("tool.started", "add"),
        ("tool.started", "nope"),
        ("tool.completed", "nope"),
        ("tool.completed", "add"),
    ]


async def test_a_retry_lies_in_its_call() -> None:
    model = ScriptedModel([fail(ServerError("down")), say("up")])
    run = await AgentHarness(model=model, sleep=FakeSleep()).invoke(None, "hi")
    assert kinds(run.events) == [
        "run.started",
        "model.started",
        "retry.scheduled",
        "usage.recorded",
        "model.completed",
        "run.completed",
    ]
    assert run.events[2].attempt == 1  # type: ignore[attr-defined]


async def test_a_cut_empty_answer_is_asked_for_again_as_a_new_call() -> None:
    model = ScriptedModel([say("", finish_reason="length"), say("hello")])
    agent = AgentHarness(model=model, settings=ModelSettings(max_tokens=10))
    run = await agent.invoke(None, "hi")
    shown = [k for k in kinds(run.events) if not k.startswith("usage")]
    assert shown == [
        "run.started",
        "model.started",
        "model.completed",
        "retry.scheduled",
        "model.started",
        "model.completed",
        "run.completed",
    ]


@pytest.mark.parametrize("behavior", ["error", "stop_with_partial"])
async def test_a_model_call_limit_is_told_before_the_end(behavior: Any) -> None:
    agent = AgentHarness(
        model=ScriptedModel([call("add", a=1, b=1)]),
        tools=[add],
        policy=RunPolicy(on_limit=behavior, limits=RunLimits(max_model_calls=1)),
    )
    if behavior == "error":
        with pytest.raises(LimitExceededError) as caught:
            await agent.invoke(None, "go")
        run = caught.value.run
        assert run is not None
    else:
        run = await agent.invoke(None, "go")
    end = "run.failed" if behavior == "error" else "run.completed"
    assert kinds(run.events)[-2:] == ["limit.reached", end]
    assert run.events[-2].limit_kind == "model_calls"  # type: ignore[attr-defined]


async def test_a_call_that_the_tool_limit_holds_back_starts_nothing() -> None:
    agent = AgentHarness(
        model=ScriptedModel([call("add", a=1, b=1)]),
        tools=[add],
        limits=RunLimits(max_tool_calls=0),
    )
    with pytest.raises(LimitExceededError) as caught:
        await agent.invoke(None, "go")
    assert caught.value.run is not None
    assert kinds(caught.value.run.events)[-2:] == ["limit.reached", "run.failed"]
    assert "tool.started" not in kinds(caught.value.run.events)


async def test_a_model_failure_ends_its_call_and_then_the_run() -> None:
    agent = AgentHarness(model=ScriptedModel([fail(AuthenticationError("no key"))]))
    with pytest.raises(AuthenticationError) as caught:
        await agent.invoke(None, "hi")
    run = caught.value.run
    assert run is not None
    assert kinds(run.events) == ["run.started", "model.started", "model.failed", "run.failed"]
    assert run.events[2].error_kind == "authentication"  # type: ignore[attr-defined]


async def test_a_tool_that_raises_fails_whether_the_run_goes_on_or_not() -> None:
    goes_on = await AgentHarness(
        model=ScriptedModel([call("broken"), say("sorry")]), tools=[broken]
    ).invoke(None, "go")
    assert "tool.failed" in kinds(goes_on.events)
    assert kinds(goes_on.events)[-1] == "run.completed"
    fatal = AgentHarness(
        model=ScriptedModel([call("broken")]),
        tools=[broken],
        policy=RunPolicy(tool_errors="fail"),
    )
    with pytest.raises(ToolFailedError) as caught:
        await fatal.invoke(None, "go")
    assert caught.value.run is not None
    assert kinds(caught.value.run.events)[-3:] == ["tool.started", "tool.failed", "run.failed"]


async def test_what_a_tool_tells_the_model_is_no_failure() -> None:
    @tool
    async def shop() -> str:
        """Buy."""
        raise ToolError("sold out")

    model = ScriptedModel([call("shop"), say("sorry")])
    run = await AgentHarness(model=model, tools=[shop]).invoke(None, "go")
    done = next(e for e in run.events if isinstance(e, ToolCompleted))
    assert done.error is not None
    assert "sold out" not in done.error


async def test_an_interrupted_run_ends_with_its_open_questions() -> None:
    @tool
    async def ask(ctx: ToolContext[None]) -> str:
        """Ask."""
        return str(ctx.ask("really?"))

    agent = AgentHarness(model=ScriptedModel([call("ask", id="k"), say("done")]), tools=[ask])
    run = await agent.invoke(None, "go")
    assert kinds(run.events)[-3:] == ["tool.started", "tool.interrupted", "run.interrupted"]
    resumed = await agent.resume(run.snapshot, None, answers="yes")
    assert resumed.events[0].kind == "run.started"
    assert resumed.events[0].offset == len(run.events)
    assert kinds(resumed.events)[-1] == "run.completed"
    assert_event_grammar([*run.events, *resumed.events])


async def test_a_run_inside_a_run_shares_its_sink_and_its_offsets() -> None:
    inner = AgentHarness(model=ScriptedModel([say("inner")]), name="inner")

    @tool
    async def delegate(ctx: ToolContext[None]) -> str:
        """Delegate."""
        return (await inner.invoke(None, "sub", context=ctx.run)).text

    agent = AgentHarness(model=ScriptedModel([call("delegate"), say("ok")]), tools=[delegate])
    run = await agent.invoke(None, "go")
    assert [event.offset for event in run.events] == list(range(len(run.events)))
    child = [event for event in run.events if event.component == "inner"]
    assert kinds(child)[0] == "run.started"
    assert kinds(child)[-1] == "run.completed"
    assert {(e.depth, e.parent_run_id, e.root_run_id) for e in child} == {
        (1, run.run_id, run.run_id)
    }
    assert_event_grammar(run.events)


async def test_a_running_run_tells_its_status() -> None:
    release, began = anyio.Event(), anyio.Event()

    @tool
    async def hold() -> str:
        """Hold."""
        began.set()
        await release.wait()
        return "ok"

    agent = AgentHarness(
        model=ScriptedModel([call("hold", id="k1"), say("done")]), tools=[hold], name="holder"
    )
    handle = agent.start(None, "go")
    pending = handle.status()
    assert (pending.status, pending.started_at_ms, pending.last_event_id) == ("pending", None, None)
    await began.wait()
    status = handle.status()
    assert (status.status, status.phase, status.component) == ("running", "call_tools", "holder")
    assert (status.model_calls, status.active_tool_calls) == (1, ("k1",))
    assert status.active_model_call is None
    assert status.run_id == status.root_run_id == handle.run_id
    assert status.started_at_ms is not None
    assert status.ended_at_ms is None
    release.set()
    run = await handle
    started = next(event for event in run.events if event.kind == "tool.started")
    assert (status.last_event_id, status.updated_at_ms) == (started.id, started.time_ms)
    ended = handle.status()
    assert (ended.resolved_model or {})["source"] == "registry_default"
    assert (ended.status, ended.phase, ended.active_tool_calls) == ("completed", "done", ())
    assert ended.ended_at_ms == ended.updated_at_ms == run.events[-1].time_ms
    assert ended.usage == run.usage
    assert ended == run.status_report()
    assert type(ended).model_validate_json(ended.model_dump_json()) == ended


async def test_a_failed_and_a_waiting_run_tell_their_status() -> None:
    handle = AgentHarness(model=ScriptedModel([fail(AuthenticationError("no key"))])).start(
        None, "hi"
    )
    with pytest.raises(AuthenticationError):
        await handle
    failed = handle.status()
    assert (failed.status, failed.error) == ("failed", "no key")
    assert failed.ended_at_ms is not None

    @tool
    async def ask(ctx: ToolContext[None]) -> str:
        """Ask."""
        return str(ctx.ask("really?"))

    run = await AgentHarness(model=ScriptedModel([call("ask")]), tools=[ask]).invoke(None, "go")
    waiting = run.status_report()
    assert (waiting.status, waiting.phase) == ("interrupted", "call_tools")
    assert waiting.ended_at_ms is None
    assert waiting.error is None


def test_a_custom_event_carries_any_json() -> None:
    event = Custom(id="x", offset=0, time_ms=0, run_id="r", root_run_id="r", name="n", payload=None)
    assert load_event(event.model_dump_json()) == event


async def test_what_a_model_had_to_change_of_the_request_is_told_once() -> None:
    class Narrow(Middleware):
        async def after_model(self, ctx: RunContext[Any], response: ModelResponse) -> None:
            response.notices = ("`$.zip`: `pattern` is only described",)

    harness = AgentHarness(model=ScriptedModel([say("hi")]), middleware=[Narrow()])
    run = await harness.invoke(None, "go")
    told = [event for event in run.events if isinstance(event, ModelAdapted)]
    assert [event.notices for event in told] == [("`$.zip`: `pattern` is only described",)]
    assert_event_grammar(run.events)
