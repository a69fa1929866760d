"""Runs of a harness with a response cache."""

from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import anyio
import pytest
from pydantic import BaseModel

from tests.support import PATIENCE
from tinyagents import (
    AgentHarness,
    AssistantMessage,
    CancellationToken,
    Middleware,
    NativeOutput,
    PromptedOutput,
    ReasoningDelta,
    RunContext,
    RunPolicy,
    TextDelta,
    ToolOutput,
    UserMessage,
    tool,
)
from tinyagents.harness.cache import CacheStats, InMemoryResponseCache
from tinyagents.harness.errors import (
    CacheError,
    ConfigurationError,
    RateLimitError,
    RunCancelledError,
    ServerError,
    TinyAgentsError,
)
from tinyagents.harness.events import (
    CacheFailed,
    CacheHit,
    CacheSkipped,
    ModelCompleted,
    ModelDelta,
)
from tinyagents.harness.middleware import RedactionMiddleware
from tinyagents.harness.model import ModelProfile, ModelRequest, ModelResponse
from tinyagents.harness.policy import CachePolicy
from tinyagents.harness.redaction import email
from tinyagents.harness.retry import FallbackPolicy, RetryPolicy
from tinyagents.harness.stream import ToolCallDelta
from tinyagents.testkit import (
    EventRecorder,
    FakeChatModel,
    FakeSleep,
    ScriptedModel,
    assert_event_grammar,
    call,
    fail,
    say,
    think,
)


def cached(*steps: Any, policy: CachePolicy | None = None, **options: Any) -> AgentHarness:
    """An agent that is asked by its script and has a cache."""
    options.setdefault("cache", InMemoryResponseCache())
    model = steps[0] if len(steps) == 1 and not isinstance(steps[0], str) else ScriptedModel(steps)
    return AgentHarness(model, policy=RunPolicy(cache=policy or CachePolicy()), **options)


def told(run: Any) -> list[str]:
    return [event.kind for event in run.events if event.kind.startswith("cache.")]


async def test_the_second_time_the_cache_answers_and_nothing_is_paid() -> None:
    agent = cached("blue")
    first = await agent.invoke(None, "which?")
    second = await agent.invoke(None, "which?")
    assert (first.text, second.text) == ("blue", "blue")
    assert (told(first), told(second)) == (["cache.miss"], ["cache.hit"])
    assert (first.cache_hits, second.cache_hits) == (0, 1)
    assert (second.usage.total_tokens, second.snapshot.usage.calls) == (0, 0)
    assert "usage.recorded" not in [event.kind for event in second.events]
    assert second.model_calls == 1
    response = second.response
    assert response is not None
    assert response.served_from_cache
    assert response.usage == first.usage
    (hit,) = [event for event in second.events if isinstance(event, CacheHit)]
    assert (hit.usage, hit.key, hit.shared) == (first.usage, response.cache_key, False)
    (completed,) = [event for event in second.events if isinstance(event, ModelCompleted)]
    assert completed.served_from_cache
    for run in (first, second):
        assert_event_grammar(run.events)


async def test_without_a_cache_nothing_is_told_unless_a_request_asks_for_it() -> None:
    class Asks(Middleware[Any]):
        async def before_model(self, ctx: RunContext[Any], request: ModelRequest) -> None:
            request.cache = True

    agent = AgentHarness(ScriptedModel(["a", "b"]))
    assert told(await agent.invoke(None, "hi")) == []
    run = await agent.replace(middleware=[Asks()]).invoke(None, "hi")
    assert reasons(run) == ["no_cache_attached"]


def reasons(run: Any) -> list[str]:
    return [event.reason for event in run.events if isinstance(event, CacheSkipped)]


async def test_what_keeps_a_call_from_the_cache_is_told() -> None:
    class Anonymous:
        profile = FakeChatModel().profile

        async def invoke(self, request: ModelRequest, *, ctx: Any = None) -> ModelResponse:
            return ModelResponse(AssistantMessage(content="hi"), "stop")

        async def stream(self, request: ModelRequest, *, ctx: Any = None) -> AsyncIterator[Any]:
            yield await self.invoke(request)

    history = [UserMessage(content="a"), AssistantMessage(content="b"), UserMessage(content="c")]
    off = cached(FakeChatModel("a"), policy=CachePolicy(response_cache_enabled=False))
    assert reasons(await off.invoke(None, "hi")) == ["policy_disabled"]
    assert reasons(await cached(FakeChatModel("a")).invoke(None, history)) == [
        "multi_turn_transcript"
    ]
    assert reasons(await cached(Anonymous()).invoke(None, "hi")) == ["no_model_identity"]
    many = cached(FakeChatModel("a"), policy=CachePolicy(multi_turn=True))
    assert [told(await many.invoke(None, history)) for _ in range(2)] == [
        ["cache.miss"],
        ["cache.hit"],
    ]


@pytest.mark.parametrize("enabled", [True, False])
async def test_a_request_has_the_last_word(enabled: bool) -> None:
    class Decides(Middleware[Any]):
        async def before_model(self, ctx: RunContext[Any], request: ModelRequest) -> None:
            request.cache = enabled

    policy = CachePolicy(response_cache_enabled=not enabled)
    agent = cached(FakeChatModel("a"), policy=policy, middleware=[Decides()])
    kinds = [told(await agent.invoke(None, "hi")) for _ in range(2)]
    skipped = [["cache.skipped"]] * 2
    assert kinds == ([["cache.miss"], ["cache.hit"]] if enabled else skipped)


async def test_a_stored_answer_is_streamed_in_pieces_of_each_kind() -> None:
    recorder = EventRecorder()
    seen: list[object] = []

    class Watches(Middleware[Any]):
        async def on_model_delta(self, ctx: RunContext[Any], item: Any) -> None:
            seen.append(item)

    @tool(name="f")
    async def f(n: int) -> str:
        return "done"

    agent = cached(
        [think("hm"), say("blue"), call("f", n=1)], "end", "end",
        tools=[f], listeners=[recorder], middleware=[Watches()],
    )  # fmt: skip

    async def texts() -> list[tuple[str, str]]:
        joined: dict[str, str] = {}
        async for chunk in agent.stream(None, "which?"):
            match chunk:
                case TextDelta() | ReasoningDelta():
                    joined[chunk.type] = joined.get(chunk.type, "") + chunk.text
                case ToolCallDelta():
                    joined[chunk.type] = joined.get(chunk.type, "") + chunk.arguments
                case _:
                    pass
        return sorted(joined.items())

    first = await texts()
    recorder.events.clear()
    seen.clear()
    assert await texts() == first
    hit = recorder.kinds.index("cache.hit")
    deltas = [event for event in recorder.events if isinstance(event, ModelDelta)]
    # One each of the stored answer; those of the second answer are the model's own.
    assert recorder.kinds[hit + 1 : hit + 4] == ["model.delta"] * 3
    assert len(seen) == len(deltas)
    assert_event_grammar(recorder.events)


async def test_a_stream_does_not_reuse_what_a_plain_call_got() -> None:
    model = FakeChatModel("blue")
    agent = cached(model)
    await agent.invoke(None, "hi")
    await agent.stream(None, "hi").result()
    assert model.calls == 2
    await agent.stream(None, "hi").result()
    assert model.calls == 2


@pytest.mark.parametrize(
    "step",
    [
        say("cut", finish_reason="length"),
        say("no", finish_reason="refusal"),
        say("", finish_reason="content_filter"),
    ],
)
async def test_an_answer_that_is_not_whole_is_asked_for_again(step: Any) -> None:
    # C68
    model = FakeChatModel(step)
    agent = cached(model)
    for _ in range(2):
        with suppress(TinyAgentsError):  # how such an answer ends a run is told elsewhere
            await agent.invoke(None, "hi")
    assert model.calls == 2


async def test_an_answer_that_was_to_be_json_and_is_none_is_not_stored() -> None:
    class City(BaseModel):
        name: str

    profile = ModelProfile(provider="p", model="m", native_structured_output=True)
    model = ScriptedModel(["Paris!", '{"name": "Paris"}', '{"name": "Rome"}'], profile=profile)
    cache = InMemoryResponseCache()
    agent = cached(model, cache=cache)
    # The second answer follows a correction, and is no answer to the question alone.
    assert (await agent.invoke(None, "where?", output=City)).output == City(name="Paris")
    assert (await cache.stats()).entries == 0
    for _ in range(2):
        assert (await agent.invoke(None, "where?", output=City)).output == City(name="Rome")


async def test_a_failed_call_leaves_nothing_behind_and_retries_are_within() -> None:
    sleep = FakeSleep()
    agent = cached(ScriptedModel([fail(ServerError("down", provider="p")), "blue"]), sleep=sleep)
    first = await agent.invoke(None, "hi")
    assert first.response is not None
    assert first.response.attempts == 2
    second = await agent.invoke(None, "hi")
    assert second.response is not None
    assert (second.text, second.response.attempts, len(sleep.delays)) == ("blue", 1, 1)


async def test_the_answer_of_a_fallback_is_not_stored_for_the_model_that_failed() -> None:
    first = ScriptedModel([fail(RateLimitError("busy", provider="p")), "own"], name="first")
    second = ScriptedModel(["other"], name="second")
    cache = InMemoryResponseCache()
    agent = AgentHarness(
        models={"first": first, "second": second},
        cache=cache,
        policy=RunPolicy(
            retry=RetryPolicy(max_attempts=1), fallback=FallbackPolicy(models=("second",))
        ),
    )
    assert (await agent.invoke(None, "hi")).text == "other"
    assert (await cache.stats()).entries == 0
    assert (await agent.invoke(None, "hi")).text == "own"


class City(BaseModel):
    name: str
    people: int


@pytest.mark.parametrize(
    ("output", "wrong", "right"),
    [
        (NativeOutput(City), say('{"name":"Rome"}'), say('{"name":"Rome","people":3}')),
        (PromptedOutput(City), say("Rome"), say('{"name":"Rome","people":3}')),
        (ToolOutput(City), call("City", name="Rome"), call("City", name="Rome", people=3)),
    ],
    ids=["native", "prompted", "tool"],
)
async def test_an_answer_of_another_type_is_not_stored(output: Any, wrong: Any, right: Any) -> None:
    agent = cached(wrong, right, right)
    first = await agent.invoke(None, "which?", output=output)
    assert (first.output, first.model_calls) == (City(name="Rome", people=3), 2)
    second = await agent.invoke(None, "which?", output=output)
    assert (second.output, second.model_calls, second.cache_hits) == (first.output, 1, 0)
    third = await agent.invoke(None, "which?", output=output)
    assert (third.output, third.cache_hits) == (first.output, 1)


@pytest.mark.parametrize("streamed", [False, True])
async def test_an_answer_with_something_to_hide_is_not_stored(streamed: bool) -> None:
    cache = InMemoryResponseCache()
    agent = cached(
        "write to ada@example.test",
        "write to bob@example.test",
        "ask at the desk",
        cache=cache,
        middleware=[RedactionMiddleware([email()])],
    )
    for expected in ("write to [REDACTED]", "write to [REDACTED]", "ask at the desk"):
        run = await (
            agent.stream(None, "where?").result() if streamed else agent.invoke(None, "where?")
        )
        assert run.text == expected
    again = await (
        agent.stream(None, "where?").result() if streamed else agent.invoke(None, "where?")
    )
    assert (again.text, again.cache_hits) == ("ask at the desk", 1)
    assert (await cache.stats()).writes == 1


async def test_namespaces_keep_tenants_apart() -> None:
    model = FakeChatModel("blue")
    cache = InMemoryResponseCache()
    for tenant in ("a", "b", "a"):
        await cached(model, policy=CachePolicy(namespace=tenant), cache=cache).invoke(None, "hi")
    assert model.calls == 2


class Failing:
    """A cache that fails."""

    def __init__(self, *, reads: bool) -> None:
        self.reads = reads

    async def get(self, key: str) -> ModelResponse | None:
        if self.reads:
            raise OSError("no disk")
        return None

    async def put(self, key: str, response: ModelResponse, *, ttl: float | None = None) -> None:
        raise OSError("no disk")

    async def clear(self) -> None:
        raise OSError("no disk")

    async def stats(self) -> CacheStats:
        return CacheStats()


@pytest.mark.parametrize("reads", [True, False])
async def test_a_cache_that_fails_does_not_fail_the_run(reads: bool) -> None:
    run = await cached(FakeChatModel("blue"), cache=Failing(reads=reads)).invoke(None, "hi")
    assert run.text == "blue"
    failures = [event for event in run.events if isinstance(event, CacheFailed)]
    assert [event.operation for event in failures] == (["get", "put"] if reads else ["put"])
    assert {(event.error, event.error_kind) for event in failures} == {("no disk", "OSError")}


@pytest.mark.parametrize("reads", [True, False])
async def test_a_cache_that_is_required_fails_the_run_and_the_answer_is_kept(reads: bool) -> None:
    model = FakeChatModel("blue")
    agent = cached(model, policy=CachePolicy(required=True), cache=Failing(reads=reads))
    with pytest.raises(CacheError, match="no disk") as failure:
        await agent.invoke(None, "hi")
    assert model.calls == (0 if reads else 1)
    run = failure.value.run
    assert run is not None
    if not reads:
        assert run.messages[-1].text == "blue"
        assert run.usage.total_tokens > 0


async def test_a_cancellation_while_the_answer_is_stored_does_not_lose_it() -> None:
    token = CancellationToken()

    class Slow(Failing):
        async def put(self, key: str, response: ModelResponse, *, ttl: float | None = None) -> None:
            token.cancel("enough")
            await anyio.sleep_forever()

    agent = cached(FakeChatModel("blue"), cache=Slow(reads=False))
    with anyio.fail_after(PATIENCE), pytest.raises(RunCancelledError) as failure:
        await agent.invoke(None, "hi", cancellation=token)
    run = failure.value.run
    assert run is not None
    assert run.messages[-1].text == "blue"
    assert run.usage.total_tokens > 0


@pytest.mark.parametrize("streamed", [False, True])
async def test_identical_runs_at_the_same_time_make_one_call(streamed: bool) -> None:
    began, go = anyio.Event(), anyio.Event()

    async def held(request: ModelRequest) -> Any:
        began.set()
        await go.wait()
        return say("blue")

    model = FakeChatModel(held)
    cache = InMemoryResponseCache()
    agents = [cached(model, cache=cache) for _ in range(4)]
    runs: list[Any] = []

    async def ask(agent: AgentHarness) -> None:
        run = agent.stream(None, "hi").result() if streamed else agent.invoke(None, "hi")
        runs.append(await run)

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as group:
            for agent in agents:
                group.start_soon(ask, agent)
            await began.wait()
            go.set()
    assert model.calls == 1
    assert [run.text for run in runs] == ["blue"] * 4
    assert sorted(run.cache_hits for run in runs) == [0, 1, 1, 1]
    assert sum(run.usage.total_tokens > 0 for run in runs) == 1


async def test_without_coalescing_each_run_makes_its_own_call() -> None:
    model = FakeChatModel(lambda _: anyio_checkpoint())
    agent = cached(model, policy=CachePolicy(coalesce=False))
    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(agent.invoke, None, "hi")
    assert model.calls == 3


async def anyio_checkpoint() -> Any:
    await anyio.lowlevel.checkpoint()
    return say("blue")


async def test_hooks_around_the_call_stand_around_the_cache() -> None:
    class Loud(Middleware[Any]):
        async def wrap_model(self, ctx: RunContext[Any], request: ModelRequest, call: Any) -> Any:
            response = await call(request)
            response.message = AssistantMessage(content=response.text.upper())
            return response

    agent = cached("blue", middleware=[Loud()])
    assert [(await agent.invoke(None, "hi")).text for _ in range(2)] == ["BLUE", "BLUE"]
    assert (await agent.replace(middleware=[]).invoke(None, "hi")).text == "blue"


def test_what_is_no_cache_is_refused() -> None:
    for cache in (object(), InMemoryResponseCache):
        with pytest.raises(ConfigurationError, match="no response cache"):
            AgentHarness(FakeChatModel(), cache=cache)  # type: ignore[arg-type]


@pytest.mark.parametrize("ttl", [0, -1.0, float("nan")])
def test_a_time_to_live_is_more_than_nothing(ttl: float) -> None:
    with pytest.raises(ConfigurationError, match="more than 0"):
        CachePolicy(ttl=ttl)
