"""Middlewares around tool calls: so many, again, and what the model is told of a failure."""

from typing import Any

import pytest

from tinyagents import (
    AgentHarness,
    AgentRun,
    RunConfig,
    RunPolicy,
    RunSnapshot,
    ToolContext,
    ToolError,
    tool,
)
from tinyagents.harness.errors import (
    ConfigurationError,
    InvalidRequestError,
    LimitExceededError,
    ToolFailedError,
)
from tinyagents.harness.events import LimitReached, RetryScheduled
from tinyagents.harness.middleware import (
    Middleware,
    ToolCallLimitMiddleware,
    ToolErrorPolicyMiddleware,
    ToolRetryMiddleware,
)
from tinyagents.harness.retry import RetryPolicy
from tinyagents.harness.tool import Tool
from tinyagents.testkit import EventRecorder, FakeSleep, FakeTool, ScriptedModel, call, calls, say


def results(run: AgentRun[Any, Any]) -> list[str]:
    return [message.text for message in run.messages if message.role == "tool"]


async def run_calls(
    middleware: Middleware[Any], *steps: Any, tools: list[Tool] | None = None, **options: Any
) -> AgentRun[Any, Any]:
    agent = AgentHarness(
        model=ScriptedModel([*steps, say("done")]),
        tools=tools or [FakeTool("look", "found"), FakeTool("pay", "paid")],
        middleware=[middleware],
        sleep=FakeSleep(),
        **options,
    )
    return await agent.invoke(None, "go", config=RunConfig(thread_id="t"))


# Limits


async def test_calls_of_a_batch_over_the_limit_do_not_run_and_the_model_is_told() -> None:
    recorder, look = EventRecorder(), FakeTool("look", "found")
    batch = calls(call("look", n=1), call("look", n=2), call("look", n=3))
    run = await run_calls(
        ToolCallLimitMiddleware(run_limit=2), batch, tools=[look], listeners=[recorder]
    )
    assert len(look.calls) == 2
    assert [text == "found" for text in results(run)] == [True, True, False]
    assert "was not run" in results(run)[2]
    assert run.text == "done"
    assert sum(isinstance(event, LimitReached) for event in recorder.events) == 1


async def test_one_tool_may_have_a_limit_of_its_own() -> None:
    run = await run_calls(
        ToolCallLimitMiddleware("pay", run_limit=1),
        calls(call("look"), call("pay"), call("look"), call("pay")),
    )
    assert [text in ("found", "paid") for text in results(run)] == [True, True, True, False]


async def test_a_run_over_the_limit_ends_after_the_turn_or_fails() -> None:
    batch = calls(call("look"), call("pay"))
    run = await run_calls(
        ToolCallLimitMiddleware(run_limit=1, on_limit="end", answer="Enough."), batch
    )
    assert (run.status, run.text, run.model_calls) == ("stopped", "Enough.", 1)
    assert results(run)[0] == "found"
    with pytest.raises(LimitExceededError, match="1 tool calls") as caught:
        await run_calls(ToolCallLimitMiddleware(run_limit=1, on_limit="error"), batch)
    assert caught.value.run is not None
    assert len(results(caught.value.run)) == 2


async def test_a_thread_has_a_limit_over_its_runs() -> None:
    limit = ToolCallLimitMiddleware(thread_limit=2)
    for expected in (["found"], ["found"]):
        assert results(await run_calls(limit, call("look"))) == expected
    assert "was not run" in results(await run_calls(limit, call("look")))[0]
    agent = AgentHarness(model=ScriptedModel([say("ok")]), middleware=[limit])
    with pytest.raises(InvalidRequestError, match="thread_id"):
        await agent.invoke(None, "go")


async def test_a_call_that_waits_is_counted_once_when_it_goes_on() -> None:
    @tool
    async def ask(ctx: ToolContext[Any]) -> str:
        """Ask somebody."""
        return str(ctx.ask("Which?"))

    agent = AgentHarness(
        model=ScriptedModel([call("ask"), call("ask"), say("done")]),
        tools=[ask],
        middleware=[ToolCallLimitMiddleware(run_limit=2)],
    )
    run = await agent.invoke(None, "go")
    for _ in range(2):
        assert run.status == "interrupted"
        stored = RunSnapshot.model_validate_json(run.snapshot.model_dump_json())
        run = await agent.resume(stored, None, answers={run.interrupts[0].id: "that"})
    assert (run.status, results(run)) == ("completed", ["that", "that"])
    assert run.snapshot.notes == {"ToolCallLimitMiddleware": {"used": 2}}


@pytest.mark.parametrize("options", [{}, {"run_limit": -1}, {"run_limit": 1, "on_limit": "x"}])
def test_odd_limits_of_tool_calls_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        ToolCallLimitMiddleware(**options)


# Retry


def flaky(*errors: Exception, idempotent: bool = True) -> Tool:
    """Make a tool that raises the errors in turn, and then returns."""
    left = list(errors)

    @tool(name="flaky", idempotent=idempotent)
    async def answer(n: int = 0) -> str:
        """Answer, sometimes."""
        if left:
            raise left.pop(0)
        return "fine"

    return answer


async def test_a_failed_call_of_an_idempotent_tool_is_made_again() -> None:
    recorder = EventRecorder()
    shaky = flaky(ConnectionError("gone"), TimeoutError("slow"))
    run = await run_calls(ToolRetryMiddleware(), call("flaky"), tools=[shaky], listeners=[recorder])
    assert results(run) == ["fine"]
    events = [event for event in recorder.events if isinstance(event, RetryScheduled)]
    assert [(e.attempt, e.delay, e.error_kind) for e in events] == [
        (1, 0.2, "ConnectionError"),
        (2, 0.4, "TimeoutError"),
    ]


async def test_a_tool_without_the_mark_is_never_called_twice_unless_it_is_named() -> None:
    for middleware, expected in (
        (ToolRetryMiddleware(), "`flaky` failed: ConnectionError: gone"),
        (ToolRetryMiddleware(tools=["flaky"]), "fine"),
        (ToolRetryMiddleware(tools=["other"]), "`flaky` failed: ConnectionError: gone"),
    ):
        shaky = flaky(ConnectionError("gone"), idempotent=False)
        assert results(await run_calls(middleware, call("flaky"), tools=[shaky])) == [expected]


@pytest.mark.parametrize("error", [ValueError("bug"), ToolError("no such city")])
async def test_errors_that_would_only_come_again_are_not_retried(error: Exception) -> None:
    run = await run_calls(ToolRetryMiddleware(), call("flaky"), tools=[flaky(error)])
    assert str(error) in results(run)[0]


async def test_the_policy_says_how_often_and_which_errors() -> None:
    shaky = flaky(ValueError("1"), ValueError("2"), ValueError("3"))
    policy = RetryPolicy(max_attempts=2, retry_on=lambda error: isinstance(error, ValueError))
    run = await run_calls(ToolRetryMiddleware(policy), call("flaky"), tools=[shaky])
    assert "ValueError: 2" in results(run)[0]


# What the model is told


async def test_chosen_exceptions_are_told_in_chosen_words_and_others_by_the_policy() -> None:
    strict = RunPolicy(tool_errors="fail")
    middleware = ToolErrorPolicyMiddleware(
        exceptions=(KeyError, ConnectionError), message="Try again later."
    )
    run = await run_calls(
        middleware, call("flaky"), tools=[flaky(ConnectionError("db-7 is down"))], policy=strict
    )
    assert results(run) == ["Try again later."]
    with pytest.raises(ToolFailedError, match="ValueError"):
        await run_calls(middleware, call("flaky"), tools=[flaky(ValueError("x"))], policy=strict)


async def test_the_words_may_be_made_of_the_call_and_the_error() -> None:
    middleware = ToolErrorPolicyMiddleware(
        message=lambda call, error: f"{call.name}({call.arguments}): {error}"
    )
    run = await run_calls(middleware, call("flaky", n=1), tools=[flaky(OSError("disk"))])
    assert results(run) == ["flaky({'n': 1}): disk"]


async def test_chosen_failures_end_the_run() -> None:
    middleware = ToolErrorPolicyMiddleware("raise", tools=["flaky"], exceptions=OSError)
    with pytest.raises(ToolFailedError, match="OSError: disk") as caught:
        await run_calls(middleware, call("flaky"), tools=[flaky(OSError("disk"))])
    assert isinstance(caught.value.__cause__, OSError)
    run = await run_calls(middleware, call("flaky"), tools=[flaky(ValueError("x"))])
    assert "ValueError: x" in results(run)[0]


async def test_what_a_tool_tells_the_model_itself_stays() -> None:
    middleware = ToolErrorPolicyMiddleware("raise")
    run = await run_calls(middleware, call("flaky"), tools=[flaky(ToolError("no such city"))])
    assert results(run) == ["no such city"]


@pytest.mark.parametrize(
    "options",
    [{"action": "log"}, {"tools": "flaky"}, {"exceptions": "OSError"}, {"exceptions": (int,)}],
)
def test_odd_options_of_the_policy_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        ToolErrorPolicyMiddleware(**options)
