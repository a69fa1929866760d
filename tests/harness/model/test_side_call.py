"""Model calls that a run makes beside its own."""

from decimal import Decimal
from typing import Any

import anyio
import pytest

from tests.harness.tool.calls import context
from tinyagents import RunContext, RunLimits, Usage, UserMessage
from tinyagents.harness.cost import ModelPricing
from tinyagents.harness.errors import ProviderTimeoutError, ServerError
from tinyagents.harness.model import ModelProfile, ModelRequest, ModelSettings, side_call
from tinyagents.testkit import ScriptedModel, fail, hang, say


def asking(**options: Any) -> ModelRequest:
    return ModelRequest([UserMessage(content="hi")], **options)


def run(**limits: Any) -> RunContext[Any]:
    ctx = context().run
    ctx.limits = RunLimits(**limits)
    return ctx


async def test_what_it_took_is_counted_to_the_run() -> None:
    profile = ModelProfile(pricing=ModelPricing(input=Decimal(2), output=Decimal(4)))
    usage = Usage(input_tokens=500_000, output_tokens=250_000)
    ctx = run()
    response = await side_call(
        ScriptedModel([say("yes", usage=usage)], profile=profile), asking(), ctx=ctx
    )
    assert response.text == "yes"
    assert (ctx.usage.calls, ctx.usage.input_tokens) == (1, 500_000)
    assert ctx.cost.total == Decimal(2)


async def test_it_works_outside_a_run() -> None:
    assert (await side_call(ScriptedModel([say("yes")]), asking())).text == "yes"


@pytest.mark.parametrize(("wanted", "sent"), [(None, 50), (20, 20), (100, 50)])
async def test_the_runs_output_limit_holds_for_it(wanted: int | None, sent: int) -> None:
    model = ScriptedModel([say("yes")])
    request = asking(settings=ModelSettings(max_tokens=wanted))
    await side_call(model, request, ctx=run(max_output_tokens=50))
    assert model.requests[0].settings.max_tokens == sent
    assert request.settings.max_tokens == wanted


@pytest.mark.parametrize(("seconds", "limit"), [(0.01, None), (None, 0.01), (30.0, 0.01)])
async def test_no_answer_in_time_is_a_call_that_may_have_been_billed(
    seconds: float | None, limit: float | None
) -> None:
    ctx = run(model_timeout=limit)
    with pytest.raises(ProviderTimeoutError, match=r"no answer in time \(0.01 s\)") as caught:
        await side_call(ScriptedModel([hang()]), asking(), ctx=ctx, seconds=seconds)
    assert caught.value.model == "scripted"
    assert ctx.usage.calls == 1


async def test_a_call_that_is_cancelled_may_have_been_billed() -> None:
    ctx = run()
    with anyio.move_on_after(0.01) as scope:
        await side_call(ScriptedModel([hang()]), asking(), ctx=ctx)
    assert scope.cancelled_caught
    assert ctx.usage.calls == 1


async def test_a_failure_passes_through_and_is_not_retried() -> None:
    model = ScriptedModel([fail(ServerError("down")), say("never")])
    ctx = run()
    with pytest.raises(ServerError):
        await side_call(model, asking(), ctx=ctx)
    assert len(model.requests) == 1
    assert ctx.usage.calls == 0
