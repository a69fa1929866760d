"""The middleware that writes a line for each step of a run."""

import logging
from collections.abc import Iterator
from typing import Any

import anyio
import pytest

from tinyagents import AgentHarness, RunConfig, ToolContext, tool
from tinyagents.harness.errors import BadRequestError, ConfigurationError
from tinyagents.harness.middleware import LoggingMiddleware
from tinyagents.testkit import ScriptedModel, call, fail, say

SECRET = "the secret word"


@tool
async def search(query: str, *, ctx: ToolContext[Any]) -> str:
    """Search the catalogue."""
    ctx.progress(f"half of {query}")
    return f"found {query}"


class Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    @property
    def texts(self) -> list[str]:
        return [record.getMessage() for record in self.records]


@pytest.fixture
def lines() -> Iterator[Lines]:
    handler, logger = Lines(), logging.getLogger("tinyagents.runs")
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    yield handler
    logger.removeHandler(handler)
    logger.setLevel(before)


def make(*middleware: LoggingMiddleware, model: ScriptedModel | None = None) -> AgentHarness:
    script = ScriptedModel([call("search", query=SECRET), say(SECRET)])
    return AgentHarness(model=model or script, tools=[search], middleware=middleware)


async def test_each_step_is_a_line_that_names_the_run_and_no_content(lines: Lines) -> None:
    await make(LoggingMiddleware(label="shop")).invoke(None, SECRET, config=RunConfig(run_id="r1"))
    first, *_, last = lines.texts
    assert first == "shop before_agent run=r1 name=agent depth=0"
    assert last.startswith("shop after_agent run=r1 status=completed messages=4 input_tokens=")
    assert [text.split()[1] for text in lines.texts if "delta" not in text] == [
        "before_agent",
        "before_model",
        "after_model",
        "before_tool",
        "after_tool",
        "before_model",
        "after_model",
        "after_agent",
    ]
    assert not any(SECRET in text or "content" in text for text in lines.texts)
    assert not any(SECRET in str(vars(record)) for record in lines.records)


async def test_content_is_added_where_it_is_asked_for_and_cut(lines: Lines) -> None:
    await make(LoggingMiddleware(include_content=True, max_characters=8)).invoke(None, SECRET)
    (told,) = [text for text in lines.texts if " after_tool " in text]
    assert told.endswith('is_error=False content="found th…"')


async def test_counts_are_kept_of_each_hook_in_streams_too(lines: Lines) -> None:
    logs = LoggingMiddleware()
    agent = make(logs)
    async with agent.stream(None, "?") as stream:
        await stream.result()
    assert logs.counts["before_agent"] == logs.counts["after_agent"] == 1
    assert logs.counts["before_model"] == logs.counts["after_model"] == 2
    assert logs.counts["before_tool"] == logs.counts["after_tool"] == 1
    assert logs.counts["on_model_delta"] > 0
    assert logs.counts["on_tool_delta"] == 1
    shown = [text for text in lines.texts if "on_tool_delta" in text]
    assert shown == [
        f"agent on_tool_delta run={_run(shown)} tool=search call_id={_id(shown)} characters=23"
    ]


def _run(texts: list[str]) -> str:
    return texts[0].split("run=")[1].split()[0]


def _id(texts: list[str]) -> str:
    return texts[0].split("call_id=")[1].split()[0]


async def test_levels_are_those_that_were_set_and_what_is_below_is_counted_only(
    lines: Lines,
) -> None:
    logger = logging.getLogger("tinyagents.runs")
    logger.setLevel(logging.WARNING)
    logs = LoggingMiddleware(levels={"after_tool": logging.WARNING}, logger=logger)
    await make(logs).invoke(None, "?")
    assert [(r.levelname, r.getMessage().split()[1]) for r in lines.records] == [
        ("WARNING", "after_tool")
    ]
    assert logs.counts["before_model"] == 2


async def test_an_error_is_told_by_its_kind(lines: Lines) -> None:
    model = ScriptedModel([fail(BadRequestError(SECRET))])
    with pytest.raises(BadRequestError):
        await make(LoggingMiddleware(), model=model).invoke(None, "?")
    record = lines.records[-1]
    assert record.levelno == logging.ERROR
    assert record.getMessage().endswith("error=BadRequestError error_kind=bad_request")
    facts: dict[str, Any] = vars(record)["tinyagents"]
    assert facts["hook"] == "on_error"
    assert facts["error_kind"] == "bad_request"


async def test_what_a_model_writes_never_begins_a_line_of_its_own(lines: Lines) -> None:
    model = ScriptedModel([call("search", query="a\nERROR root: b\x1b[31m\u2028c"), say("x")])
    await make(LoggingMiddleware(include_content=True), model=model).invoke(None, "?")
    assert any("ERROR root" in text for text in lines.texts)
    for text in lines.texts:
        assert text.isprintable()


async def test_runs_at_the_same_time_name_themselves(lines: Lines) -> None:
    agent = make(LoggingMiddleware())
    async with anyio.create_task_group() as group:
        for name in ("a", "b"):

            async def one(name: str = name) -> None:
                script = ScriptedModel([call("search", query="x"), say("y")])
                await agent.invoke(None, "?", model=script, config=RunConfig(run_id=name))

            group.start_soon(one)
    for name in ("a", "b"):
        assert sum(f" run={name} " in text for text in lines.texts) == len(lines.texts) // 2


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"levels": {"befor_model": 10}}, "`befor_model`, which is not logged"),
        ({"levels": {"on_error": "INFO"}}, "pass a number"),
        ({"max_characters": 0}, "is a number above 0"),
    ],
)
def test_options_that_cannot_work_are_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        LoggingMiddleware(**options)
