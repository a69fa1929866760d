"""A run that asks in one process and is answered in another.

    python examples/resume.py                      both, one after the other
    python examples/resume.py ask FILE             run until the question, store the run in FILE
    python examples/resume.py answer FILE yes|no   load the run and go on

The file holds the run as data. How the agent is built, both processes know.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import anyio

from tinyagents import AgentHarness, RunSnapshot, ToolContext, tool
from tinyagents.harness.model import ModelRequest
from tinyagents.testkit import Reply, ScriptedModel, call, say


@tool
async def check_balance() -> str:
    """How much money there is."""
    print("  (the balance is looked up)")
    return "300 EUR"


@tool
async def pay(amount: int, to: str, ctx: ToolContext[None]) -> str:
    """Pay somebody an amount in euros."""
    # Without an answer the tool ends here; with one it runs again from its start.
    if ctx.ask({"question": f"Pay {amount} EUR to {to}?"}) != "yes":
        return "The user said no."
    print(f"  ({amount} EUR are paid to {to})")
    return "Paid."


def reply(request: ModelRequest) -> Reply:
    """Answer as a model would, in whichever process it is asked."""
    last = request.messages[-1]
    if last.role == "tool":
        return say("The rent is paid." if last.text == "Paid." else "Then I leave it.")
    return call("check_balance") + call("pay", amount=250, to="the landlord")


agent = AgentHarness(model=ScriptedModel([reply, reply]), tools=[check_balance, pay])


async def ask(file: str) -> None:
    run = await agent.invoke(None, "Pay the rent, please.")
    print(f"{run.status}: {run.interrupts[0].payload}")
    await anyio.Path(file).write_text(run.snapshot.model_dump_json(), "utf-8")


async def answer(file: str, given: str) -> None:
    snapshot = RunSnapshot.model_validate_json(await anyio.Path(file).read_text("utf-8"))
    question = snapshot.interrupts[0]
    run = await agent.resume(snapshot, None, answers={question.id: given})
    print(f"{run.status}: {run.text}")


def both() -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "run.json")
        for arguments in (["ask", file], ["answer", file, "yes"]):
            print(f"-- a process of its own: {arguments[0]}", flush=True)
            subprocess.run([sys.executable, __file__, *arguments], check=True)


if __name__ == "__main__":
    match sys.argv[1:]:
        case []:
            both()
        case ["ask", file]:
            anyio.run(ask, file)
        case ["answer", file, given]:
            anyio.run(answer, file, given)
        case _:
            sys.exit(__doc__)
