from collections.abc import Sequence
from typing import Any

import anyio

from tinyagents import AgentHarness, RunConfig
from tinyagents.harness.errors import NetworkError
from tinyagents.testkit import (
    DeterministicClock,
    DeterministicIds,
    EventRecorder,
    FakeSleep,
    FakeTool,
    ScriptedModel,
    assert_event_grammar,
    call,
    delay,
    say,
)


async def recorded(*, runs: int, streamed: bool) -> str:
    """Do several scripted runs, one after the other, and return all of their events."""
    recorder, clock = EventRecorder(), DeterministicClock(start=1_700_000_000_000)
    script: Sequence[Any] = [
        [call("a", n=1), call("b", n=2), call("a", n=3), call("c")],
        NetworkError,
        delay(0, [call("b"), call("a")]),
        say("done"),
    ]
    harness = AgentHarness(
        model=ScriptedModel.per_run(script),
        tools=[
            FakeTool("a"),
            FakeTool.returning([1, 2], name="b"),
            FakeTool.failing("no", name="c"),
        ],
        listeners=[recorder],
        clock=clock,
        ids=DeterministicIds(),
        sleep=FakeSleep(clock),
    )
    for number in range(runs):
        config = RunConfig(tags=(f"n{number}",))
        if streamed:
            async with harness.stream(None, "hi", config=config) as stream:
                await stream.result()
        else:
            await harness.invoke(None, "hi", config=config)
    assert_event_grammar(recorder)
    return recorder.to_jsonl()


async def test_the_same_parallel_script_twice_gives_the_same_log_to_the_byte() -> None:
    for streamed in (False, True):
        first = await recorded(runs=2, streamed=streamed)
        assert first == await recorded(runs=2, streamed=streamed)
        assert first.count('"run.completed"') == 2


async def test_the_log_is_the_same_on_every_event_loop(anyio_backend: str) -> None:
    here = await recorded(runs=1, streamed=True)
    other = "trio" if anyio_backend == "asyncio" else "asyncio"
    there = await anyio.to_thread.run_sync(
        lambda: anyio.run(lambda: recorded(runs=1, streamed=True), backend=other)
    )
    assert here == there
