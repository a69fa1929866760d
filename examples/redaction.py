"""Redaction: an address and a card number that nobody gets to see, in a stream that is cut anywhere."""

import anyio

from tinyagents import AgentHarness, tool
from tinyagents.harness.middleware import RedactionMiddleware
from tinyagents.harness.stream import TextDelta, ToolStarted
from tinyagents.testkit import ScriptedModel, call, say


@tool
async def customer(question: str) -> str:
    """Look up a customer."""
    return "Ada Lovelace, ada@example.test, pays with 4111 1111 1111 1111"


async def main() -> None:
    model = ScriptedModel(
        [
            call("customer", question="who is ada@example.test?"),
            say("Ada's address is ada@ex", "ample.te", "st, her card 4111 1111", " 1111 1111."),
        ]
    )
    redaction = RedactionMiddleware(mask="[{label}]", strategies={"CARD": "mask"})
    agent = AgentHarness(model=model, tools=[customer], middleware=[redaction])
    async for chunk in agent.stream(None, "Who is ada@example.test?"):
        match chunk:
            case ToolStarted():
                print("asks:", chunk.arguments)
            case TextDelta():
                print(chunk.text, end="")
            case _:
                pass
    print()
    print("the model was told:", model.requests[-1].messages[-1].text)
    print("found:", dict(redaction.counts))


anyio.run(main)
