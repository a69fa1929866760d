"""Runs whose request a model cannot take: refused, fitted, and fitted anew for a fallback."""

from typing import Any

import httpx
import orjson
import pytest
from pydantic import BaseModel

from tinyagents import AgentHarness, AgentRun, RunPolicy, tool
from tinyagents.harness.errors import CapabilityError, ServerError
from tinyagents.harness.events import FallbackSkipped, ModelAdapted
from tinyagents.harness.message import ImageBlock, TextBlock, UserMessage
from tinyagents.harness.model import (
    JsonSchemaFormat,
    ModelProfile,
    ModelSettings,
    ReasoningConfig,
)
from tinyagents.harness.providers import OpenAIChatModel
from tinyagents.harness.retry import FallbackPolicy, RetryPolicy
from tinyagents.testkit import FakeSleep, ScriptedModel, assert_event_grammar, fail, say

SEES = ModelProfile.permissive("acme", "large")
PICTURE = UserMessage(
    content=[TextBlock(text="What is it?"), ImageBlock.from_bytes(b"png", "image/png")]
)
DEGRADE = RunPolicy(unsupported="degrade")


def small(**facts: Any) -> ModelProfile:
    return ModelProfile(provider="acme", model="small", **facts)


class Answer(BaseModel):
    city: str


@tool
async def look(place: str) -> str:
    """Look somewhere."""
    return f"{place} is empty"


def notices(run: AgentRun[Any, Any]) -> list[str]:
    told = [event for event in run.events if isinstance(event, ModelAdapted)]
    return [notice for event in told for notice in event.notices]


async def test_a_request_that_cannot_work_is_refused_before_the_model_is_asked() -> None:
    model = ScriptedModel([say("A cat.")], profile=small())
    with pytest.raises(
        CapabilityError, match="`small` at acme cannot take a `image` block"
    ) as caught:
        await AgentHarness(model=model).invoke(None, PICTURE)
    assert model.requests == []
    assert caught.value.run is not None
    assert_event_grammar(caught.value.run.events)


async def test_tools_for_a_model_without_them_are_refused_by_default() -> None:
    model = ScriptedModel([say("x")], profile=small(tool_calling=False))
    with pytest.raises(CapabilityError, match=r"cannot take tools \(1 are offered\)"):
        await AgentHarness(model=model, tools=[look]).invoke(None, "hi")
    assert model.requests == []


async def test_under_the_other_policy_the_model_is_told_and_the_transcript_keeps_all() -> None:
    model = ScriptedModel([say("A cat?")], profile=small())
    run = await AgentHarness(model=model, policy=DEGRADE).invoke(None, PICTURE)
    assert "[An image (image/png) was left out" in model.requests[0].messages[-1].text
    assert run.messages[0] == PICTURE
    assert run.response is not None
    assert [*run.response.notices] == notices(run)
    assert "`image` block" in notices(run)[0]


async def test_a_single_call_of_the_model_is_fitted_too() -> None:
    model = ScriptedModel([say("A cat?")], profile=small())
    response = await AgentHarness(model=model, policy=DEGRADE).invoke_model(PICTURE)
    assert len(response.notices) == 1
    with pytest.raises(CapabilityError):
        await AgentHarness(model=model).invoke_model(PICTURE)


async def test_tools_are_described_in_the_prompt_of_a_model_without_them() -> None:
    said = 'Wait. <tool_call>{"name":"look","arguments":{"place":"the attic"}}</tool_call>'
    model = ScriptedModel([say(said), say("Nothing there.")], profile=small(tool_calling=False))
    run = await AgentHarness(model=model, tools=[look], policy=DEGRADE).invoke(None, "Find it.")
    assert run.text == "Nothing there."
    assert run.tool_calls == 1
    assert all(not request.tools for request in model.requests)
    assert "the attic is empty" in model.requests[1].messages[-1].text
    assert "cannot call tools: its prompt describes them" in notices(run)[0]


async def test_a_typed_answer_is_asked_for_in_words_and_checked() -> None:
    profile = small(tool_calling=False, json_schema=False, json_mode=False)
    model = ScriptedModel([say('{"town":"Oslo"}'), say('{"city":"Oslo"}')], profile=profile)
    run = await AgentHarness(model=model, policy=DEGRADE).invoke(None, "Where?", output=Answer)
    assert run.output == Answer(city="Oslo")
    assert model.requests[0].response_format is None
    assert "JSON Schema" in model.requests[0].messages[0].text
    assert run.messages[0].text == "Where?"


def chain(policy: str, second: ModelProfile, *steps: Any) -> tuple[AgentHarness, ScriptedModel]:
    taking_over = ScriptedModel([*steps], profile=second)
    agent = AgentHarness(
        models={
            "large": ScriptedModel([fail(ServerError("down"))], profile=SEES),
            "small": taking_over,
        },
        tools=[look],
        policy=RunPolicy(
            fallback=FallbackPolicy(models=("small",)),
            retry=RetryPolicy(max_attempts=1),
            unsupported=policy,  # type: ignore[arg-type]
        ),
        sleep=FakeSleep(),
    )
    return agent, taking_over


async def test_a_request_is_fitted_anew_for_the_model_that_takes_over() -> None:
    agent, taking_over = chain("degrade", small(tool_calling=False), say("A cat?"))
    run = await agent.invoke(None, PICTURE)
    (asked,) = taking_over.requests
    assert asked.tools == ()
    assert not any(isinstance(b, ImageBlock) for m in asked.messages for b in m.content)
    assert len(notices(run)) == 2
    assert run.resolved_model is not None
    assert run.resolved_model.name == "small"


async def test_a_fallback_that_cannot_take_the_request_is_passed_over() -> None:
    agent, taking_over = chain("fail", small())
    with pytest.raises(ServerError, match="down") as caught:
        await agent.invoke(None, PICTURE)
    assert taking_over.requests == []
    assert caught.value.run is not None
    (skipped,) = [e for e in caught.value.run.events if isinstance(e, FallbackSkipped)]
    assert "`small` at acme cannot take a `image` block" in (skipped.reason or "")


async def test_a_native_schema_is_told_in_words_to_a_fallback_without_one() -> None:
    agent, taking_over = chain("degrade", small(json_schema=False), say('{"city":"Oslo"}'))
    run = await agent.invoke(None, "Where?", output=Answer, tools=())
    assert run.output == Answer(city="Oslo")
    (asked,) = taking_over.requests
    assert not isinstance(asked.response_format, JsonSchemaFormat)


async def test_a_limit_that_the_run_has_raised_itself_stays_within_the_models() -> None:
    model = ScriptedModel(
        [say("", finish_reason="length"), say("done")], profile=small(max_output_tokens=150)
    )
    agent = AgentHarness(model=model, settings=ModelSettings(max_tokens=100))
    run = await agent.invoke(None, "hi")
    assert run.text == "done"
    assert [request.settings.max_tokens for request in model.requests] == [100, 150]


async def test_an_adapter_on_the_wire_is_sent_what_fits() -> None:
    bodies: list[Any] = []

    def reply(request: httpx.Request) -> httpx.Response:
        bodies.append(orjson.loads(request.content))
        choice = {"message": {"content": "A cat?"}, "finish_reason": "stop"}
        return httpx.Response(200, json={"choices": [choice]})

    async with httpx.AsyncClient(transport=httpx.MockTransport(reply)) as client:
        model = OpenAIChatModel(
            "deepseek-chat", provider="deepseek", api_key="k", http_client=client
        )
        settings = ModelSettings(reasoning=ReasoningConfig(effort="none"), max_tokens=99_999)
        agent = AgentHarness(model=model, policy=RunPolicy.resilient(), settings=settings)
        run = await agent.invoke(None, PICTURE)
        with pytest.raises(CapabilityError, match="`image` block"):
            await AgentHarness(model=model).invoke(None, PICTURE)
    (body,) = bodies
    assert "image_url" not in str(body)
    assert body["max_tokens"] == 8_192
    assert len(notices(run)) == 2
