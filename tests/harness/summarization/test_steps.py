"""The steps by which a conversation is made shorter, one by one."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, strategies as st

from tests.harness.summarization.summaries import (
    BrokenSummarizer,
    CountingSummarizer,
    SayingSummarizer,
    talk,
)
from tests.harness.tool.calls import context
from tinyagents import AssistantMessage, SystemMessage, ToolMessage, UserMessage
from tinyagents.harness.errors import ConfigurationError, SummaryError
from tinyagents.harness.message import Message, ToolCallBlock, retrieved_block
from tinyagents.harness.summarization import (
    CLEARED,
    ClearToolResults,
    CompactToolOutputs,
    ConcatSummarizer,
    ContextStep,
    DropRetrieved,
    ShorteningTask,
    Summarize,
    TrimOldest,
    apply_steps,
    default_steps,
    is_summary,
    is_well_paired,
    stored_summary,
)
from tinyagents.harness.token_estimation import TokenEstimator

LONG = "word " * 2_000
"""2,500 tokens."""


def result(call_id: str, text: str, name: str = "look", **facts: Any) -> list[Message]:
    asking = AssistantMessage(content=[ToolCallBlock(id=call_id, name=name, arguments={})])
    return [asking, ToolMessage(tool_call_id=call_id, name=name, content=text, **facts)]


def task(target: int = 0, *, kept: bool = False) -> ShorteningTask:
    return ShorteningTask(
        ctx=context().run, target=target, estimator=TokenEstimator(), kept=kept, by="test"
    )


async def texts(step: ContextStep, messages: Sequence[Message], target: int = 0) -> list[str]:
    before = [message.model_copy() for message in messages]
    shorter = await step.shorten(messages, task(target))
    assert list(messages) == before
    return [message.text for message in shorter if message.text]


class TestLookedUpPassages:
    TALK: Sequence[Message] = (
        SystemMessage(content=[retrieved_block("manual")]),
        UserMessage(content=[retrieved_block("old"), *UserMessage(content="q1").content]),
        UserMessage(content=[retrieved_block("alone")]),
        AssistantMessage(content="a1"),
        *result("t", "r"),
        UserMessage(content=[retrieved_block("new")]),
    )

    async def test_those_of_earlier_turns_go(self) -> None:
        assert await texts(DropRetrieved(), self.TALK) == [
            "manual",
            "q1",
            "[passages that were looked up here are left out]",
            "a1",
            "r",
            "new",
        ]

    async def test_those_of_trusted_results_stay(self) -> None:
        trusted = ToolMessage(
            tool_call_id="t", content=[retrieved_block("exact")], trusted_verbatim=True
        )
        talk = [result("t", "")[0], trusted, UserMessage(content="q")]
        assert await texts(DropRetrieved(), talk) == ["exact", "q"]

    async def test_more_turns_can_be_kept(self) -> None:
        assert "old" in "".join(await texts(DropRetrieved(keep_turns=2), self.TALK))
        assert "new" not in await texts(DropRetrieved(keep_turns=0), self.TALK)


class TestClearing:
    TALK = (*result("a", LONG), *result("b", LONG), *result("c", LONG), *result("d", LONG))

    async def test_the_oldest_go_first_as_far_as_is_needed(self) -> None:
        assert await texts(ClearToolResults(keep_recent=1), self.TALK, target=6_000) == [
            CLEARED,
            CLEARED,
            LONG,
            LONG,
        ]

    async def test_recent_ones_stay_whatever_is_needed(self) -> None:
        assert await texts(ClearToolResults(keep_recent=3), self.TALK) == [CLEARED, *[LONG] * 3]
        assert await texts(ClearToolResults(keep_recent=9), self.TALK) == [LONG] * 4

    async def test_trusted_excluded_and_short_ones_stay(self) -> None:
        talk = [
            *result("a", LONG, trusted_verbatim=True),
            *result("b", LONG, name="plan"),
            *result("c", "ok"),
        ]
        step = ClearToolResults(keep_recent=0, exclude_tools=["plan"])
        assert await texts(step, talk) == [LONG, LONG, "ok"]

    async def test_what_was_cleared_stays_so(self) -> None:
        step = ClearToolResults(keep_recent=0)
        once = await step.shorten(self.TALK, task())
        assert list(await step.shorten(once, task())) == list(once)


class TestLongOutputs:
    async def test_the_largest_outside_the_kept_part_is_cut_first(self) -> None:
        # P056, P057
        talk = [*result("a", "small"), *result("b", LONG), *result("c", LONG * 2)]
        cut = await texts(CompactToolOutputs(keep_last=2), talk, target=6_000)
        assert (cut[0], cut[2]) == ("small", LONG * 2)
        assert f"of {len(LONG)} characters" in cut[1]

    async def test_a_recent_one_is_cut_when_nothing_else_helps(self) -> None:
        talk = [*result("a", "small"), *result("b", LONG)]
        cut = await texts(CompactToolOutputs(keep_last=2), talk)
        assert cut[0] == "small"
        assert len(cut[1]) < len(LONG)


class TestTrimming:
    async def test_the_last_message_stays_however_large_it_is(self) -> None:
        talk = (UserMessage(content="a"), AssistantMessage(content="b"), UserMessage(content=LONG))
        assert await texts(TrimOldest(), talk) == [LONG]

    async def test_what_the_user_said_first_stays_with_the_end_of_the_turn(self) -> None:
        talk = [UserMessage(content="task"), *result("a", LONG), *result("b", "last")]
        assert await texts(TrimOldest(), talk, target=100) == ["task", "last"]


class TestSummaries:
    TALK = (UserMessage(content=LONG), AssistantMessage(content=LONG), UserMessage(content="q"))

    async def test_a_summary_is_stored_only_where_it_takes_the_transcripts_place(self) -> None:
        for kept in (False, True):
            what = task(kept=kept)
            await Summarize(CountingSummarizer(), keep_last=1).shorten(self.TALK, what)
            assert (stored_summary(what.ctx.notes) is not None) is kept

    async def test_one_that_is_no_shorter_is_not_used(self) -> None:
        talk: list[Message] = [UserMessage(content="a"), AssistantMessage(content="b")]
        talk.append(UserMessage(content="c"))
        what = task(kept=True)
        shorter = await Summarize(ConcatSummarizer(), keep_last=1).shorten(talk, what)
        assert list(shorter) == talk
        assert stored_summary(what.ctx.notes) is None

    async def test_a_failure_can_be_raised(self) -> None:
        with pytest.raises(RuntimeError):
            await Summarize(BrokenSummarizer(), keep_last=1, on_failure="abort").shorten(
                self.TALK, task()
            )

    async def test_a_note_of_another_version_is_no_summary(self) -> None:
        assert stored_summary({"context.summary": {"record": "?"}}) is None


async def test_steps_stop_as_soon_as_it_fits() -> None:
    talk = [*result("a", LONG), *result("b", LONG), UserMessage(content="q")]
    steps: list[ContextStep] = [ClearToolResults(keep_recent=0), TrimOldest()]
    done = await apply_steps(steps, talk, task(3_000))
    assert done.steps == ("ClearToolResults",)
    assert done.tokens == TokenEstimator().messages(done.messages) <= 3_000
    untouched = await apply_steps(steps, talk, task(10_000))
    assert untouched.steps == ()
    assert untouched.messages == talk


STEPS: list[ContextStep] = [
    ClearToolResults(keep_recent=1),
    Summarize(keep_last=2),
    CompactToolOutputs(keep_last=1, keep_characters=50),
    TrimOldest(),
]


@given(
    st.lists(st.sampled_from("suaact"), max_size=12),
    st.sampled_from([*([step] for step in STEPS), STEPS]),
    st.floats(min_value=0, max_value=1),
)
async def test_whatever_is_done_the_conversation_stays_sound(
    roles: list[str], steps: Sequence[ContextStep], share: float
) -> None:
    before = talk("s", "u", *roles, "u", filler=" and more of it" * 30)
    size = TokenEstimator().messages(before)
    done = await apply_steps(steps, before, task(int(size * share)))
    after = done.messages
    assert is_well_paired(after)
    assert done.tokens == TokenEstimator().messages(after) <= size
    assert after[-1] is before[-1]
    systems = [m for m in before if m.role == "system"]
    assert all(m in after for m in systems)
    assert all(m in after for m in before if m.role == "tool" and m.trusted_verbatim)
    if done.steps:
        first = next(m for m in after if m not in systems)
        assert first.role == "user" or is_summary(first)


def test_the_usual_steps_summarise_where_there_is_a_summariser() -> None:
    def names(steps: Sequence[ContextStep]) -> list[str]:
        return [type(step).__name__ for step in steps]

    assert names(default_steps(ConcatSummarizer())) == [
        "DropRetrieved",
        "ClearToolResults",
        "Summarize",
        "CompactToolOutputs",
        "TrimOldest",
    ]
    assert "Summarize" not in names(default_steps())


@pytest.mark.parametrize(
    "make",
    [
        lambda: DropRetrieved(keep_turns=-1),
        lambda: ClearToolResults(keep_recent=-1),
        lambda: ClearToolResults(exclude_tools="plan"),
        lambda: CompactToolOutputs(keep_last=-1),
        lambda: TrimOldest(keep_last=0),
        lambda: Summarize(keep_last=-1),
        lambda: Summarize(on_failure="ignore"),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_work_is_refused(make: Any) -> None:
    with pytest.raises(ConfigurationError):
        make()


async def test_trimming_after_a_summary_keeps_it() -> None:
    # As a user's message it is the oldest of all, and with it all that was summarised would be gone.
    steps: list[ContextStep] = [Summarize(SayingSummarizer("the port is 8443")), TrimOldest()]
    messages = talk("s", *"u" * 20, filler=" word" * 100)
    told = task(600, kept=True)
    shorter = await apply_steps(steps, messages, told)
    assert shorter.steps == ("Summarize", "TrimOldest")
    assert [m.text for m in shorter.messages[:2]] == ["s0", "the port is 8443"]
    assert len(shorter.messages) > 4
    assert shorter.tokens <= 600
    assert stored_summary(told.ctx.notes) is not None


async def test_a_summary_that_leaves_no_room_is_trimmed_too() -> None:
    summarized = await apply_steps(
        [Summarize(SayingSummarizer("word " * 400))],
        talk("s", *"u" * 20, filler=" word" * 100),
        task(600),
    )
    shorter = await TrimOldest().shorten(summarized.messages, task(400))
    assert not any(is_summary(m) for m in shorter)
    assert TokenEstimator().messages(shorter) <= 400


@pytest.mark.parametrize("text", ["", " \n"])
async def test_a_summary_without_words_is_a_failure(text: str) -> None:
    messages = talk(*"u" * 20)
    assert await Summarize(SayingSummarizer(text)).shorten(messages, task()) is messages
    with pytest.raises(SummaryError, match="SayingSummarizer"):
        await Summarize(SayingSummarizer(text), on_failure="abort").shorten(messages, task())
