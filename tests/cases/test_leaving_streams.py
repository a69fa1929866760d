"""Streams of runs that their consumers leave, over a pool of four connections."""

import gc
import logging

import anyio
import httpx
import pytest

from tests.harness.providers.server import Reply, Seen, eventually, serve
from tests.support import PATIENCE
from tinyagents import AgentHarness, AgentStream, TextDelta
from tinyagents.testkit import EventRecorder

from .wire import END, is_valid, model_at, streamed, text

SILENT = Reply.events(text("one"), done=False, then="hang")
ANSWER = streamed(text("hello"), END)


def script(seen: Seen) -> Reply:
    return ANSWER if seen.document["messages"][0]["content"] == "last" else SILENT


@pytest.mark.parametrize("way", ["break", "leave", "close elsewhere", "drop"])
async def test_a_hundred_runs_that_are_left_give_all_connections_back(
    way: str, caplog: pytest.LogCaptureFixture
) -> None:
    # C64
    caplog.set_level(logging.WARNING)
    recorder = EventRecorder()
    limits = httpx.Limits(max_connections=4, max_keepalive_connections=4)
    timeout = httpx.Timeout(20, pool=5)
    async with serve(script) as server, httpx.AsyncClient(limits=limits, timeout=timeout) as client:
        agent = AgentHarness(model=model_at(server, http_client=client), listeners=[recorder])
        for number in range(100):
            stream = agent.stream(None, f"go {number}")
            with anyio.fail_after(PATIENCE):
                await _left(stream, way)
            if way in ("leave", "close elsewhere"):
                # What there was up to the break is there to be saved.
                run = stream.partial
                assert run is not None
                assert (run.status, run.text) == ("cancelled", "one")
                assert is_valid(run)
            del stream
        gc.collect()
        await eventually(lambda: recorder.kinds.count("run.failed") == 100)
        await eventually(lambda: sorted(server.gone) == list(range(1, 101)))
        with anyio.fail_after(PATIENCE):
            assert (await agent.stream(None, "last").result()).text == "hello"
    assert recorder.kinds.count("run.started") == 101
    assert recorder.kinds.count("model.cancelled") == 100
    assert caplog.messages == []


async def _left(stream: AgentStream[None, None], way: str) -> None:
    match way:
        case "break":
            async for chunk in stream:
                if isinstance(chunk, TextDelta):
                    break
        case "leave":
            async with stream:
                assert isinstance(await anext(stream), TextDelta)
        case "close elsewhere":
            assert isinstance(await anext(stream), TextDelta)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(stream.aclose)
        case _:
            assert isinstance(await anext(stream), TextDelta)


async def test_a_stream_that_another_task_closes_ends_for_whoever_reads_it() -> None:
    # C64: the reader is inside of `anext` when the other task closes.
    async with serve(script) as server, model_at(server) as model:
        stream = AgentHarness(model=model).stream(None, "go")
        seen: list[object] = []

        async def read() -> None:
            try:
                async for chunk in stream:
                    seen.append(chunk)
            except Exception as error:  # noqa: BLE001 - what it is, is looked at below
                seen.append(error)

        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(read)
                await eventually(lambda: len(seen) == 1)
                await stream.aclose()
        await eventually(lambda: server.gone == [1])
    assert isinstance(seen[0], TextDelta)
    assert all("scope" not in str(error) and "context" not in str(error) for error in seen[1:])
