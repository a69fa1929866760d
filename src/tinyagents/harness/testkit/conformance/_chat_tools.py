"""Tests of how a chat model calls tools, and takes their results."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from ...errors import InvalidRequestError
from ...message import AssistantMessage, ToolCallBlock, UserMessage
from ...model import ModelRequest, NamedTool
from ...runtime import AgentHarness
from .._fake_tool import FakeTool
from .._script import call, say
from ._chat_samples import ALPHABETS, RESULTS, TIME, WEATHER, answered
from ._chat_suite import ChatModelSuite, asking, plain_and_streamed

PARIS = "What is the weather in Paris? Use the tool."
BOTH = "What is the weather in Paris and in Rome? Use the tool twice at once."


class ToolBehaviour(ChatModelSuite):
    """Calls arrive whole, with ids that pair them with their results."""

    @plain_and_streamed
    async def test_it_calls_a_tool(self, streamed: bool) -> None:
        async with self.opened(call("get_weather", city="Paris")) as model:
            self.need(model, "tool_calling")
            response = await self.ask(model, asking(PARIS, tools=[WEATHER]), streamed=streamed)
        made = self._checked(response.message.tool_calls, 1)[0]
        assert made.name == "get_weather"
        self._check_arguments(made.arguments, {"city": "Paris"})
        assert response.finish_reason in ("tool_calls", None), (
            f"an answer with a call ended with `{response.finish_reason}`"
        )

    @plain_and_streamed
    async def test_a_call_may_have_no_arguments(self, streamed: bool) -> None:
        async with self.opened(call("get_time")) as model:
            self.need(model, "tool_calling")
            request = asking("What time is it? Use the tool.", tools=[TIME])
            response = await self.ask(model, request, streamed=streamed)
        made = self._checked(response.message.tool_calls, 1)[0]
        assert (made.name, made.arguments, made.invalid) == ("get_time", {}, None), (
            "a call without arguments is not read as one: such tools could never be called"
        )

    @plain_and_streamed
    async def test_calls_may_come_in_parallel(self, streamed: bool) -> None:
        script = call("get_weather", city="Paris") + call("get_weather", city="Rome")
        async with self.opened(script) as model:
            self.need(model, "tool_calling", "parallel_tool_calls")
            response = await self.ask(model, asking(BOTH, tools=[WEATHER]), streamed=streamed)
        made = self._checked(response.message.tool_calls, 2)
        if self.scripted:
            assert [each.arguments for each in made] == [{"city": "Paris"}, {"city": "Rome"}], (
                "parallel calls are mixed up or out of order: tools would get each other's arguments"
            )

    @plain_and_streamed
    async def test_ids_differ_from_turn_to_turn(self, streamed: bool) -> None:
        step = call("get_weather", city="Paris")
        async with self.opened(step, step) as model:
            self.need(model, "tool_calling")
            request = asking(PARIS, tools=[WEATHER])
            turns = [await self.ask(model, request, streamed=streamed) for _ in range(2)]
        ids = [each.id for turn in turns for each in turn.message.tool_calls]
        assert len(set(ids)) == len(ids), (
            f"two turns have calls of the same id, {ids}: a result would answer the wrong one"
        )

    @plain_and_streamed
    @pytest.mark.parametrize("alphabet", ALPHABETS)
    async def test_arguments_of_every_alphabet_arrive(self, alphabet: str, streamed: bool) -> None:
        self.need_script()
        text = ALPHABETS[alphabet]
        given = {"city": text, f"k{text}": [text, {"deep": None, "n": 2**53 + 1, "f": 1.5}]}
        async with self.opened(call("get_weather", given), say("Mild.")) as model:
            self.need(model, "tool_calling")
            response = await self.ask(model, asking(PARIS, tools=[WEATHER]), streamed=streamed)
            (made,) = self._checked(response.message.tool_calls, 1)
            assert made.arguments == given, (
                f"arguments of the kind `{alphabet}` do not arrive as they were written"
            )
            history = answered(PARIS, response.message, f"It is mild in {text}.")
            await self.ask(model, ModelRequest(messages=history, tools=[WEATHER]))

    @plain_and_streamed
    async def test_arguments_that_are_no_json_are_kept(self, streamed: bool) -> None:
        self.need_script()
        broken = '{"city": "Par'
        async with self.opened(call("get_weather", raw=broken)) as model:
            self.need(model, "tool_calling")
            response = await self.ask(model, asking(PARIS, tools=[WEATHER]), streamed=streamed)
        (made,) = response.message.tool_calls
        assert made.invalid is not None, (
            "broken arguments count as good ones: the tool would run with something else"
        )
        assert made.invalid.raw == broken

    @plain_and_streamed
    @pytest.mark.parametrize("choice", ["required", "named"])
    async def test_a_call_can_be_forced(self, choice: str, streamed: bool) -> None:
        async with self.opened(call("get_weather", city="Paris")) as model:
            self.need(model, "tool_calling", "forced_tool_choice")
            request = asking("Hello from Paris!", tools=[WEATHER])
            request.tool_choice = "required" if choice == "required" else NamedTool("get_weather")
            response = await self.ask(model, request, streamed=streamed)
        assert [each.name for each in response.message.tool_calls][:1] == ["get_weather"]

    async def test_calls_can_be_forbidden(self) -> None:
        async with self.opened(say("Hello.")) as model:
            self.need(model, "tool_calling")
            request = asking("Say hello.", tools=[WEATHER], tool_choice="none")
            response = await self.ask(model, request)
        assert not response.message.tool_calls, (
            "a call was made that was forbidden: what asks for a last word would get another call"
        )

    async def test_one_call_at_a_time_can_be_asked_for_or_is_refused(self) -> None:
        async with self.opened(call("get_weather", city="Paris")) as model:
            self.need(model, "tool_calling")
            request = asking(PARIS, tools=[WEATHER])
            request.settings = request.settings.model_copy(update={"parallel_tool_calls": False})
            try:
                response = await self.ask(model, request)
            except InvalidRequestError:
                return
        assert len(response.message.tool_calls) <= 1

    @pytest.mark.parametrize("what", RESULTS)
    async def test_results_go_back(self, what: str) -> None:
        async with self.opened(call("get_weather", city="Paris"), say("It is mild.")) as model:
            self.need(model, "tool_calling")
            if what in ("an image", "a file"):
                self.need_input(model, "image" if what == "an image" else "file")
            first = await self.ask(model, asking(PARIS, tools=[WEATHER]))
            history = answered(PARIS, first.message, RESULTS[what])
            try:
                response = await self.ask(model, ModelRequest(messages=history, tools=[WEATHER]))
            except InvalidRequestError:
                if what not in ("an image", "a file"):
                    raise
                return  # it has no form on the wire, and an application can act on that
        self.check_text(response, "It is mild.")

    async def test_results_of_parallel_calls_go_back_with_what_was_said(self) -> None:
        script = (
            say("I look.") + call("get_weather", city="Paris") + call("get_weather", city="Rome")
        )
        async with self.opened(script, say("Rome is warmer.")) as model:
            self.need(model, "tool_calling", "parallel_tool_calls")
            first = await self.ask(model, asking(BOTH, tools=[WEATHER]))
            results = ["18 degrees", "24 degrees"][: len(first.message.tool_calls)]
            history = answered(BOTH, first.message, *results)
            history.append(UserMessage(content="Which is warmer?"))
            response = await self.ask(model, ModelRequest(messages=history, tools=[WEATHER]))
        self.check_text(response, "Rome is warmer.")

    async def test_a_call_with_broken_arguments_can_be_told_to_the_model(self) -> None:
        made = ToolCallBlock.model_validate(
            {
                "id": "call_a",
                "name": "get_weather",
                "invalid": {"raw": '{"city": "Par', "reason": "the arguments are not JSON"},
            }
        )
        history = answered(PARIS, AssistantMessage(content=[made]), RESULTS["an error"])
        async with self.opened(say("I try again.")) as model:
            self.need(model, "tool_calling")
            response = await self.ask(model, ModelRequest(messages=history, tools=[WEATHER]))
        self.check_text(response, "I try again.")

    @plain_and_streamed
    async def test_an_agent_runs_on_it(self, streamed: bool) -> None:
        lookup = FakeTool.returning("18 degrees", name="get_weather", parameters=WEATHER.parameters)
        async with self.opened(call("get_weather", city="Paris"), say("It is mild.")) as model:
            self.need(model, "tool_calling")
            agent = AgentHarness(model=model, tools=[lookup])
            if streamed:
                self.need(model, "streaming")
                run = await agent.stream(None, PARIS).result()
            else:
                run = await agent.invoke(None, PARIS)
        assert lookup.calls, "the tool was not run, although the model called it"
        self._check_arguments(lookup.calls[0], {"city": "Paris"})
        if self.scripted:
            assert run.text == "It is mild."

    def _check_arguments(self, arguments: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
        found = arguments if self.scripted else dict.fromkeys(arguments, "")
        wanted = expected if self.scripted else dict.fromkeys(expected, "")
        assert found == wanted, (
            "the arguments are not those of the model: the tool would do something else"
        )

    def _checked(self, calls: Sequence[ToolCallBlock], expected: int) -> Sequence[ToolCallBlock]:
        """Return the calls, once they have what every call needs."""
        assert len(calls) == expected or (calls and not self.scripted), (
            f"the model made {expected} call(s) and {len(calls)} arrived: what is lost never runs"
        )
        ids = [each.id for each in calls]
        assert all(ids), "a call has no id: its result could not be paired with it"
        assert len(set(ids)) == len(ids), (
            f"calls of one answer share an id, {ids}: their results could not be told apart"
        )
        for each in calls:
            assert each.invalid is None, (
                f"good arguments count as broken: {each.invalid.reason}, {each.invalid.raw!r}"
            )
        return calls
