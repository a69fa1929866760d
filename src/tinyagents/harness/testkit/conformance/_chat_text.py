"""Tests of what a chat model says: text, plain and streamed, whatever the alphabet."""

import pytest

from ...message import AssistantMessage, SystemMessage
from ...model import (
    ChatModel,
    MessageDelta,
    ModelRequest,
    ModelSettings,
    StreamCompleted,
    StreamMerger,
    ToolCallDelta,
)
from .._script import call, say, think
from ._chat_samples import ALPHABETS, CONVERSATIONS, WEATHER, comparable
from ._chat_suite import ChatModelSuite, asking, plain_and_streamed

MIXED = {
    "text": say("It is ", "sunny."),
    "reasoning": think("The user ", "asks.") + say("Sun", "ny."),
    "text and a call": say("I look ", "it up.") + call("get_weather", city="Paris", id="call_a"),
    "a call alone": call("get_weather", city="Paris", id="call_a"),
    "two calls": call("get_weather", city="Paris", id="call_a")
    + call("get_weather", city="Rome", id="call_b"),
}
"""Answers of several kinds of blocks."""


class TextBehaviour(ChatModelSuite):
    """What a chat model says is what arrives."""

    @plain_and_streamed
    async def test_it_answers_with_text(self, streamed: bool) -> None:
        async with self.opened(say("Hello, ", "you.")) as model:
            response = await self.ask(model, asking("Say hello."), streamed=streamed)
        self.check_text(response, "Hello, you.")
        assert response.message.role == "assistant"
        assert response.finish_reason in ("stop", None), (
            f"a complete answer ended with `{response.finish_reason}`: it would be taken for one that "
            "was cut off"
        )

    async def test_it_streams_in_pieces_that_make_the_text(self) -> None:
        words = ["One ", "two ", "three ", "four ", "five ", "six ", "seven."]
        async with self.opened(say(*words)) as model:
            items = await self.items(model, asking("Count from one to seven in words."))
        deltas = [item.text for item in items if isinstance(item, MessageDelta) and item.text]
        assert len(deltas) > 1, (
            "the profile declares `streaming`, and the text came in one piece: the user would wait "
            "for all of it"
        )
        last = items[-1]
        if isinstance(last, StreamCompleted):
            assert "".join(deltas) == last.response.text, (
                "the pieces are not the text of the whole answer: the user would see one thing, and "
                "the history hold another"
            )
        if self.scripted:
            assert "".join(deltas) == "".join(words)

    @pytest.mark.parametrize("what", MIXED)
    async def test_a_stream_makes_the_message_of_the_plain_call(self, what: str) -> None:
        self.need_script()
        async with self.opened(MIXED[what], MIXED[what]) as model:
            request = self._asking_for(what, model)
            plain = await self.ask(model, request)
            streamed = await self.ask(model, request, streamed=True)
        assert comparable(streamed.message) == comparable(plain.message), (
            "the two ways give different messages: an application that turns streaming on would get "
            "another history"
        )
        assert streamed.finish_reason == plain.finish_reason

    @pytest.mark.parametrize("what", MIXED)
    async def test_the_pieces_alone_make_the_message_of_the_end(self, what: str) -> None:
        self.need_script()
        async with self.opened(MIXED[what]) as model:
            items = await self.items(model, self._asking_for(what, model))
        merger, completed = StreamMerger(), None
        for item in items:
            if isinstance(item, StreamCompleted):
                completed = item.response.message
            else:
                merger.add(item)
        if completed is None:
            pytest.skip("the stream has no `StreamCompleted`: its pieces are all there is")
        shown, kept = merger.message(), completed
        assert (shown.text, _thoughts(shown)) == (kept.text, _thoughts(kept)), (
            "what was streamed is not what the answer says in the end: the user has read something "
            "that the history does not hold"
        )
        assert [(c.name, c.arguments) for c in shown.tool_calls] == [
            (c.name, c.arguments) for c in kept.tool_calls
        ], "the streamed calls are not those of the answer: what is shown is not what will run"

    async def test_pieces_of_calls_are_streamed(self) -> None:
        async with self.opened(call("get_weather", city="Paris")) as model:
            self.need(model, "tool_calling", "streaming_tool_chunks")
            request = asking("What is the weather in Paris? Use the tool.", tools=[WEATHER])
            items = await self.items(model, request)
        assert any(isinstance(item, ToolCallDelta) for item in items), (
            "the profile declares `streaming_tool_chunks`, and no piece of the call was streamed: the "
            "user would not see what is about to run"
        )

    @plain_and_streamed
    @pytest.mark.parametrize("alphabet", ALPHABETS)
    async def test_every_alphabet_arrives_as_it_was_said(
        self, alphabet: str, streamed: bool
    ) -> None:
        self.need_script()
        text = f"<{ALPHABETS[alphabet]}>"
        async with self.opened(say(*text)) as model:
            request = asking(SystemMessage(content=f"S{text}"), f"U{text}")
            response = await self.ask(model, request, streamed=streamed)
        assert response.text == text, (
            f"text of the kind `{alphabet}` does not arrive as it was said: whoever writes so would "
            "read garbage"
        )

    @pytest.mark.parametrize("shape", CONVERSATIONS)
    async def test_it_takes_every_shape_of_a_conversation(self, shape: str) -> None:
        async with self.opened(say("Fine.")) as model:
            response = await self.ask(model, asking(*CONVERSATIONS[shape]))
        self.check_text(response, "Fine.")

    @plain_and_streamed
    async def test_an_answer_that_was_cut_says_so(self, streamed: bool) -> None:
        self.need_script()
        async with self.opened(say("Once upon a", finish_reason="length")) as model:
            request = asking("Tell me a story.", settings=ModelSettings(max_tokens=16))
            response = await self.ask(model, request, streamed=streamed)
        assert response.text == "Once upon a"
        assert response.finish_reason == "length", (
            f"an answer that hit the token limit ended with `{response.finish_reason}`: half a text "
            "would be taken for a whole one"
        )

    def _asking_for(self, what: str, model: ChatModel) -> ModelRequest:
        """Return a request that one of :data:`MIXED` answers; skip what the model never says."""
        if what == "reasoning":
            self.need(model, "reasoning")
        if "call" in what:
            self.need(model, "tool_calling")
        if what == "two calls":
            self.need(model, "parallel_tool_calls")
        return asking("What is the weather?", tools=[WEATHER] if "call" in what else ())


def _thoughts(message: AssistantMessage) -> str:
    return "".join(block.text for block in message.content if block.type == "reasoning")
