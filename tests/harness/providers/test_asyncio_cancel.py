"""Tasks that asyncio itself cancels, as web frameworks do."""

import asyncio

import pytest

from tests.harness.providers.server import Reply, eventually, serve
from tinyagents.harness.message import UserMessage
from tinyagents.harness.model import ModelRequest, drain
from tinyagents.harness.providers import OpenAIChatModel

REQUEST = ModelRequest(messages=[UserMessage(content="hi")])
PIECE = {"id": "c", "choices": [{"delta": {"content": "a"}}]}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_cancelled_tasks_close_their_streams_and_are_cancelled() -> None:
    silent = Reply.events(PIECE, done=False, then="hang")
    async with (
        serve(silent) as server,
        OpenAIChatModel("m", api_key="k", base_url=f"{server.url}/v1") as model,
    ):
        tasks = [asyncio.create_task(drain(model.stream(REQUEST))) for _ in range(10)]
        await eventually(lambda: len(server.requests) == 10)
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(each) for each in ended] == [asyncio.CancelledError] * 10
        await eventually(lambda: len(server.gone) == 10)
