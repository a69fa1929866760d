"""Conversations of four hundred turns in a window of sixteen thousand tokens."""

import re
from collections.abc import Sequence
from typing import Any

import pytest

from tinyagents import AgentHarness, RunLimits, RunPolicy, RunSnapshot, tool
from tinyagents.harness.events import Compressed, ContextSummarized
from tinyagents.harness.message import Message
from tinyagents.harness.middleware import ContextWindowMiddleware
from tinyagents.harness.model import ModelProfile, ModelRequest
from tinyagents.harness.summarization import (
    InMemoryContextArchive,
    ModelSummarizer,
    Summarize,
    default_steps,
    is_summary,
    is_well_paired,
    search_messages,
)
from tinyagents.harness.token_estimation import TokenEstimator
from tinyagents.testkit import FakeChatModel, call, say

TURNS = 400
WINDOW = 16_000
FACT = re.compile(r"fact-\d+=\w+")
FACTS = [f"fact-{n}={n * 7919 % 1000:x}" for n in range(0, TURNS, 25)]
PAGE = "A line of a page that says nothing of importance.\n" * 40
"""500 tokens."""
PROFILE = ModelProfile.permissive("fake", "main").model_copy(update={"max_input_tokens": WINDOW})
POLICY = RunPolicy(limits=RunLimits(max_model_calls=2 * TURNS, max_tool_calls=2 * TURNS))


def page(number: int) -> str:
    """What is said in a turn: a page, with a fact in the middle of some."""
    fact = f"{FACTS[number // 25]}\n" if number % 25 == 0 else ""
    return f"page {number}\n{PAGE[:1000]}{fact}{PAGE[1000:]}"


def facts_in(messages: Sequence[Message]) -> list[str]:
    return list(dict.fromkeys(FACT.findall("\n".join(m.text for m in messages))))


def summarise(request: ModelRequest) -> Any:
    """Keep the facts and nothing else, as a good summary of these pages does."""
    return say("\n".join(facts_in(request.messages[-1:])) or "No facts yet.")


def window(archive: InMemoryContextArchive) -> ContextWindowMiddleware:
    summarizer = ModelSummarizer(FakeChatModel(summarise), cache_size=8)
    return ContextWindowMiddleware([Summarize(summarizer, keep_last=6)], archive=archive)


def sizes(requests: Sequence[ModelRequest]) -> list[int]:
    estimator = TokenEstimator()
    return [estimator.request(request, reported=False).total for request in requests]


def rewritten(requests: Sequence[ModelRequest]) -> int:
    """How often a prompt does not go on from the one before it."""
    pairs = zip(requests, requests[1:], strict=False)
    return sum(after.messages[: len(before.messages)] != before.messages for before, after in pairs)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_a_run_of_400_tool_turns_keeps_its_facts_in_a_bounded_context() -> None:
    turn = 0

    def answer(request: ModelRequest) -> Any:
        nonlocal turn
        if turn == TURNS:
            return say(" ".join(facts_in(request.messages)))
        turn += 1
        return call("read_page", number=turn - 1)

    @tool
    async def read_page(number: int) -> str:
        """Read a page."""
        return page(number)

    model = FakeChatModel(answer, profile=PROFILE)
    archive = InMemoryContextArchive()
    agent = AgentHarness(
        model=model, tools=[read_page], middleware=[window(archive)], policy=POLICY
    )
    run = await agent.invoke(None, "Collect all facts.")
    assert run.text.split() == FACTS
    assert len(model.requests) == TURNS + 1
    assert max(sizes(model.requests)) <= WINDOW
    assert max(len(request.messages) for request in model.requests) < 60
    assert len(run.messages) < 60
    assert is_well_paired(run.messages)
    # Hysteresis: the prompt is rewritten with each summary and at no other call.
    summaries = [event for event in run.events if isinstance(event, ContextSummarized)]
    assert rewritten(model.requests) == len(summaries) < TURNS / 10
    assert "Collect all facts." in run.messages[0].text
    assert len(await archive.load(f"run-{run.run_id}")) > 2 * TURNS - 60


async def test_a_chat_of_400_turns_keeps_its_facts_and_a_small_snapshot() -> None:
    def answer(request: ModelRequest) -> Any:
        asked = request.messages[-1].text
        return say(" ".join(facts_in(request.messages)) if asked == "Which facts?" else "Noted.")

    model = FakeChatModel(answer, profile=PROFILE)
    archive = InMemoryContextArchive()
    agent = AgentHarness(
        model=model, middleware=[window(archive)], system="Take notes.", policy=POLICY
    )
    run = await agent.invoke(None, page(0))
    for number in range(1, TURNS):
        snapshot = run.snapshot
        if number % 40 == 0:
            stored = snapshot.model_dump_json()
            assert len(stored) < 150_000
            snapshot = RunSnapshot.model_validate_json(stored)
        run = await agent.resume(snapshot, None, input=page(number))
    run = await agent.resume(run.snapshot, None, input="Which facts?")
    assert run.text.split() == FACTS
    assert max(sizes(model.requests)) <= WINDOW
    assert len(run.messages) < 60
    assert is_summary(run.messages[0])
    found = search_messages(await archive.load(f"run-{run.run_id}"), "page 100", limit=1)
    assert found[0].text.startswith("user:\npage 100\n")


async def test_without_a_model_the_context_stays_bounded_too() -> None:
    turn = 0

    def answer(request: ModelRequest) -> Any:
        nonlocal turn
        turn += 1
        return call("read_page", number=turn - 1) if turn <= TURNS else say("done")

    @tool
    async def read_page(number: int) -> str:
        """Read a page."""
        return page(number)

    model = FakeChatModel(answer, profile=PROFILE)
    agent = AgentHarness(
        model=model,
        tools=[read_page],
        middleware=[ContextWindowMiddleware(default_steps())],
        policy=POLICY,
    )
    run = await agent.invoke(None, "Read everything.")
    assert run.text == "done"
    assert max(sizes(model.requests)) <= WINDOW
    assert run.messages[0].text == "Read everything."
    compressed = [event for event in run.events if isinstance(event, Compressed)]
    assert rewritten(model.requests) < TURNS / 4
    assert {event.by for event in compressed} <= {"ClearToolResults", "TrimOldest"}
