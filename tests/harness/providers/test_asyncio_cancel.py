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


async def test_a_cancelled_task_closes_its_stream_and_is_cancelled() -> None:
    async with serve(Reply.events(PIECE, done=False, then="hang")) as server:
        async with OpenAIChatModel("m", api_key="k", base_url=f"{server.url}/v1") as model:
            for number in range(1, 11):
                task = asyncio.create_task(drain(model.stream(REQUEST)))
                await eventually(lambda n=number: len(server.requests) == n)
                await asyncio.sleep(0)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                await eventually(lambda n=number: len(server.gone) == n)
