"""The middleware that keeps a run's context inside its model's window."""

from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from tests.harness.summarization.summaries import BrokenSummarizer, CountingSummarizer
from tinyagents import (
    AgentHarness,
    AssistantMessage,
    Middleware,
    RunContext,
    RunSnapshot,
    ToolMessage,
    Usage,
    UserMessage,
)
from tinyagents.harness.cancel import CancellationToken
from tinyagents.harness.errors import (
    ConfigurationError,
    ContextOverflowError,
    ContextWindowError,
    ModelNotFoundError,
    RunCancelledError,
)
from tinyagents.harness.events import (
    AgentEvent,
    Compressed,
    ContextOverflowed,
    ContextPressure,
    ContextSummarized,
    ContextWindowUnknown,
    Custom,
)
from tinyagents.harness.message import Message, ToolCallBlock, retrieved_block
from tinyagents.harness.middleware import (
    ContextWindowMiddleware,
    SummarizationMiddleware,
    before_model,
)
from tinyagents.harness.model import ModelProfile, ModelRequest
from tinyagents.harness.stream import Final
from tinyagents.harness.summarization import (
    CLEARED,
    ClearToolResults,
    ContextStep,
    DropRetrieved,
    InMemoryContextArchive,
    MessagesAbove,
    ModelSummarizer,
    ShorteningTask,
    SummarizationPolicy,
    Summarize,
    SummaryRecord,
    TokensAbove,
    TrimOldest,
    compact_context_tool,
    default_steps,
    is_summary,
    is_well_paired,
    stored_summary,
)
from tinyagents.harness.token_estimation import TokenEstimator
from tinyagents.testkit import (
    FakeTool,
    ScriptedModel,
    assert_event_grammar,
    assert_prompt_prefix_preserved,
    call,
    fail,
    say,
)

WORDS = "word " * 100
"""125 tokens."""
TOO_LONG = ContextOverflowError("prompt is too long: 210 > 200", provider="fake", status=400)


def of_kind(events: Sequence[AgentEvent], kind: type[AgentEvent]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def history(turns: int) -> list[Message]:
    messages: list[Message] = []
    for n in range(turns):
        messages += [UserMessage(content=f"q{n} {WORDS}"), AssistantMessage(content=f"a{n}")]
    return messages


def result(call_id: str, text: str, **facts: Any) -> list[Message]:
    asking = AssistantMessage(content=[ToolCallBlock(id=call_id, name="look", arguments={})])
    return [asking, ToolMessage(tool_call_id=call_id, name="look", content=text, **facts)]


def make(model: ScriptedModel, *middleware: Middleware[Any], **options: Any) -> AgentHarness:
    return AgentHarness(model=model, middleware=middleware, system="Be brief.", **options)


def sizes(model: ScriptedModel) -> list[int]:
    return [TokenEstimator().messages(request.messages) for request in model.requests]


async def test_the_pressure_is_told_before_each_call() -> None:
    model = ScriptedModel([call("look"), say("ok")])
    agent = make(
        model,
        ContextWindowMiddleware(window=1_000, reserve=200),
        tools=[FakeTool("look", "found")],
    )
    run = await agent.invoke(None, "go")
    told = of_kind(run.events, ContextPressure)
    assert [(event.limit, event.window) for event in told] == [(800, 1_000)] * 2
    assert told[0].tokens < told[1].tokens
    assert not of_kind(run.events, Compressed)
    assert_event_grammar(run)


async def test_the_window_and_the_reserve_come_from_the_profile() -> None:
    profile = ModelProfile.permissive().model_copy(
        update={"max_input_tokens": 8_000, "max_output_tokens": 1_500}
    )
    model = ScriptedModel([say("ok")], profile=profile)
    run = await make(model, ContextWindowMiddleware()).invoke(None, "go")
    (told,) = of_kind(run.events, ContextPressure)
    assert (told.limit, told.window) == (6_500, 8_000)


async def test_an_unknown_window_is_told_once_and_stops_nothing() -> None:
    model = ScriptedModel([call("look"), say("ok")])
    agent = make(model, ContextWindowMiddleware(), tools=[FakeTool("look", "found")])
    run = await agent.invoke(None, "go")
    (warned,) = of_kind(run.events, ContextWindowUnknown)
    assert (warned.by, warned.model) == ("ContextWindowMiddleware", "scripted")


async def test_the_transcript_is_shortened_well_below_the_trigger_and_then_left_alone() -> None:
    # 8 turns of 135 tokens: the trigger is at 800, the target 0.6 of what there is.
    model = ScriptedModel([call("look", n=n) for n in range(4)] + [say("done")])
    agent = make(
        model,
        ContextWindowMiddleware([TrimOldest()], window=1_000, reserve=0),
        tools=[FakeTool("look", "found")],
    )
    run = await agent.invoke(None, [*history(7), UserMessage(content="now")])
    assert len(of_kind(run.events, Compressed)) == 1
    assert max(sizes(model)) < 700
    for before, after in zip(model.requests, model.requests[1:], strict=False):
        assert_prompt_prefix_preserved(before, after)
    assert run.messages[0].text.startswith("q")
    assert is_well_paired(run.messages)


async def test_steps_are_taken_in_order_until_it_fits() -> None:
    summarizer = CountingSummarizer()
    steps: list[ContextStep] = [
        ClearToolResults(keep_recent=1),
        Summarize(summarizer, keep_last=2),
        TrimOldest(),
    ]
    given = [
        UserMessage(content="q"),
        *result("c1", WORDS * 6),
        *result("c2", WORDS),
        UserMessage(content="now"),
    ]
    model = ScriptedModel([say("ok")])
    window = ContextWindowMiddleware(steps, window=1_000, reserve=0)
    run = await make(model, window).invoke(None, given)
    assert [event.by for event in of_kind(run.events, Compressed)] == ["ClearToolResults"]
    assert [m.text for m in model.requests[0].messages if m.role == "tool"] == [CLEARED, WORDS]
    assert summarizer.sources == []


async def test_a_summary_of_the_transcript_rolls_on_and_is_stored() -> None:
    summarizer = CountingSummarizer()
    window = ContextWindowMiddleware([Summarize(summarizer, keep_last=2)], window=1_000, reserve=0)
    model = ScriptedModel([call("look", n=n) for n in range(12)] + [say("done")])
    agent = make(model, window, tools=[FakeTool("look", WORDS)])
    run = await agent.invoke(None, "Find it.")
    summaries = of_kind(run.events, ContextSummarized)
    assert len(summaries) >= 2
    assert [s.previous for s in summaries[1:]] == [s.record_id for s in summaries[:-1]]
    assert all(is_summary(source[0]) for source in summarizer.sources[1:])
    # What the user wants is not forgotten when the words are summarised.
    assert set(summarizer.goals) == {"Find it."}
    kept = stored_summary(RunSnapshot.model_validate_json(run.snapshot.model_dump_json()).notes)
    assert kept is not None
    assert kept.record.id == summaries[-1].record_id == run.messages[0].id
    assert max(sizes(model)) <= 1_000
    assert_event_grammar(run)


async def test_what_cannot_be_made_small_enough_is_not_tried_again_at_each_turn() -> None:
    # The kept part alone is over the trigger: without a rest each turn would pay for a summary.
    summarizer = CountingSummarizer()
    window = ContextWindowMiddleware(
        [Summarize(summarizer, keep_last=1)], window=1_000, reserve=0, trigger=TokensAbove(100)
    )
    model = ScriptedModel([call("look", n=n) for n in range(6)] + [say("done")])
    agent = make(model, window, tools=[FakeTool("look", "x")])
    await agent.invoke(None, [*history(2), *result("t", WORDS * 4, trusted_verbatim=True)])
    assert len(summarizer.sources) < 4


async def test_one_giant_result_is_cut_and_says_how_large_it_was() -> None:
    # P056, C47
    giant = "x" * 200_000
    model = ScriptedModel([call("look"), say("ok")])
    window = ContextWindowMiddleware(default_steps(CountingSummarizer()), window=10_000, reserve=0)
    agent = make(model, window, tools=[FakeTool("look", giant)])
    given = [UserMessage(content="q"), *result("c0", "small"), UserMessage(content="now")]
    run = await agent.invoke(None, given)
    texts = [message.text for message in run.messages if message.role == "tool"]
    assert texts[0] == "small"
    assert "200000" in texts[1]
    assert len(texts[1]) < 5_000
    assert run.text == "ok"


async def test_what_the_provider_has_counted_is_believed_until_the_history_is_another() -> None:
    # P058: the estimate is far too low here, and the usage of the answer says so.
    counted = Usage(input_tokens=850, output_tokens=10)
    model = ScriptedModel(
        [call("look", n=1) + say("", usage=counted), call("look", n=2), say("ok")]
    )
    agent = make(
        model,
        ContextWindowMiddleware([TrimOldest()], window=1_000, reserve=0),
        tools=[FakeTool("look", "found")],
    )
    run = await agent.invoke(None, [*history(2), UserMessage(content="now")])
    assert len(of_kind(run.events, Compressed)) == 1
    pressure = [event.tokens for event in of_kind(run.events, ContextPressure)]
    assert max(pressure) < 500  # and not 860 for a prompt that was shortened since
    assert [len(request.messages) for request in model.requests] == [6, 6, 8]


async def test_what_hooks_add_is_made_to_fit_for_the_call_alone() -> None:
    @before_model
    def look_up(ctx: RunContext[Any], request: ModelRequest) -> None:
        request.messages.insert(1, UserMessage(content=[retrieved_block(WORDS * 9)]))

    model = ScriptedModel([say("ok")])
    window = ContextWindowMiddleware([DropRetrieved(keep_turns=0)], window=1_000, reserve=0)
    run = await make(model, look_up, window).invoke(None, "go")
    assert sizes(model)[0] < 100
    assert [m.text for m in run.messages] == ["go", "ok"]


async def test_what_does_not_fit_whatever_is_done_ends_the_run_before_the_call() -> None:
    model = ScriptedModel([say("ok")])
    window = ContextWindowMiddleware(default_steps(), window=200, reserve=0)
    given = [*history(2), *result("c", WORDS * 9, trusted_verbatim=True)]
    with pytest.raises(ContextWindowError) as caught:
        await make(model, window).invoke(None, given)
    error = caught.value
    assert model.requests == []
    assert error.tokens > error.window == 200
    assert error.model == "scripted"
    assert "1" in error.message
    assert isinstance(error, ContextOverflowError)
    assert error.run is not None


async def test_the_error_says_what_was_tried() -> None:
    @before_model
    def look_up(ctx: RunContext[Any], request: ModelRequest) -> None:
        request.messages.extend([UserMessage(content=WORDS), UserMessage(content=WORDS * 9)])

    model = ScriptedModel([say("ok")])
    window = ContextWindowMiddleware([TrimOldest()], window=200, reserve=0)
    with pytest.raises(ContextWindowError, match="tried: TrimOldest") as caught:
        await make(model, look_up, window).invoke(None, "go")
    assert caught.value.tried == ("TrimOldest",)


@pytest.mark.parametrize("streamed", [False, True])
async def test_an_overflow_is_answered_with_one_shorter_prompt(streamed: bool) -> None:
    # P055
    model = ScriptedModel([fail(TOO_LONG), say("ok")])
    agent = make(model, ContextWindowMiddleware([TrimOldest()]))
    given = [*history(4), UserMessage(content="now")]
    if streamed:
        chunks = [chunk async for chunk in agent.stream(None, given)]
        (run,) = (chunk.run for chunk in chunks if isinstance(chunk, Final))
    else:
        run = await agent.invoke(None, given)
    assert run.text == "ok"
    before, after = sizes(model)
    assert after <= 0.6 * before
    (overflowed,) = of_kind(run.events, ContextOverflowed)
    assert overflowed.recovering
    assert_event_grammar(run)


async def test_what_a_refusal_has_taught_holds_for_the_rest_of_the_run() -> None:
    model = ScriptedModel([fail(TOO_LONG), call("look"), say("ok"), say("again")])
    agent = make(model, ContextWindowMiddleware([TrimOldest()]), tools=[FakeTool("look", "found")])
    run = await agent.invoke(None, [*history(4), UserMessage(content="now")])
    refused = sizes(model)[0]
    assert all(size < 0.8 * refused for size in sizes(model)[1:])
    assert len(run.messages) < 11
    stored = RunSnapshot.model_validate_json(run.snapshot.model_dump_json())
    again = await agent.resume(stored, None, input=WORDS * 3)
    assert of_kind(again.events, ContextPressure)[-1].limit < refused


async def test_the_window_is_that_of_the_model_that_the_run_was_given() -> None:
    def sized(name: str, window: int) -> ScriptedModel:
        return ScriptedModel([say("ok")], profile=ModelProfile(model=name, max_input_tokens=window))

    models = {"small": sized("small", 400), "large": sized("large", 10_000)}
    agent = AgentHarness(models=models, middleware=[ContextWindowMiddleware([TrimOldest()])])
    whole = await agent.invoke(None, history(6), model="large")
    assert len(whole.messages) == 13
    assert len((await agent.invoke(None, history(6))).messages) < 13


async def test_what_one_model_refuses_is_not_believed_of_another() -> None:
    def named(name: str, *script: Any) -> ScriptedModel:
        return ScriptedModel(script, profile=ModelProfile(provider="fake", model=name))

    small = named("small", fail(TOO_LONG), say("ok"))
    large = named("large", say("ok"))
    agent = AgentHarness(
        models={"small": small, "large": large},
        middleware=[ContextWindowMiddleware([TrimOldest()])],
    )
    given = [*history(4), UserMessage(content="now")]
    run = await agent.invoke(None, given, model="small")
    stored = RunSnapshot.model_validate_json(run.snapshot.model_dump_json())
    await agent.resume(stored, None, input="And now?", model="large")
    assert len(small.requests[1].messages) < len(given)
    assert len(large.requests[0].messages) == len(given) + 2


async def test_a_second_refusal_raises_the_first_error() -> None:
    first = ContextOverflowError("too long, said first")
    model = ScriptedModel([fail(first), fail(ContextOverflowError("again")), say("never")])
    with pytest.raises(ContextOverflowError, match="said first"):
        await make(model, ContextWindowMiddleware([TrimOldest()])).invoke(None, history(4))
    assert len(model.requests) == 2


async def test_a_recovery_that_cannot_shrink_the_prompt_makes_no_further_call() -> None:
    model = ScriptedModel([fail(TOO_LONG), say("never")])
    agent = make(model, ContextWindowMiddleware([ClearToolResults()], recoveries=5))
    with pytest.raises(ContextOverflowError, match="210 > 200") as caught:
        await agent.invoke(None, [*history(4), UserMessage(content="now")])
    assert len(model.requests) == 1
    assert caught.value.run is not None
    (told,) = of_kind(caught.value.run.events, ContextOverflowed)
    assert not told.recovering


async def test_recovery_can_be_off() -> None:
    model = ScriptedModel([fail(TOO_LONG), say("never")])
    agent = make(model, ContextWindowMiddleware([TrimOldest()], recoveries=0))
    with pytest.raises(ContextOverflowError):
        await agent.invoke(None, history(4))


async def test_dropped_messages_are_archived_whole() -> None:
    archive = InMemoryContextArchive()
    window = ContextWindowMiddleware(
        [ClearToolResults(keep_recent=0), TrimOldest()], window=1_000, reserve=0, archive=archive
    )
    model = ScriptedModel([say("ok")])
    given = [UserMessage(content="q"), *result("c", WORDS * 9), UserMessage(content="now")]
    run = await make(model, window).invoke(None, given)
    kept = await archive.load(f"run-{run.run_id}")
    assert [m.text for m in kept if m.role == "tool"] == [WORDS * 9]


async def test_a_broken_archive_does_not_stop_the_run() -> None:
    class Broken(InMemoryContextArchive):
        async def add(self, key: str, messages: Sequence[Message]) -> None:
            raise OSError("disk full")

    window = ContextWindowMiddleware([TrimOldest()], window=500, reserve=0, archive=Broken())
    run = await make(ScriptedModel([say("ok")]), window).invoke(None, history(6))
    (told,) = of_kind(run.events, Custom)
    assert told.name == "context.archive_failed"
    assert run.text == "ok"


async def test_a_model_can_ask_for_a_shorter_conversation() -> None:
    window = ContextWindowMiddleware(
        [Summarize(CountingSummarizer(), keep_last=2)], window=100_000, reserve=0
    )
    model = ScriptedModel([call("compact_context", focus="the port"), say("done")])
    agent = make(model, window, tools=[compact_context_tool()])
    await agent.invoke(None, [*history(3), UserMessage(content="now")])
    assert [len(request.messages) for request in model.requests] == [8, 4]


@pytest.mark.parametrize("kind", ["window", "requests", "transcript"])
async def test_what_the_model_asked_for_is_still_asked_where_it_was_cancelled(kind: str) -> None:
    token = CancellationToken()

    class Cancelling(CountingSummarizer):
        async def summarize(self, *args: Any, **options: Any) -> SummaryRecord:
            token.cancel()
            await anyio.sleep_forever()
            raise AssertionError

    def asked(summarizer: CountingSummarizer, model: ScriptedModel) -> AgentHarness:
        middleware: Middleware[Any] = ContextWindowMiddleware(
            [Summarize(summarizer, keep_last=2)], window=100_000, reserve=0
        )
        if kind != "window":
            middleware = SummarizationMiddleware(
                summarizer,
                policy=SummarizationPolicy(keep_last=2, trigger=TokensAbove(100_000)),
                compact_transcript=kind == "transcript",
            )
        return make(model, middleware, tools=[compact_context_tool()])

    first = ScriptedModel([call("compact_context", focus="the port")])
    with pytest.raises(RunCancelledError) as caught:
        await asked(Cancelling(), first).invoke(None, history(3), cancellation=token)
    assert caught.value.run is not None
    summarizer = CountingSummarizer()
    agent = asked(summarizer, ScriptedModel([say("ok"), say("fine")]))
    run = await agent.resume(caught.value.run.snapshot, None, input="Go on.")
    assert [goal is not None and "the port" in goal for goal in summarizer.goals] == [True]
    await agent.resume(run.snapshot, None, input="And now?")
    assert len(summarizer.sources) == 1


async def test_a_failing_summary_leaves_it_to_the_next_step() -> None:
    steps: list[ContextStep] = [Summarize(BrokenSummarizer(), keep_last=1), TrimOldest()]
    model = ScriptedModel([say("ok")])
    window = ContextWindowMiddleware(steps, window=500, reserve=0)
    run = await make(model, window).invoke(None, history(6))
    assert [event.by for event in of_kind(run.events, Compressed)] == ["TrimOldest"]
    assert_event_grammar(run)


async def test_a_summariser_whose_model_is_missing_ends_the_run() -> None:
    steps: list[ContextStep] = [Summarize(ModelSummarizer("small"), keep_last=1), TrimOldest()]
    window = ContextWindowMiddleware(steps, window=500, reserve=0)
    with pytest.raises(ModelNotFoundError, match="small"):
        await make(ScriptedModel([say("ok")]), window).invoke(None, history(6))


async def test_a_step_that_makes_it_longer_is_passed_over() -> None:
    class Longer:
        async def shorten(
            self, messages: Sequence[Message], task: ShorteningTask
        ) -> Sequence[Message]:
            return [*messages, UserMessage(content=WORDS)]

    model = ScriptedModel([say("ok")])
    window = ContextWindowMiddleware([Longer(), TrimOldest()], window=500, reserve=0)
    run = await make(model, window).invoke(None, history(6))
    assert [event.by for event in of_kind(run.events, Compressed)] == ["TrimOldest"]


async def test_a_run_that_is_stored_at_each_boundary_stays_inside_the_window() -> None:
    window = ContextWindowMiddleware(
        [Summarize(CountingSummarizer(), keep_last=2), TrimOldest()], window=1_000, reserve=0
    )
    model = ScriptedModel([call("look", n=n) for n in range(12)] + [say("done")])
    agent = make(model, window, tools=[FakeTool("look", WORDS)])
    snapshot = agent.snapshot("Find it.")
    while snapshot.phase != "done":
        stored = RunSnapshot.model_validate_json(snapshot.model_dump_json())
        snapshot = await agent.step(stored, None)
    assert snapshot.messages[-1].text == "done"
    assert is_well_paired(snapshot.messages)
    assert max(sizes(model)) <= 1_000
    assert len(snapshot.messages) < 12
    assert is_summary(snapshot.messages[0])


async def test_a_chat_that_is_resumed_for_each_turn_counts_its_instructions_and_tools() -> None:
    # Else each turn would be shortened for its own call alone, and the prompt rewritten each time.
    model = ScriptedModel([say("ok") for _ in range(12)])
    agent = AgentHarness(
        model=model,
        system="rule " * 400,
        middleware=[ContextWindowMiddleware([TrimOldest()], window=1_500, reserve=0)],
    )
    run = await agent.invoke(None, WORDS)
    for _ in range(11):
        stored = RunSnapshot.model_validate_json(run.snapshot.model_dump_json())
        run = await agent.resume(stored, None, input=WORDS)
    assert max(sizes(model)) <= 1_500
    rewritten = 0
    for before, after in zip(model.requests, model.requests[1:], strict=False):
        rewritten += after.messages[: len(before.messages)] != before.messages
    assert 1 <= rewritten <= 4
    assert len(run.messages) < 14


async def test_tools_count_before_the_first_call() -> None:
    tools = [FakeTool(f"t{n}", description="what it does " * 30) for n in range(6)]
    model = ScriptedModel([say("ok")])
    window = ContextWindowMiddleware([TrimOldest()], window=1_500, reserve=0)
    run = await make(model, window, tools=tools).invoke(None, history(6))
    assert len(run.messages) < 12


async def test_other_triggers_work_without_a_window() -> None:
    model = ScriptedModel([say("ok")])
    window = ContextWindowMiddleware([TrimOldest()], trigger=MessagesAbove(6))
    run = await make(model, window).invoke(None, [*history(4), UserMessage(content="now")])
    assert len(run.messages) < 8


async def test_runs_at_once_do_not_share_what_they_learn() -> None:
    window = ContextWindowMiddleware([TrimOldest()])
    model = ScriptedModel.per_run([say("ok")])
    refusing = ScriptedModel([fail(TOO_LONG), say("ok")])
    agent = AgentHarness(models={"fine": model, "refusing": refusing}, middleware=[window])
    runs: dict[str, Any] = {}

    async def one(name: str) -> None:
        runs[name] = await agent.invoke(None, history(4), model=name)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(one, "fine")
        tasks.start_soon(one, "refusing")
    assert "ContextWindowMiddleware.believed" in runs["refusing"].snapshot.notes
    assert "ContextWindowMiddleware.believed" not in runs["fine"].snapshot.notes
    assert len(runs["fine"].messages) == 9


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"steps": []}, "steps"),
        ({"steps": [TrimOldest]}, "shorten"),
        ({"window": 0}, "window"),
        ({"window": 10, "reserve": 10}, "reserve"),
        ({"reserve": -1}, "reserve"),
        ({"target": 1.0}, "target"),
        ({"recoveries": -1}, "recoveries"),
    ],
)
def test_what_cannot_work_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        ContextWindowMiddleware(**options)
