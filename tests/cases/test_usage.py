"""Usage as the wire reports it: cumulative, in a last chunk alone, or cut off."""

from typing import Any

import anyio
import pytest

from tests.harness.providers.server import Reply, eventually
from tinyagents import AgentStream, CancellationToken, TextDelta
from tinyagents.harness.errors import RunCancelledError
from tinyagents.harness.events import ModelCompleted, UsageRecorded
from tinyagents.testkit import EventRecorder, assert_event_grammar

from .wire import END, agent_on, kinds, piece, streamed, text


def report(prompt: int, completion: int, cached: int = 0) -> dict[str, Any]:
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "prompt_tokens_details": {"cached_tokens": cached},
    }


async def test_cumulative_usage_is_one_request_and_is_not_added_up() -> None:
    # C28: 10 fresh and 90 cached are a prompt of 100 in this API.
    reply = streamed(
        piece({"content": "hi"}, usage=report(100, 0, 90)),
        piece({}, "stop"),
        piece(usage=report(100, 7, 90)),
    )
    async with agent_on(reply) as (agent, _):
        run = await agent.stream(None, "go").result()
    usage = run.usage
    assert (usage.fresh_input_tokens, usage.cache_read_tokens, usage.output_tokens) == (10, 90, 7)
    assert (usage.source, run.snapshot.usage.calls, run.model_calls) == ("reported", 1, 1)
    assert kinds(run).count("usage.recorded") == 1


@pytest.mark.parametrize(("reason", "normal"), [("stop", "stop"), ("length", "length")])
async def test_a_last_chunk_of_usage_alone_is_recorded_and_is_no_delta(
    reason: str, normal: str
) -> None:
    # C29. An answer that is incomplete at the output limit is called `length` in this API.
    recorder = EventRecorder()
    reply = streamed(text("hi"), piece({}, reason), piece(usage=report(5, 3)))
    async with agent_on(reply, listeners=[recorder]) as (agent, _):
        run = await agent.stream(None, "go").result()
    assert (run.usage.input_tokens, run.usage.output_tokens) == (5, 3)
    assert [event.characters for event in recorder.events if event.kind == "model.delta"] == [2]  # type: ignore[attr-defined]
    (completed,) = recorder.of(ModelCompleted)
    assert completed.finish_reason == normal
    assert run.text == "hi"


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
