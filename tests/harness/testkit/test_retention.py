"""The check that facts survive when a conversation is made shorter, on all that the library has."""

import re
from collections.abc import Sequence
from typing import Any

import pytest

from tinyagents import UserMessage
from tinyagents.harness.message import Message
from tinyagents.harness.model import ModelRequest
from tinyagents.harness.summarization import (
    ClearToolResults,
    CompactToolOutputs,
    ConcatSummarizer,
    ContextStep,
    DropRetrieved,
    ModelSummarizer,
    ShorteningTask,
    Summarize,
    TrimOldest,
    default_steps,
)
from tinyagents.testkit import ESSENTIAL_FACTS, Fact, FakeChatModel, check_retention, say

FACTS = [
    Fact("The user's budget is 1,250 euros.", "user"),
    Fact("We decided on the model K-77.", "assistant"),
    Fact("query_id=Q-4711", "arguments"),
    Fact("The port is 8443.", "result"),
    *ESSENTIAL_FACTS,
]


def keeping(request: ModelRequest) -> Any:
    """Answer as a model that keeps what has a number in it."""
    sentences = re.findall(r"[^.\n\"{]*\d[^.\n\"}]*(?:\.\d+)*\.?", request.messages[-1].text)
    return say(" ".join(dict.fromkeys(s.strip() for s in sentences)) or "Nothing.")


def forgetting(request: ModelRequest) -> Any:
    return say("They talked about something.")


STRATEGIES: list[Any] = [
    pytest.param(ClearToolResults(keep_recent=1), id="clear"),
    pytest.param(TrimOldest(), id="trim"),
    pytest.param(Summarize(keep_last=4), id="summarize"),
    pytest.param(default_steps(), id="default steps"),
    pytest.param(default_steps(ConcatSummarizer()), id="default steps with summaries"),
    pytest.param(ConcatSummarizer(), id="list"),
    pytest.param(ModelSummarizer(FakeChatModel(keeping)), id="model"),
]


@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_no_strategy_of_the_library_loses_what_is_essential(strategy: Any) -> None:
    report = await check_retention(strategy)
    assert report.to_tokens < report.from_tokens


@pytest.mark.parametrize(
    "strategy", [ConcatSummarizer(), ModelSummarizer(FakeChatModel(keeping))], ids=["list", "model"]
)
async def test_summaries_keep_facts_of_every_place(strategy: Any) -> None:
    report = await check_retention(strategy, FACTS)
    assert report.steps == ("Summarize",)


async def test_clearing_results_keeps_what_people_said() -> None:
    said = [fact for fact in FACTS if fact.place != "result"]
    await check_retention(ClearToolResults(keep_recent=1), said, share=0.7)


async def test_cutting_results_keeps_their_beginning() -> None:
    await check_retention(CompactToolOutputs(keep_last=0, keep_characters=100), FACTS, share=0.8)


async def test_a_summary_that_forgets_is_found_out() -> None:
    with pytest.raises(AssertionError, match="lost, from user: \"The user's budget"):
        await check_retention(ModelSummarizer(FakeChatModel(forgetting)), FACTS)


async def test_trimming_is_known_to_lose_what_is_old() -> None:
    with pytest.raises(AssertionError, match="lost, from result: 'The port is 8443.'"):
        await check_retention(TrimOldest(), FACTS)


def step(change: Any) -> ContextStep:
    class Broken:
        async def shorten(
            self, messages: Sequence[Message], task: ShorteningTask
        ) -> Sequence[Message]:
            shorter: list[Message] = change(list(messages))
            return shorter

    return Broken()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda messages: messages, "not shorter"),
        (lambda messages: messages[:1] + messages[3:], "lost each other"),
        (lambda messages: messages[1:], "lost, from system"),
        (lambda messages: messages[:1] + messages[-2:], "begins with a message of the role"),
        (lambda messages: messages[:5], "latest message is gone"),
        (lambda messages: messages[:1], "nothing but system messages"),
        (lambda messages: [messages[-1], messages[0]], "among the others"),
        (lambda messages: [messages[0], messages[-1]], "trusted result"),
    ],
)
async def test_a_broken_strategy_is_found_out(change: Any, words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        await check_retention(step(change))


async def test_a_strategy_that_changes_what_it_is_given_is_found_out() -> None:
    def change(messages: list[Message]) -> list[Message]:
        messages[1].content.clear()
        return [*messages[:5], messages[-1]]

    with pytest.raises(AssertionError, match="were changed"):
        await check_retention(step(change))


async def test_steps_without_anything_to_do_are_found_out() -> None:
    with pytest.raises(AssertionError, match="not shorter"):
        await check_retention([DropRetrieved()])


async def test_a_text_is_a_fact_that_the_user_said() -> None:
    report = await check_retention(ConcatSummarizer(), ["The code word is heron."])
    assert any("heron" in message.text for message in report.messages)
    assert isinstance(report.messages[-1], UserMessage)
