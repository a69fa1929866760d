"""The tests that every summariser passes."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, ClassVar

import anyio
import pytest

from ...errors import InvalidRequestError
from ...message import (
    AssistantMessage,
    Message,
    ToolCallBlock,
    ToolMessage,
    UserMessage,
    dump_messages,
)
from ...summarization import SummarizationPolicy, Summarizer, SummaryRecord, is_summary, message_ref
from ...token_estimation import TokenEstimator
from ._chat_suite import entered

_LONG = "The office in Oslo has 412 desks. " * 100


class SummarizerConformance:
    """Tests for a :class:`~tinyagents.harness.summarization.Summarizer`.

    Inherit from it and give it a factory; pytest runs the tests on what that makes::

        class TestMySummarizer(SummarizerConformance):
            def summarizer(self) -> MySummarizer:
                return MySummarizer()
    """

    pytestmark: ClassVar[Any] = pytest.mark.anyio

    patience: float = 30.0
    """Seconds after which a test that hangs fails."""

    def summarizer(self) -> Summarizer | AbstractAsyncContextManager[Summarizer]:
        """Return a new summariser; one that is a context manager is entered."""
        raise TypeError(f"`{type(self).__name__}` has no `summarizer`: say how one is made")

    async def test_it_stands_for_its_messages(self) -> None:
        """The record knows what it was made of, and its message is known as a summary."""
        messages = _conversation()
        record = await self._summarize(messages, reason="too long")
        assert is_summary(record.summary), "`record_of` gives the message the id of a summary"
        assert record.summary.text.strip(), "the summary says nothing"
        assert record.fits(messages), "the record does not know what it was made of"
        told = record.provenance
        assert told.source_ids == tuple(message_ref(message) for message in messages)
        assert told.reason == "too long", "the provenance does not say why"

    async def test_it_is_shorter_than_its_messages(self) -> None:
        """A long conversation gets shorter, and the estimates in the provenance say so."""
        messages = _conversation()
        record = await self._summarize(messages)
        estimator = TokenEstimator()
        assert estimator.message(record.summary) < estimator.messages(messages), (
            "the summary is no shorter than what it takes the place of"
        )
        told = record.provenance
        assert 0 < told.summary_token_estimate < told.original_token_estimate

    async def test_it_leaves_its_messages_alone(self) -> None:
        """The messages are as they were."""
        messages = _conversation()
        before = dump_messages(messages)
        await self._summarize(messages)
        assert dump_messages(messages) == before, "the summariser has changed its messages"

    async def test_it_takes_in_an_earlier_summary(self) -> None:
        """A summary of a summary names the earlier one, and takes its place."""
        async with entered(self.summarizer()) as summarizer:
            with anyio.fail_after(self.patience):
                first = await summarizer.summarize(_conversation())
                later = await summarizer.summarize([first.summary, *_conversation("later")])
        assert later.previous == first.id, "the record does not name the summary that it takes in"
        assert later.id != first.id

    async def test_it_refuses_nothing(self) -> None:
        """No messages are an invalid request."""
        with pytest.raises(InvalidRequestError):
            await self._summarize([])

    async def test_its_record_is_stored_and_loaded(self) -> None:
        """The record survives as JSON."""
        record = await self._summarize(_conversation())
        again = SummaryRecord.model_validate_json(record.model_dump_json())
        assert again == record

    async def test_its_message_takes_the_older_part_s_place(self) -> None:
        """The conversation goes on with the summary, which is its first turn where none follows."""
        messages = _conversation()
        plan = SummarizationPolicy(keep_last=1).plan(messages)
        async with entered(self.summarizer()) as summarizer:
            with anyio.fail_after(self.patience):
                record = await summarizer.summarize(plan.older)
        placed = plan.with_summary(record.summary)
        assert [message.role for message in placed] == ["user", "assistant"]

    async def _summarize(self, messages: Sequence[Message], *, reason: str = "") -> SummaryRecord:
        async with entered(self.summarizer()) as summarizer:
            with anyio.fail_after(self.patience):
                return await summarizer.summarize(
                    messages, goal="Find out how large the office is.", reason=reason
                )


def _conversation(subject: str = "office") -> list[Message]:
    call = ToolCallBlock(id=f"c-{subject}", name="look_up", arguments={"subject": subject})
    return [
        UserMessage(content=f"How large is the {subject}?"),
        AssistantMessage(content=[call]),
        ToolMessage(tool_call_id=call.id, name="look_up", content=_LONG),
        AssistantMessage(content="It has 412 desks."),
    ]
