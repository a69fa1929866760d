"""A typed answer while it is streamed: shown on demand, and without a trace where nobody asks."""

from typing import Any

import pytest
from pydantic import BaseModel

from tinyagents import (
    AgentHarness,
    Final,
    Middleware,
    PartialOutput,
    RunContext,
    RunLimits,
    RunPolicy,
)
from tinyagents.harness.errors import ServerError
from tinyagents.harness.middleware import ModelDelta
from tinyagents.harness.model import MessageDelta, ModelProfile
from tinyagents.harness.retry import RetryPolicy
from tinyagents.harness.stream import ALL_MODES
from tinyagents.testkit import FakeSleep, ScriptedModel, call, fail, say, say_json

NATIVE = ModelProfile(native_structured_output=True, json_schema=True, tool_calling=True)
BY_TOOL = ModelProfile(native_structured_output=False, tool_calling=True)


class Report(BaseModel):
    title: str
    body: str = ""


WHOLE = {"title": "A report of some length", "body": "and a body that takes a while"}


def answered(profile: ModelProfile) -> Any:
    return call("Report", WHOLE) if profile is BY_TOOL else say_json(WHOLE)


async def shown(agent: AgentHarness, output: Any, *modes: Any) -> list[Any]:
    return [chunk async for chunk in agent.stream(None, "go", output=output, modes=modes)]


@pytest.mark.parametrize("profile", [NATIVE, BY_TOOL], ids=["native", "tool"])
@pytest.mark.parametrize("limit", [None, 60.0])
async def test_the_answer_so_far_is_shown_and_the_whole_at_the_end(
    profile: ModelProfile, limit: float | None
) -> None:
    model = ScriptedModel([answered(profile)], profile=profile)
    agent = AgentHarness(model=model, limits=RunLimits(model_timeout=limit))
    *partials, last = await shown(agent, Report, "output", "final")
    assert isinstance(last, Final)
    assert all(isinstance(chunk, PartialOutput) for chunk in partials)
    assert len(partials) > 2
    assert [chunk.offset for chunk in partials] == list(range(len(partials)))
    assert {chunk.call_id for chunk in partials} == {f"{last.run_id}-model-1"}
    assert partials[-1].json == WHOLE
    assert partials[-1].value == last.run.output == Report(**WHOLE)
    assert {chunk.name for chunk in partials} == {"Report"}


@pytest.mark.parametrize("modes", [("messages", "final"), ("tools", "updates", "events")])
async def test_nothing_is_shown_unless_it_is_asked_for(modes: Any) -> None:
    agent = AgentHarness(model=ScriptedModel([answered(NATIVE)], profile=NATIVE))
    chunks = await shown(agent, Report, *modes)
    assert not any(isinstance(chunk, PartialOutput) for chunk in chunks)


async def test_a_run_without_an_output_shows_none() -> None:
    agent = AgentHarness(model=ScriptedModel([say('{"title":"x"}')], profile=NATIVE))
    chunks = await shown(agent, None, *ALL_MODES)
    assert not any(isinstance(chunk, PartialOutput) for chunk in chunks)


async def test_an_answer_that_is_asked_for_again_begins_anew() -> None:
    model = ScriptedModel([say('{"titel":"x"}'), say('{"title":"y"}')], profile=NATIVE)
    chunks = await shown(AgentHarness(model=model), Report, "output")
    first, second = {chunk.call_id for chunk in chunks}, [c for c in chunks if c.value is not None]
    assert len(first) == 2
    assert second[-1].value == Report(title="y")


async def test_a_broken_stream_is_followed_by_the_pieces_of_the_next_attempt() -> None:
    broken = fail(ServerError("down"), after='{"title":"lost and gone')
    model = ScriptedModel([broken, say('{"title":"kept"}')], profile=NATIVE)
    policy = RunPolicy(retry=RetryPolicy(max_attempts=2))
    agent = AgentHarness(model=model, policy=policy, sleep=FakeSleep())
    chunks = await shown(agent, Report, "output", "final")
    assert chunks[-2].value == chunks[-1].run.output == Report(title="kept")


class Masked(Middleware[Any]):
    async def on_model_delta(self, ctx: RunContext[Any], delta: ModelDelta) -> None:
        if isinstance(delta, MessageDelta):
            delta.text = delta.text.replace("r", "*")


async def test_what_hooks_change_of_a_piece_is_shown_changed() -> None:
    model = ScriptedModel([answered(NATIVE)], profile=NATIVE)
    agent = AgentHarness(model=model, middleware=[Masked()])
    chunks = await shown(agent, Report, "output", "final")
    assert chunks[-2].json["title"] == "A *epo*t of some length"
    assert chunks[-1].run.output == Report(**WHOLE)
