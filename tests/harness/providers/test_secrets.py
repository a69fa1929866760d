"""A key never leaves by an error, an event, a snapshot, a repr or a log, whatever the server says."""

import logging

import pytest

from tests.harness.providers.server import Reply, serve
from tinyagents import AgentHarness
from tinyagents.harness.errors import ModelError
from tinyagents.harness.providers import OpenAIChatModel
from tinyagents.testkit import FakeSleep

KEY = "sk-test-0123456789-secret"
SAID = f"the key {KEY} is no good"
JSON = {"content-type": "application/json"}

REPLIES = {
    "refused": Reply.json({"error": {"message": SAID, "code": KEY}}, status=401),
    "page": Reply(pieces=(f"<html>{SAID}</html>".encode(),), status=500),
    "no JSON": Reply(pieces=(SAID.encode(),), headers=JSON),
    "no answer": Reply.json({"note": SAID}),
    "error in a document": Reply.json({"error": {"message": SAID}}),
    "error in a stream": Reply.events({"error": {"message": SAID}}, done=False),
    "cut JSON": Reply(pieces=(f'data: {{"choices": "{SAID}\n\n'.encode(),)),
}


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("what", REPLIES)
async def test_a_key_that_the_server_repeats_goes_nowhere(
    what: str, streamed: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with (
        serve(REPLIES[what]) as server,
        OpenAIChatModel("m", api_key=KEY, base_url=f"{server.url}/v1") as model,
    ):
        agent = AgentHarness(model=model, sleep=FakeSleep())
        begun = agent.stream(None, "hi").result() if streamed else agent.invoke(None, "hi")
        with pytest.raises(ModelError) as caught:
            await begun
        assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
        reprs = repr(model), repr(agent), repr(model.profile), model.cache_identity
    error = caught.value
    run = error.run
    assert run is not None
    shown = [str(error), repr(error), repr(error.raw), repr(error.code), repr(run)]
    shown += [event.model_dump_json() for event in run.events]
    shown += [run.snapshot.model_dump_json(), caplog.text, *map(str, reprs)]
    assert [text for text in shown if KEY in text] == []
