"""The gates that judge tools by their policy and by their name."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tinyagents import (
    AgentHarness,
    AgentRun,
    Middleware,
    RunContext,
    RunPolicy,
    ToolMessage,
    ToolResult,
)
from tinyagents.harness.approval import Approve
from tinyagents.harness.errors import ConfigurationError, ToolNotFoundError, ToolRefusedError
from tinyagents.harness.events import ToolApproval, ToolRefused, ToolsFiltered
from tinyagents.harness.message import ImageBlock, TextBlock
from tinyagents.harness.middleware import (
    HumanApprovalMiddleware,
    ToolAllowlistMiddleware,
    ToolPolicyMiddleware,
    before_model,
)
from tinyagents.harness.model import ModelRequest, ToolSchema
from tinyagents.harness.policy import UnknownToolPolicy
from tinyagents.harness.tool import (
    SIDE_EFFECTS,
    SideEffect,
    ToolAccess,
    ToolPolicy,
    ToolRuntime,
)
from tinyagents.harness.workspace import SandboxMode, WorkspaceDescriptor
from tinyagents.testkit import FakeTool, ScriptedModel, assert_event_grammar, call, say

TELL = RunPolicy(refused_tools="return_to_model")

TOOLS = {
    "unknown": ToolPolicy(),
    "look": ToolPolicy.read_only(),
    "write": ToolPolicy.affecting("writes_files", background_safe=True),
    "delete": ToolPolicy.affecting("destructive"),
    "pay": ToolPolicy.affecting("network", "payment"),
    "boxed": ToolPolicy(runtime=ToolRuntime(sandbox="required"), access=ToolAccess(background_safe=True)),
    "free": ToolPolicy(runtime=ToolRuntime(sandbox="disabled"), access=ToolAccess(background_safe=True)),
    "ask": ToolPolicy(access=ToolAccess(background_safe=True, approval_required=True)),
}  # fmt: skip


def results(run: AgentRun[Any, Any]) -> list[tuple[str, bool]]:
    return [(m.text, m.is_error) for m in run.messages if isinstance(m, ToolMessage)]


async def allowed(gate: Middleware[Any]) -> tuple[set[str], set[str]]:
    """Call every tool, and return those that were offered and those that ran."""
    fakes = [FakeTool(name, policy=policy) for name, policy in TOOLS.items()]
    model = ScriptedModel([[call(name) for name in TOOLS], say("done")])
    agree = HumanApprovalMiddleware(names=["ask"], approver=lambda ctx, request: Approve())
    agent = AgentHarness(model=model, tools=fakes, middleware=[gate, agree], policy=TELL)
    run = await agent.invoke(None, "go")
    assert_event_grammar(run)
    offered = {tool.name for tool in model.requests[0].tools}
    return offered, {fake.name for fake in fakes if fake.calls}


NAMES = set(TOOLS)

RULES: list[tuple[dict[str, Any], set[str]]] = [
    ({}, NAMES),
    ({"require_classification": True}, NAMES - {"unknown"}),
    ({"deny": ["writes_files"]}, NAMES - {"write"}),
    ({"deny": {"network", "destructive"}}, NAMES - {"delete", "pay"}),
    ({"require_background_safe": True}, {"look", "write", "boxed", "free", "ask"}),
    ({"require_sandbox": True}, NAMES - {"boxed"}),
    ({"approved": []}, NAMES - {"ask"}),
    ({"deny": ["payment"], "require_background_safe": True}, {"look", "write", "boxed", "free", "ask"}),
]  # fmt: skip


@pytest.mark.parametrize(("options", "expected"), RULES)
async def test_what_a_rule_does_not_allow_is_neither_offered_nor_run(
    options: dict[str, Any], expected: set[str]
) -> None:
    assert await allowed(ToolPolicyMiddleware(**options)) == (expected, expected)


async def test_the_strict_policy_allows_what_is_classified_and_neither_destroys_nor_pays() -> None:
    expected = {"look", "write", "boxed", "free", "ask"}
    assert await allowed(ToolPolicyMiddleware.strict()) == (expected, expected)


async def test_further_rules_are_added_to_the_strict_policy() -> None:
    gate = replace(ToolPolicyMiddleware.strict(), require_sandbox=True)
    expected = {"look", "write", "free", "ask"}
    assert await allowed(gate) == (expected, expected)


@pytest.mark.parametrize(
    ("mode", "ran"), [("inherit", False), ("disabled", False), ("required", True)]
)
async def test_a_tool_that_needs_a_sandbox_runs_where_the_workspace_requires_one(
    mode: SandboxMode, ran: bool, tmp_path: Path
) -> None:
    boxed = FakeTool("boxed", policy=TOOLS["boxed"])
    agent = AgentHarness(
        model=ScriptedModel([call("boxed"), say("ok")]),
        tools=[boxed],
        middleware=[ToolPolicyMiddleware(require_sandbox=True)],
        workspace=WorkspaceDescriptor(root=str(tmp_path), sandbox=mode),
        policy=TELL,
    )
    await agent.invoke(None, "go")
    assert bool(boxed.calls) == ran


@pytest.mark.parametrize("effect", SIDE_EFFECTS)
async def test_each_side_effect_can_be_denied(effect: SideEffect) -> None:
    tool = FakeTool("act", policy=ToolPolicy.affecting(effect))
    model = ScriptedModel([call("act")])
    gate = ToolPolicyMiddleware(deny=[effect])
    with pytest.raises(ToolRefusedError, match=effect):
        await AgentHarness(model=model, tools=[tool], middleware=[gate]).invoke(None, "go")
    assert not tool.calls


async def test_the_rules_are_looked_at_in_order() -> None:
    everything = ToolPolicyMiddleware(
        require_classification=True,
        deny=["payment"],
        require_background_safe=True,
        require_sandbox=True,
        approved=[],
    )
    said: list[str] = []
    policies = [
        ToolPolicy(),
        ToolPolicy.affecting("payment", approval_required=True),
        ToolPolicy(runtime=ToolRuntime(sandbox="required")),
        ToolPolicy(
            runtime=ToolRuntime(sandbox="required"),
            access=ToolAccess(background_safe=True, approval_required=True),
        ),
        ToolPolicy(access=ToolAccess(background_safe=True, approval_required=True)),
    ]
    for policy in policies:
        tool = FakeTool("act", policy=policy)
        model = ScriptedModel([call("act"), say("ok")])
        agent = AgentHarness(model=model, tools=[tool], middleware=[everything], policy=TELL)
        run = await agent.invoke(None, "go")
        said += [event.reason for event in run.events if isinstance(event, ToolRefused)]
    assert said == [
        "nobody has classified what it does",
        "tools of this kind are not allowed (payment)",
        "it is not safe to run while nobody watches",
        "it needs a sandbox, and the run has none",
        "it needs an approval that it does not have",
    ]


async def test_a_tool_that_is_approved_beforehand_runs_and_nobody_is_asked() -> None:
    tools = [FakeTool("ask", policy=TOOLS["ask"]), FakeTool("other", policy=TOOLS["ask"])]
    model = ScriptedModel([[call("ask"), call("other")], say("ok")])
    gate = ToolPolicyMiddleware(approved=["ask"])
    agent = AgentHarness(model=model, tools=tools, middleware=[gate], policy=TELL)
    run = await agent.invoke(None, "go")
    assert run.status == "completed"
    assert [len(tool.calls) for tool in tools] == [1, 0]
    assert [tool.name for tool in model.requests[0].tools] == ["ask"]
    decided = [event for event in run.events if isinstance(event, ToolApproval)]
    assert [(event.action, event.by) for event in decided] == [("approved", "ToolPolicyMiddleware")]
    assert_event_grammar(run)


async def test_what_is_approved_beforehand_is_asked_about_where_another_gate_wants_it() -> None:
    gates = [ToolPolicyMiddleware(approved=["ask"]), HumanApprovalMiddleware(names=["ask"])]
    tool = FakeTool("ask", policy=TOOLS["ask"])
    agent = AgentHarness(
        model=ScriptedModel([call("ask"), say("ok")]), tools=[tool], middleware=gates
    )
    run = await agent.invoke(None, "go")
    assert run.status == "interrupted"
    assert not tool.calls


async def test_a_denied_tool_is_announced_once_for_each_request() -> None:
    fakes = [FakeTool(name, policy=policy) for name, policy in TOOLS.items()]
    model = ScriptedModel([call("look"), say("done")])
    agent = AgentHarness(model=model, tools=fakes, middleware=[ToolPolicyMiddleware.strict()])
    run = await agent.invoke(None, "go")
    filtered = [event for event in run.events if isinstance(event, ToolsFiltered)]
    assert [event.excluded for event in filtered] == [("delete", "pay", "unknown")] * 2
    assert {(event.by, event.remaining) for event in filtered} == {("ToolPolicyMiddleware", 5)}


async def test_a_call_rewritten_to_a_denied_tool_does_not_run() -> None:
    pay = FakeTool("pay", policy=TOOLS["pay"])
    agent = AgentHarness(
        model=ScriptedModel([call("puy")]),
        tools=[pay, FakeTool("look", policy=TOOLS["look"])],
        middleware=[ToolPolicyMiddleware.strict()],
        policy=RunPolicy(unknown_tool=UnknownToolPolicy.rewrite("pay")),
    )
    with pytest.raises(ToolRefusedError):
        await agent.invoke(None, "go")
    assert not pay.calls


@pytest.mark.parametrize(("strict", "left"), [(True, set[str]()), (False, {"foreign"})])
async def test_a_tool_without_a_policy_is_hidden_only_where_all_must_be_classified(
    strict: bool, left: set[str]
) -> None:
    foreign = ToolSchema(name="foreign", description="", parameters={"type": "object"})

    @before_model
    def add(ctx: RunContext[Any], request: ModelRequest) -> None:
        request.tools = (*request.tools, foreign)

    model = ScriptedModel([say("ok")])
    gate = ToolPolicyMiddleware(require_classification=strict, deny=SIDE_EFFECTS)
    await AgentHarness(model=model, middleware=[add, gate]).invoke(None, "go")
    assert {tool.name for tool in model.requests[0].tools} == left


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"deny": ["paymnet"]}, "no side effect 'paymnet'"),
        ({"deny": "payment"}, r"\['payment'\]"),
        ({"approved": "pay"}, r"\['pay'\]"),
    ],
)
def test_rules_that_cannot_be_meant_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        ToolPolicyMiddleware(**options)


# Results that are too long


async def capped(returned: Any, limit: int | None, *, enforce: bool = True) -> ToolMessage:
    tool = FakeTool(
        "read", returned, policy=ToolPolicy(runtime=ToolRuntime(max_result_bytes=limit))
    )
    gate = ToolPolicyMiddleware(enforce_result_bytes=enforce)
    model = ScriptedModel([call("read"), say("ok")])
    run = await AgentHarness(model=model, tools=[tool], middleware=[gate]).invoke(None, "go")
    (message,) = (message for message in run.messages if isinstance(message, ToolMessage))
    return message


@pytest.mark.parametrize(
    ("limit", "text"),
    [
        (4, "aé\n[cut: the first 4 of 7 bytes]"),
        (5, "aéß\n[cut: the first 5 of 7 bytes]"),
        (2, "a\n[cut: the first 2 of 7 bytes]"),
    ],
)
async def test_a_result_is_cut_between_characters_and_becomes_an_error(
    limit: int, text: str
) -> None:
    message = await capped("aéßü", limit)
    assert (message.text, message.is_error) == (text, True)


@pytest.mark.parametrize(("limit", "enforce"), [(7, True), (None, True), (4, False)])
async def test_a_result_within_its_limit_stays_as_it_is(limit: int | None, enforce: bool) -> None:
    message = await capped("aéßü", limit, enforce=enforce)
    assert (message.text, message.is_error) == ("aéßü", False)


async def test_the_texts_of_a_result_share_its_limit_and_images_stay() -> None:
    image = ImageBlock.from_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100), "image/png")
    message = await capped([TextBlock(text="abcd"), image, TextBlock(text="efgh")], 6)
    assert [block.type for block in message.content] == ["text", "image", "text"]
    assert message.text == "abcdef\n[cut: the first 6 of 8 bytes]"


async def test_an_error_that_is_too_long_stays_one() -> None:
    message = await capped(ToolResult.error("x" * 100), 10)
    assert message.is_error
    assert message.text.startswith("x" * 10 + "\n[cut")


# Lists of names


async def test_an_allowlist_refuses_what_is_not_listed_and_hides_nothing() -> None:
    offered, ran = await allowed(ToolAllowlistMiddleware(["look", "pay"]))
    assert (offered, ran) == (NAMES, {"look", "pay"})


async def test_what_is_denied_beats_what_is_allowed_and_no_list_allows_all() -> None:
    assert (await allowed(ToolAllowlistMiddleware(["look", "pay"], deny=["pay"])))[1] == {"look"}
    assert (await allowed(ToolAllowlistMiddleware(None, deny=["pay"])))[1] == NAMES - {"pay"}
    assert (await allowed(ToolAllowlistMiddleware([])))[1] == set()


async def test_calling_a_tool_that_is_not_listed_ends_the_run_by_default() -> None:
    agent = AgentHarness(
        model=ScriptedModel([call("pay")]),
        tools=[FakeTool("pay"), FakeTool("look")],
        middleware=[ToolAllowlistMiddleware(["look"])],
    )
    with pytest.raises(ToolRefusedError, match="`ToolAllowlistMiddleware` .*`pay`"):
        await agent.invoke(None, "go")


async def test_an_allowlist_leaves_unknown_tools_to_their_policy() -> None:
    agent = AgentHarness(
        model=ScriptedModel([call("gone")]), middleware=[ToolAllowlistMiddleware(["look"])]
    )
    with pytest.raises(ToolNotFoundError):
        await agent.invoke(None, "go")


def test_a_list_of_names_is_not_one_text() -> None:
    with pytest.raises(ConfigurationError, match=r"\['look'\]"):
        ToolAllowlistMiddleware("look")
