"""Redaction of whole runs: nothing of a secret is in anything that comes out of one."""

import logging
import pickle
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tinyagents import (
    AgentHarness,
    AssistantMessage,
    Interrupt,
    Pause,
    RunContext,
    TextBlock,
    ToolContext,
    ToolError,
    ToolResult,
    UserMessage,
    tool,
)
from tinyagents.harness.errors import (
    ConfigurationError,
    ContentBlockedError,
    ServerError,
    StructuredOutputError,
)
from tinyagents.harness.message import (
    CitationBlock,
    ReasoningBlock,
    RefusalBlock,
    ToolMessage,
    dump_messages,
)
from tinyagents.harness.middleware import (
    Guarded,
    GuardrailMiddleware,
    LoggingMiddleware,
    Middleware,
    RedactionMiddleware,
    ToolCall,
    after_model,
    before_tool,
)
from tinyagents.harness.model import ModelRequest, ModelResponse
from tinyagents.harness.policy import PayloadCapture, RunPolicy
from tinyagents.harness.redaction import Redactor, email, redact_message
from tinyagents.harness.stream import ReasoningDelta, RefusalDelta, TextDelta, ToolCallDelta
from tinyagents.testkit import (
    EventRecorder,
    FakeTool,
    ScriptedModel,
    assert_never_shown,
    call,
    fail,
    refuse,
    say,
    think,
)

SECRET = "zork77@quux9.wtf"
SPLIT = ("it is zork", "77@qu", "ux9.wtf now")
CAPTURE = RunPolicy(capture=PayloadCapture(model_io=True, tool_io=True))
Ctx = RunContext[Any]


def harness(model: ScriptedModel, **settings: Any) -> AgentHarness:
    settings.setdefault("middleware", [RedactionMiddleware()])
    settings.setdefault("policy", CAPTURE)
    return AgentHarness(model=model, **settings)


async def followed(
    agent: AgentHarness, words: str, streamed: bool, chunks: list[object] | None = None
) -> None:
    """Run the agent, in one way or the other."""
    if not streamed:
        await agent.invoke(None, words)
        return
    async for chunk in agent.stream(None, words):
        if chunks is not None:
            chunks.append(chunk)


@tool
async def look(ctx: ToolContext, q: str) -> ToolResult:
    """Look up."""
    assert SECRET not in q
    ctx.progress(f"asking {SECRET}")
    return ToolResult(f"found {SECRET}", value={"to": SECRET}, summary=SECRET, artifacts=[SECRET])


async def test_nothing_of_a_secret_is_in_the_stream_the_run_the_events_or_the_requests() -> None:
    recorder = EventRecorder()
    model = ScriptedModel(
        [think(*SPLIT) + say(*SPLIT) + call("look", q=f"for {SECRET}"), say(*SPLIT)]
    )
    agent = harness(model, tools=[look], listeners=[recorder])
    chunks: list[object] = []
    async for chunk in agent.stream(
        None, f"I am {SECRET}", modes=("messages", "tools", "events", "final", "updates")
    ):
        chunks.append(chunk)
    run = agent_run(chunks)
    assert_never_shown(chunks, SECRET)
    assert_never_shown([run.snapshot, dump_messages(run.messages), run.response], SECRET)
    assert_never_shown([recorder.to_jsonl()], SECRET)
    assert_never_shown([event.model_dump_json() for event in run.events], SECRET)
    assert_never_shown(list(model.requests), SECRET)
    assert run.text == "it is [REDACTED] now"
    assert "".join(c.text for c in chunks if isinstance(c, ReasoningDelta)) == run.text
    assert [c.arguments for c in chunks if isinstance(c, ToolCallDelta)] == [
        '{"q":"for [REDACTED]"}'
    ]


def agent_run(chunks: list[Any]) -> Any:
    return chunks[-1].run


async def test_every_occurrence_counts_once_however_often_it_was_shown() -> None:
    redaction = RedactionMiddleware()
    counted: list[int] = []

    class Count(Middleware[Any]):
        async def after_agent(self, ctx: Ctx, run: Any) -> None:
            counted.append(redaction.counts_of(ctx)["EMAIL"])

    agent = harness(
        ScriptedModel([say(*SPLIT), say(SECRET, " ", SECRET)]), middleware=[redaction, Count()]
    )
    async for _ in agent.stream(None, f"I am {SECRET}"):
        pass
    await agent.invoke(None, "again")
    assert counted == [2, 2]
    assert redaction.counts == {"EMAIL": 4}


async def test_a_refusal_is_held_back_like_a_text() -> None:
    agent = harness(ScriptedModel([refuse(f"I do not write to {SECRET}.")]))
    texts = [c.text async for c in agent.stream(None, "go") if isinstance(c, RefusalDelta)]
    assert "".join(texts) == "I do not write to [REDACTED]."


async def test_thoughts_are_shown_to_their_end_before_the_answer_begins() -> None:
    agent = harness(ScriptedModel([think("I think box") + say("It is 7")]))
    kinds = [
        c.type async for c in agent.stream(None, "go") if isinstance(c, TextDelta | ReasoningDelta)
    ]
    assert kinds == sorted(kinds)


@pytest.mark.parametrize("streamed", [True, False])
async def test_an_answer_that_breaks_off_amid_a_secret_keeps_nothing_of_it(streamed: bool) -> None:
    broken = ServerError(f"lost {SECRET}", raw={"said": SECRET}, retryable=False)
    agent = harness(ScriptedModel([say("write to zork", "77@quux") + fail(broken)]))
    chunks: list[object] = []
    with pytest.raises(ServerError) as caught:
        await followed(agent, "go", streamed, chunks)
    error = caught.value
    assert error.run is not None
    assert_never_shown([*chunks, str(error), error.raw, dump_messages(error.run.messages)], SECRET)
    assert_never_shown([event.model_dump_json() for event in error.run.events], SECRET)
    if streamed:
        assert error.run.messages[-1].text == "write to "


async def test_a_retry_tells_its_reason_without_the_secret() -> None:
    model = ScriptedModel([say("a ") + fail(ServerError(f"for {SECRET}")), say("ok")])
    chunks = [c async for c in harness(model).stream(None, "go", modes=("messages", "events"))]
    assert_never_shown(chunks, SECRET)


async def test_what_a_tool_raises_is_told_and_logged_without_the_secret(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @tool
    def broken() -> str:
        """Break."""
        try:
            raise KeyError(SECRET)
        except KeyError as exc:
            raise RuntimeError(f"no {SECRET}") from exc

    @tool
    def told() -> str:
        """Tell."""
        raise ToolError(f"not {SECRET}")

    agent = harness(ScriptedModel([call("broken") + call("told"), say("ok")]), tools=[broken, told])
    with caplog.at_level(logging.DEBUG):
        run = await agent.invoke(None, "go")
    assert_never_shown([dump_messages(run.messages), caplog.text], SECRET)
    assert [event.kind for event in run.events].count("tool.failed") == 1
    assert_never_shown([event.model_dump_json() for event in run.events], SECRET)


@pytest.mark.parametrize("first", [True, False])
async def test_a_log_of_what_was_said_holds_no_secret_in_either_order(
    first: bool, caplog: pytest.LogCaptureFixture
) -> None:
    order: list[Middleware[Any]] = [RedactionMiddleware(), LoggingMiddleware(include_content=True)]
    model = ScriptedModel([say(*SPLIT) + call("look", q=SECRET), say(*SPLIT)])
    agent = harness(model, tools=[look], middleware=order if first else order[::-1])
    with caplog.at_level(logging.DEBUG):
        await followed(agent, f"I am {SECRET}", True)
    assert "[REDACTED]" in caplog.text
    assert_never_shown([caplog.text], SECRET)


async def test_a_log_that_is_cut_shows_no_half_of_a_secret(
    caplog: pytest.LogCaptureFixture,
) -> None:
    logs = LoggingMiddleware(include_content=True, max_characters=10)
    agent = harness(ScriptedModel([say(*SPLIT)]), middleware=[RedactionMiddleware(), logs])
    with caplog.at_level(logging.DEBUG):
        await agent.invoke(None, "go")
    assert_never_shown([caplog.text], SECRET)


async def test_a_guard_that_fails_is_logged_without_the_secret(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def guard(ctx: Ctx, guarded: Guarded) -> None:
        raise ValueError(f"cannot judge {guarded.text}")

    guards = GuardrailMiddleware(output=[guard], on_failure="allow")
    agent = harness(ScriptedModel([say(*SPLIT)]), middleware=[RedactionMiddleware(), guards])
    with caplog.at_level(logging.DEBUG):
        await agent.invoke(None, "go")
    assert "cannot judge" in caplog.text
    assert_never_shown([caplog.text], SECRET)


async def test_errors_of_hooks_are_cleaned_with_all_that_they_were_raised_from() -> None:
    class Strange(Exception):
        def __str__(self) -> str:
            return f"always {SECRET}"

    @after_model
    def strange(ctx: Ctx, response: ModelResponse) -> None:
        raise ValueError(f"bad {SECRET}") from Strange()

    agent = harness(ScriptedModel([say(SECRET)]), middleware=[RedactionMiddleware(), strange])
    with pytest.raises(ValueError, match="bad") as caught:
        await agent.invoke(None, "go")
    assert str(caught.value) == "bad [REDACTED]"
    assert caught.value.__cause__ is None
    run: Any = getattr(caught.value, "run")  # noqa: B009 - put there by the run
    assert_never_shown([dump_messages(run.messages), run.response, run.reason], SECRET)


async def test_an_error_whose_text_cannot_be_changed_is_named_by_another() -> None:
    class Strange(Exception):
        def __str__(self) -> str:
            return f"always {SECRET}"

    @after_model
    def strange(ctx: Ctx, response: ModelResponse) -> None:
        raise Strange

    agent = harness(ScriptedModel([say("hi")]), middleware=[RedactionMiddleware(), strange])
    with pytest.raises(RuntimeError, match="Strange") as caught:
        await agent.invoke(None, "go")
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


async def test_a_typed_answer_and_its_error_hold_no_secret() -> None:
    agent = harness(ScriptedModel([say('{"to": "zork77\\u0040quux9.wtf"}')]))
    run = await agent.invoke(None, "go", output=dict[str, str])
    assert run.output == {"to": "[REDACTED]"}
    policy = RunPolicy(structured_retries=0)
    agent = harness(ScriptedModel([say(f"to {SECRET}")]), policy=policy)
    with pytest.raises(StructuredOutputError) as caught:
        await agent.invoke(None, "go", output=dict[str, str])
    assert_never_shown([str(caught.value), caught.value.text, caught.value.errors], SECRET)


async def test_what_a_later_hook_puts_into_a_request_is_not_sent() -> None:
    class Retrieve(Middleware[Any]):
        async def before_model(self, ctx: Ctx, request: ModelRequest) -> None:
            request.messages.append(UserMessage(content=f"known: {SECRET}"))

    model = ScriptedModel([say("ok")])
    await harness(model, middleware=[RedactionMiddleware(), Retrieve()]).invoke(None, "go")
    assert_never_shown(list(model.requests), SECRET)


async def test_the_system_prompt_stays() -> None:
    model = ScriptedModel([say("ok")])
    await harness(model, system="Write to help@example.test.").invoke(None, "go")
    assert "help@example.test" in repr(model.requests[0])


async def test_runs_that_share_the_middleware_do_not_share_what_is_held() -> None:
    import anyio

    agent = harness(ScriptedModel([say(*SPLIT)] * 4))
    seen: list[str] = []

    async def read(stream: AsyncIterator[Any]) -> None:
        seen.append("".join([c.text async for c in stream if isinstance(c, TextDelta)]))

    async with anyio.create_task_group() as tasks:
        for _ in range(4):
            tasks.start_soon(read, agent.stream(None, "go"))
    assert seen == ["it is [REDACTED] now"] * 4


async def test_events_of_a_run_inside_are_hidden_by_its_own_and_by_the_outer_redaction() -> None:
    inner = harness(
        ScriptedModel([say(f"{SECRET} hunter2")]), middleware=[RedactionMiddleware(["hunter2"])]
    )

    @tool
    async def ask(ctx: ToolContext) -> str:
        """Ask."""
        return (await inner.invoke(None, "go", context=ctx)).text

    recorder = EventRecorder()
    agent = harness(ScriptedModel([call("ask"), say("ok")]), tools=[ask], listeners=[recorder])
    run = await agent.invoke(None, "go")
    told = [recorder.to_jsonl()]
    assert_never_shown(told, SECRET)
    assert_never_shown(told, "hunter2")
    assert "[REDACTED] [REDACTED]" in dump_messages(run.messages)


async def test_a_run_goes_on_from_a_snapshot_of_before_without_the_secret() -> None:
    @before_tool
    def pause(ctx: Ctx, call: ToolCall) -> None:
        ctx.request_control(Pause())

    model = ScriptedModel([say(SECRET) + call("give", to=SECRET)])
    give = FakeTool("give", SECRET)
    plain = AgentHarness(model=model, tools=[give], middleware=[pause])
    paused = await plain.invoke(None, f"I am {SECRET}")
    model = ScriptedModel([say("ok")])
    run = await harness(model, tools=[give]).resume(paused.snapshot, None)
    assert run.status == "completed"
    assert_never_shown([dump_messages(run.messages), repr(run.snapshot)], SECRET)
    assert_never_shown([repr(request) for request in model.requests], SECRET)


@pytest.mark.parametrize("streamed", [True, False])
async def test_a_blocked_input_ends_the_run_and_stays_nowhere(streamed: bool) -> None:
    agent = harness(ScriptedModel([say("ok")]), middleware=[RedactionMiddleware(strategy="block")])
    with pytest.raises(ContentBlockedError) as caught:
        await followed(agent, f"I am {SECRET}", streamed)
    error = caught.value
    assert (error.stage, error.labels, error.by) == ("input", ("EMAIL",), "RedactionMiddleware")
    assert error.run is not None
    assert error.run.messages[0].text == "I am [REDACTED]"
    assert error.run.model_calls == 0
    assert_never_shown([str(error)], SECRET)


@pytest.mark.parametrize(
    ("step", "stage"),
    [(say(*SPLIT), "output"), (call("look", q=SECRET), "output"), (call("give"), "tool_results")],
)
async def test_a_blocked_answer_or_result_ends_the_run(step: Any, stage: str) -> None:
    give = FakeTool("give", SECRET)
    agent = harness(
        ScriptedModel([step, say("ok")]),
        tools=[look, give],
        middleware=[RedactionMiddleware(strategies={"EMAIL": "block"})],
    )
    with pytest.raises(ContentBlockedError) as caught:
        await agent.invoke(None, "go")
    assert caught.value.stage == stage
    assert caught.value.run is not None
    assert_never_shown([dump_messages(caught.value.run.messages)], SECRET)


async def test_what_is_blocked_may_end_the_run_with_a_text() -> None:
    redaction = RedactionMiddleware(strategy="block", blocked_text="No.")
    agent = harness(ScriptedModel([say(*SPLIT)]), middleware=[redaction])
    for words in ("go", f"I am {SECRET}"):
        run = await agent.invoke(None, words)
        assert (run.status, run.text) == ("stopped", "No.")
        assert_never_shown([dump_messages(run.messages)], SECRET)


async def test_tools_get_what_the_model_wrote_where_their_arguments_are_left() -> None:
    give = FakeTool("give", SECRET)
    redaction = RedactionMiddleware(apply_to={"input", "output", "tool_results"})
    agent = harness(
        ScriptedModel([call("give", to=SECRET), say("ok")]), tools=[give], middleware=[redaction]
    )
    run = await agent.invoke(None, "go")
    assert SECRET in repr(give.calls)
    assert run.messages[2].text == "[REDACTED]"
    assert_never_shown([event.model_dump_json() for event in run.events], SECRET)


async def test_arguments_alone_are_cleaned_wherever_they_are_shown() -> None:
    recorder = EventRecorder()
    agent = harness(
        ScriptedModel([say(f"for {SECRET} ") + call("look", q=f"for {SECRET}"), say("ok")]),
        tools=[FakeTool("look", "found")],
        middleware=[RedactionMiddleware(apply_to={"tool_arguments"})],
        listeners=[recorder],
    )
    stream = agent.stream(None, "go", modes=("messages", "tools", "events", "final"))
    chunks: list[Any] = [chunk async for chunk in stream]
    answer = agent_run(chunks).messages[1]
    assert answer.text == f"for {SECRET} "
    assert answer.tool_calls[0].arguments == {"q": "for [REDACTED]"}
    assert_never_shown([c for c in chunks if isinstance(c, ToolCallDelta)], SECRET)


def test_nothing_hides_between_the_blocks_of_a_message() -> None:
    message = AssistantMessage(
        content=[
            TextBlock(text="it is zork77@"),
            CitationBlock(title=SECRET, start=0, end=5),
            TextBlock(text="quux9.wtf now"),
            RefusalBlock(text=SECRET),
        ]
    )
    cleaned = redact_message(Redactor(), message)
    assert cleaned.text == "it is [REDACTED] now"
    assert [block.text for block in cleaned.content if block.type == "text"] == [
        "it is [REDACTED]",
        " now",
    ]
    citation = cleaned.content[1]
    assert isinstance(citation, CitationBlock)
    assert (citation.title, citation.start, citation.end) == ("[REDACTED]", None, None)
    assert_never_shown([repr(cleaned)], SECRET)


def test_reasoning_loses_its_seal_with_its_words_and_else_keeps_it() -> None:
    sealed = ReasoningBlock(text=f"for {SECRET}", signature="sig", data="x")
    other = ReasoningBlock(text="hm", signature="sig")
    cleaned = redact_message(Redactor(), AssistantMessage(content=[sealed, other])).content
    assert cleaned == [ReasoningBlock(text="for [REDACTED]"), other]


def test_a_message_without_a_match_is_the_same_object() -> None:
    message = ToolMessage(tool_call_id="1", content="ok", artifact={"a": [1]})
    assert redact_message(Redactor([email()]), message) is message


@pytest.mark.parametrize(
    "settings",
    [{"apply_to": {"everything"}}, {"apply_to": "input"}, {"detectors": Redactor(), "mask": "x"}],
)
def test_a_setting_that_cannot_work_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        RedactionMiddleware(**settings)


async def test_what_a_hook_asks_a_person_is_cleaned_and_chunks_can_be_pickled() -> None:
    @after_model
    def ask(ctx: Ctx, response: ModelResponse) -> None:
        ctx.request_control(Interrupt(f"May {SECRET}?", {"who": SECRET}))

    agent = harness(ScriptedModel([say("hi")]), middleware=[RedactionMiddleware(), ask])
    chunks = [chunk async for chunk in agent.stream(None, "go")]
    run = agent_run(chunks)
    assert_never_shown([repr(run.interrupts), str(run.reason)], SECRET)
    text = next(chunk for chunk in chunks if isinstance(chunk, TextDelta))
    assert pickle.loads(pickle.dumps(text)).text == "hi"
