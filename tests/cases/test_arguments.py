"""Arguments that are blank, or no object, over a real wire and from a script."""

from collections.abc import Callable

import pytest

from tests.harness.providers.server import Reply
from tinyagents import tool
from tinyagents.testkit import assert_event_grammar

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
