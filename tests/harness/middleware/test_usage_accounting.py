"""The middleware that adds up what models have used."""

from threading import Thread
from typing import Any

from tinyagents import AgentHarness, AssistantMessage, RunContext, Usage
from tinyagents.harness.middleware import ModelHandler, UsageAccountingMiddleware, wrap_model
from tinyagents.harness.model import ModelProfile, ModelRequest, ModelResponse
from tinyagents.testkit import ScriptedModel, say

USED = Usage(input_tokens=10, output_tokens=4)


def model(name: str, answers: int = 1) -> ScriptedModel:
    profile = ModelProfile.permissive("lab", name)
    return ScriptedModel([say("hi", usage=USED) for _ in range(answers)], profile=profile)


async def test_answers_are_added_up_over_agents_and_by_model() -> None:
    usage = UsageAccountingMiddleware()
    await AgentHarness(model=model("big"), middleware=[usage]).invoke(None, "?")
    small = AgentHarness(model=model("small", 2), middleware=[usage])
    await small.invoke(None, "?")
    await small.stream(None, "?").result()
    account = usage.account()
    assert (account.total.calls, account.total.usage) == (3, USED + USED + USED)
    assert {name: totals.calls for name, totals in account.models.items()} == {
        "lab:big": 1,
        "lab:small": 2,
    }


async def test_what_a_cache_has_answered_is_counted_too_and_apart() -> None:
    @wrap_model
    async def cached(
        ctx: RunContext[Any], request: ModelRequest, call_next: ModelHandler
    ) -> ModelResponse:
        message = AssistantMessage(content="hi", usage=USED)
        return ModelResponse(message, served_from_cache=True)

    usage = UsageAccountingMiddleware()
    agent = AgentHarness(model=model("big", 0), middleware=[usage, cached])
    run = await agent.invoke(None, "?")
    account = usage.account()
    assert account.total.usage == account.replayed.usage == USED
    assert list(account.models) == [""]
    assert run.usage.total_tokens == 0


async def test_a_reset_hands_out_the_sums_and_begins_anew() -> None:
    usage = UsageAccountingMiddleware()
    agent = AgentHarness(model=model("big", 2), middleware=[usage])
    await agent.invoke(None, "?")
    first = usage.reset()
    assert usage.account().total.calls == 0
    await agent.invoke(None, "?")
    assert (first.total.calls, usage.account().total.calls) == (1, 1)


async def test_an_answer_without_figures_makes_the_sum_an_estimate() -> None:
    usage = UsageAccountingMiddleware()

    @wrap_model
    async def silent(
        ctx: RunContext[Any], request: ModelRequest, call_next: ModelHandler
    ) -> ModelResponse:
        return ModelResponse(AssistantMessage(content="hi"))

    await AgentHarness(model=model("big", 0), middleware=[usage, silent]).invoke(None, "?")
    assert usage.account().total.source == "estimated"


def test_threads_may_share_it() -> None:
    usage = UsageAccountingMiddleware()

    def work() -> None:
        agent = AgentHarness(model=model("big", 20), middleware=[usage])
        for _ in range(20):
            agent.invoke_sync(None, "?")

    threads = [Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert usage.account().models["lab:big"].calls == 80
