"""Tests of what a chat model says that an answer cost."""

import pytest

from ...model import StreamMerger, UsageDelta
from ...usage import Usage
from .._script import say
from ._chat_suite import ChatModelSuite, asking, plain_and_streamed

USAGE = Usage(input_tokens=120, output_tokens=45, cache_read_tokens=64, reasoning_tokens=20)


class UsageBehaviour(ChatModelSuite):
    """Tokens are counted once, in the same way plain and streamed."""

    reports_usage: bool = True
    """Whether the provider says what an answer cost."""

    @plain_and_streamed
    async def test_it_tells_what_an_answer_cost(self, streamed: bool) -> None:
        if not self.reports_usage:
            pytest.skip("`reports_usage` is False")
        async with self.opened(say("Fine.", usage=USAGE)) as model:
            response = await self.ask(model, asking("How are you?"), streamed=streamed)
        usage = response.usage
        assert usage is not None, "the answer has no usage: cost and budgets would count nothing"
        assert usage.input_tokens > 0, "the prompt counts nothing"
        assert usage.output_tokens > 0, "the answer counts nothing"
        assert usage.cache_read_tokens + usage.cache_write_tokens <= usage.input_tokens, (
            f"more cached input than input: {usage!r}; `input_tokens` counts the whole prompt"
        )
        assert usage.reasoning_tokens <= usage.output_tokens, (
            f"more reasoning than output: {usage!r}; `output_tokens` counts the whole answer"
        )
        if self.scripted:
            assert (usage.input_tokens, usage.output_tokens) == (120, 45), (
                "the figures are not those of the provider: the cost would be wrong"
            )
            assert usage.cache_read_tokens in (0, 64)
            assert usage.reasoning_tokens in (0, 20)
            assert usage.source == "reported"

    async def test_both_ways_count_the_same(self) -> None:
        self.need_script()
        step = say("Fine.", usage=USAGE)
        async with self.opened(step, step) as model:
            plain = await self.ask(model, asking("How are you?"))
            streamed = await self.ask(model, asking("How are you?"), streamed=True)
        assert plain.usage == streamed.usage, (
            "the two ways count differently: turning streaming on would change the cost"
        )

    async def test_usage_on_the_way_replaces_what_was_known(self) -> None:
        async with self.opened(say("Fine.", usage=USAGE)) as model:
            items = await self.items(model, asking("How are you?"))
        merger = StreamMerger()
        for item in items:
            if isinstance(item, UsageDelta):
                merger.add(item)
        whole = StreamMerger()
        for item in items:
            whole.add(item)
        if merger.usage is None:
            pytest.skip("the stream has no `UsageDelta`: the usage comes with the end")
        assert merger.usage == whole.response().usage, (
            "the reports on the way do not lead to the usage of the answer: a display that follows "
            "them would show something else than the bill"
        )
