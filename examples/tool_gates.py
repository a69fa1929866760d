"""An assistant whose tools are gated: by policy, by who asks, and by a model that chooses.

    python examples/tool_gates.py

Nothing that destroys or pays is allowed, guests may only read, and a small model picks the few tools
that a question needs. What is hidden is refused, should the model call it all the same.
"""

import anyio

from tinyagents import AgentHarness, RunConfig, RunPolicy, ToolMessage, tool
from tinyagents.harness.events import ToolRefused, ToolsFiltered
from tinyagents.harness.middleware import (
    ContextualToolSelectionMiddleware,
    ModelToolSelectionMiddleware,
    ToolPolicyMiddleware,
    ToolSelectionContext,
)
from tinyagents.harness.tool import Tool, ToolPolicy
from tinyagents.testkit import ScriptedModel, call, say


@tool(policy=ToolPolicy.read_only())
async def find_order(number: int) -> str:
    """Look up an order by its number."""
    return f"order {number}: two chairs, on their way"


@tool(policy=ToolPolicy.read_only())
async def opening_hours(shop: str) -> str:
    """When a shop is open."""
    return f"{shop}: 9 to 17"


@tool(policy=ToolPolicy.affecting("writes_files"))
async def change_address(number: int, address: str) -> str:
    """Change where an order is sent to."""
    return f"order {number} goes to {address}"


@tool(policy=ToolPolicy.affecting("destructive"))
async def cancel_order(number: int) -> str:
    """Cancel an order for good."""
    return f"order {number} is cancelled"


def guests_only_read(context: ToolSelectionContext, tool: Tool) -> bool:
    """Admit all tools for staff, and those that only read for everybody else."""
    return "staff" in context.tags or tool.policy.side_effects.read_only


async def ask(who: str, question: str, *, chooses: str, calls: str) -> None:
    """Put a question to an agent whose models answer from a script."""
    small = ScriptedModel([say(f'{{"tools": ["{chooses}"]}}')])
    model = ScriptedModel([call(calls, number=17), say("That is all I can say.")])
    agent = AgentHarness(
        model=model,
        tools=[find_order, opening_hours, change_address, cancel_order],
        middleware=[
            ToolPolicyMiddleware.strict(),
            ContextualToolSelectionMiddleware(guests_only_read),
            ModelToolSelectionMiddleware(small, max_tools=1),
        ],
        policy=RunPolicy.resilient(),
    )
    run = await agent.invoke(None, question, config=RunConfig(tags=(who,)))
    offered = ", ".join(tool.name for tool in model.requests[0].tools)
    print(f"{who}: {question}\n  offered: {offered}")
    hidden = {event.by: event.excluded for event in run.events if isinstance(event, ToolsFiltered)}
    for gate, names in hidden.items():
        print(f"  {gate} hid {', '.join(names)}")
    for event in run.events:
        if isinstance(event, ToolRefused):
            print(f"  {event.by} refused {event.tool_name}: {event.reason}")
    (result,) = (message for message in run.messages if isinstance(message, ToolMessage))
    print(f"  the model read: {result.text}")


async def main() -> None:
    await ask("guest", "Where is my order?", chooses="find_order", calls="find_order")
    await ask("guest", "Cancel it!", chooses="find_order", calls="cancel_order")
    await ask("staff", "Where is 17?", chooses="find_order", calls="change_address")


if __name__ == "__main__":
    anyio.run(main)
