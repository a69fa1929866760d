"""An agent inside an agent, run by ``test_approvals`` in processes of its own.

    python nested_payment.py ask FILE       run until the question, store the run in FILE
    python nested_payment.py answer FILE    load the run, approve, go on, print what came of it

Only the file passes from one process to the other.
"""

import json
import sys

import anyio

from tinyagents import AgentHarness, AgentRun, ToolContext, tool
from tinyagents.harness.approval import Approve
from tinyagents.harness.model import ModelRequest
from tinyagents.harness.tool import ToolAccess, ToolPolicy
from tinyagents.testkit import Reply, ScriptedModel, call, say

paid: list[str] = []


@tool(policy=ToolPolicy(access=ToolAccess(approval_required=True)))
async def pay(amount: int, ctx: ToolContext[dict[str, str]]) -> str:
    """Pay."""
    paid.append(f"{amount} by {ctx.data['user']}")
    return f"paid {amount}"


def reply(request: ModelRequest) -> Reply:
    """Answer as a model would, in whichever process it is asked."""
    last = request.messages[-1]
    if last.role == "tool":
        return say(f"said: {last.text}")
    return call("pay", amount=5) if "pay" in last.text else call("delegate", what="pay 5")


def build() -> AgentHarness:
    cashier = AgentHarness(model=ScriptedModel([reply, reply]), tools=[pay], name="cashier")

    @tool
    async def delegate(what: str, ctx: ToolContext[dict[str, str]]) -> str:
        """Have the cashier do it."""
        return (await cashier.invoke(None, what, context=ctx)).text

    return AgentHarness(model=ScriptedModel([reply, reply]), tools=[delegate], name="clerk")


async def ask(file: str) -> AgentRun[None, None]:
    run = await build().invoke(None, "go", data={"user": "first"})
    await anyio.Path(file).write_text(run.snapshot.model_dump_json(), "utf-8")
    return run


async def answer(file: str) -> AgentRun[None, None]:
    data = json.loads(await anyio.Path(file).read_text("utf-8"))
    (asked,) = data["interrupts"]
    return await build().resume(
        data, None, answers={asked["id"]: Approve()}, data={"user": "second"}
    )


def report(run: AgentRun[None, None]) -> dict[str, object]:
    return {
        "status": run.status,
        "text": run.text,
        "tokens": run.usage.total_tokens,
        "spent": sum(
            event.usage.total_tokens  # type: ignore[attr-defined]
            for event in run.events
            if event.kind == "usage.recorded"
        ),
        "asked": [asked.id for asked in run.interrupts],
        "paid": paid,
    }


def main(what: str, file: str) -> None:
    run = anyio.run(ask if what == "ask" else answer, file)
    json.dump(report(run), sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
