"""Types that strict mode refuses, as the type of an answer and of a tool's argument."""

from collections.abc import Iterator
from typing import Any

import orjson
from pydantic import BaseModel, ConfigDict

from tests.harness.providers.server import serve
from tinyagents import AgentHarness, AgentRun, ToolOutput, tool
from tinyagents.harness.events import ModelAdapted
from tinyagents.harness.model import ModelProfile

from .dialects import (
    ANTHROPIC,
    CHAT,
    OLLAMA,
    RESPONSES,
    Called,
    Dialect,
    Said,
    both_ways,
    every_dialect,
)
from .wire import in_turn, is_valid, results

PROVIDERS = {CHAT: "openai", RESPONSES: "openai", ANTHROPIC: "anthropic"}
"""Whose rules hold on a server of ours: those that know a strict mode."""


class N(BaseModel):
    """A tree whose nodes are open, and hold a dict of any keys."""

    model_config = ConfigDict(extra="allow")

    kids: list["N"]
    tags: dict[str, int]


GOOD = {"kids": [{"kids": [], "tags": {}}], "tags": {"a": 1}, "more": True}
BAD = {"kids": [{"kids": [], "tags": {"a": "many"}}], "tags": {"a": 1}}


@tool
async def plant(tree: N) -> str:
    """Plant a tree."""
    return f"{len(tree.kids)} kid, tags {tree.tags}"


def options(dialect: Dialect) -> dict[str, Any]:
    """Have the rules of a provider, and its own way to hold an answer to a schema."""
    made: dict[str, Any] = {"profile": ModelProfile.permissive(dialect.name, "m")}
    return made | ({"provider": PROVIDERS[dialect]} if dialect in PROVIDERS else {})


def values_of(document: Any, name: str) -> Iterator[Any]:
    """All values of a field of this name, at any depth, also of a schema that a prompt describes."""
    match document:
        case dict():
            for key, value in document.items():
                if key == name:
                    yield value
                yield from values_of(value, name)
        case list():
            for item in document:
                yield from values_of(item, name)
        case str() if "JSON Schema:\n" in document:
            yield from values_of(orjson.loads(document.partition("JSON Schema:\n")[2]), name)
        case _:
            return


def check_schema(body: Any) -> None:
    """The recursion is a reference, the dict is open, and nothing is strict."""
    assert [ref for ref in values_of(body, "$ref") if str(ref).endswith("/N")]
    assert True not in [*values_of(body, "strict")]
    tags = [*values_of(body, "tags")]
    assert tags
    assert all(each["additionalProperties"] == {"type": "integer"} for each in tags)


def check_notices(run: AgentRun[Any, Any], *, told: bool) -> None:
    """Whoever asks for less than there is says so and names `tags`; nobody else says anything."""
    adapted = [event for event in run.events if isinstance(event, ModelAdapted)]
    assert bool(adapted) == told
    for event in adapted:
        assert [notice for notice in event.notices if ".tags`" in notice]


@every_dialect
@both_ways
async def test_an_open_and_recursive_type_is_an_answer_and_a_bad_one_is_caught(
    stream: bool, dialect: Dialect
) -> None:
    # C43
    said = (orjson.dumps(value).decode() for value in (BAD, GOOD))
    replies = [dialect.answer(Said(text=text), stream=stream) for text in said]
    async with (
        serve(in_turn(*replies)) as server,
        dialect.model(server.url, **options(dialect)) as model,
    ):
        agent = AgentHarness(model=model)
        if stream:
            run = await agent.stream(None, "go", output=N).result()
        else:
            run = await agent.invoke(None, "go", output=N)
    assert run.output == N.model_validate(GOOD)
    assert len(server.requests) == 2
    check_schema(server.requests[0].document)
    check_notices(run, told=dialect in PROVIDERS)
    corrected = server.requests[1].body
    assert b"tags" in corrected[corrected.rindex(b"many") :]


@every_dialect
@both_ways
async def test_an_open_and_recursive_argument_is_taken_and_a_bad_one_is_caught(
    stream: bool, dialect: Dialect
) -> None:
    # C43
    calls = [
        Called(id=f"k{number}", name="plant", arguments=orjson.dumps({"tree": tree}).decode())
        for number, tree in enumerate((BAD, GOOD))
    ]
    replies = [dialect.answer(Said(calls=(call,)), stream=stream) for call in calls]
    last = dialect.answer(Said(text="ok"), stream=stream)
    async with (
        serve(in_turn(*replies, last)) as server,
        dialect.model(server.url, **options(dialect)) as model,
    ):
        agent = AgentHarness(model=model, tools=[plant])
        run = await (agent.stream(None, "go").result() if stream else agent.invoke(None, "go"))
    bad, good = results(run)
    assert bad.is_error
    assert "tags" in bad.text
    assert (good.text, good.is_error) == ("1 kid, tags {'a': 1}", False)
    assert run.text == "ok"
    assert is_valid(run)
    check_schema(server.requests[0].document)
    # Anthropic's tools are strict only where that is asked for.
    check_notices(run, told=dialect in (CHAT, RESPONSES))


@every_dialect
@both_ways
async def test_an_open_and_recursive_type_is_an_answer_by_a_tool_too(
    stream: bool, dialect: Dialect
) -> None:
    # C43
    can = options(dialect)
    # Ollama's API cannot force a call, whatever its model can.
    forced = dialect is not OLLAMA
    can["profile"] = can["profile"].model_copy(update={"forced_tool_choice": forced})
    calls = [
        Called(id=f"k{number}", name="N", arguments=orjson.dumps(value).decode())
        for number, value in enumerate((BAD, GOOD))
    ]
    replies = [dialect.answer(Said(calls=(call,)), stream=stream) for call in calls]
    async with (
        serve(in_turn(*replies)) as server,
        dialect.model(server.url, **can) as model,
    ):
        agent = AgentHarness(model=model)
        if stream:
            run = await agent.stream(None, "go", output=ToolOutput(N)).result()
        else:
            run = await agent.invoke(None, "go", output=ToolOutput(N))
    assert run.output == N.model_validate(GOOD)
    assert is_valid(run)
    assert len(server.requests) == 2
    check_schema(server.requests[0].document)
    corrected = server.requests[1].body
    assert b"tags" in corrected[corrected.rindex(b"many") :]
