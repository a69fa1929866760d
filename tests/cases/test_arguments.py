"""Arguments that are blank, no object, or written as text, over a real wire."""

from collections.abc import Callable
from typing import Any

import orjson
import pytest

from tests.harness.providers.server import Reply
from tinyagents import RunPolicy, tool
from tinyagents.testkit import assert_event_grammar

from .dialects import Called, Dialect, Said, both_ways, every_dialect
from .wire import END_CALLS, agent_on, fragment, is_valid, kinds, results, streamed, text, whole

Way = Callable[[str | None, str], Reply]


def in_a_stream(arguments: str | None, name: str) -> Reply:
    return streamed(fragment(arguments, id="k1", name=name), END_CALLS)


def in_one_piece(arguments: str | None, name: str) -> Reply:
    function = {"name": name, "arguments": arguments}
    call = {"id": "k1", "type": "function", "function": function}
    return whole({"content": None, "tool_calls": [call]}, "tool_calls")


WAYS = [
    pytest.param(in_a_stream, True, id="streamed"),
    pytest.param(in_one_piece, False, id="plain"),
]


@tool
async def now() -> str:
    """Tell the time."""
    return "noon"


@tool
async def weather(city: str) -> str:
    """Tell the weather."""
    return city


@pytest.mark.parametrize(("way", "stream"), WAYS)
@pytest.mark.parametrize("arguments", ["", "null", "   ", "{}", None])
async def test_blank_arguments_call_a_tool_that_needs_none(
    arguments: str | None, way: Way, stream: bool
) -> None:
    # C10
    last = streamed(text("ok"), END_CALLS) if stream else whole({"content": "ok"})
    async with agent_on(way(arguments, "now"), last, tools=[now]) as (agent, server):
        run = await (agent.stream(None, "go").result() if stream else agent.invoke(None, "go"))
        replayed = server.requests[1].document["messages"][1]["tool_calls"][0]
    assert [(result.text, result.is_error) for result in results(run)] == [("noon", False)]
    assert replayed["function"]["arguments"] == "{}"
    assert run.text == "ok"


@pytest.mark.parametrize(("way", "stream"), WAYS)
async def test_blank_arguments_of_a_tool_that_needs_some_name_what_is_missing(
    way: Way, stream: bool
) -> None:
    # C10
    last = streamed(text("ok"), END_CALLS) if stream else whole({"content": "ok"})
    async with agent_on(way("", "weather"), last, tools=[weather]) as (agent, _):
        run = await (agent.stream(None, "go").result() if stream else agent.invoke(None, "go"))
    (result,) = results(run)
    assert result.is_error
    assert "city" in result.text
    assert run.text == "ok"


@pytest.mark.parametrize(("way", "stream"), WAYS)
@pytest.mark.parametrize("arguments", ["[1]", '"x"', "7", "true"])
async def test_arguments_that_are_no_object_are_answered_and_replayed_as_an_object(
    arguments: str, way: Way, stream: bool
) -> None:
    # C11
    last = streamed(text("ok"), END_CALLS) if stream else whole({"content": "ok"})
    async with agent_on(way(arguments, "now"), last, tools=[now]) as (agent, server):
        run = await (agent.stream(None, "go").result() if stream else agent.invoke(None, "go"))
        replayed = server.requests[1].document["messages"][1]["tool_calls"][0]
    (result,) = results(run)
    assert result.is_error
    assert replayed["function"]["arguments"].startswith("{")
    assert "tool.failed" not in kinds(run)
    assert run.text == "ok"
    assert is_valid(run)
    assert_event_grammar(run.events)


MEANT: dict[str, Any] = {
    "numbers": [1, 2],
    "options": {"a": 1},
    "count": 5,
    "share": 0.5,
    "sure": True,
    "note": "[1, 2]",
}
AS_TEXT = {
    "numbers": "[1, 2]",
    "options": '{"a": 1}',
    "count": "5",
    "share": "0.5",
    "sure": "true",
    "note": "[1, 2]",
}


def encoded(value: Any) -> str:
    return orjson.dumps(value).decode()


WRITTEN = [
    pytest.param(encoded(AS_TEXT), id="the-fields"),
    pytest.param(encoded(encoded(MEANT)), id="all-of-them"),
    pytest.param(encoded(encoded(AS_TEXT)), id="both"),
    pytest.param(encoded({**MEANT, "numbers": "[1, 2]"}), id="one-field"),
]


@every_dialect
@both_ways
@pytest.mark.parametrize("written", WRITTEN)
async def test_values_that_a_model_wrote_as_json_text_reach_the_tool_as_values(
    written: str, stream: bool, dialect: Dialect
) -> None:
    seen: list[dict[str, Any]] = []

    @tool
    async def note_down(
        numbers: list[int],
        options: dict[str, int],
        count: int,
        share: float,
        sure: bool,
        note: str,
    ) -> str:
        """Note down."""
        values = {"numbers": numbers, "options": options, "count": count}
        seen.append({**values, "share": share, "sure": sure, "note": note})
        return "noted"

    call = Called(id="k1", name="note_down", arguments=written)
    first = dialect.answer(Said(calls=(call,)), stream=stream)
    last = dialect.answer(Said(text="ok"), stream=stream)
    policy = RunPolicy.resilient()
    async with agent_on(first, last, tools=[note_down], dialect=dialect, policy=policy) as (
        agent,
        _,
    ):
        run = await (agent.stream(None, "go").result() if stream else agent.invoke(None, "go"))
    assert seen == [MEANT]
    assert [(result.text, result.is_error) for result in results(run)] == [("noted", False)]
    assert run.text == "ok"
    assert is_valid(run)


@every_dialect
@both_ways
async def test_text_that_is_no_value_of_the_wanted_kind_is_answered_and_never_guessed_at(
    stream: bool, dialect: Dialect
) -> None:
    ran: list[list[int]] = []

    @tool
    async def add(numbers: list[int]) -> int:
        """Add."""
        ran.append(numbers)
        return sum(numbers)

    call = Called(id="k1", name="add", arguments=encoded({"numbers": "1 and 2"}))
    first = dialect.answer(Said(calls=(call,)), stream=stream)
    last = dialect.answer(Said(text="ok"), stream=stream)
    policy = RunPolicy.resilient()
    async with agent_on(first, last, tools=[add], dialect=dialect, policy=policy) as (agent, _):
        run = await (agent.stream(None, "go").result() if stream else agent.invoke(None, "go"))
    assert ran == []
    (result,) = results(run)
    assert result.is_error
    assert "numbers" in result.text
    assert run.text == "ok"
