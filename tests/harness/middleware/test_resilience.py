"""Middlewares around model calls: again, in time, by another model, at a rate, and so many."""

from typing import Any

import anyio
import pytest

from tinyagents import (
    AgentHarness,
    AssistantMessage,
    RunConfig,
    RunContext,
    RunLimits,
    RunPolicy,
    RunSnapshot,
)
from tinyagents.harness.call_counter import InMemoryCallCounter
from tinyagents.harness.errors import (
    AuthenticationError,
    BadRequestError,
    ConfigurationError,
    InvalidRequestError,
    LimitExceededError,
    NetworkError,
    ProviderTimeoutError,
    RateLimitError,
    RunTimeoutError,
    ServerError,
)
from tinyagents.harness.events import FallbackSelected, RateLimitWaited, RetryScheduled
from tinyagents.harness.middleware import (
    Middleware,
    ModelCallLimitMiddleware,
    ModelFallbackMiddleware,
    ModelHandler,
    RateLimitMiddleware,
    RetryMiddleware,
    TimeoutMiddleware,
    wrap_model,
)
from tinyagents.harness.model import ModelRequest, ModelResponse
from tinyagents.harness.policy import LimitBehavior
from tinyagents.harness.rate_limit import TokenBucketRateLimiter
from tinyagents.harness.retry import FallbackPolicy, RetryPolicy
from tinyagents.harness.stream import MessageDiscarded, TextDelta
from tinyagents.testkit import (
    DeterministicClock,
    EventRecorder,
    FakeSleep,
    FakeTool,
    ScriptedModel,
    assert_event_grammar,
    call,
    fail,
    hang,
    say,
)

Ctx = RunContext[Any]


def busy(retry_after: float | None = None) -> Any:
    return fail(RateLimitError("busy", retry_after=retry_after))


def down() -> Any:
    return fail(ServerError("down"))


class Count(Middleware[Any]):
    """Counts the calls that reach it."""

    def __init__(self) -> None:
        self.calls = 0

    async def wrap_model(
        self, ctx: Ctx, request: ModelRequest, call_next: ModelHandler
    ) -> ModelResponse:
        self.calls += 1
        return await call_next(request)


# Retry


async def test_a_failed_call_is_made_again_with_all_that_is_behind_it() -> None:
    sleep, count, recorder = FakeSleep(), Count(), EventRecorder()
    agent = AgentHarness(
        model=ScriptedModel([down(), busy(retry_after=7), say("ok")]),
        middleware=[RetryMiddleware(), count],
        sleep=sleep,
        listeners=[recorder],
    )
    run = await agent.invoke(None, "go")
    assert (run.text, count.calls, sleep.delays) == ("ok", 3, [0.2, 7])
    assert run.response is not None
    assert run.response.attempts == 3
    assert run.response.timing.waited == pytest.approx(7.2)
    events = [event for event in recorder.events if isinstance(event, RetryScheduled)]
    assert [event.error_kind for event in events] == ["server", "rate_limit"]
    assert {event.call_id for event in events} == {f"{run.run_id}-model-1"}
    assert_event_grammar(recorder.events)


async def test_attempts_do_not_multiply_with_the_runs_own_retries() -> None:
    model = ScriptedModel([down() for _ in range(30)])
    agent = AgentHarness(
        model=model,
        middleware=[RetryMiddleware(RetryPolicy(max_attempts=3))],
        policy=RunPolicy(retry=RetryPolicy(max_attempts=4)),
        sleep=FakeSleep(),
    )
    with pytest.raises(ServerError):
        await agent.invoke(None, "go")
    assert len(model.requests) == 3


async def test_the_limit_of_retries_holds_and_a_request_may_have_a_policy_of_its_own() -> None:
    @wrap_model
    async def own(ctx: Ctx, request: ModelRequest, call_next: ModelHandler) -> ModelResponse:
        request.retry = RetryPolicy(max_attempts=2)
        return await call_next(request)

    for middleware, limits, expected in (
        ([RetryMiddleware()], RunLimits(max_retries_per_call=1), 2),
        ([own, RetryMiddleware()], RunLimits(), 2),
    ):
        model = ScriptedModel([down() for _ in range(9)])
        agent = AgentHarness(model=model, middleware=middleware, limits=limits, sleep=FakeSleep())
        with pytest.raises(ServerError):
            await agent.invoke(None, "go")
        assert len(model.requests) == expected


@pytest.mark.parametrize(
    ("error", "again"),
    [
        (RateLimitError("429", status=429), True),
        (ServerError("503", status=503), True),
        (ProviderTimeoutError("408", status=408), True),
        (NetworkError("connection reset"), True),
        (ProviderTimeoutError("read timed out"), True),
        (BadRequestError("400", status=400), False),
        (AuthenticationError("401", status=401), False),
        (ValueError("a bug"), False),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
async def test_what_may_pass_is_retried_with_growing_waits(error: Exception, again: bool) -> None:
    sleep = FakeSleep()
    agent = AgentHarness(
        model=ScriptedModel([fail(error) for _ in range(9)]),
        middleware=[RetryMiddleware()],
        sleep=sleep,
    )
    with pytest.raises(type(error)):
        await agent.invoke(None, "go")
    assert sleep.delays == ([0.2, 0.4, 0.8] if again else [])


async def test_pieces_of_a_failed_attempt_are_given_up_in_a_stream() -> None:
    agent = AgentHarness(
        model=ScriptedModel([say("ba") + down(), say("good")]),
        middleware=[RetryMiddleware()],
        sleep=FakeSleep(),
    )
    stream = agent.stream(None, "go")
    chunks = [chunk async for chunk in stream]
    shown = [c for c in chunks if isinstance(c, TextDelta | MessageDiscarded)]
    kinds = [c.text if isinstance(c, TextDelta) else None for c in shown]
    assert kinds == ["ba", None, "good"]
    run = await stream.result()
    assert [m.text for m in run.messages] == ["go", "good"]
    assert run.usage.output_tokens > 1


async def test_a_cancellation_is_not_retried() -> None:
    sleep = FakeSleep()
    model = ScriptedModel([hang(), say("late")])
    agent = AgentHarness(model=model, middleware=[RetryMiddleware()], sleep=sleep)
    async with anyio.create_task_group() as group:
        group.start_soon(agent.invoke, None, "go")
        while not model.requests:
            await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()
    assert (len(model.requests), sleep.delays) == (1, [])


async def test_each_attempt_begins_with_the_request_as_it_was() -> None:
    @wrap_model
    async def more(ctx: Ctx, request: ModelRequest, call_next: ModelHandler) -> ModelResponse:
        request.messages.append(AssistantMessage(content="more"))
        return await call_next(request)

    model = ScriptedModel([down(), say("ok")])
    agent = AgentHarness(model=model, middleware=[RetryMiddleware(), more], sleep=FakeSleep())
    await agent.invoke(None, "go")
    assert [len(request.messages) for request in model.requests] == [2, 2]


# Timeout


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_call_that_takes_too_long_is_ended_and_not_tried_again(streamed: bool) -> None:
    model = ScriptedModel([hang(), say("late")])
    agent = AgentHarness(
        model=model,
        middleware=[RetryMiddleware(), ModelFallbackMiddleware(["other"]), TimeoutMiddleware(0.01)],
        models={"other": ScriptedModel([say("other")])},
    )
    with pytest.raises(RunTimeoutError, match="10 ms") as caught:
        await (agent.stream(None, "go").result() if streamed else agent.invoke(None, "go"))
    assert caught.value.run is not None
    assert caught.value.run.run_id in caught.value.message
    assert len(model.requests) == 1


async def test_a_call_in_time_is_left_alone() -> None:
    agent = AgentHarness(model=ScriptedModel([say("ok")]), middleware=[TimeoutMiddleware(60)])
    assert (await agent.invoke(None, "go")).text == "ok"


@pytest.mark.parametrize("odd", [0, -1, float("nan"), float("inf")])
def test_a_time_limit_is_a_number_above_nothing(odd: float) -> None:
    with pytest.raises(ConfigurationError, match="above 0"):
        TimeoutMiddleware(odd)


# Fallback


@pytest.mark.parametrize("streamed", [False, True])
async def test_another_model_takes_over_where_the_failure_may_pass(streamed: bool) -> None:
    recorder = EventRecorder()
    models = {
        "first": ScriptedModel([down(), down()]),
        "second": ScriptedModel([say("wr") + down(), down()]),
        "third": ScriptedModel([say("blue")]),
    }
    agent = AgentHarness(
        models=models,
        middleware=[ModelFallbackMiddleware(["second", "third"])],
        policy=RunPolicy(retry=RetryPolicy(max_attempts=1)),
        listeners=[recorder],
    )
    run = await (agent.stream(None, "go").result() if streamed else agent.invoke(None, "go"))
    assert run.text == "blue"
    assert run.resolved_model is not None
    assert run.resolved_model.name == "third"
    chosen = [e for e in recorder.events if isinstance(e, FallbackSelected)]
    assert [(e.from_model, e.to_model) for e in chosen] == [("", "second"), ("second", "third")]
    assert_event_grammar(recorder.events)


async def test_no_model_takes_over_from_an_error_that_it_would_have_as_well() -> None:
    other = ScriptedModel([say("no")])
    agent = AgentHarness(
        model=ScriptedModel([fail(BadRequestError("bad"))]),
        models={"other": other},
        middleware=[ModelFallbackMiddleware(["other"])],
    )
    with pytest.raises(BadRequestError):
        await agent.invoke(None, "go")
    assert other.requests == []


async def test_the_last_error_is_raised_when_all_have_failed() -> None:
    agent = AgentHarness(
        model=ScriptedModel([down()]),
        models={"other": ScriptedModel([fail(NetworkError("gone"))])},
        middleware=[ModelFallbackMiddleware(["other"])],
        policy=RunPolicy(retry=RetryPolicy(max_attempts=1)),
    )
    with pytest.raises(NetworkError, match="gone"):
        await agent.invoke(None, "go")


async def test_models_that_there_are_not_are_refused_before_any_call() -> None:
    model = ScriptedModel([say("ok")])
    agent = AgentHarness(model=model, middleware=[ModelFallbackMiddleware(["gone"])])
    with pytest.raises(ConfigurationError, match=r"`gone`.*`default`"):
        await agent.invoke(None, "go")
    assert model.requests == []
    odd_names: list[Any] = ["gone", []]
    for odd in odd_names:
        with pytest.raises(ConfigurationError, match="list of names"):
            ModelFallbackMiddleware(odd)


# Rate limit


async def test_calls_wait_for_room_and_it_is_told() -> None:
    sleep, recorder = FakeSleep(), EventRecorder()
    limiter = TokenBucketRateLimiter(1, 0.5, clock=lambda: 0.0)
    agent = AgentHarness(
        model=ScriptedModel([call("look"), say("ok")]),
        tools=[FakeTool("look")],
        middleware=[RateLimitMiddleware(limiter)],
        sleep=sleep,
        listeners=[recorder],
    )
    await agent.invoke(None, "go")
    assert sleep.delays == [2.0]
    waited = [e.waited_ms for e in recorder.events if isinstance(e, RateLimitWaited)]
    assert waited == [2_000]


async def test_a_limiter_holds_several_harnesses_back_together() -> None:
    sleep = FakeSleep()
    limiter = TokenBucketRateLimiter(1, 1, clock=lambda: 0.0)
    for _ in range(3):
        agent = AgentHarness(
            model=ScriptedModel([say("ok")]), middleware=[RateLimitMiddleware(limiter)], sleep=sleep
        )
        await agent.invoke(None, "go")
    assert sleep.delays == [1.0, 2.0]


@pytest.mark.parametrize(
    "options", [{"mode": "error"}, {"max_wait": 0.5}], ids=["error", "max_wait"]
)
async def test_a_call_that_may_not_wait_is_refused_and_takes_nothing(
    options: dict[str, Any],
) -> None:
    limiter = TokenBucketRateLimiter(1, 1, clock=lambda: 0.0)
    limiter.reserve()
    model = ScriptedModel([say("ok")])
    agent = AgentHarness(model=model, middleware=[RateLimitMiddleware(limiter, **options)])
    with pytest.raises(LimitExceededError, match="rate limit") as caught:
        await agent.invoke(None, "go")
    assert (caught.value.limit, model.requests, limiter.available) == ("rate", [], 0.0)


async def test_a_request_may_take_more_than_others() -> None:
    limiter = TokenBucketRateLimiter(10, 1, clock=lambda: 0.0)
    limit = RateLimitMiddleware(limiter, tokens=lambda request: len(request.messages[0].text))
    agent = AgentHarness(model=ScriptedModel([say("ok")]), middleware=[limit])
    await agent.invoke(None, "four")
    assert limiter.available == 6
    with pytest.raises(LimitExceededError, match="never"):
        await agent.invoke(None, "more than ten")


async def test_a_call_that_is_cancelled_while_it_waits_gives_its_place_back() -> None:
    waiting = anyio.Event()

    async def sleep(seconds: float) -> None:
        waiting.set()
        await anyio.sleep_forever()

    limiter = TokenBucketRateLimiter(1, 1, clock=lambda: 0.0)
    limiter.reserve()
    agent = AgentHarness(
        model=ScriptedModel([]), middleware=[RateLimitMiddleware(limiter)], sleep=sleep
    )
    async with anyio.create_task_group() as group:
        group.start_soon(agent.invoke, None, "go")
        await waiting.wait()
        assert limiter.available == -1
        group.cancel_scope.cancel()
    assert limiter.available == 0


async def test_each_attempt_of_a_retry_in_front_takes_a_token() -> None:
    limiter = TokenBucketRateLimiter(9, 1, clock=lambda: 0.0)
    agent = AgentHarness(
        model=ScriptedModel([down(), say("ok")]),
        middleware=[RetryMiddleware(), RateLimitMiddleware(limiter)],
        sleep=FakeSleep(),
    )
    await agent.invoke(None, "go")
    assert limiter.available == 7


def test_odd_options_of_the_rate_limit_are_refused() -> None:
    limiter = TokenBucketRateLimiter(1, 1)
    odd_options: list[dict[str, Any]] = [{"mode": "poll"}, {"max_wait": -1}]
    for options in odd_options:
        with pytest.raises(ConfigurationError):
            RateLimitMiddleware(limiter, **options)


# Limits of model calls


def looping(middleware: list[Middleware[Any]]) -> AgentHarness:
    return AgentHarness(
        model=ScriptedModel([call("look", n=n) for n in range(50)]),
        tools=[FakeTool("look")],
        middleware=middleware,
    )


async def test_a_run_that_has_made_its_model_calls_fails_or_ends_with_an_answer() -> None:
    with pytest.raises(LimitExceededError, match="2 model calls") as caught:
        await looping([ModelCallLimitMiddleware(run_limit=2)]).invoke(None, "go")
    assert (caught.value.limit, caught.value.maximum) == ("run_model_calls", 2)
    assert caught.value.run is not None
    assert caught.value.run.model_calls == 2
    ended = ModelCallLimitMiddleware(run_limit=2, on_limit="end", answer="Enough.")
    run = await looping([ended]).invoke(None, "go")
    assert (run.status, run.text, run.model_calls) == ("stopped", "Enough.", 2)


async def test_the_runs_of_a_thread_share_a_limit_and_other_threads_have_their_own() -> None:
    limit = ModelCallLimitMiddleware(thread_limit=3)
    agent = AgentHarness(model=ScriptedModel([say("ok")] * 9), middleware=[limit])
    for _ in range(3):
        await agent.invoke(None, "go", config=RunConfig(thread_id="a"))
    with pytest.raises(LimitExceededError, match="thread"):
        await agent.invoke(None, "go", config=RunConfig(thread_id="a"))
    await agent.invoke(None, "go", config=RunConfig(thread_id="b"))
    with pytest.raises(InvalidRequestError, match="thread_id"):
        await agent.invoke(None, "go")


async def test_runs_of_one_thread_at_once_never_exceed_its_limit() -> None:
    limit = ModelCallLimitMiddleware(thread_limit=5, on_limit="end", answer="")
    model = ScriptedModel([say("ok")] * 20)
    agent = AgentHarness(model=model, middleware=[limit])
    async with anyio.create_task_group() as group:
        for _ in range(12):
            group.start_soon(lambda: agent.invoke(None, "go", config=RunConfig(thread_id="a")))
    assert len(model.requests) == 5


async def test_a_resumed_run_goes_on_counting() -> None:
    agent = AgentHarness(
        model=ScriptedModel([say("ok")] * 9), middleware=[ModelCallLimitMiddleware(run_limit=2)]
    )
    run = await agent.invoke(None, "go")
    stored = RunSnapshot.model_validate_json(run.snapshot.model_dump_json())
    run = await agent.resume(stored, None, input="more")
    with pytest.raises(LimitExceededError):
        await agent.resume(run.snapshot, None, input="more")


async def test_counters_may_be_shared_by_harnesses() -> None:
    counter = InMemoryCallCounter()
    for allowed in (True, False):
        limit = ModelCallLimitMiddleware(thread_limit=1, counter=counter)
        agent = AgentHarness(model=ScriptedModel([say("ok")]), middleware=[limit])
        if allowed:
            await agent.invoke(None, "go", config=RunConfig(thread_id="a"))
            continue
        with pytest.raises(LimitExceededError):
            await agent.invoke(None, "go", config=RunConfig(thread_id="a"))


@pytest.mark.parametrize(
    "options", [{}, {"run_limit": -1}, {"thread_limit": -1}, {"run_limit": 1, "on_limit": "stop"}]
)
def test_odd_limits_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        ModelCallLimitMiddleware(**options)


@pytest.mark.parametrize("on_limit", ["error", "stop_with_partial", "final_answer"])
async def test_the_runs_own_limit_still_holds(on_limit: LimitBehavior) -> None:
    agent = looping([ModelCallLimitMiddleware(run_limit=40)]).replace(
        limits=RunLimits(max_model_calls=3), policy=RunPolicy(on_limit=on_limit)
    )
    if on_limit == "error":
        with pytest.raises(LimitExceededError, match="RunLimits"):
            await agent.invoke(None, "go")
    else:
        run = await agent.invoke(None, "go")
        assert run.model_calls == (3 if on_limit == "stop_with_partial" else 4)


async def test_the_fallbacks_of_the_policy_are_inside_a_retry_in_front() -> None:
    sleep = FakeSleep()
    agent = AgentHarness(
        model=ScriptedModel([down(), say("first")]),
        models={"other": ScriptedModel([down()])},
        middleware=[RetryMiddleware()],
        policy=RunPolicy(fallback=FallbackPolicy(models=("other",))),
        sleep=sleep,
    )
    run = await agent.invoke(None, "go")
    assert (run.text, sleep.delays) == ("first", [0.2])


async def test_waits_are_on_the_sleep_of_the_run() -> None:
    clock = DeterministicClock()
    agent = AgentHarness(
        model=ScriptedModel([down(), say("ok")]),
        middleware=[RetryMiddleware()],
        clock=clock,
        sleep=FakeSleep(clock),
    )
    assert (await agent.invoke(None, "go")).text == "ok"
