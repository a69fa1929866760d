"""A long run in a small window: old results cleared, the rest summarised, and what was dropped found again."""

import re
from collections.abc import Callable
from itertools import count
from typing import Any

import anyio

from tinyagents import AgentHarness, RunLimits, RunPolicy, tool
from tinyagents.harness.events import ContextPressure, ContextSummarized
from tinyagents.harness.middleware import ContextWindowMiddleware
from tinyagents.harness.model import ModelProfile, ModelRequest
from tinyagents.harness.summarization import (
    ClearToolResults,
    InMemoryContextArchive,
    ModelSummarizer,
    Summarize,
    TrimOldest,
    search_dropped_tool,
)
from tinyagents.testkit import FakeChatModel, call, say

PAGES = 60


@tool
def read_page(number: int) -> str:
    """Read a page of the log."""
    alarm = f"\nALARM at pump {number}: pressure {number * 3} bar" if number % 20 == 0 else ""
    return "\n".join((f"page {number}", *["all is well"] * 120)) + alarm


def alarms(request: ModelRequest) -> list[str]:
    """What a good model would not overlook."""
    text = "\n".join(message.text for message in request.messages)
    return list(dict.fromkeys(re.findall(r"ALARM at pump \d+: pressure \d+ bar", text)))


def reader() -> Callable[[ModelRequest], Any]:
    """Stand in for a model: read page after page, look one thing up, and report."""
    numbers = count(1)

    def answer(request: ModelRequest) -> Any:
        number = next(numbers)
        if number <= PAGES:
            return call("read_page", number=number)
        if number == PAGES + 1:
            return call("search_dropped", query="page 7")
        return say("\n".join(alarms(request)))

    return answer


def summarise(request: ModelRequest) -> Any:
    """Stand in for a model that summarises."""
    return say("\n".join(alarms(request)) or "Nothing.")


async def main() -> None:
    archive = InMemoryContextArchive()
    summarizer = ModelSummarizer(
        FakeChatModel(lambda request: say("\n".join(alarms(request)) or "Nothing."))
    )
    profile = ModelProfile.permissive().model_copy(update={"max_input_tokens": 8_000})
    model = FakeChatModel(reader(), profile=profile)
    agent = AgentHarness(
        model=model,
        tools=[read_page, search_dropped_tool(archive)],
        middleware=[
            ContextWindowMiddleware(
                [Summarize(summarizer, keep_last=6), ClearToolResults(), TrimOldest()],
                archive=archive,
            )
        ],
        policy=RunPolicy(limits=RunLimits(max_model_calls=100, max_tool_calls=100)),
    )
    run = await agent.invoke(None, "Which pumps had an alarm?")
    print(run.text)
    made = [event for event in run.events if isinstance(event, ContextSummarized)]
    fullest = max(event.tokens for event in run.events if isinstance(event, ContextPressure))
    print(f"{len(made)} summaries; {len(run.messages)} messages left of {2 * PAGES}")
    print(f"never more than {fullest} of 8000 tokens")
    print(run.messages[-2].text.splitlines()[2])
    assert run.text.count("ALARM") == 3
    assert fullest <= 8_000


if __name__ == "__main__":
    anyio.run(main)
