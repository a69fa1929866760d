"""Tests of what a chat model is given: files, settings, and histories that others wrote."""

import pytest

from ...errors import InvalidRequestError
from ...message import TextBlock, UserMessage, dump_messages, load_messages
from ...model import Modality, ModelRequest, ModelSettings
from .._script import call, say, think
from ._chat_samples import FOREIGN, MEDIA, WEATHER, answered
from ._chat_suite import ChatModelSuite, asking, plain_and_streamed

SETTINGS: dict[str, ModelSettings] = {
    "stop": ModelSettings(stop=("STOP-HERE",)),
    "max_tokens": ModelSettings(max_tokens=321),
    "temperature": ModelSettings(temperature=0.25),
    "top_p": ModelSettings(top_p=0.875),
    "seed": ModelSettings(seed=4_242),
    "provider_options": ModelSettings(provider_options={"conformance_option": "kept-as-it-is"}),
}


class InputBehaviour(ChatModelSuite):
    """What is given is used or refused, and never dropped."""

    @pytest.mark.parametrize("kind", MEDIA)
    async def test_it_takes_the_kinds_of_input_of_its_profile(self, kind: Modality) -> None:
        block, question = MEDIA[kind]
        async with self.opened(say("I see.")) as model:
            self.need_input(model, kind)
            request = asking(UserMessage(content=[TextBlock(text=question), block]))
            response = await self.ask(model, request)
        self.check_text(response, "I see.")

    @pytest.mark.parametrize("setting", SETTINGS)
    async def test_a_setting_is_used_or_refused(self, setting: str) -> None:
        if setting == "provider_options" and not self.scripted:
            pytest.skip("`scripted` is False, and a live model may refuse a made-up option")
        async with self.opened(say("Fine.")) as model:
            request = asking("How are you?", settings=SETTINGS[setting])
            try:
                response = await self.ask(model, request)
            except InvalidRequestError:
                if setting == "temperature" and model.profile.temperature:
                    raise  # the profile says that it takes one
                return
        self.check_text(response, "Fine.")

    @pytest.mark.parametrize("history", FOREIGN)
    async def test_it_continues_what_another_provider_began(self, history: str) -> None:
        async with self.opened(say("I go on.")) as model:
            if "calls" in history:
                self.need(model, "tool_calling", "parallel_tool_calls")
            tools = [WEATHER] if "calls" in history else []
            response = await self.ask(model, ModelRequest(messages=FOREIGN[history], tools=tools))
        self.check_text(response, "I go on.")

    async def test_a_name_in_the_request_is_not_sent(self) -> None:
        async with self.opened(say("Fine.")) as model:
            request = asking("How are you?", model="registered-name")
            response = await self.ask(model, request)
        self.check_text(response, "Fine.")

    @plain_and_streamed
    async def test_an_answer_can_be_stored_and_sent_back(self, streamed: bool) -> None:
        script = think("The user asks.") + say("I look.") + call("get_weather", city="Paris")
        async with self.opened(script, say("Mild."), say("Mild.")) as model:
            self.need(model, "tool_calling")
            question = "What is the weather in Paris? Use the tool."
            request = asking(question, tools=[WEATHER])
            first = await self.ask(model, request, streamed=streamed)
            results = ["18 degrees"] * len(first.message.tool_calls)
            history = answered(question, first.message, *results)
            loaded = load_messages(dump_messages(history))
            assert loaded == history, (
                "the answer is another one after it was stored: a conversation that is resumed would "
                "differ from one that goes on"
            )
            await self.ask(model, ModelRequest(messages=history, tools=[WEATHER]))
            response = await self.ask(model, ModelRequest(messages=loaded, tools=[WEATHER]))
        self.check_text(response, "Mild.")
