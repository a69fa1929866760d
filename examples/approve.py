"""An assistant whose payments a person decides about: in place, or later from what was stored.

    python examples/approve.py

Small payments are approved by a rule of the application, larger ones wait for a person, and the
confirmation is shown by a screen that the agent does not have.
"""

import json
from typing import Any

import anyio

from tinyagents import AgentHarness, AgentRun, RunContext, tool
from tinyagents.harness.approval import ApprovalRequest, Approve, Decision
from tinyagents.harness.middleware import HumanApprovalMiddleware
from tinyagents.harness.tool import Tool
from tinyagents.testkit import ScriptedModel, call, say


@tool
async def check_balance() -> str:
    """How much money there is."""
    return "300 EUR"


@tool
async def pay(amount: int, to: str) -> str:
    """Pay somebody an amount in euros."""
    print(f"  (the bank pays {amount} EUR to {to})")
    return f"Paid {amount} EUR to {to}."


show = Tool.external(
    name="show",
    description="Show the user a message, and get what they click.",
    parameters={"type": "object", "properties": {"message": {"type": "string"}}},
    output={"enum": ["ok", "cancel"]},
)


async def small_payments(ctx: RunContext[str], request: ApprovalRequest) -> Decision | None:
    """Approve what is small; leave the rest to a person."""
    amount = request.arguments["amount"]
    small = isinstance(amount, int) and amount <= 50
    return Approve(by="the rule for small payments") if small else None


model = ScriptedModel(
    [
        [
            call("check_balance"),
            call("pay", amount=20, to="the baker"),
            call("pay", amount=900, to="the landlord"),
            call("pay", amount=80, to="the club"),
        ],
        call("show", message="Shall I go on?"),
        say("All is settled."),
    ]
)
agent = AgentHarness(
    model=model,
    tools=[check_balance, pay, show],
    middleware=[HumanApprovalMiddleware(names=["pay"], approver=small_payments)],
)

DECISIONS: dict[str, dict[str, Any]] = {
    "the landlord": {"kind": "edit", "arguments": {"amount": 250, "to": "the landlord"}},
    "the club": {"kind": "reject", "reason": "We have left the club."},
}
"""What a person sends, as a web page would: by whom the money goes to."""


def answers(run: AgentRun[Any, Any]) -> dict[str, Any]:
    """Return what is answered to each question that is open."""
    given: dict[str, Any] = {}
    for question in run.interrupts:
        if (request := question.approval) is not None:
            print(f"  waits: {request.tool_name} {json.dumps(request.arguments)}")
            given[question.id] = DECISIONS[str(request.arguments["to"])]
        else:
            print(f"  to be shown: {question.payload}")
            given[question.id] = {"kind": "respond", "value": "ok"}
    return given


async def main() -> None:
    run = await agent.invoke(None, "Pay the baker, the landlord and the club.")
    while run.status == "interrupted":
        print(f"{run.status}: {run.reason}")
        stored = run.snapshot.model_dump_json()  # any process may go on from here
        run = await agent.resume(stored, None, answers=answers(run))
    print(f"{run.status}: {run.text}")
    for message in run.messages:
        if message.role == "tool":
            print(f"  the model read: {message.text!r}")


if __name__ == "__main__":
    anyio.run(main)
