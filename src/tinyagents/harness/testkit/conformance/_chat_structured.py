"""Tests of answers that have a form: by the provider's own means, and by a tool call."""

from collections.abc import AsyncIterator
from typing import Any, Literal, TypeAlias

import pytest
from pydantic import BaseModel

from ...context import RunContext
from ...model import (
    ChatModel,
    JsonObjectFormat,
    ModelProfile,
    ModelRequest,
    ModelResponse,
    ModelStreamItem,
    NamedTool,
)
from ...runtime import AgentHarness
from ...structured import OutputSpec
from ...text import parse_json
from .._script import Reply, call, refuse, say, say_json
from ._chat_suite import ChatModelSuite, asking, plain_and_streamed


class City(BaseModel):
    """A city."""

    name: str
    country: str | None = None


class Person(BaseModel):
    """A person."""

    kind: Literal["person"] = "person"
    name: str
    homes: list[City] = []


class Place(BaseModel):
    """A place."""

    kind: Literal["place"] = "place"
    city: City


Found: TypeAlias = Person | Place

TYPES: dict[str, tuple[Any, Any, str]] = {
    "an object": (City, {"name": "Paris", "country": "France"}, "What is the capital of France?"),
    "optional fields": (City, {"name": "Paris"}, "Name a city, and no country."),
    "nested objects": (
        Person,
        {"kind": "person", "name": "Ada", "homes": [{"name": "London", "country": None}]},
        "Ada is a person who lives in London. Who is she?",
    ),
    "a union": (
        Found,
        {"value": {"kind": "place", "city": {"name": "Paris"}}},
        "Is Paris a person or a place?",
    ),
    "a list": (list[City], {"value": [{"name": "Paris"}, {"name": "Rome"}]}, "Name two cities."),
}
"""Types, an answer as it is on the wire, and a question."""

every_type = pytest.mark.parametrize("what", TYPES)


class _WithoutSchemas:
    """A model that does not say that it keeps to schemas, so that a run asks it by a tool."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model
        hidden = {"native_structured_output": False}
        self.profile: ModelProfile = model.profile.model_copy(update=hidden)

    async def invoke(
        self, request: ModelRequest, *, ctx: RunContext[Any] | None = None
    ) -> ModelResponse:
        return await self._model.invoke(request, ctx=ctx)

    def stream(
        self, request: ModelRequest, *, ctx: RunContext[Any] | None = None
    ) -> AsyncIterator[ModelStreamItem]:
        return self._model.stream(request, ctx=ctx)


class StructuredBehaviour(ChatModelSuite):
    """An answer has the form that was asked for."""

    @plain_and_streamed
    @every_type
    async def test_an_answer_has_the_form_of_a_schema(self, what: str, streamed: bool) -> None:
        wanted, value, question = TYPES[what]
        spec = OutputSpec(wanted)
        async with self.opened(say_json(value)) as model:
            self.need(model, "json_schema")
            request = asking(question, response_format=spec.response_format())
            response = await self.ask(model, request, streamed=streamed)
        answered, _ = spec.parse(response.text)
        if self.scripted:
            assert answered == value, "the structured answer is not the one that the model gave"

    @plain_and_streamed
    @every_type
    async def test_an_answer_has_the_form_of_a_tool(self, what: str, streamed: bool) -> None:
        wanted, value, question = TYPES[what]
        spec = OutputSpec(wanted)
        tool = spec.tool_schema()
        async with self.opened(call(tool.name, value)) as model:
            self.need(model, "tool_calling")
            request = asking(f"{question} Answer by the tool.", tools=[tool])
            if model.profile.forced_tool_choice:
                request.tool_choice = NamedTool(tool.name)
            response = await self.ask(model, request, streamed=streamed)
        assert response.message.tool_calls, "the answer was not given by its tool"
        made = response.message.tool_calls[0]
        assert made.name == tool.name, (
            f"the answer's tool is `{tool.name}` and `{made.name}` was called: names that a provider "
            "does not take must be translated both ways"
        )
        spec.check(made.arguments)
        if self.scripted:
            assert made.arguments == value

    @plain_and_streamed
    async def test_an_answer_is_a_json_object(self, streamed: bool) -> None:
        async with self.opened(say_json({"name": "Paris"})) as model:
            self.need(model, "json_mode")
            request = asking("Name a city as JSON.", response_format=JsonObjectFormat())
            response = await self.ask(model, request, streamed=streamed)
        value = parse_json(response.text)
        assert isinstance(value, dict), f"the answer is no JSON object: {response.text!r}"

    @plain_and_streamed
    @pytest.mark.parametrize("strategy", ["native", "tool"])
    @pytest.mark.parametrize("what", ["an object", "a union"])
    async def test_a_run_ends_with_a_value_of_the_type(
        self, what: str, strategy: str, streamed: bool
    ) -> None:
        wanted, value, question = TYPES[what]
        spec: OutputSpec[Any] = OutputSpec(wanted)
        step = say_json(value) if strategy == "native" else _called(spec, value)
        async with self.opened(step) as model:
            if strategy == "native":
                self.need(model, "json_schema", "native_structured_output")
                agent = AgentHarness(model=model)
            else:
                self.need(model, "tool_calling")
                agent = AgentHarness(model=_WithoutSchemas(model))
            if streamed:
                self.need(model, "streaming")
                run = await agent.stream(None, question, output=wanted).result()
            else:
                run = await agent.invoke(None, question, output=wanted)
        if self.scripted:
            assert run.output == spec.check(value), "the run's value is not what the model answered"

    @plain_and_streamed
    async def test_a_refusal_is_told_from_an_answer(self, streamed: bool) -> None:
        self.need_script()
        async with self.opened(refuse("I must ", "not.")) as model:
            response = await self.ask(model, asking("Do what you must not."), streamed=streamed)
        assert response.refusal == "I must not.", (
            "a refusal is not told as one: it would be taken for an answer"
        )
        assert response.text == ""

    @plain_and_streamed
    async def test_a_structured_answer_that_was_cut_says_so(self, streamed: bool) -> None:
        self.need_script()
        spec = OutputSpec(City)
        async with self.opened(say('{"name": "Par', finish_reason="length")) as model:
            self.need(model, "json_schema")
            request = asking("Name a city.", response_format=spec.response_format())
            response = await self.ask(model, request, streamed=streamed)
        assert (response.text, response.finish_reason) == ('{"name": "Par', "length"), (
            "an answer that hit the token limit does not say so: the error would blame the model's "
            "JSON instead of the limit"
        )


def _called(spec: OutputSpec[Any], value: Any) -> Reply:
    """Return the answer as a call of the tool for its type."""
    return call(type(spec.check(value)).__name__, value.get("value", value))
