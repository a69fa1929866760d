"""The middleware that summarises the older part of a conversation."""

from collections.abc import Sequence
from typing import Any

import pytest

from tests.harness.summarization.summaries import (
    BrokenSummarizer,
    CountingSummarizer,
    SayingSummarizer,
)
from tinyagents import (
    AgentHarness,
    AssistantMessage,
    RunSnapshot,
    ToolMessage,
    UserMessage,
)
from tinyagents.harness.errors import ConfigurationError
from tinyagents.harness.events import (
    AgentEvent,
    Compressed,
    ContextSummarized,
    ContextWindowUnknown,
    MiddlewareFailed,
)
from tinyagents.harness.message import Message, ToolCallBlock
from tinyagents.harness.middleware import (
    ContextCompressionMiddleware,
    ContextWindowMiddleware,
    SummarizationMiddleware,
    SummaryFailurePolicy,
)
from tinyagents.harness.model import ModelProfile
from tinyagents.harness.summarization import (
    InMemoryContextArchive,
    MessagesAbove,
    ModelSummarizer,
    SummarizationPolicy,
    Summarize,
    TokensAbove,
    compact_context_tool,
    is_summary,
    is_well_paired,
    stored_summary,
)
from tinyagents.testkit import (
    FakeTool,
    ScriptedModel,
    SlowModel,
    assert_event_grammar,
    assert_prompt_prefix_preserved,
    call,
    say,
)
from tinyagents.testkit.checkpoints import CheckpointOutcome, for_every_checkpoint

WORDS = "word " * 200
EARLY = SummarizationPolicy(keep_last=2, trigger=MessagesAbove(6))


def history(turns: int) -> list[Message]:
    messages: list[Message] = []
    for n in range(turns):
        messages += [UserMessage(content=f"q{n}"), AssistantMessage(content=f"a{n}")]
    return messages


def shown(model: ScriptedModel) -> list[list[str]]:
    return [[message.text for message in request.messages] for request in model.requests]


def of_kind(events: Sequence[AgentEvent], kind: type[AgentEvent]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def make(
    model: ScriptedModel, *middleware: SummarizationMiddleware, tools: Sequence[Any] = ()
) -> AgentHarness:
    return AgentHarness(model=model, middleware=middleware, tools=tools, system="Be brief.")


async def test_below_the_trigger_nothing_happens() -> None:
    summarizer = CountingSummarizer()
    model = ScriptedModel([say("ok")])
    agent = make(model, SummarizationMiddleware(summarizer, policy=EARLY))
    run = await agent.invoke(None, [*history(2), UserMessage(content="now")][-4:])
    assert summarizer.sources == []
    assert not of_kind(run.events, Compressed)


async def test_the_summary_stands_behind_the_system_messages_and_the_transcript_stays_whole() -> (
    None
):
    # MW-021 to MW-025
    summarizer = CountingSummarizer()
    gate = SummarizationMiddleware(summarizer, policy=EARLY)
    model = ScriptedModel([say("ok")])
    given = [*history(3), UserMessage(content="now")]
    run = await make(model, gate).invoke(None, given)
    assert shown(model) == [["Be brief.", "[summary 1 of 5]", "a2", "now"]]
    assert model.requests[0].messages[1].role == "user"  # what follows is no user's turn
    assert [m.text for m in run.messages] == [*(m.text for m in given), "ok"]
    (compressed,) = of_kind(run.events, Compressed)
    assert compressed.from_tokens > compressed.to_tokens
    (summarized,) = of_kind(run.events, ContextSummarized)
    (record,) = gate.records
    assert summarized.record_id == record.id
    assert summarized.messages == 5
    assert len(record.provenance.source_ids) == 5
    assert record.provenance.reason == "MessagesAbove(limit=6)"
    assert_event_grammar(run)


async def test_a_summary_serves_again_until_the_conversation_has_outgrown_it() -> None:
    summarizer = CountingSummarizer()
    gate = SummarizationMiddleware(summarizer, policy=EARLY)
    model = ScriptedModel([call("look", n=n) for n in range(4)] + [say("done")])
    agent = make(model, gate, tools=[FakeTool("look", "found")])
    await agent.invoke(None, [*history(3), UserMessage(content="now")])
    sent = model.requests
    assert_prompt_prefix_preserved(sent[0], sent[1])
    assert [len(request.messages) for request in sent] == [4, 6, 4, 6, 4]
    # Rolling: the second is made of the first and what came after it, not of the whole.
    assert [is_summary(source[0]) for source in summarizer.sources] == [False, True, True]
    assert gate.records[1].previous == gate.records[0].id


async def test_calls_and_their_results_are_never_parted() -> None:
    asked = AssistantMessage(
        content=[ToolCallBlock(id=f"c{n}", name="look", arguments={}) for n in range(4)]
    )
    results = [ToolMessage(tool_call_id=f"c{n}", name="look", content=str(n)) for n in range(4)]
    model = ScriptedModel([say("ok")])
    gate = SummarizationMiddleware(CountingSummarizer(), policy=EARLY)
    await make(model, gate).invoke(None, [*history(2), UserMessage(content="go"), asked, *results])
    (request,) = model.requests
    roles = [message.role for message in request.messages]
    assert roles == ["system", "user", "assistant", "tool", "tool", "tool", "tool"]


async def test_trusted_results_stay_as_they_are() -> None:
    trusted = [
        UserMessage(content="q"),
        AssistantMessage(content=[ToolCallBlock(id="t", name="look", arguments={})]),
        ToolMessage(tool_call_id="t", name="look", content="exact", trusted_verbatim=True),
    ]
    summarizer = CountingSummarizer()
    model = ScriptedModel([call("look", n=n) for n in range(4)] + [say("done")])
    gate = SummarizationMiddleware(summarizer, policy=EARLY)
    agent = make(model, gate, tools=[FakeTool("look", "found")])
    await agent.invoke(None, [*trusted, *history(3), UserMessage(content="now")])
    for request in model.requests:
        assert request.messages[1].role == "user"
        assert [m.text for m in request.messages[2:4]] == ["", "exact"]
    assert not any(m.text == "exact" for source in summarizer.sources for m in source)


async def test_where_all_is_recent_nothing_happens() -> None:
    # MW-028
    policy = SummarizationPolicy(keep_last=10)
    model = ScriptedModel([say("ok")])
    gate = SummarizationMiddleware(CountingSummarizer(), policy=policy)
    run = await make(model, gate).invoke(None, [*history(3), UserMessage(content="now")])
    assert len(model.requests[0].messages) == 8
    assert not of_kind(run.events, Compressed)


@pytest.mark.parametrize("policy", ["fallback_trim", "pass_through"])
async def test_a_failed_summary_is_told_before_what_is_done_about_it(
    policy: SummaryFailurePolicy,
) -> None:
    # MW-026, MW-027
    gate = SummarizationMiddleware(BrokenSummarizer(), policy=EARLY, on_failure=policy)
    model = ScriptedModel([say("ok")])
    run = await make(model, gate).invoke(None, [*history(3), UserMessage(content="now")])
    (failed,) = of_kind(run.events, MiddlewareFailed)
    assert (failed.name, failed.hook) == ("SummarizationMiddleware", "summarize")
    assert failed.error == "RuntimeError: no summary today"
    trimmed = of_kind(run.events, Compressed)
    if policy == "pass_through":
        assert len(model.requests[0].messages) == 8
        assert not trimmed
    else:
        assert [m.text for m in model.requests[0].messages][-1] == "now"
        assert len(model.requests[0].messages) < 8
        assert trimmed[0].offset > failed.offset
    assert_event_grammar(run)


async def test_a_failed_summary_ends_the_run_where_that_was_asked_for() -> None:
    gate = SummarizationMiddleware(BrokenSummarizer(), policy=EARLY, on_failure="abort")
    model = ScriptedModel([say("ok")])
    with pytest.raises(RuntimeError, match="no summary today"):
        await make(model, gate).invoke(None, [*history(3), UserMessage(content="now")])
    assert model.requests == []


async def test_a_summary_that_failed_is_not_tried_again_at_each_call() -> None:
    summarizer = BrokenSummarizer()
    gate = SummarizationMiddleware(summarizer, policy=EARLY, on_failure="pass_through")
    model = ScriptedModel([call("look", n=n) for n in range(20)] + [say("done")])
    agent = make(model, gate, tools=[FakeTool("look", "found")])
    run = await agent.invoke(None, [UserMessage(content="word " * 1_000), *history(4)])
    assert run.text == "done"
    assert 1 <= summarizer.calls <= 3


async def test_records_are_capped_and_may_be_none() -> None:
    for cap, left in ((0, 0), (2, 2)):
        gate = SummarizationMiddleware(CountingSummarizer(), policy=EARLY, max_records=cap)
        for _ in range(3):
            given = [*history(3), UserMessage(content="now")]
            await make(ScriptedModel([say("ok")]), gate).invoke(None, given)
        assert len(gate.records) == left


async def test_a_stored_summary_survives_the_process_and_is_not_made_again() -> None:
    summarizer = CountingSummarizer()
    model = ScriptedModel([say("ok"), say("again")])
    given = [*history(3), UserMessage(content="now")]
    first = await make(model, SummarizationMiddleware(summarizer, policy=EARLY)).invoke(None, given)
    stored = RunSnapshot.model_validate_json(first.snapshot.model_dump_json())
    agent = make(model, SummarizationMiddleware(summarizer, policy=EARLY))
    await agent.resume(stored, None, input="more")
    assert shown(model)[1] == ["Be brief.", "[summary 1 of 5]", "a2", "now", "ok", "more"]
    assert len(summarizer.sources) == 1


async def test_a_summary_of_other_messages_is_not_applied() -> None:
    summarizer = CountingSummarizer()
    model = ScriptedModel([say("ok"), say("again")])
    agent = make(model, SummarizationMiddleware(summarizer, policy=EARLY))
    first = await agent.invoke(None, [*history(3), UserMessage(content="now")])
    changed = RunSnapshot.model_validate_json(first.snapshot.model_dump_json())
    changed.messages[0] = UserMessage(content="something else was asked")
    await agent.resume(changed, None, input="more")
    assert len(summarizer.sources) == 2
    assert not any(is_summary(m) for m in summarizer.sources[1])
    assert summarizer.sources[1][0].text == "something else was asked"


async def test_on_the_transcript_the_summary_takes_the_messages_place() -> None:
    summarizer = CountingSummarizer()
    archive = InMemoryContextArchive()
    gate = SummarizationMiddleware(
        summarizer, policy=EARLY, compact_transcript=True, archive=archive
    )
    model = ScriptedModel([call("look", n=n) for n in range(4)] + [say("done")])
    agent = make(model, gate, tools=[FakeTool("look", "found")])
    run = await agent.invoke(None, [*history(3), UserMessage(content="now")])
    assert len(run.messages) <= 7
    assert is_summary(run.messages[0])
    kept = stored_summary(run.snapshot.notes)
    assert kept is not None
    assert kept.record == gate.records[-1]
    archived = await archive.load(f"run-{run.run_id}")
    assert [m.text for m in archived[:5]] == ["q0", "a0", "q1", "a1", "q2"]
    assert not any(is_summary(message) for message in archived)
    assert_event_grammar(run)


async def test_streams_see_the_same() -> None:
    requests = []
    for streamed in (False, True):
        model = ScriptedModel([call("look", n=1), say("done")])
        gate = SummarizationMiddleware(CountingSummarizer(), policy=EARLY)
        agent = make(model, gate, tools=[FakeTool("look", "found")])
        given = [*history(3), UserMessage(content="now")]
        if streamed:
            async for _ in agent.stream(None, given):
                pass
        else:
            await agent.invoke(None, given)
        requests.append(shown(model))
    assert requests[0] == requests[1]


async def test_without_a_window_an_event_says_once_that_nothing_is_done() -> None:
    model = ScriptedModel([call("look"), say("ok")])
    agent = make(
        model, SummarizationMiddleware(CountingSummarizer()), tools=[FakeTool("look", "found")]
    )
    run = await agent.invoke(None, "go")
    (warned,) = of_kind(run.events, ContextWindowUnknown)
    assert (warned.by, warned.model) == ("SummarizationMiddleware", "scripted")


async def test_the_window_comes_from_the_profile_of_the_model_that_answers() -> None:
    profile = ModelProfile.permissive().model_copy(update={"max_input_tokens": 200})
    summarizer = CountingSummarizer()
    model = ScriptedModel([say("ok")], profile=profile)
    given = [UserMessage(content="word " * 100), *history(6), UserMessage(content="now")]
    await make(model, SummarizationMiddleware(summarizer)).invoke(None, given)
    assert len(summarizer.sources) == 1
    assert len(model.requests[0].messages) == 10


async def test_a_run_that_is_cancelled_anywhere_keeps_a_sound_transcript() -> None:
    async def scenario() -> Any:
        small = SlowModel(0.001, "short")
        gate = SummarizationMiddleware(
            ModelSummarizer(small), policy=EARLY, compact_transcript=True
        )
        model = ScriptedModel([call("look", n=n) for n in range(3)] + [say("done")])
        agent = make(model, gate, tools=[FakeTool("look", WORDS)])
        return await agent.invoke(None, [*history(3), UserMessage(content=WORDS)])

    def check(outcome: CheckpointOutcome[Any]) -> None:
        run = outcome.result or getattr(outcome.error, "run", None)
        if run is not None:
            assert is_well_paired(run.messages)

    assert await for_every_checkpoint(scenario, check=check) >= 1


async def test_a_model_can_ask_for_it() -> None:
    summarizer = CountingSummarizer()
    policy = SummarizationPolicy(keep_last=2, trigger=MessagesAbove(1_000))
    gate = SummarizationMiddleware(summarizer, policy=policy, compact_transcript=True)
    model = ScriptedModel([call("compact_context", focus="the port"), say("done")])
    agent = make(model, gate, tools=[compact_context_tool()])
    run = await agent.invoke(None, [*history(3), UserMessage(content="now")])
    assert [len(request.messages) for request in model.requests] == [8, 4]
    assert summarizer.goals == ["now\nStill needed: the port"]
    assert run.snapshot.notes.keys() == {"context.summary", "context.overhead"}


async def test_it_works_beside_what_keeps_the_transcript_inside_the_window() -> None:
    requests_only = SummarizationMiddleware(
        CountingSummarizer(), policy=SummarizationPolicy(keep_last=2, trigger=MessagesAbove(6))
    )
    window = ContextWindowMiddleware(
        [Summarize(CountingSummarizer(), keep_last=2)], window=1_500, reserve=0
    )
    model = ScriptedModel([call("look", n=n) for n in range(12)] + [say("done")])
    agent = AgentHarness(
        model=model, middleware=[requests_only, window], tools=[FakeTool("look", WORDS)]
    )
    run = await agent.invoke(None, [*history(3), UserMessage(content="now")])
    assert run.text == "done"
    for request in model.requests:
        assert is_well_paired(request.messages)
        assert len(request.messages) <= 8
    kept = stored_summary(run.snapshot.notes)
    assert kept is not None
    assert_event_grammar(run)


async def test_runs_at_once_do_not_see_each_other() -> None:
    import anyio

    gate = SummarizationMiddleware(CountingSummarizer(), policy=EARLY)
    model = ScriptedModel.per_run([call("look"), say("done")])
    agent = make(model, gate, tools=[FakeTool("look", "found")])
    runs: list[Any] = []

    async def one(n: int) -> None:
        given: list[Message] = [UserMessage(content=f"run {n}"), *history(3)]
        runs.append(await agent.invoke(None, [*given, UserMessage(content="now")]))

    async with anyio.create_task_group() as tasks:
        for n in range(5):
            tasks.start_soon(one, n)
    hashes = {stored_summary(run.snapshot.notes).record.source_hash for run in runs}  # type: ignore[union-attr]
    assert len(hashes) == 5


def test_the_name_of_the_original_is_the_same_middleware() -> None:
    assert ContextCompressionMiddleware is SummarizationMiddleware


@pytest.mark.parametrize(
    ("options", "words"),
    [({"on_failure": "ignore"}, "fallback_trim"), ({"max_records": -1}, "max_records")],
)
def test_what_cannot_work_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        SummarizationMiddleware(**options)


@pytest.mark.parametrize("compact_transcript", [True, False])
@pytest.mark.parametrize("text", [" ", WORDS * 20])
async def test_a_summary_that_is_no_use_is_a_failure(text: str, compact_transcript: bool) -> None:
    model = ScriptedModel([say("ok")])
    summaries = SummarizationMiddleware(
        SayingSummarizer(text),
        policy=SummarizationPolicy(keep_last=2, trigger=TokensAbove(600)),
        compact_transcript=compact_transcript,
    )
    given = [UserMessage(content=f"q{n} {WORDS}") for n in range(6)]
    run = await make(model, summaries).invoke(None, given)
    (request,) = model.requests
    sent = [message.text[:2] for message in request.messages if message.role == "user"]
    assert sent == ["q4", "q5"]
    (failed,) = of_kind(run.events, MiddlewareFailed)
    assert failed.error is not None
    assert failed.error.startswith("SummaryError")
    assert not of_kind(run.events, ContextSummarized)
    assert not summaries.records
    assert stored_summary(run.snapshot.notes) is None
    assert_event_grammar(run)


async def test_fewer_messages_may_be_what_is_wanted_however_long_the_summary() -> None:
    model = ScriptedModel([say("ok")])
    summaries = SummarizationMiddleware(SayingSummarizer(WORDS), policy=EARLY)
    await make(model, summaries).invoke(None, [*history(4), UserMessage(content="now")])
    assert len(model.requests[0].messages) < 5
