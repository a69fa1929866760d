"""The middleware that records when each part of a run began and ended."""

import logging
from typing import Any

import anyio
import pytest

from tinyagents import AgentHarness, RunConfig, RunContext, RunSnapshot, ToolContext, tool
from tinyagents.harness.context import Pause
from tinyagents.harness.errors import BadRequestError, ConfigurationError, ServerError
from tinyagents.harness.middleware import (
    ToolCall,
    TraceRecord,
    TracingMiddleware,
    before_agent,
    before_tool,
)
from tinyagents.harness.model import ChatModel
from tinyagents.testkit import FakeSleep, ScriptedModel, call, fail, hang, say


@tool
async def search(query: str) -> str:
    """Search the catalogue."""
    return f"found {query}"


@tool
async def broken() -> str:
    """Fail."""
    raise RuntimeError("the secret word")


def make(model: ChatModel, *middleware: Any, **options: Any) -> AgentHarness:
    return AgentHarness(model=model, tools=[search, broken], middleware=middleware, **options)


def told(tracer: TracingMiddleware) -> list[tuple[str, str, str | None]]:
    return [(record.phase, record.kind, record.status) for record in tracer.records]


def spans(tracer: TracingMiddleware) -> dict[str, TraceRecord]:
    return {record.span_id: record for record in tracer.records if record.phase == "begin"}


async def test_a_run_its_model_calls_and_its_tool_calls_are_spans() -> None:
    tracer = TracingMiddleware()
    model = ScriptedModel([call("search", query="tea"), say("Yes.")])
    run = await make(model, tracer).invoke(None, "Tea?", config=RunConfig(thread_id="t1"))
    assert told(tracer) == [
        ("begin", "agent", None),
        ("begin", "model", None),
        ("end", "model", "completed"),
        ("begin", "tool", None),
        ("end", "tool", "completed"),
        ("begin", "model", None),
        ("end", "model", "completed"),
        ("end", "agent", "completed"),
    ]
    agent = tracer.records[0]
    assert (agent.name, agent.run_id, agent.thread_id) == ("agent", run.run_id, "t1")
    assert {r.parent_id for r in tracer.records if r.kind != "agent"} == {agent.span_id}
    assert tracer.records[-1].attributes["model_calls"] == 2
    assert tracer.records[2].attributes["finish_reason"] == "tool_calls"
    assert all((r.duration is None) is (r.phase == "begin") for r in tracer.records)
    assert dict(tracer.counters) == {"agent": 1, "model": 2, "tool": 1, "delta": 0, "error": 0}


async def test_a_failure_is_told_by_its_kind_and_the_calls_retries_are_one_span() -> None:
    tracer = TracingMiddleware()
    failures = [fail(ServerError("busy")), fail(BadRequestError("the secret word"))]
    agent = make(ScriptedModel(failures), tracer, sleep=FakeSleep())
    with pytest.raises(BadRequestError):
        await agent.invoke(None, "?")
    assert told(tracer)[-2:] == [("end", "model", "failed"), ("end", "agent", "failed")]
    assert [record.error for record in tracer.records][-2:] == ["bad_request"] * 2
    assert "secret" not in repr(tracer.records)
    assert (tracer.counters["model"], tracer.counters["error"]) == (1, 1)


async def test_a_tool_that_fails_ends_its_span_as_failed() -> None:
    tracer = TracingMiddleware()
    await make(ScriptedModel([call("broken"), say("Oh.")]), tracer).invoke(None, "?")
    assert ("end", "tool", "failed") in told(tracer)
    assert told(tracer)[-1] == ("end", "agent", "completed")
    assert "secret" not in repr(tracer.records)


async def test_a_cancelled_run_ends_every_span_that_it_began() -> None:
    tracer = TracingMiddleware()
    step = hang()
    agent = make(ScriptedModel([step]), tracer)
    async with anyio.create_task_group() as group:
        group.start_soon(agent.invoke, None, "?")
        await step.started.wait()
        group.cancel_scope.cancel()
    assert told(tracer)[-2:] == [("end", "model", "cancelled"), ("end", "agent", "cancelled")]
    assert {record.error for record in tracer.records} == {None}


async def test_a_run_inside_a_tool_is_part_of_that_tools_span() -> None:
    tracer = TracingMiddleware()
    inner = make(ScriptedModel([say("one"), say("two")]), tracer)

    @tool
    async def ask(question: str, *, ctx: ToolContext[Any]) -> str:
        """Ask another agent."""
        return (await inner.invoke(None, question, context=ctx.run)).text

    outer = AgentHarness(
        model=ScriptedModel([[call("ask", question="a"), call("ask", question="b")], say("Done.")]),
        tools=[ask],
        middleware=[tracer],
    )
    run = await outer.invoke(None, "?")
    by_id = spans(tracer)
    nested = [r for r in by_id.values() if r.kind == "agent" and r.run_id != run.run_id]
    around = [by_id[r.parent_id or ""] for r in nested]
    assert [(r.kind, r.name) for r in around] == [("tool", "ask")] * 2
    assert around[0].span_id != around[1].span_id
    assert {r.root_run_id for r in tracer.records} == {run.run_id}


async def test_runs_at_the_same_time_do_not_mix() -> None:
    tracer = TracingMiddleware()
    agent = make(ScriptedModel([]), tracer)

    async def one(name: str) -> None:
        model = ScriptedModel([call("search", query=name), say(name)])
        await agent.invoke(None, "?", model=model, config=RunConfig(run_id=name))

    async with anyio.create_task_group() as group:
        for name in ("a", "b", "c"):
            group.start_soon(one, name)
    by_id = spans(tracer)
    for record in by_id.values():
        if record.parent_id is not None:
            assert by_id[record.parent_id].run_id == record.run_id
    assert tracer.counters["agent"] == 3
    assert len(tracer.records) == 24


async def test_a_run_that_is_resumed_is_a_span_of_its_own() -> None:
    paused = False

    @before_tool
    def pause(ctx: RunContext[Any], call: ToolCall) -> None:
        nonlocal paused
        if not paused:
            paused = True
            ctx.request_control(Pause("wait"))

    tracer = TracingMiddleware()
    agent = make(ScriptedModel([call("search", query="x"), say("Yes.")]), tracer, pause)
    first = await agent.invoke(None, "?")
    assert told(tracer)[-1] == ("end", "agent", "paused")
    await agent.resume(first.snapshot.model_dump_json(), None)
    assert told(tracer)[-1] == ("end", "agent", "completed")
    assert [r.kind for r in spans(tracer).values()].count("agent") == 2


async def test_a_run_that_is_stepped_through_is_one_span() -> None:
    tracer = TracingMiddleware()
    agent = make(ScriptedModel([call("search", query="x"), say("Yes.")]), tracer)
    snapshot = agent.snapshot("?")
    while snapshot.phase != "done":
        stored = snapshot.model_dump_json()
        snapshot = await agent.step(RunSnapshot.model_validate_json(stored), None)
    assert told(tracer)[0] == ("begin", "agent", None)
    assert told(tracer)[-1] == ("end", "agent", "completed")
    (whole,) = [r for r in spans(tracer).values() if r.kind == "agent"]
    assert {r.parent_id for r in tracer.records if r.kind != "agent"} == {whole.span_id}
    assert snapshot.notes == {}


async def test_only_the_latest_records_are_kept_and_none_where_none_are_wanted() -> None:
    few, none = TracingMiddleware(max_records=3), TracingMiddleware(max_records=0)
    agent = make(ScriptedModel([say("x")] * 5), few, none)
    for _ in range(5):
        await agent.invoke(None, "?")
    assert [record.kind for record in few.records] == ["model", "model", "agent"]
    assert none.records == ()
    assert none.counters["agent"] == 5


async def test_each_record_is_handed_on_and_a_failing_receiver_ends_no_run(
    caplog: pytest.LogCaptureFixture,
) -> None:
    seen: list[TraceRecord] = []

    def take(record: TraceRecord) -> None:
        seen.append(record)
        raise OSError("the exporter is down")

    tracer = TracingMiddleware(max_records=0, on_record=take)
    with caplog.at_level(logging.WARNING, "tinyagents.middleware"):
        run = await make(ScriptedModel([say("x")]), tracer).invoke(None, "?")
    assert run.status == "completed"
    assert [record.phase for record in seen] == ["begin", "begin", "end", "end"]
    assert "`on_record` of `TracingMiddleware` has failed" in caplog.text


async def test_pieces_are_counted_in_streams() -> None:
    tracer = TracingMiddleware()
    async with make(ScriptedModel([say("a", "b")]), tracer).stream(None, "?") as stream:
        await stream.result()
    assert tracer.counters["delta"] > 0
    assert tracer.records[2].attributes["first_token"] is not None


async def test_a_run_that_fails_before_its_span_has_begun_leaves_none() -> None:
    @before_agent
    def refuse(ctx: RunContext[Any]) -> None:
        raise ValueError("no")

    tracer = TracingMiddleware()
    with pytest.raises(ValueError, match="no"):
        await make(ScriptedModel([]), refuse, tracer).invoke(None, "?")
    assert tracer.records == ()
    assert tracer.counters["error"] == 1


def test_a_negative_number_of_records_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="0 or more"):
        TracingMiddleware(max_records=-1)
