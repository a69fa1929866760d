"""The loop from the outside: what a run does with answers, tools, limits and failures."""

import logging

import anyio
import anyio.lowlevel
import pytest
from pydantic import BaseModel

from tinyagents import (
    AgentHarness,
    AssistantMessage,
    RunConfig,
    RunContext,
    RunLimits,
    RunPolicy,
    RunSnapshot,
    ToolCallBlock,
    ToolContext,
    ToolError,
    ToolMessage,
    UserMessage,
    tool,
)
from tinyagents.harness.errors import (
    EmptyResponseError,
    InvalidRequestError,
    LimitExceededError,
    ModelNotFoundError,
    RateLimitError,
    ServerError,
    ToolFailedError,
    ToolNotFoundError,
    TruncatedResponseError,
)
from tinyagents.harness.events import load_event
from tinyagents.harness.message import repair_messages
from tinyagents.harness.middleware import after_model
from tinyagents.harness.model import ModelResponse
from tinyagents.harness.policy import UnknownToolPolicy
from tinyagents.harness.retry import FallbackPolicy
from tinyagents.testkit import (
    FakeSleep,
    ScriptedModel,
    assert_event_grammar,
    call,
    calls,
    fail,
    say,
)


@tool
async def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


def is_valid(messages: object) -> bool:
    return not repair_messages(messages).changed  # type: ignore[arg-type]


async def test_a_plain_answer_takes_one_model_call() -> None:
    run = await AgentHarness(model=ScriptedModel([say("hello")])).invoke(None, "hi")
    assert run.text == "hello"
    assert run.status == "completed"
    assert [message.role for message in run.messages] == ["user", "assistant"]
    assert [event.kind for event in run.events] == [
        "run.started",
        "model.started",
        "usage.recorded",
        "model.completed",
        "run.completed",
    ]


async def test_a_tool_is_called_and_its_result_goes_back_to_the_model() -> None:
    model = ScriptedModel([call("add", a=1, b=2), say("3")])
    run = await AgentHarness(model=model, tools=[add]).invoke(None, "1 + 2?")
    assert run.text == "3"
    assert [message.text for message in model.requests[1].messages] == ["1 + 2?", "", "3"]
    assert (run.model_calls, run.tool_calls, run.steps) == (2, 1, 2)
    assert_event_grammar(run.events)


async def test_calls_of_one_turn_run_at_once_and_are_answered_in_call_order() -> None:
    arrived: list[str] = []
    all_there = anyio.Event()

    @tool
    async def meet(name: str) -> str:
        """Wait for the others."""
        arrived.append(name)
        if len(arrived) == 3:
            all_there.set()
        await all_there.wait()
        return name

    model = ScriptedModel([[call("meet", name=name) for name in "abc"], say("done")])
    run = await AgentHarness(model=model, tools=[meet]).invoke(None, "go")
    results = [m.text for m in run.messages if isinstance(m, ToolMessage)]
    assert results == ["a", "b", "c"]
    kinds = [event.kind for event in run.events if event.kind.startswith("tool.")]
    assert kinds == ["tool.started"] * 3 + ["tool.completed"] * 3


async def test_max_concurrency_bounds_how_many_tools_run_at_once() -> None:
    running = most = 0

    @tool
    async def work(n: int) -> int:
        """Work."""
        nonlocal running, most
        running += 1
        most = max(most, running)
        await anyio.lowlevel.checkpoint()
        running -= 1
        return n

    model = ScriptedModel([[call("work", n=n) for n in range(6)], say("done")])
    harness = AgentHarness(model=model, tools=[work], limits=RunLimits(max_concurrency=2))
    run = await harness.invoke(None, "go")
    assert most == 2
    assert [m.text for m in run.messages if isinstance(m, ToolMessage)] == list("012345")
    assert_event_grammar(run.events)


async def test_an_exclusive_tool_runs_alone() -> None:
    running: set[str] = set()
    seen: list[set[str]] = []

    async def work(name: str) -> str:
        running.add(name)
        seen.append(set(running))
        await anyio.lowlevel.checkpoint()
        running.discard(name)
        return name

    @tool
    async def shared(name: str) -> str:
        """Run with others."""
        return await work(name)

    @tool(exclusive=True)
    async def alone(name: str) -> str:
        """Run alone."""
        return await work(name)

    calls = [call("shared", name="a"), call("alone", name="b"), call("shared", name="c")]
    model = ScriptedModel([calls, say("done")])
    run = await AgentHarness(model=model, tools=[shared, alone]).invoke(None, "go")
    assert {"b"} in seen
    assert not any("b" in together and len(together) > 1 for together in seen)
    assert [m.text for m in run.messages if isinstance(m, ToolMessage)] == ["a", "b", "c"]


async def test_one_failing_call_does_not_lose_the_results_of_its_siblings() -> None:
    @tool
    async def one() -> int:
        """Return one."""
        return 1

    @tool
    async def broken() -> int:
        """Fail."""
        raise RuntimeError("disk")

    @tool
    async def three() -> int:
        """Return three, later."""
        await anyio.sleep(0.01)
        return 3

    model = ScriptedModel([[call("one"), call("broken"), call("three")], say("done")])
    run = await AgentHarness(model=model, tools=[one, broken, three]).invoke(None, "go")
    first, second, third = [m for m in run.messages if isinstance(m, ToolMessage)]
    assert (first.text, third.text) == ("1", "3")
    assert second.is_error
    assert "RuntimeError: disk" in second.text
    assert "Traceback" not in second.text
    assert "tool.failed" in [event.kind for event in run.events]
    assert run.status == "completed"


async def test_a_tool_error_is_told_to_the_model_and_is_no_failure() -> None:
    @tool
    async def shop(item: str) -> str:
        """Buy."""
        raise ToolError(f"{item} is sold out")

    model = ScriptedModel([call("shop", item="tea"), say("sorry")])
    run = await AgentHarness(model=model, tools=[shop]).invoke(None, "tea")
    result = run.messages[2]
    assert isinstance(result, ToolMessage)
    assert (result.text, result.is_error) == ("tea is sold out", True)
    kinds = [event.kind for event in run.events]
    assert "tool.failed" not in kinds


async def test_a_failing_tool_raises_where_the_policy_says_so_and_siblings_are_kept() -> None:
    @tool
    async def broken() -> int:
        """Fail."""
        raise RuntimeError("disk")

    model = ScriptedModel([[call("broken"), call("add", a=1, b=1)]])
    harness = AgentHarness(model=model, tools=[add, broken], policy=RunPolicy(tool_errors="fail"))
    with pytest.raises(ToolFailedError) as caught:
        await harness.invoke(None, "go")
    assert isinstance(caught.value.__cause__, RuntimeError)
    run = caught.value.run
    assert run is not None
    assert [m.text for m in run.messages if isinstance(m, ToolMessage)][1] == "2"
    assert is_valid(run.messages)
    assert_event_grammar(run.events)


async def test_a_batch_over_the_tool_limit_runs_only_what_the_limit_allows() -> None:
    ran: list[int] = []

    @tool
    async def work(n: int) -> int:
        """Work."""
        ran.append(n)
        return n

    model = ScriptedModel([[call("work", n=n) for n in (1, 2, 3)], say("fine")])
    harness = AgentHarness(model=model, tools=[work], limits=RunLimits(max_tool_calls=2))
    with pytest.raises(LimitExceededError) as caught:
        await harness.invoke(None, "go")
    assert sorted(ran) == [1, 2]
    assert caught.value.limit == "tool_calls"
    assert caught.value.counters["tool_calls"] == 2
    run = caught.value.run
    assert run is not None
    third = run.messages[-1]
    assert isinstance(third, ToolMessage)
    assert third.outcome == "not_started"
    assert "not executed" in third.text
    assert "limit" in third.text
    again = await harness.invoke(None, [*run.messages, UserMessage(content="carry on")])
    assert again.text == "fine"
    assert is_valid(model.requests[1].messages)


async def test_the_model_call_limit_raises_with_the_work_so_far() -> None:
    model = ScriptedModel([call("add", a=1, b=1), call("add", a=2, b=2)])
    harness = AgentHarness(model=model, tools=[add], limits=RunLimits(max_model_calls=2))
    with pytest.raises(LimitExceededError) as caught:
        await harness.invoke(None, "go")
    run = caught.value.run
    assert run is not None
    assert (run.model_calls, run.tool_calls) == (2, 2)
    assert run.usage.total_tokens > 0
    assert is_valid(run.messages)
    assert [event.kind for event in run.events][-2:] == ["limit.reached", "run.failed"]


async def test_a_limit_can_stop_the_run_with_what_there_is() -> None:
    model = ScriptedModel([call("add", a=1, b=1), call("add", a=2, b=2)])
    harness = AgentHarness(
        model=model,
        tools=[add],
        policy=RunPolicy(on_limit="stop_with_partial", limits=RunLimits(max_model_calls=2)),
    )
    run = await harness.invoke(None, "go")
    assert (run.status, run.reason) == ("stopped", "max_model_calls")
    assert is_valid(run.messages)
    assert run.model_calls == 2
    assert [event.kind for event in run.events][-2:] == ["limit.reached", "run.completed"]


async def test_a_limit_can_ask_for_one_last_answer_without_tools() -> None:
    model = ScriptedModel([call("add", a=1, b=1), call("add", a=2, b=2), say("so far: 4")])
    harness = AgentHarness(
        model=model,
        tools=[add],
        policy=RunPolicy(on_limit="final_answer", limits=RunLimits(max_model_calls=2)),
    )
    run = await harness.invoke(None, "go")
    assert (run.status, run.text, run.model_calls) == ("stopped", "so far: 4", 3)
    assert model.requests[2].tools == ()
    assert is_valid(run.messages)


async def test_an_unknown_tool_fails_the_run_by_default_and_names_what_there_is() -> None:
    model = ScriptedModel([call("ad", a=1)])
    with pytest.raises(ToolNotFoundError) as caught:
        await AgentHarness(model=model, tools=[add]).invoke(None, "go")
    assert caught.value.name == "ad"
    assert caught.value.available == ("add",)
    assert caught.value.run is not None
    assert is_valid(caught.value.run.messages)


async def test_under_the_resilient_policy_the_model_is_told_of_an_unknown_tool() -> None:
    @tool
    async def search_docs(query: str) -> str:
        """Search."""
        return "found"

    model = ScriptedModel(
        [call("serch_docs", query="x"), call("search_docs", query="x"), say("done")]
    )
    run = await AgentHarness(model=model, tools=[search_docs], policy=RunPolicy.resilient()).invoke(
        None, "go"
    )
    first, second = [m for m in run.messages if isinstance(m, ToolMessage)]
    assert first.is_error
    assert "serch_docs" in first.text
    assert "search_docs" in first.text
    assert second.text == "found"
    kinds = [event.kind for event in run.events]
    assert "tool.unknown" in kinds
    assert "tool.failed" not in kinds


async def test_a_model_that_never_finds_the_tool_is_ended_by_the_turn_limit() -> None:
    model = ScriptedModel([call("serch_docs") for _ in range(3)])
    harness = AgentHarness(
        model=model,
        tools=[add],
        policy=RunPolicy.resilient().with_limits(RunLimits(max_model_calls=3)),
    )
    run = await harness.invoke(None, "go")
    assert (run.status, run.reason) == ("stopped", "max_model_calls")


async def test_an_unknown_tool_can_be_rewritten_to_one_that_exists() -> None:
    model = ScriptedModel([call("plus", a=1, b=2), say("3")])
    harness = AgentHarness(
        model=model, tools=[add], policy=RunPolicy(unknown_tool=UnknownToolPolicy.rewrite("add"))
    )
    run = await harness.invoke(None, "go")
    assert [m.text for m in run.messages if isinstance(m, ToolMessage)] == ["3"]
    unknown = next(event for event in run.events if event.kind == "tool.unknown")
    assert unknown.recovery == "rewrite:add"  # type: ignore[attr-defined]


async def test_arguments_that_do_not_fit_are_told_to_the_model_with_path_and_schema() -> None:
    model = ScriptedModel([call("add", a="x", b=1), call("add", a=1, b=1), say("2")])
    run = await AgentHarness(model=model, tools=[add]).invoke(None, "go")
    result = next(m for m in run.messages if isinstance(m, ToolMessage))
    assert result.is_error
    assert "a" in result.text
    assert "integer" in result.text
    assert "tool.invalid_args" in [event.kind for event in run.events]
    assert run.status == "completed"


@pytest.mark.parametrize("raw", ["", "   ", "null", "{}"])
async def test_no_arguments_in_any_spelling_call_a_tool_without_parameters(raw: str) -> None:
    @tool
    async def ping() -> str:
        """Ping."""
        return "pong"

    model = ScriptedModel([call("ping", raw=raw), say("done")])
    run = await AgentHarness(model=model, tools=[ping]).invoke(None, "go")
    assert [m.text for m in run.messages if isinstance(m, ToolMessage)] == ["pong"]


@pytest.mark.parametrize("raw", ["[1]", '"x"', "7", "true", '{"a": ', "not json"])
async def test_arguments_that_are_no_object_are_an_error_result_and_the_run_goes_on(
    raw: str,
) -> None:
    model = ScriptedModel([call("add", raw=raw), say("done")])
    run = await AgentHarness(model=model, tools=[add]).invoke(None, "go")
    result = next(m for m in run.messages if isinstance(m, ToolMessage))
    assert result.is_error
    assert run.status == "completed"


async def test_ids_that_repeat_from_turn_to_turn_pair_with_their_own_turn() -> None:
    seen: list[int] = []

    @tool
    async def ping(n: int) -> int:
        """Ping."""
        seen.append(n)
        return n

    model = ScriptedModel(
        [call("ping", n=1, id="call_0"), call("ping", n=2, id="call_0"), say("done")]
    )
    run = await AgentHarness(model=model, tools=[ping]).invoke(None, "go")
    assert seen == [1, 2]
    results = [m for m in run.messages if isinstance(m, ToolMessage)]
    assert [m.text for m in results] == ["1", "2"]
    assert len({m.tool_call_id for m in results}) == 2
    assert is_valid(model.requests[2].messages)


async def test_calls_of_an_answer_that_was_cut_never_run_and_the_model_is_told() -> None:
    ran: list[str] = []

    @tool
    async def write(body: str) -> str:
        """Write."""
        ran.append(body)
        return "ok"

    cut = [call("write", body="whole"), call("write", raw='{"body":"abc')]
    model = ScriptedModel([calls(*cut).replace(finish_reason="length") for _ in range(3)])
    with pytest.raises(TruncatedResponseError) as caught:
        await AgentHarness(model=model, tools=[write]).invoke(None, "go")
    assert ran == []
    assert model.calls == 3
    told = [m.text for m in model.requests[1].messages if isinstance(m, ToolMessage)]
    assert len(told) == 2
    assert all("cut" in text for text in told)
    assert caught.value.run is not None
    assert is_valid(caught.value.run.messages)


async def test_an_empty_answer_cut_by_length_is_asked_for_again_with_a_larger_limit() -> None:
    from tinyagents import ModelSettings

    model = ScriptedModel([say("", finish_reason="length"), say("hello")])
    harness = AgentHarness(model=model, settings=ModelSettings(max_tokens=100))
    run = await harness.invoke(None, "hi")
    assert run.text == "hello"
    assert [request.settings.max_tokens for request in model.requests] == [100, 200]
    assert len(run.messages) == 2
    assert run.model_calls == 2
    kinds = [event.kind for event in run.events]
    assert kinds.count("retry.scheduled") == 1


async def test_a_blank_final_answer_raises_only_where_the_guard_is_on() -> None:
    run = await AgentHarness(model=ScriptedModel([say("")])).invoke(None, "hi")
    assert (run.status, run.text) == ("completed", "")
    guarded = AgentHarness(
        model=ScriptedModel([say("")]), policy=RunPolicy(error_on_empty_response=True)
    )
    with pytest.raises(EmptyResponseError):
        await guarded.invoke(None, "hi")


async def test_a_retryable_failure_is_tried_again_after_growing_waits() -> None:
    sleep = FakeSleep()
    model = ScriptedModel([fail(ServerError("down")), fail(ServerError("down")), say("up")])
    run = await AgentHarness(model=model, sleep=sleep).invoke(None, "hi")
    assert run.text == "up"
    assert sleep.delays == [0.2, 0.4]
    kinds = [event.kind for event in run.events]
    assert kinds.count("retry.scheduled") == 2
    assert kinds.count("model.started") == kinds.count("model.completed") == 1
    assert run.response is not None
    assert run.response.attempts == 3


async def test_a_retry_waits_as_long_as_the_provider_asked() -> None:
    sleep = FakeSleep()
    model = ScriptedModel([fail(RateLimitError("busy", retry_after=7)), say("up")])
    await AgentHarness(model=model, sleep=sleep).invoke(None, "hi")
    assert sleep.delays == [7]


async def test_a_failure_that_no_retry_helps_raises_at_once_with_the_run() -> None:
    from tinyagents.harness.errors import AuthenticationError

    model = ScriptedModel([fail(AuthenticationError("no key"))])
    with pytest.raises(AuthenticationError) as caught:
        await AgentHarness(model=model, sleep=FakeSleep()).invoke(None, "hi")
    run = caught.value.run
    assert run is not None
    assert (run.status, len(run.messages)) == ("failed", 1)
    assert [event.kind for event in run.events][-2:] == ["model.failed", "run.failed"]
    assert_event_grammar(run.events)


@pytest.mark.parametrize("streamed", [False, True])
async def test_the_fallback_model_answers_when_the_first_has_failed(streamed: bool) -> None:
    first = ScriptedModel([fail(RateLimitError("busy"))] * 4)
    second = ScriptedModel([say("blue")])
    harness = AgentHarness(
        models={"first": first, "second": second},
        policy=RunPolicy(fallback=FallbackPolicy(models=("second",))),
        sleep=FakeSleep(),
    )
    if streamed:
        run = await harness.stream(None, "hi").result()
    else:
        run = await harness.invoke(None, "hi")
    assert run.text == "blue"
    kinds = [event.kind for event in run.events]
    assert kinds.count("model.fallback_selected") == 1
    usage = [event for event in run.events if event.kind == "usage.recorded"]
    assert [event.model for event in usage] == ["second"]  # type: ignore[attr-defined]
    assert run.resolved_model is not None
    assert (run.resolved_model.name, run.resolved_model.source) == ("second", "fallback")


async def test_an_empty_input_is_refused_before_anything_happens() -> None:
    harness = AgentHarness(model=ScriptedModel([]))
    nothing: list[str | list[UserMessage]] = ["", "   ", []]
    for empty in nothing:
        with pytest.raises(InvalidRequestError, match="empty"):
            await harness.invoke(None, empty)


async def test_a_run_can_choose_another_model_by_name() -> None:
    harness = AgentHarness(models={"a": ScriptedModel([say("A")]), "b": ScriptedModel([say("B")])})
    assert (await harness.invoke(None, "hi", model="b")).text == "B"
    with pytest.raises((ModelNotFoundError, InvalidRequestError)):
        await harness.invoke(None, "hi", model="c")


async def test_state_and_data_reach_the_tool_as_they_are() -> None:
    class Deps(BaseModel):
        unit: str

    state = object()
    seen: list[object] = []

    @tool
    async def read(ctx: ToolContext[Deps]) -> str:
        """Read."""
        seen.append(ctx.state)
        return ctx.data.unit

    model = ScriptedModel([call("read"), say("done")])
    run = await AgentHarness(model=model, tools=[read]).invoke(state, "go", data=Deps(unit="K"))
    assert seen == [state]
    assert run.state is state
    assert run.messages[2].text == "K"


async def test_the_system_prompt_goes_with_each_call_and_not_into_the_transcript() -> None:
    model = ScriptedModel([call("add", a=1, b=1), say("2")])
    run = await AgentHarness(model=model, tools=[add], system="Be brief.").invoke(None, "go")
    assert [request.messages[0].text for request in model.requests] == ["Be brief.", "Be brief."]
    assert run.messages[0].role == "user"


async def test_a_history_that_arrives_broken_is_mended_and_the_run_says_so() -> None:
    history = [
        UserMessage(content="hi"),
        AssistantMessage(content=[ToolCallBlock(id="k1", name="add", arguments={})]),
        UserMessage(content="carry on"),
    ]
    model = ScriptedModel([say("ok")])
    run = await AgentHarness(model=model, tools=[add]).invoke(None, history)
    assert is_valid(model.requests[0].messages)
    assert "messages.repaired" in [event.kind for event in run.events]


async def test_limits_of_a_run_only_lower_those_of_the_harness() -> None:
    harness = AgentHarness(
        model=ScriptedModel([call("add", a=1, b=1), say("2")]),
        tools=[add],
        limits=RunLimits(max_model_calls=1),
    )
    config = RunConfig(limits=RunLimits(max_model_calls=10))
    with pytest.raises(LimitExceededError):
        await harness.invoke(None, "go", config=config)


@pytest.mark.parametrize("resumed", [False, True])
async def test_a_history_of_one_broken_message_is_mended_too(resumed: bool) -> None:
    made = AssistantMessage(content=[ToolCallBlock(id="k1", name="add", arguments={})])
    model = ScriptedModel([say("hi"), say("ok")] if resumed else [say("ok")])
    harness = AgentHarness(model=model, tools=[add])
    if resumed:
        orphan = ToolMessage(tool_call_id="nobody", content="3")
        before = await harness.invoke(None, "go")
        run = await harness.resume(before.snapshot, None, input=[orphan, made])
    else:
        run = await harness.invoke(None, made)
    assert is_valid(model.requests[-1].messages)
    assert [m.tool_call_id for m in run.messages if isinstance(m, ToolMessage)] == ["k1"]


async def test_an_input_of_nothing_but_foreign_results_is_refused() -> None:
    harness = AgentHarness(model=ScriptedModel([say("never")]))
    with pytest.raises(InvalidRequestError, match="nobody has made"):
        await harness.invoke(None, ToolMessage(tool_call_id="k1", content="3"))


class Speechless(Exception):
    """Cannot even say what went wrong."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


async def test_an_exception_that_cannot_say_what_it_is_costs_its_siblings_nothing() -> None:
    @tool
    async def mute() -> str:
        """Fail without a word."""
        raise Speechless

    model = ScriptedModel([[call("mute"), call("add", a=1, b=2)], say("done")])
    run = await AgentHarness(model=model, tools=[mute, add]).invoke(None, "go")
    results = [m.text for m in run.messages if isinstance(m, ToolMessage)]
    assert results == ["`mute` failed: Speechless", "3"]


async def test_halves_of_characters_in_an_error_leave_events_and_snapshot_storable(
    caplog: pytest.LogCaptureFixture,
) -> None:
    # A test report, too, cannot hold them.
    caplog.set_level(logging.CRITICAL, logger="tinyagents")

    @tool
    async def lost(ctx: ToolContext[None]) -> str:
        """Name a file that is no text."""
        ctx.progress("\udcff")
        raise FileNotFoundError("\udcff.txt")

    @after_model
    def refuse(ctx: RunContext[None], response: ModelResponse) -> None:
        if not response.message.tool_calls:
            raise OSError("\udcff")

    model = ScriptedModel([call("lost"), say("done")])
    harness = AgentHarness(model=model, tools=[lost], middleware=[refuse])
    with pytest.raises(OSError, match="\udcff") as caught:
        await harness.invoke(None, "go")
    run = getattr(caught.value, "run")  # noqa: B009 - an `OSError` has none for type checkers
    assert RunSnapshot.model_validate_json(run.snapshot.model_dump_json()).status == "failed"
    for event in run.events:
        assert load_event(event.model_dump_json()) == event
