"""StructuredOutputValidatorMiddleware: the form of each answer, and nobody is asked again."""

from typing import Any

import pytest
from pydantic import BaseModel

from tinyagents import AgentHarness, tool
from tinyagents.harness.errors import (
    InvalidRequestError,
    OutputRefusedError,
    OutputTruncatedError,
    StructuredOutputError,
)
from tinyagents.harness.middleware import StructuredOutputValidatorMiddleware
from tinyagents.harness.model import JsonObjectFormat, JsonSchemaFormat
from tinyagents.testkit import ScriptedModel, assert_event_grammar, call, refuse, say


class City(BaseModel):
    name: str


FORMAT = JsonSchemaFormat(
    name="city",
    schema={"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
)


@tool
async def lookup(key: str) -> str:
    """Look up."""
    return "found"


def checked(expected: Any, *steps: Any, **options: Any) -> AgentHarness:
    return AgentHarness(
        model=ScriptedModel(list(steps)),
        tools=[lookup],
        middleware=[StructuredOutputValidatorMiddleware(expected, **options)],
    )


async def test_free_text_is_not_checked() -> None:
    run = await checked(None, say("Hello.")).invoke(None, "hi")
    assert run.text == "Hello."


@pytest.mark.parametrize(
    ("expected", "text", "value"),
    [
        (City, '{"name":"Oslo"}', City(name="Oslo")),
        (City, '```json\n{"name":"Oslo"}\n```', City(name="Oslo")),
        (FORMAT, '{"name":"Oslo"}', {"name": "Oslo"}),
        (JsonObjectFormat(), '{"a":1}', {"a": 1}),
    ],
)
@pytest.mark.parametrize("streamed", [False, True])
async def test_what_fits_passes_and_is_on_the_response(
    expected: Any, text: str, value: Any, streamed: bool
) -> None:
    agent = checked(expected, say(text))
    run = await (agent.stream(None, "go").result() if streamed else agent.invoke(None, "go"))
    assert run.response is not None
    assert run.response.structured == value
    assert run.text == text


@pytest.mark.parametrize(
    ("expected", "step", "error"),
    [
        (City, say('{"name":1}'), StructuredOutputError),
        (FORMAT, say('{"name":1}'), StructuredOutputError),
        (JsonObjectFormat(), say("Hello."), StructuredOutputError),
        (City, say(""), StructuredOutputError),
        (City, say('{"name":"Oslo"}', finish_reason="length"), OutputTruncatedError),
        (City, refuse("No."), OutputRefusedError),
    ],
)
async def test_what_does_not_fit_ends_the_run_at_once(
    expected: Any, step: Any, error: type[StructuredOutputError]
) -> None:
    with pytest.raises(error) as caught:
        await checked(expected, step).invoke(None, "go")
    assert type(caught.value) is error
    assert caught.value.run is not None
    assert caught.value.run.model_calls == 1
    assert_event_grammar(caught.value.run)


async def test_answers_that_call_tools_must_fit_too_unless_they_are_skipped() -> None:
    steps = [call("lookup", key="k"), say('{"name":"Oslo"}')]
    with pytest.raises(StructuredOutputError, match="empty"):
        await checked(City, *steps).invoke(None, "go")
    run = await checked(City, *steps, skip_tool_turns=True).invoke(None, "go")
    assert run.text == '{"name":"Oslo"}'


def test_what_cannot_be_described_is_refused_when_it_is_made() -> None:
    with pytest.raises(InvalidRequestError, match="no JSON Schema"):
        StructuredOutputValidatorMiddleware({"type": "strin"})
