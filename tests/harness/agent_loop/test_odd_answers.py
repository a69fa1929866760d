"""Answers that are none, come twice, or come too slowly for reasons that are not the model's."""

from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from tinyagents import (
    AgentHarness,
    RunConfig,
    RunContext,
    RunLimits,
    ToolContext,
    ToolMessage,
    UserMessage,
    tool,
)
from tinyagents.harness.errors import ServerError
from tinyagents.harness.message import AssistantMessage
from tinyagents.harness.middleware import ModelHandler, ToolCall, ToolHandler, wrap_model, wrap_tool
from tinyagents.harness.model import (
    MessageDelta,
    ModelProfile,
    ModelRequest,
    ModelResponse,
    ModelStreamItem,
    StreamCompleted,
)
from tinyagents.harness.stream import MessageDiscarded, TextDelta
from tinyagents.harness.tool import ToolResult
from tinyagents.harness.usage import Usage
from tinyagents.testkit import ScriptedModel, assert_event_grammar, call, fail, say


@wrap_model
async def twice(
    ctx: RunContext[None], request: ModelRequest, call_next: ModelHandler
) -> ModelResponse:
    first = await call_next(request)
    try:
        return await call_next(request)
    except ServerError:
        return first


def used(tokens: int) -> Usage:
    return Usage(input_tokens=tokens, output_tokens=tokens)


async def test_each_answer_that_a_wrap_asked_for_is_paid_once_and_only_the_last_is_shown() -> None:
    model = ScriptedModel([say("one", usage=used(10)), say("two", usage=used(100))])
    stream = AgentHarness(model=model, middleware=[twice]).stream(None, "go")
    chunks = [chunk async for chunk in stream]
    run = await stream.result()
    assert run.text == "two"
    assert run.usage.input_tokens == 110
    shown = [c.text if isinstance(c, TextDelta) else type(c) for c in chunks[:3]]
    assert "".join(c.text for c in chunks if isinstance(c, TextDelta)) == "onetwo"
    assert sum(isinstance(c, MessageDiscarded) for c in chunks) == 1
    assert MessageDiscarded in shown
    assert [e.kind for e in run.events].count("usage.recorded") == 2
    assert_event_grammar(run.events)


async def test_an_answer_that_a_wrap_falls_back_on_is_paid_once() -> None:
    broken = fail(ServerError("down", retryable=False))
    model = ScriptedModel([say("one", usage=used(10)), broken])
    run = await AgentHarness(model=model, middleware=[twice]).invoke(None, "go")
    assert (run.text, run.usage.input_tokens) == ("one", 10)
    assert_event_grammar(run.events)


async def test_an_answer_is_paid_even_when_the_wrap_around_it_fails() -> None:
    @wrap_model
    async def broken(
        ctx: RunContext[None], request: ModelRequest, call_next: ModelHandler
    ) -> ModelResponse:
        await call_next(request)
        raise OSError("disk")

    model = ScriptedModel([say("one", usage=used(10))])
    with pytest.raises(OSError, match="disk") as caught:
        await AgentHarness(model=model, middleware=[broken]).invoke(None, "go")
    run = getattr(caught.value, "run")  # noqa: B009 - an `OSError` has none for type checkers
    assert (run.text, run.usage.input_tokens) == ("one", 10)
    assert_event_grammar(run.events)


class Odd:
    """A model that returns what is no answer."""

    profile = ModelProfile(provider="odd")

    async def invoke(self, request: ModelRequest, *, ctx: Any = None) -> ModelResponse:
        return "text"  # type: ignore[return-value]

    async def stream(
        self, request: ModelRequest, *, ctx: Any = None
    ) -> AsyncIterator[ModelStreamItem]:
        yield MessageDelta("hello")
        yield StreamCompleted(ModelResponse(AssistantMessage(content="hello")))
        await anyio.sleep_forever()


async def test_what_is_no_answer_is_named_and_the_events_are_whole() -> None:
    with pytest.raises(TypeError, match=r"`default` returned a `str`") as caught:
        await AgentHarness(model=Odd()).invoke(None, "go")
    run = getattr(caught.value, "run")  # noqa: B009 - a `TypeError` has none for type checkers
    assert "model.failed" in [event.kind for event in run.events]
    assert_event_grammar(run.events)


async def test_nothing_is_awaited_after_the_completed_answer() -> None:
    with anyio.fail_after(10):
        run = await AgentHarness(model=Odd()).stream(None, "go").result()
    assert run.text == "hello"


async def test_the_time_that_the_reader_takes_is_not_the_models() -> None:
    model = ScriptedModel([say("word " * 500)])
    config = RunConfig(limits=RunLimits(model_timeout=0.2))
    stream = AgentHarness(model=model).stream(None, "go", config=config)
    slow = True
    async for chunk in stream:
        if slow and isinstance(chunk, TextDelta):
            slow = False
            await anyio.sleep(0.4)
    assert (await stream.result()).status == "completed"


async def test_a_wrap_that_changes_the_tool_of_a_call_is_told_where_to_do_it() -> None:
    @wrap_tool
    async def redirect(ctx: RunContext[None], call: ToolCall, call_next: ToolHandler) -> ToolResult:
        call.name = "other"
        return await call_next(call)

    @tool
    async def look() -> str:
        """Look."""
        return "here"

    model = ScriptedModel([call("look"), say("never")])
    with pytest.raises(TypeError, match="`look`, to `other`.*`before_tool`") as caught:
        await AgentHarness(model=model, tools=[look], middleware=[redirect]).invoke(None, "go")
    run = getattr(caught.value, "run")  # noqa: B009 - a `TypeError` has none for type checkers
    assert_event_grammar(run.events)


async def test_a_run_inside_a_tool_that_is_no_coroutine_is_refused() -> None:
    inner = AgentHarness(model=ScriptedModel([say("inner")]))

    @tool
    def ask(ctx: ToolContext[None]) -> str:
        """Ask another agent."""
        return inner.invoke_sync(None, UserMessage(content="hi"), context=ctx.run).text or ""

    model = ScriptedModel([call("ask"), say("done")])
    run = await AgentHarness(model=model, tools=[ask]).invoke(None, "go")
    (result,) = (message for message in run.messages if isinstance(message, ToolMessage))
    assert "`async def`" in result.text
    assert_event_grammar(run.events)
