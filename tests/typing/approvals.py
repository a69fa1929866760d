"""What a user's type checker infers of approvals: checked by mypy and pyright, never run."""

from typing import Any, assert_never, assert_type

from pydantic import BaseModel

from tinyagents import AgentHarness, AgentRun, RunContext, ToolContext, tool
from tinyagents.harness.approval import (
    ApprovalRequest,
    Approve,
    Decision,
    Edit,
    ExternalCallRequest,
    Reject,
    Respond,
    parse_decision,
    parse_request,
)
from tinyagents.harness.middleware import HumanApprovalMiddleware, ToolCall, before_tool
from tinyagents.harness.tool import Tool


class Found(BaseModel):
    where: str


async def approver(ctx: RunContext[str], request: ApprovalRequest) -> Decision | None:
    assert_type(ctx.data, str)
    assert_type(request.tool_name, str)
    return Approve(by=ctx.data) if request.arguments.get("amount") == 1 else None


def plain(ctx: RunContext[Any], request: ApprovalRequest) -> Reject:
    return Reject(reason=request.reason or "")


def large(ctx: RunContext[Any], call: ToolCall) -> bool:
    return len(call.arguments) > 3


gates = [
    HumanApprovalMiddleware(names=["pay"], approver=approver, allow=["approve", "edit"]),
    HumanApprovalMiddleware(when=large, approver=plain, expires_in=60, may_remember=False),
]


@before_tool
def gate(ctx: RunContext[None], call: ToolCall) -> None:
    call.require_approval("money", when=lambda: call.name == "pay", approver=plain)


pick = Tool.external(name="pick", parameters=Found, output=list[str])


@tool
async def delegate(ctx: ToolContext[str]) -> str:
    run = await AgentHarness(model="m").invoke(3, "go", context=ctx, output=Found)
    assert_type(run, AgentRun[int, Found])
    return run.output.where


async def answered(harness: AgentHarness, run: AgentRun[int, None]) -> None:
    answers: dict[str, Decision] = {}
    for question in run.interrupts:
        assert_type(question.approval, ApprovalRequest | None)
        assert_type(question.external, ExternalCallRequest | None)
        answers[question.id] = Edit(arguments={"amount": 1})
    run = await harness.resume(run.snapshot, 3, answers=answers)
    match parse_decision({"kind": "approve"}):
        case Approve(remember=remember):
            print(remember)
        case Edit(arguments=arguments):
            print(arguments)
        case Reject(reason=reason):
            print(reason)
        case Respond(content=content):
            print(content)
        case never:  # pyright: ignore[reportUnnecessaryComparison]
            assert_never(never)
    match parse_request({}):
        case ApprovalRequest(allowed=allowed):
            print(allowed)
        case ExternalCallRequest(output_schema=schema):
            print(schema)
        case other:  # pyright: ignore[reportUnnecessaryComparison]
            assert_never(other)
