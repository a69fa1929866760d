"""The layout of prompts under a policy that protects their beginning."""

from typing import Any

from tinyagents import (
    AgentHarness,
    AssistantMessage,
    Middleware,
    RunContext,
    RunPolicy,
    SystemMessage,
    ToolCallBlock,
    ToolMessage,
    UserMessage,
    tool,
)
from tinyagents.harness.events import CachePrefixInvalidated
from tinyagents.harness.middleware import PromptCacheGuardMiddleware
from tinyagents.harness.model import (
    JsonSchemaFormat,
    ModelProfile,
    ModelRequest,
    PromptSegment,
    fit_request,
    segments_after_insertion,
    segments_after_repair,
)
from tinyagents.harness.policy import CachePolicy
from tinyagents.testkit import ScriptedModel, call

PROTECTED = RunPolicy(cache=CachePolicy(protect_prompt_prefix=True))


@tool(name="f")
async def f() -> str:
    """Do it."""
    return "done"


def layout(request: ModelRequest) -> list[tuple[str, bool, int]]:
    return [(each.role, each.cacheable, each.messages) for each in request.segments]


async def test_by_default_a_prompt_has_no_layout() -> None:
    model = ScriptedModel(["hi"])
    await AgentHarness(model, system="be brief").invoke(None, "hi")
    assert (model.requests[0].segments, model.requests[0].prompt_fingerprint) == ((), None)


async def test_the_policy_of_the_run_lays_prompts_out() -> None:
    model = ScriptedModel([call("f"), "done", "other run"])
    agent = AgentHarness(model, system="be brief", tools=[f], policy=PROTECTED)
    await agent.invoke(None, "go")
    await agent.invoke(None, "go elsewhere")
    assert [layout(request) for request in model.requests] == [
        [("system", True, 1), ("tools", True, 0), ("history", True, 1)],
        [("system", True, 1), ("tools", True, 0), ("history", True, 3)],
        [("system", True, 1), ("tools", True, 0), ("history", True, 1)],
    ]
    (fingerprint,) = {request.prompt_fingerprint for request in model.requests}
    assert fingerprint


async def test_a_prompt_without_a_stable_beginning_has_no_fingerprint() -> None:
    model = ScriptedModel(["hi"])
    await AgentHarness(model, policy=PROTECTED).invoke(None, "hi")
    assert model.requests[0].prompt_fingerprint is None


async def test_a_layout_of_a_hook_is_left_alone_and_follows_its_messages() -> None:
    own = PromptSegment(id="mine", role="system", cacheable=True, messages=1)

    class LaysOut(Middleware[Any]):
        async def before_model(self, ctx: RunContext[Any], request: ModelRequest) -> None:
            request.segments = (own,)
            request.messages.append(ToolMessage(tool_call_id="nobody", content="x"))

    class Adds(Middleware[Any]):
        async def before_model(self, ctx: RunContext[Any], request: ModelRequest) -> None:
            request.messages.insert(1, SystemMessage(content="and kind"))

    model = ScriptedModel(["hi", "hi"])
    agent = AgentHarness(model, system="be brief", policy=PROTECTED)
    await agent.replace(middleware=[LaysOut()]).invoke(None, "hi")
    await agent.replace(middleware=[Adds()]).invoke(None, "hi")
    assert model.requests[0].segments == (own,)
    assert layout(model.requests[1])[0] == ("system", True, 2)


async def test_the_guard_tells_that_a_lost_prefix_violates_the_policy() -> None:
    class Clock(Middleware[Any]):
        calls = 0

        async def before_model(self, ctx: RunContext[Any], request: ModelRequest) -> None:
            self.calls += 1
            request.messages[0] = SystemMessage(content=f"call {self.calls}")

    for policy in (RunPolicy(), PROTECTED):
        agent = AgentHarness(
            ScriptedModel([call("f"), "done"]),
            system="be brief",
            tools=[f],
            middleware=[Clock(), PromptCacheGuardMiddleware()],
            policy=policy,
        )
        run = await agent.invoke(None, "go")
        (lost,) = [event for event in run.events if isinstance(event, CachePrefixInvalidated)]
        assert lost.violates_policy is (policy is PROTECTED)
        assert lost.segment == ("system" if policy is PROTECTED else None)


def test_an_instruction_that_fitting_adds_belongs_to_the_system_prompt() -> None:
    request = ModelRequest(
        [SystemMessage(content="a"), UserMessage(content="b")],
        response_format=JsonSchemaFormat(name="X", schema={"type": "object"}),
        segments=(
            PromptSegment(id="s", role="system", cacheable=True, messages=1),
            PromptSegment(id="h", role="history", cacheable=True, messages=1),
        ),
    )
    profile = ModelProfile(provider="p", model="m", json_schema=False)
    fitted = fit_request(request, profile, "degrade").request
    assert [message.role for message in fitted.messages] == ["system", "system", "user"]
    assert layout(fitted) == [("system", True, 2), ("history", True, 1)]


def test_an_insertion_belongs_with_what_stands_before_it() -> None:
    segments = (
        PromptSegment(id="a", role="system", cacheable=True, messages=1),
        PromptSegment(id="b", role="history", cacheable=True, messages=2),
    )
    sizes = [
        [each.messages for each in segments_after_insertion(segments, place)] for place in range(5)
    ]
    assert sizes == [[2, 2], [2, 2], [1, 3], [1, 3], [1, 2]]


def test_repaired_results_belong_with_their_calls() -> None:
    asks = AssistantMessage(content=[ToolCallBlock(id="c", name="f", arguments={})])
    result, stray = (ToolMessage(tool_call_id=id, content="r") for id in ("c", "x"))
    user = UserMessage(content="u")
    segments = (
        PromptSegment(id="a", role="history", cacheable=True, messages=2),
        PromptSegment(id="b", role="volatile", cacheable=False, messages=2),
    )
    after = segments_after_repair(segments, [stray, asks, user, result], [asks, result, user])
    assert [each.messages for each in after] == [2, 1]
