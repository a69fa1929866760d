"""The middleware that asks a model which tools a request needs."""

from decimal import Decimal
from typing import Any

import anyio
import pytest

from tinyagents import (
    AgentHarness,
    AgentRun,
    CancellationToken,
    Middleware,
    RunContext,
    RunLimits,
    RunPolicy,
    SystemMessage,
    ToolMessage,
    Usage,
    UserMessage,
)
from tinyagents.harness.cost import ModelPricing
from tinyagents.harness.errors import ConfigurationError, RunCancelledError, ServerError
from tinyagents.harness.events import (
    CostRecorded,
    ToolSelectionFailed,
    ToolsFiltered,
    UsageRecorded,
)
from tinyagents.harness.middleware import ModelToolSelectionMiddleware, before_model
from tinyagents.harness.model import ModelProfile, ModelRequest, ModelSettings
from tinyagents.testkit import (
    FakeTool,
    ScriptedModel,
    assert_event_grammar,
    call,
    fail,
    hang,
    say,
)

TELL = RunPolicy(refused_tools="return_to_model")
NAMES = ("archive", "book", "convert", "draw")


def chosen(*names: str) -> Any:
    listed = ",".join(f'"{name}"' for name in names)
    return say(f'{{"tools":[{listed}]}}')


def make(
    model: ScriptedModel, *middleware: Middleware[Any], tools: tuple[str, ...] = NAMES
) -> AgentHarness:
    return AgentHarness(
        model=model,
        tools=[FakeTool(name, description=f"Can {name}.\n\nWell.") for name in tools],
        middleware=middleware,
        policy=TELL,
    )


def offered(model: ScriptedModel) -> list[list[str]]:
    return [[tool.name for tool in request.tools] for request in model.requests]


def refused(run: AgentRun[Any, Any]) -> list[bool]:
    return [message.is_error for message in run.messages if isinstance(message, ToolMessage)]


async def test_the_model_sees_and_may_call_only_what_was_chosen() -> None:
    chooser = ScriptedModel([chosen("draw", "book")])
    model = ScriptedModel([[call("book"), call("convert")], say("done")])
    gate = ModelToolSelectionMiddleware(chooser, max_tools=2)
    run = await make(model, gate).invoke(None, "Book a room.")
    assert offered(model) == [["book", "draw"], ["book", "draw"]]
    assert refused(run) == [False, True]
    (first, _) = (event for event in run.events if isinstance(event, ToolsFiltered))
    assert (first.by, first.excluded) == ("ModelToolSelectionMiddleware", ("archive", "convert"))
    assert_event_grammar(run)


async def test_the_choosing_model_is_shown_the_conversation_and_the_tools() -> None:
    chooser = ScriptedModel([chosen("book")])
    gate = ModelToolSelectionMiddleware(
        chooser, max_tools=2, settings=ModelSettings(max_tokens=50), instructions="Choose well."
    )
    model = ScriptedModel([say("done")])
    await make(model, gate).invoke(None, "Book a room.")
    (request,) = chooser.requests
    assert request.messages[0] == SystemMessage(content="Choose well.")
    asked = request.messages[1].text
    assert "user: Book a room." in asked
    assert "- book: Can book. Well." in asked
    assert request.settings.max_tokens == 50
    assert request.response_format is not None
    assert not request.tools


async def test_long_texts_are_shortened_for_the_choosing_model() -> None:
    chooser = ScriptedModel([chosen("b")])
    tools = [FakeTool(name, description="long " * 1000) for name in "abc"]
    model = ScriptedModel([say("done")])
    agent = AgentHarness(
        model=model,
        tools=tools,
        middleware=[ModelToolSelectionMiddleware(chooser, max_tools=2)],
    )
    history = [UserMessage(content="x" * 100_000) for _ in range(50)]
    await agent.invoke(None, history)
    assert len(chooser.requests[0].messages[1].text) < 14_000


async def test_it_is_asked_once_for_each_message_of_the_user() -> None:
    chooser = ScriptedModel([chosen("book"), chosen("draw")])
    model = ScriptedModel([call("book"), call("book"), say("one"), call("draw"), say("two")])
    agent = make(model, ModelToolSelectionMiddleware(chooser, max_tools=1))
    first = await agent.invoke(None, "Book a room.")
    assert offered(model) == [["book"]] * 3
    await agent.invoke(None, [*first.messages, UserMessage(content="Draw it.")])
    assert offered(model)[3:] == [["draw"]] * 2
    assert len(chooser.requests) == 2


async def test_it_is_asked_again_for_other_tools() -> None:
    @before_model
    def fewer(ctx: RunContext[Any], request: ModelRequest) -> None:
        if isinstance(request.messages[-1], ToolMessage):
            request.tools = [tool for tool in request.tools if tool.name != "archive"]

    chooser = ScriptedModel([chosen("book"), chosen("draw")])
    model = ScriptedModel([call("book"), say("done")])
    await make(model, fewer, ModelToolSelectionMiddleware(chooser, max_tools=1)).invoke(None, "go")
    assert offered(model) == [["book"], ["draw"]]


async def test_it_is_not_asked_where_there_are_few_tools_anyway() -> None:
    chooser = ScriptedModel([])
    model = ScriptedModel([say("done")])
    gate = ModelToolSelectionMiddleware(chooser, max_tools=3, always_include=["draw"])
    await make(model, gate).invoke(None, "go")
    assert offered(model) == [list(NAMES)]
    assert chooser.requests == []


async def test_some_tools_are_always_offered() -> None:
    chooser = ScriptedModel([chosen("book", "draw")])
    model = ScriptedModel([say("done")])
    gate = ModelToolSelectionMiddleware(chooser, max_tools=1, always_include=["archive", "gone"])
    await make(model, gate).invoke(None, "go")
    assert offered(model) == [["archive", "book"]]
    assert "- archive" not in chooser.requests[0].messages[1].text


async def test_names_that_there_are_not_and_more_than_allowed_are_passed_over() -> None:
    chooser = ScriptedModel([chosen("gone", "draw", "draw", "book", "archive")])
    model = ScriptedModel([say("done")])
    await make(model, ModelToolSelectionMiddleware(chooser, max_tools=2)).invoke(None, "go")
    assert offered(model) == [["book", "draw"]]


async def test_a_model_without_schemas_is_asked_by_a_tool() -> None:
    profile = ModelProfile(tool_calling=True, native_structured_output=False)
    chooser = ScriptedModel([call("ChosenTools", tools=["draw"])], profile=profile)
    model = ScriptedModel([say("done")])
    await make(model, ModelToolSelectionMiddleware(chooser, max_tools=1)).invoke(None, "go")
    assert offered(model) == [["draw"]]
    assert chooser.requests[0].tool_choice == "required"


# Failures


@pytest.mark.parametrize(
    ("step", "kind"),
    [
        (fail(ServerError("down")), "server"),
        (fail(RuntimeError("bug")), "RuntimeError"),
        (say("I would take draw."), "structured_output"),
        (say('{"tools":"draw"}'), "structured_output"),
        (call("ChosenTools", tool="draw"), "structured_output"),
    ],
)
async def test_where_choosing_fails_all_tools_are_offered_and_an_event_says_so(
    step: Any, kind: str
) -> None:
    chooser = ScriptedModel([step])
    model = ScriptedModel([call("book"), say("done")])
    run = await make(model, ModelToolSelectionMiddleware(chooser, max_tools=1)).invoke(None, "go")
    assert offered(model) == [list(NAMES)] * 2
    assert refused(run) == [False]
    # And it is not asked again in the same turn.
    (failed,) = (event for event in run.events if isinstance(event, ToolSelectionFailed))
    assert (failed.by, failed.error_kind) == ("ModelToolSelectionMiddleware", kind)
    assert_event_grammar(run)


async def test_a_choice_that_takes_too_long_is_given_up() -> None:
    chooser = ScriptedModel([hang()])
    model = ScriptedModel([say("done", usage=Usage(input_tokens=5, output_tokens=1))])
    gate = ModelToolSelectionMiddleware(chooser, max_tools=1, timeout=0.01)
    run = await make(model, gate).invoke(None, "go")
    assert offered(model) == [list(NAMES)]
    (failed,) = (event for event in run.events if isinstance(event, ToolSelectionFailed))
    assert failed.error.startswith("no answer in time")
    # Nobody knows what it took, and it may have been billed.
    assert (run.usage.total_tokens, run.usage.source) == (6, "estimated")


async def test_a_choosing_model_that_was_cancelled_ends_the_run() -> None:
    chooser = ScriptedModel([fail(RunCancelledError("the run was cancelled"))])
    model = ScriptedModel([say("never")])
    with pytest.raises(RunCancelledError):
        await make(model, ModelToolSelectionMiddleware(chooser, max_tools=1)).invoke(None, "go")
    assert model.requests == []


@pytest.mark.parametrize("by_token", [True, False])
async def test_a_run_that_is_cancelled_while_tools_are_chosen_asks_nobody_else(
    by_token: bool,
) -> None:
    waits = hang()
    chooser, model = ScriptedModel([waits]), ScriptedModel([say("never")])
    agent = make(model, ModelToolSelectionMiddleware(chooser, max_tools=1))
    token = CancellationToken()
    ended: list[BaseException] = []

    async def run() -> None:
        try:
            await agent.invoke(None, "go", cancellation=token)
        except RunCancelledError as error:
            ended.append(error)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        await waits.started.wait()
        if by_token:
            token.cancel("enough")
        else:
            tasks.cancel_scope.cancel()
    assert len(ended) == by_token
    assert model.requests == []


# What it costs


async def test_what_the_choice_took_is_counted_to_the_run_once() -> None:
    priced = ModelProfile(
        model="small",
        native_structured_output=True,
        pricing=ModelPricing(input=Decimal(1), output=Decimal(2)),
    )
    usage = Usage(input_tokens=1000, output_tokens=100)
    chooser = ScriptedModel([chosen("book").replace(usage=usage)], profile=priced)
    own = Usage(input_tokens=10, output_tokens=1)
    model = ScriptedModel([call("book").replace(usage=own), say("done").replace(usage=own)])
    run = await make(model, ModelToolSelectionMiddleware(chooser, max_tools=1)).invoke(None, "go")
    assert (run.usage.input_tokens, run.usage.output_tokens) == (1020, 102)
    assert run.cost.total == Decimal("0.0012")
    recorded = [event for event in run.events if isinstance(event, UsageRecorded)]
    assert [event.usage for event in recorded] == [usage, own, own]
    assert (recorded[0].model, recorded[0].call_id) == ("small", None)
    (cost,) = (event for event in run.events if isinstance(event, CostRecorded))
    assert cost.model == "small"


async def test_the_choice_is_no_model_call_of_the_run() -> None:
    chooser = ScriptedModel([chosen("book")])
    model = ScriptedModel([say("done")])
    agent = make(model, ModelToolSelectionMiddleware(chooser, max_tools=1))
    agent = agent.replace(limits=RunLimits(max_model_calls=1))
    run = await agent.invoke(None, "go")
    assert run.model_calls == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_tools": 0}, "`max_tools` is 0"),
        ({"timeout": -1}, "`timeout` is -1"),
        ({"timeout": float("nan")}, "`timeout` is nan"),
        ({"always_include": "book"}, r"\['book'\]"),
    ],
)
def test_options_that_cannot_work_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        ModelToolSelectionMiddleware(ScriptedModel([]), **options)
