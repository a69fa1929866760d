"""Usage as the wire reports it: cumulative, in a last chunk alone, or cut off."""

from decimal import Decimal
from typing import Any

import anyio
import pytest

from tests.harness.providers.server import Reply, eventually, serve
from tinyagents import AgentHarness, AgentStream, CancellationToken, TextDelta
from tinyagents.harness.cost import ModelPricing
from tinyagents.harness.errors import RunCancelledError
from tinyagents.harness.events import CostRecorded, ModelCompleted, ModelDelta, UsageRecorded
from tinyagents.testkit import EventRecorder, assert_event_grammar

from .dialects import OLLAMA, Counted, Dialect, Said, both_ways, every_dialect
from .wire import END, agent_on, kinds, piece, streamed, text


def report(prompt: int, completion: int, cached: int = 0) -> dict[str, Any]:
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "prompt_tokens_details": {"cached_tokens": cached},
    }


SPENT = Counted(fresh=10, read=90, output=7)


@every_dialect
async def test_cumulative_usage_is_one_request_and_is_not_added_up(dialect: Dialect) -> None:
    # C28
    said = Said(text="hi", first=Counted(fresh=10, read=90), usage=SPENT)
    async with agent_on(dialect.answer(said, stream=True), dialect=dialect) as (agent, _):
        run = await agent.stream(None, "go").result()
    usage = run.usage
    # Ollama counts nothing of its cache: all of the prompt is fresh.
    cached = 0 if dialect is OLLAMA else 90
    assert (usage.fresh_input_tokens, usage.cache_read_tokens) == (100 - cached, cached)
    assert usage.output_tokens == 7
    assert (usage.source, run.snapshot.usage.calls, run.model_calls) == ("reported", 1, 1)
    assert kinds(run).count("usage.recorded") == 1


@every_dialect
@pytest.mark.parametrize("cut", [False, True], ids=["whole", "cut"])
async def test_a_last_chunk_of_usage_alone_is_recorded_and_is_no_delta(
    cut: bool, dialect: Dialect
) -> None:
    # C29. Where a word for an incomplete answer exists, the one that was cut is incomplete.
    said = Said(text="hi", cut=cut, usage=Counted(fresh=5, output=3))
    recorder = EventRecorder()
    reply = dialect.answer(said, stream=True)
    async with agent_on(reply, dialect=dialect, listeners=[recorder]) as (agent, _):
        run = await agent.stream(None, "go").result()
    assert (run.usage.input_tokens, run.usage.output_tokens) == (5, 3)
    assert [event.characters for event in recorder.of(ModelDelta)] == [2]
    (completed,) = recorder.of(ModelCompleted)
    assert completed.finish_reason == ("length" if cut else "stop")
    assert run.text == "hi"


PRICES = ModelPricing(
    input=Decimal(2), output=Decimal(8), cache_read=Decimal("0.2"), cache_write=Decimal("2.5")
)
COST = {
    "chat": "0.00101",
    "responses": "0.00101",
    "anthropic": "0.00101",
    "gemini": "0.00096",  # what is written to the cache is not told, so it is fresh input
    "ollama": "0.0024",  # and what is read from it neither
}


@every_dialect
@both_ways
async def test_a_call_costs_the_same_however_its_provider_counts(
    stream: bool, dialect: Dialect
) -> None:
    # C31
    said = Said(text="hi", usage=Counted(fresh=100, read=800, written=100, output=50))
    async with serve(dialect.answer(said, stream=stream)) as server:
        profile = dialect.model(server.url).profile.model_copy(update={"pricing": PRICES})
        async with dialect.model(server.url, profile=profile) as model:
            agent = AgentHarness(model=model)
            run = await (agent.stream(None, "go").result() if stream else agent.invoke(None, "go"))
    cost = run.cost
    assert cost.total == Decimal(COST[dialect.name])
    assert (cost.output, cost.reasoning) == (Decimal("0.0004"), Decimal(0))
    assert run.usage.total_tokens == 1050
    (recorded,) = (event for event in run.events if isinstance(event, CostRecorded))
    assert recorded.cost == cost


async def three_deltas(stream: AgentStream[None, None]) -> None:
    for _ in range(3):
        assert isinstance(await anext(stream), TextDelta)


@pytest.mark.parametrize("known", [True, False], ids=["input-known", "nothing-known"])
@pytest.mark.parametrize("way", ["token", "leave"])
async def test_a_cancelled_stream_keeps_its_text_and_the_usage_that_is_known(
    way: str, known: bool
) -> None:
    # C32
    first = piece({"content": "one "}, usage=report(12, 0)) if known else text("one ")
    reply = Reply.events(first, text("two "), text("three"), done=False, then="hang")
    token = CancellationToken()
    async with agent_on(reply) as (agent, server):
        stream = agent.stream(None, "go", cancellation=token)
        if way == "leave":
            async with stream:
                await three_deltas(stream)
        else:
            await three_deltas(stream)
            token.cancel("enough")
            with pytest.raises(RunCancelledError, match="enough"):
                await anext(stream)
        await eventually(lambda: server.gone == [1])
    run = stream.partial
    assert run is not None
    assert (run.status, run.text) == ("cancelled", "one two three")
    assert run.usage.input_tokens == (12 if known else 0)
    assert run.usage.output_tokens > 0
    assert run.usage.source == "estimated"
    (recorded,) = (event for event in run.events if isinstance(event, UsageRecorded))
    assert recorded.usage == run.usage
    ends = [kind for kind in kinds(run) if kind.startswith("run.") and kind != "run.started"]
    assert ends == ["run.failed"]
    assert_event_grammar(run.events)


async def test_a_call_that_is_cancelled_before_its_first_piece_is_not_a_plain_zero() -> None:
    # C32: nothing is known of it, so nothing is recorded, and its zeros are no report.
    token = CancellationToken()
    async with agent_on(Reply.events(done=False, then="hang")) as (agent, server):
        async with anyio.create_task_group() as tasks:

            async def cancel() -> None:
                await eventually(lambda: bool(server.requests))
                token.cancel()

            tasks.start_soon(cancel)
            with pytest.raises(RunCancelledError) as caught:
                await agent.stream(None, "go", cancellation=token).result()
        await eventually(lambda: server.gone == [1])
    run = caught.value.run
    assert "usage.recorded" not in kinds(run)
    assert run is not None
    assert run.usage.source == "estimated"


async def test_a_finished_stream_reports_what_the_provider_counted() -> None:
    reply = streamed(text("hi"), END, piece(usage=report(5, 3)))
    async with agent_on(reply) as (agent, _):
        run = await agent.stream(None, "go").result()
    assert run.usage.source == "reported"
