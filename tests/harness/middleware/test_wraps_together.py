"""Retry, fallback, timeout and rate limit around each other, in every order and cut off anywhere."""

from itertools import permutations
from typing import Any

import anyio
import pytest

from tinyagents import (
    AgentHarness,
    AssistantMessage,
    Middleware,
    RunContext,
    RunLimits,
    RunPolicy,
    ToolError,
    tool,
)
from tinyagents.harness.errors import (
    ConfigurationError,
    ModelError,
    RunTimeoutError,
    ServerError,
)
from tinyagents.harness.events import FallbackSelected, FallbackSkipped, ModelFailed
from tinyagents.harness.middleware import (
    ModelFallbackMiddleware,
    ModelHandler,
    RateLimitMiddleware,
    RetryMiddleware,
    TimeoutMiddleware,
    ToolErrorPolicyMiddleware,
    ToolRetryMiddleware,
    wrap_model,
)
from tinyagents.harness.model import CapabilitySet, ModelProfile, ModelRequest, ModelResponse
from tinyagents.harness.retry import FallbackPolicy, RetryPolicy, TokenBucketRateLimiter
from tinyagents.harness.stream import MessageDiscarded, TextDelta
from tinyagents.harness.usage import Usage
from tinyagents.testkit import (
    EventRecorder,
    FakeSleep,
    ScriptedModel,
    assert_event_grammar,
    call,
    fail,
    hang,
    say,
)
from tinyagents.testkit.checkpoints import CheckpointOutcome, for_every_checkpoint

Ctx = RunContext[Any]
ONCE = RunPolicy(retry=RetryPolicy(max_attempts=1))


def down(text: str = "") -> Any:
    return say(text, usage=Usage(input_tokens=10, output_tokens=2)) + fail(ServerError("down"))


def plain_down() -> Any:
    return fail(ServerError("down"))


def bucket(tokens: float) -> TokenBucketRateLimiter:
    return TokenBucketRateLimiter(tokens, 1, clock=lambda: 0.0)


@wrap_model
async def excuse(ctx: Ctx, request: ModelRequest, call_next: ModelHandler) -> ModelResponse:
    """Answer in the place of a call that has failed."""
    try:
        return await call_next(request)
    except ModelError:
        return ModelResponse(AssistantMessage(content="Sorry."))


def kinds() -> dict[str, Middleware[Any]]:
    return {
        "retry": RetryMiddleware(RetryPolicy(max_attempts=2)),
        "fallback": ModelFallbackMiddleware(["other"]),
        "timeout": TimeoutMiddleware(60),
        "rate": RateLimitMiddleware(bucket(100)),
    }


@pytest.mark.parametrize("order", list(permutations(kinds())), ids="-".join)
@pytest.mark.parametrize("streamed", [False, True])
async def test_each_order_answers_and_accounts_for_every_attempt_once(
    order: tuple[str, ...], streamed: bool
) -> None:
    recorder, found = EventRecorder(), kinds()
    answer = say("ok", usage=Usage(input_tokens=10, output_tokens=2))
    agent = AgentHarness(
        models={
            "first": ScriptedModel([plain_down()] * 4),
            "other": ScriptedModel([plain_down(), answer]),
        },
        middleware=[found[name] for name in order],
        policy=ONCE,
        sleep=FakeSleep(),
        listeners=[recorder],
    )
    run = await (agent.stream(None, "go").result() if streamed else agent.invoke(None, "go"))
    assert run.text == "ok"
    assert (run.usage.input_tokens, run.usage.output_tokens) == (10, 2)
    assert run.model_calls == 1
    assert_event_grammar(recorder.events)


async def test_an_answer_in_the_place_of_a_failed_stream_takes_its_pieces_back() -> None:
    agent = AgentHarness(model=ScriptedModel([say("ba") + plain_down()]), middleware=[excuse])
    agent = agent.replace(policy=ONCE)
    stream = agent.stream(None, "go")
    chunks = [chunk async for chunk in stream]
    shown = [
        chunk.text if isinstance(chunk, TextDelta) else None
        for chunk in chunks
        if isinstance(chunk, TextDelta | MessageDiscarded)
    ]
    assert shown == ["ba", None, "Sorry."]
    run = await stream.result()
    assert [message.text for message in run.messages] == ["go", "Sorry."]
    assert run.usage.output_tokens >= 1


async def test_the_error_of_a_retry_says_how_often_the_call_was_tried() -> None:
    recorder = EventRecorder()
    agent = AgentHarness(
        models={name: ScriptedModel([plain_down()] * 9) for name in ("first", "other")},
        middleware=[RetryMiddleware(RetryPolicy(max_attempts=3))],
        policy=RunPolicy(fallback=FallbackPolicy(models=("other",))),
        sleep=FakeSleep(),
        listeners=[recorder],
    )
    with pytest.raises(ServerError) as caught:
        await agent.invoke(None, "go")
    failed = [event for event in recorder.events if isinstance(event, ModelFailed)]
    assert (caught.value.attempts, failed[0].attempts) == (6, 6)


# Fallback


async def test_the_model_that_has_failed_is_not_asked_again() -> None:
    first, other = ScriptedModel([plain_down()] * 9), ScriptedModel([plain_down()] * 9)
    agent = AgentHarness(
        models={"first": first, "other": other},
        middleware=[ModelFallbackMiddleware(["first", "other", "other"])],
        policy=ONCE,
    )
    with pytest.raises(ServerError):
        await agent.invoke(None, "go")
    assert (len(first.requests), len(other.requests)) == (1, 1)


async def test_a_model_that_cannot_take_the_request_is_passed_over() -> None:
    @wrap_model
    async def with_eyes(ctx: Ctx, request: ModelRequest, call_next: ModelHandler) -> ModelResponse:
        request.required_capabilities = CapabilitySet(input_modalities=frozenset({"image"}))
        return await call_next(request)

    recorder = EventRecorder()
    sees = ModelProfile(input_modalities=frozenset({"text", "image"}))
    blind = ModelProfile(input_modalities=frozenset({"text"}))
    agent = AgentHarness(
        models={
            "first": ScriptedModel([plain_down()], profile=sees),
            "blind": ScriptedModel([say("no")], profile=blind),
            "other": ScriptedModel([say("ok")], profile=sees),
        },
        middleware=[with_eyes, ModelFallbackMiddleware(["blind", "other"])],
        policy=ONCE,
        listeners=[recorder],
    )
    run = await agent.invoke(None, "go")
    assert run.text == "ok"
    skipped = [event.model for event in recorder.events if isinstance(event, FallbackSkipped)]
    chosen = [event.to_model for event in recorder.events if isinstance(event, FallbackSelected)]
    assert (skipped, chosen) == (["blind"], ["other"])
    assert_event_grammar(recorder.events)


# Time


@pytest.mark.parametrize("streamed", [False, True])
async def test_the_wall_clock_ends_a_wait_for_room_which_gives_its_place_back(
    streamed: bool,
) -> None:
    async def sleep(seconds: float) -> None:
        await anyio.sleep_forever()

    limiter = bucket(1)
    limiter.reserve()
    agent = AgentHarness(
        model=ScriptedModel([]),
        middleware=[RateLimitMiddleware(limiter)],
        limits=RunLimits(wall_clock=0.01),
        sleep=sleep,
    )
    with pytest.raises(RunTimeoutError):
        await (agent.stream(None, "go").result() if streamed else agent.invoke(None, "go"))
    assert limiter.available == 0


async def test_a_cancellation_at_the_very_moment_of_the_timeout_still_cancels() -> None:
    came: list[str] = []

    async def run() -> None:
        agent = AgentHarness(
            model=ScriptedModel([hang()]), middleware=[TimeoutMiddleware(0.000_001)]
        )
        try:
            await agent.invoke(None, "go")
        except RunTimeoutError:
            came.append("timeout")
        except anyio.get_cancelled_exc_class():
            came.append("cancelled")
            raise
        await anyio.lowlevel.checkpoint()
        came.append("went on")

    with anyio.CancelScope(deadline=anyio.current_time()):
        await run()
    assert "went on" not in came


async def test_wherever_a_call_is_cut_off_the_limiter_has_what_was_not_used() -> None:
    limiter, model = bucket(1), ScriptedModel([])
    recorder = EventRecorder()

    async def yielding(seconds: float) -> None:
        await anyio.lowlevel.checkpoint()

    async def scenario() -> None:
        nonlocal limiter, model, recorder
        limiter, model, recorder = (
            bucket(2),
            ScriptedModel([down("ba"), say("ok")]),
            EventRecorder(),
        )
        limiter.reserve(2)
        agent = AgentHarness(
            model=model,
            middleware=[RetryMiddleware(), RateLimitMiddleware(limiter), TimeoutMiddleware(60)],
            sleep=yielding,
            listeners=[recorder],
        )
        await agent.stream(None, "go").result()

    def check(outcome: CheckpointOutcome[None]) -> None:
        assert -limiter.available == len(model.requests)
        assert_event_grammar(recorder.events)

    assert await for_every_checkpoint(scenario, check=check) > 3


# Options


def test_odd_options_are_refused_when_the_middleware_is_made() -> None:
    odd: list[dict[str, Any]] = [
        {"tokens": -1},
        {"tokens": float("nan")},
        {"mode": "error", "max_wait": 5},
    ]
    for options in odd:
        with pytest.raises(ConfigurationError):
            RateLimitMiddleware(bucket(1), **options)


# Tools that take too long, or tell the model themselves


@pytest.mark.parametrize("action", ["tell", "raise"])
async def test_the_timeout_of_a_tool_is_for_its_own_policy(action: Any) -> None:
    @tool(timeout=0.01, idempotent=True)
    async def slow() -> str:
        """Never end."""
        await anyio.sleep_forever()
        return ""

    retry = ToolRetryMiddleware(RetryPolicy(retry_on=lambda error: True))
    sleep = FakeSleep()
    for middleware in ([ToolErrorPolicyMiddleware(action), retry], [ToolRetryMiddleware()]):
        agent = AgentHarness(
            model=ScriptedModel([call("slow"), say("done")]),
            tools=[slow],
            middleware=middleware,
            sleep=sleep,
        )
        run = await agent.invoke(None, "go")
        (result,) = [message for message in run.messages if message.role == "tool"]
        assert "did not end within" in result.text
        assert result.outcome == "interrupted"
    assert sleep.delays == []


async def test_what_a_tool_tells_the_model_is_never_retried() -> None:
    @tool(idempotent=True)
    async def refuse() -> str:
        """Refuse."""
        raise ToolError("no such city")

    sleep = FakeSleep()
    agent = AgentHarness(
        model=ScriptedModel([call("refuse"), say("done")]),
        tools=[refuse],
        middleware=[ToolRetryMiddleware(RetryPolicy(retry_on=lambda error: True))],
        sleep=sleep,
    )
    await agent.invoke(None, "go")
    assert sleep.delays == []
