"""Whom a model call is charged to, and what is said of one whose usage nobody knows."""

from decimal import Decimal

import anyio
import pytest

from tinyagents import AgentHarness, CancellationToken, Middleware, RunContext, RunPolicy
from tinyagents.harness.cost import ModelPricing
from tinyagents.harness.errors import RunCancelledError, ServerError
from tinyagents.harness.events import CostRecorded, ModelFailed, UsageRecorded
from tinyagents.harness.middleware import ModelHandler
from tinyagents.harness.model import ModelProfile, ModelRequest, ModelResponse
from tinyagents.harness.retry import FallbackPolicy
from tinyagents.testkit import EventRecorder, ScriptedModel, assert_event_grammar, fail, hang, say

DOWN = ServerError("down", retryable=False)


def priced(name: str, price: int, *steps: object) -> ScriptedModel:
    pricing = ModelPricing(input=Decimal(price), output=Decimal(price))
    profile = ModelProfile(provider="test", model=name, streaming=True, pricing=pricing)
    return ScriptedModel(list(steps), profile=profile, name=name)  # type: ignore[arg-type]


def chain(*names: str) -> RunPolicy:
    return RunPolicy(fallback=FallbackPolicy(models=names))


async def test_a_fallback_that_fails_half_way_is_charged_itself() -> None:
    harness = AgentHarness(
        models={
            "first": priced("first", 1, fail(DOWN)),
            "second": priced("second", 1_000_000, fail(DOWN, after="four characters")),
            "third": priced("third", 0, say("ok")),
        },
        policy=chain("second", "third"),
    )
    run = await harness.stream(None, "go").result()
    assert [e.model for e in run.events if isinstance(e, UsageRecorded)] == ["second", "third"]
    (cost,) = (event for event in run.events if isinstance(event, CostRecorded))
    assert cost.model == "second"
    assert cost.cost.total == 3
    assert run.cost.total == 3


async def test_the_model_that_failed_last_is_the_one_that_is_named() -> None:
    harness = AgentHarness(
        models={
            "first": priced("first", 1, fail(DOWN)),
            "second": priced("second", 1_000_000, fail(DOWN, after="four characters")),
        },
        policy=chain("second"),
    )
    with pytest.raises(ServerError) as caught:
        await harness.stream(None, "go").result()
    run = caught.value.run
    assert run is not None
    assert [e.model for e in run.events if isinstance(e, UsageRecorded | ModelFailed)] == [
        "second",
        "second",
    ]
    assert run.cost.total == 3
    assert_event_grammar(run.events)


class ToTheSecond(Middleware[None]):
    async def wrap_model(
        self, ctx: RunContext[None], request: ModelRequest, call_next: ModelHandler
    ) -> ModelResponse:
        request.model = "second"
        return await call_next(request)


async def test_a_model_that_a_wrap_chose_is_charged() -> None:
    harness = AgentHarness(
        models={
            "first": priced("first", 1, say("never")),
            "second": priced("second", 1_000_000, fail(DOWN, after="four characters")),
        },
        middleware=[ToTheSecond()],
    )
    with pytest.raises(ServerError) as caught:
        await harness.stream(None, "go").result()
    assert caught.value.run is not None
    assert caught.value.run.cost.total == 3


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_call_that_was_cancelled_before_it_said_anything_is_no_reported_zero(
    streamed: bool,
) -> None:
    # C32
    step, token, recorder = hang(), CancellationToken(), EventRecorder()
    harness = AgentHarness(model=ScriptedModel([step]), listeners=[recorder])

    async def run() -> None:
        begun = (
            harness.stream(None, "go", cancellation=token).result()
            if streamed
            else harness.invoke(None, "go", cancellation=token)
        )
        with pytest.raises(RunCancelledError) as caught:
            await begun
        assert caught.value.run is not None
        usage = caught.value.run.snapshot.usage
        assert (usage.calls, usage.source) == (1, "estimated")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        await step.started.wait()
        token.cancel()
    assert_event_grammar(recorder)
