"""Middleware: shorten answers, time model calls, keep secrets back."""

import re
import time
from collections.abc import Awaitable, Callable

import anyio

from tinyagents import AgentHarness, Middleware, RunContext, StopWithFinal, tool
from tinyagents.harness.middleware import ToolCall, before_model, wrap_model
from tinyagents.harness.model import ModelRequest, ModelResponse
from tinyagents.harness.tool import ToolResult
from tinyagents.testkit import ScriptedModel, call, say


@tool
async def read_file(path: str) -> str:
    """Read a file."""
    return f"{path}: user=ada key=sk-12345"


@before_model
def short_answers(ctx: RunContext[None], request: ModelRequest) -> None:
    """Lower the length of each answer; the change is for this call only."""
    request.settings = request.settings.model_copy(update={"max_tokens": 200})


@wrap_model
async def timed(
    ctx: RunContext[None],
    request: ModelRequest,
    call_next: Callable[[ModelRequest], Awaitable[ModelResponse]],
) -> ModelResponse:
    """Measure each model call with its retries, and record it as an event."""
    started = time.perf_counter()
    response = await call_next(request)
    ctx.emit_custom("model_seconds", round(time.perf_counter() - started, 3))
    return response


class KeepSecrets(Middleware[None]):
    """Takes keys out of what tools return, and ends a run that speaks of them."""

    async def after_tool(self, ctx: RunContext[None], call: ToolCall, result: ToolResult) -> None:
        """Take out keys before the model sees them."""
        clean = re.sub(r"sk-\w+", "[key]", result.joined_text())
        result.content = ToolResult(clean).content

    async def after_model(self, ctx: RunContext[None], response: ModelResponse) -> None:
        """End the run in place of an answer with a key."""
        if "sk-" in response.text:
            ctx.request_control(StopWithFinal("I cannot say that."))


async def main() -> None:
    middleware = [short_answers, timed, KeepSecrets()]

    model = ScriptedModel([call("read_file", path="config"), say("The user is ada.")])
    agent = AgentHarness(model=model, tools=[read_file], middleware=middleware)
    run = await agent.invoke(None, "Who is the user?")
    print(f"{run.status}: {run.text}")
    print(f"  the model saw: {run.messages[2].text}")
    print(f"  and was asked for at most {model.requests[0].settings.max_tokens} tokens")
    print(f"  custom events: {sum(event.kind == 'custom' for event in run.events)}")

    agent = agent.replace(model=ScriptedModel([say("The key is sk-12345.")]))
    run = await agent.invoke(None, "And the key?")
    print(f"{run.status}: {run.text}")


if __name__ == "__main__":
    anyio.run(main)
