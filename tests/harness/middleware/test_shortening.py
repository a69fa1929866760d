"""Middlewares that send less of a conversation than there is, and leave the transcript whole."""

import gc
import json
import time
import weakref
from itertools import pairwise
from typing import Any

import anyio
import pytest
from hypothesis import given, strategies as st

from tinyagents import (
    AgentHarness,
    AssistantMessage,
    FileBlock,
    ImageBlock,
    JsonBlock,
    ReasoningBlock,
    RunSnapshot,
    SystemMessage,
    TextBlock,
    ToolCallBlock,
    ToolMessage,
    ToolResult,
    Usage,
    UserMessage,
    tool,
)
from tinyagents.harness.errors import ConfigurationError, ServerError
from tinyagents.harness.events import Compressed
from tinyagents.harness.message import InvalidArguments, Message, retrieved_block
from tinyagents.harness.middleware import (
    ContextEditingMiddleware,
    MessageTrimMiddleware,
    Middleware,
    OutputCompressionMiddleware,
    RetrievalCompressionMiddleware,
    TranscriptCompressionMiddleware,
    before_model,
)
from tinyagents.harness.model import ModelRequest, PromptSegment
from tinyagents.harness.stream import TextDelta
from tinyagents.harness.summarization import TrimStrategy, is_well_paired
from tinyagents.testkit import (
    EventRecorder,
    FakeSleep,
    FakeTool,
    ScriptedModel,
    assert_prompt_prefix_preserved,
    call,
    calls,
    fail,
    say,
)

CLEARED = "[old tool result content cleared]"


def user(*blocks: Any) -> UserMessage:
    return UserMessage(content=list(blocks))


def exchange(number: int, text: str = "found " + "x" * 200, **facts: Any) -> list[Message]:
    block = ToolCallBlock(id=f"c{number}", name="look", arguments={"q": f"query {number}"})
    return [
        AssistantMessage(content=[block]),
        ToolMessage(tool_call_id=f"c{number}", name="look", content=text, **facts),
    ]


def history(count: int, **facts: Any) -> list[Message]:
    return [UserMessage(content="go"), *(m for n in range(count) for m in exchange(n, **facts))]


async def sent(
    middleware: Middleware[Any], messages: list[Message], recorder: EventRecorder | None = None
) -> list[Message]:
    """What is sent of these messages; the transcript has all of them afterwards."""
    model = ScriptedModel([say("done")])
    agent = AgentHarness(
        model=model, middleware=[middleware], listeners=[] if recorder is None else [recorder]
    )
    run = await agent.invoke(None, messages)
    assert run.messages[:-1] == messages
    return model.requests[0].messages


def compressed(recorder: EventRecorder) -> list[Compressed]:
    return [event for event in recorder.events if isinstance(event, Compressed)]


ALL: list[tuple[Middleware[Any], list[Message]]] = [
    (MessageTrimMiddleware(TrimStrategy.keep_last(2)), history(4)),
    (ContextEditingMiddleware(keep_recent=1), history(4)),
    (TranscriptCompressionMiddleware(keep_recent=0, step=1), history(4)),
    (
        RetrievalCompressionMiddleware(keep_turns=0),
        [user(retrieved_block("fact"), TextBlock(text="?"))],
    ),
]
EACH = pytest.mark.parametrize(
    ("middleware", "given_messages"), ALL, ids=lambda each: getattr(each, "name", "messages")
)


async def test_trimming_sends_a_part_and_keeps_the_transcript() -> None:
    recorder = EventRecorder()
    trim = MessageTrimMiddleware(TrimStrategy.keep_last(2))
    messages = await sent(trim, history(5), recorder)
    assert [m.role for m in messages] == ["user", "assistant", "tool"]
    (event,) = compressed(recorder)
    assert event.from_tokens > event.to_tokens > 0
    assert event.by == "MessageTrimMiddleware"


async def test_trimming_tells_nothing_where_all_is_kept() -> None:
    recorder = EventRecorder()
    trim = MessageTrimMiddleware(TrimStrategy.max_tokens(100_000))
    assert len(await sent(trim, history(3), recorder)) == 7
    assert compressed(recorder) == []


async def test_trimming_may_begin_and_end_on_chosen_roles() -> None:
    trim = MessageTrimMiddleware(
        TrimStrategy.keep_last(3), keep_user_turn=False, start_on=["user"], end_on=["user"]
    )
    given: list[Message] = [user(TextBlock(text="1")), *exchange(1), user(TextBlock(text="2"))]
    assert [m.text for m in await sent(trim, given)] == ["2"]


async def test_the_segments_of_a_prompt_follow_what_is_left_of_it() -> None:
    seen: list[ModelRequest] = []

    @before_model
    def lay_out(ctx: Any, request: ModelRequest) -> None:
        request.messages.insert(0, SystemMessage(content="rules"))
        request.segments = [
            PromptSegment(id="system", role="system", cacheable=True, messages=1),
            PromptSegment(id="history", role="history", cacheable=False, messages=6),
        ]

    @before_model
    def look(ctx: Any, request: ModelRequest) -> None:
        seen.append(request)

    trim = MessageTrimMiddleware(TrimStrategy.keep_last(2))
    agent = AgentHarness(model=ScriptedModel([say("done")]), middleware=[lay_out, trim, look])
    await agent.invoke(None, [*history(3), user(TextBlock(text="and?"))])
    (request,) = seen
    assert [m.role for m in request.messages] == ["system", "user", "assistant", "tool", "user"]
    assert [segment.messages for segment in request.segments] == [1, 2]


async def test_old_results_are_cleared_and_the_latest_stay() -> None:
    recorder = EventRecorder()
    messages = await sent(ContextEditingMiddleware(keep_recent=2), history(4), recorder)
    results = [m.text for m in messages if m.role == "tool"]
    assert [text == CLEARED for text in results] == [True, True, False, False]
    assert is_well_paired(messages)
    assert len(compressed(recorder)) == 1


async def test_trusted_and_excluded_results_are_not_cleared() -> None:
    trusted = await sent(ContextEditingMiddleware(keep_recent=0), history(2, trusted_verbatim=True))
    excluded = await sent(
        ContextEditingMiddleware(keep_recent=0, exclude_tools=["look"]), history(2)
    )
    assert CLEARED not in [m.text for m in (*trusted, *excluded)]


async def test_nothing_is_cleared_at_or_under_the_trigger_and_a_trigger_of_nothing_is_none() -> (
    None
):
    recorder = EventRecorder()
    calm = ContextEditingMiddleware(keep_recent=0, trigger_tokens=10_000)
    assert CLEARED not in [m.text for m in await sent(calm, history(3), recorder)]
    assert compressed(recorder) == []
    always = ContextEditingMiddleware(keep_recent=0, trigger_tokens=0)
    assert CLEARED in [m.text for m in await sent(always, history(3))]


async def test_what_was_cleared_before_is_not_cleared_again_and_events_may_be_off() -> None:
    recorder = EventRecorder()
    once = await sent(ContextEditingMiddleware(keep_recent=1), history(3))
    again = await sent(ContextEditingMiddleware(keep_recent=1), once, recorder)
    assert again == once
    assert compressed(recorder) == []
    quiet = ContextEditingMiddleware(keep_recent=0, events=False)
    assert CLEARED in [m.text for m in await sent(quiet, history(2), recorder)]
    assert compressed(recorder) == []


async def test_the_arguments_of_cleared_calls_may_go_too() -> None:
    messages = await sent(ContextEditingMiddleware(keep_recent=1, clear_arguments=True), history(2))
    asked = [m.tool_calls[0].arguments for m in messages if isinstance(m, AssistantMessage)]
    assert asked == [{}, {"q": "query 1"}]


async def test_results_whose_ids_repeat_are_told_apart() -> None:
    repeated = [*history(1), UserMessage(content="again"), *exchange(0)]
    messages = await sent(ContextEditingMiddleware(keep_recent=1), repeated)
    assert [m.text == CLEARED for m in messages if m.role == "tool"] == [True, False]


async def test_between_two_clearings_prompts_go_on_from_each_other() -> None:
    calls = [call("look", q=n) for n in range(12)]
    model = ScriptedModel([*calls, say("done")])
    agent = AgentHarness(
        model=model,
        tools=[FakeTool("look", "found " + "x" * 400)],
        middleware=[ContextEditingMiddleware(keep_recent=2, clear_at_least=400)],
    )
    await agent.invoke(None, "go")
    cleared = [sum(m.text == CLEARED for m in r.messages) for r in model.requests]
    steps = sorted(set(cleared))
    assert 2 < len(steps) < 6
    for before, after, same in zip(
        model.requests, model.requests[1:], map(int.__eq__, cleared, cleared[1:]), strict=False
    ):
        if same:
            assert_prompt_prefix_preserved(before, after)


async def test_a_resumed_run_still_has_cleared_what_it_had() -> None:
    model = ScriptedModel([call("look", q=1), call("look", q=2), say("one"), say("two")])
    agent = AgentHarness(
        model=model,
        tools=[FakeTool("look", "x" * 400)],
        middleware=[ContextEditingMiddleware(keep_recent=1, trigger_tokens=150)],
    )
    run = await agent.invoke(None, "go")
    stored = RunSnapshot.model_validate_json(run.snapshot.model_dump_json())
    lenient = agent.replace(
        middleware=[ContextEditingMiddleware(keep_recent=1, trigger_tokens=9_000)]
    )
    await lenient.resume(stored, None, input="more")
    results = [m.text for m in model.requests[-1].messages if m.role == "tool"]
    assert [text == CLEARED for text in results] == [True, False]


@pytest.mark.parametrize(
    "options",
    [{"keep_recent": -1}, {"trigger_tokens": -5}, {"clear_at_least": -1}, {"exclude_tools": "a"}],
)
def test_odd_options_of_clearing_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        ContextEditingMiddleware(**options)


async def test_older_messages_lose_blank_space_and_recent_ones_do_not() -> None:
    given: list[Message] = [
        UserMessage(content=f"a   \n\n\n\n{'-' * 40}\nb  c\n") for _ in range(3)
    ]
    compression = TranscriptCompressionMiddleware(keep_recent=1, step=1)
    texts = [m.text for m in await sent(compression, given)]
    assert texts == ["a\n\n---\nb  c\n"] * 2 + [given[0].text]


async def test_a_result_that_comes_again_is_sent_once_and_reasoning_is_left_out() -> None:
    thought: Message = AssistantMessage(content=[ReasoningBlock(text="hm"), TextBlock(text="so")])
    signed: Message = AssistantMessage(content=[ReasoningBlock(text="hm", signature="s")])
    only: Message = AssistantMessage(content=[ReasoningBlock(text="hm")])
    given = [*history(2, text="y" * 300), thought, user(), signed, user(), only, user()]
    messages = await sent(TranscriptCompressionMiddleware(keep_recent=0, step=1), given)
    results = [m.text for m in messages if m.role == "tool"]
    assert ["later call" in text for text in results] == [True, False]
    kinds = [[b.type for b in m.content] for m in messages if m.role == "assistant"]
    assert kinds == [["tool_call"], ["tool_call"], ["text"], ["reasoning"]]


async def test_trusted_results_and_instructions_are_not_compressed() -> None:
    given: list[Message] = [
        SystemMessage(content="a   \n\n\n\nb"),
        *exchange(0, "a   \n\n\n\nb" * 30, trusted_verbatim=True),
        *exchange(1, "a   \n\n\n\nb" * 30, trusted_verbatim=True),
    ]
    assert await sent(TranscriptCompressionMiddleware(keep_recent=0, step=1), given) == given


async def test_the_line_to_older_messages_moves_in_steps() -> None:
    compression = TranscriptCompressionMiddleware(keep_recent=2, step=4)
    given: list[Message] = [UserMessage(content="a  \n") for _ in range(8)]
    for count, shortened in ((5, 0), (6, 4), (8, 4)):
        texts = [m.text for m in await sent(compression, given[:count])]
        assert texts == ["a\n"] * shortened + ["a  \n"] * (count - shortened)


async def test_passages_of_older_turns_are_dropped() -> None:
    given: list[Message] = [
        user(retrieved_block("old passage"), TextBlock(text="first?")),
        AssistantMessage(content="yes"),
        user(retrieved_block("new passage"), TextBlock(text="second?")),
    ]
    recorder = EventRecorder()
    texts = [m.text for m in await sent(RetrievalCompressionMiddleware(), given, recorder)]
    assert texts == ["first?", "yes", "new passagesecond?"]
    assert len(compressed(recorder)) == 1
    everything = RetrievalCompressionMiddleware(keep_turns=None)
    assert await sent(everything, given) == given
    nothing = RetrievalCompressionMiddleware(keep_turns=0)
    assert [m.text for m in await sent(nothing, given)] == ["first?", "yes", "second?"]


async def test_the_best_passages_stay_within_the_limit_and_in_their_order() -> None:
    passages = [
        retrieved_block(f"{n} " + "word " * 20, source=f"doc {n}", score=score)
        for n, score in enumerate([0.1, 0.9, 0.5])
    ]
    given: list[Message] = [user(*passages, TextBlock(text="?"))]
    (message,) = await sent(RetrievalCompressionMiddleware(max_tokens=60), given)
    assert message.content == [passages[1], passages[2], TextBlock(text="?")]


async def test_a_passage_that_comes_again_is_sent_once_and_none_leaves_an_empty_message() -> None:
    passage = retrieved_block("same")
    given: list[Message] = [user(passage), AssistantMessage(content="yes"), user(passage)]
    texts = [m.text for m in await sent(RetrievalCompressionMiddleware(keep_turns=2), given)]
    assert texts[1:] == ["yes", "same"]
    assert "left out" in texts[0]


def look(result: Any) -> Any:
    return FakeTool("look", result)


async def result_of(middleware: OutputCompressionMiddleware, result: Any) -> ToolMessage:
    model = ScriptedModel([call("look"), say("done")])
    agent = AgentHarness(model=model, tools=[look(result)], middleware=[middleware])
    run = await agent.invoke(None, "go")
    message = run.messages[2]
    assert isinstance(message, ToolMessage)
    return message


async def test_terminal_codes_go_from_output_of_any_length() -> None:
    shown = await result_of(
        OutputCompressionMiddleware(), "\x1b[31mred\x1b[0m \x1b]0;title\x07plain"
    )
    assert shown.text == "red plain"


async def test_long_lists_in_json_are_cut_and_stay_json() -> None:
    rows = {"rows": [{"n": n, "tags": list(range(9))} for n in range(500)]}
    shown = await result_of(
        OutputCompressionMiddleware(max_characters=1_000, max_items=3), JsonBlock(value=rows)
    )
    assert '{"n":2,"tags":[0,1,2,"[… cut: 6 of 9 items …]"]}' in shown.text
    assert "[… cut: 497 of 500 items …]" in shown.text


async def test_lines_alike_are_told_as_one_and_the_middle_is_cut_last() -> None:
    log = "\n".join(["begin", *(f"12:{n} retry {n}" for n in range(99)), "end"])
    shown = await result_of(OutputCompressionMiddleware(max_characters=200), log)
    assert shown.text == "begin\n12:0 retry 0\n[… 98 more lines like this …]\nend"
    words = " ".join(f"{chr(97 + n % 26)}{n}" for n in range(900))
    cut = await result_of(OutputCompressionMiddleware(max_characters=100), words)
    assert cut.text.startswith("a0 b1")
    assert f"[… cut: {len(words)} characters in all …]" in cut.text
    assert cut.text.endswith(words[-50:])


async def test_trusted_output_files_and_other_tools_stay() -> None:
    long = "x" * 900
    file = FileBlock.from_bytes(b"a", "text/plain", "a.txt")
    compression = OutputCompressionMiddleware(max_characters=100)
    trusted = await result_of(compression, ToolResult(long, trusted_verbatim=True))
    assert trusted.text == long
    both = await result_of(compression, ToolResult([TextBlock(text=long), file]))
    assert both.content[1:] == [file]
    assert len(both.text) < 200
    other = OutputCompressionMiddleware(max_characters=100, tools=["other"])
    assert (await result_of(other, long)).text == long


async def test_the_application_sees_the_whole_value() -> None:
    @tool
    def listing() -> ToolResult:
        """List numbers."""
        return ToolResult("x" * 900, value=list(range(5_000)))

    model = ScriptedModel([call("listing"), say("done")])
    agent = AgentHarness(
        model=model, tools=[listing], middleware=[OutputCompressionMiddleware(max_characters=99)]
    )
    run = await agent.invoke(None, "go")
    message = run.messages[2]
    assert isinstance(message, ToolMessage)
    assert len(message.text) < 200
    assert message.artifact == list(range(5_000))


async def test_the_reasoning_of_the_turn_that_is_going_on_stays() -> None:
    thought = ReasoningBlock(text="hm")
    earlier, now = (
        AssistantMessage(content=[thought, ToolCallBlock(id=f"c{n}", name="look")]) for n in (0, 1)
    )
    given: list[Message] = [
        user(), earlier, exchange(0)[1], user(), now, exchange(1)[1]
    ]  # fmt: skip
    messages = await sent(TranscriptCompressionMiddleware(keep_recent=0, step=1), given)
    kinds = [[b.type for b in m.content] for m in messages if m.role == "assistant"]
    assert kinds == [["tool_call"], ["reasoning", "tool_call"]]


async def test_a_long_run_of_blanks_takes_no_time_and_a_blank_block_stays() -> None:
    blanks = " " * 500_000 + "x"
    given: list[Message] = [user(TextBlock(text=blanks), TextBlock(text=" ")), user()]
    started = time.process_time()
    messages = await sent(TranscriptCompressionMiddleware(keep_recent=1, step=1), given)
    assert time.process_time() - started < 5  # it would be hours
    assert messages == given


async def test_messages_do_not_outlive_their_runs() -> None:
    compression = TranscriptCompressionMiddleware(keep_recent=0, step=1)
    for text in ("unchanged", "changed   \n"):
        message = user(TextBlock(text=text))
        await sent(compression, [message])
        gone = weakref.ref(message)
        del message
        gc.collect()
        assert gone() is None


async def test_a_command_that_is_not_ended_takes_nothing_with_it() -> None:
    shown = await result_of(OutputCompressionMiddleware(), "a\x1b[0m \x1b]0;title\nthe rest")
    assert shown.text.endswith("title\nthe rest")


async def test_long_texts_in_json_are_cut_and_it_stays_json() -> None:
    page = {"status": 200, "body": "x" * 50_000, "links": ["a", "b"]}
    compression = OutputCompressionMiddleware(max_characters=2_000)
    shown = json.loads((await result_of(compression, JsonBlock(value=page))).text)
    assert (shown["status"], shown["links"]) == (200, ["a", "b"])
    assert "[… cut: 50000 characters in all …]" in shown["body"]


@pytest.mark.parametrize("depth", [90, 120, 150, 900, 50_000])
async def test_json_of_any_depth_is_made_short(depth: int) -> None:
    text = f'{"[" * depth}"{"x" * 9_000}"{"]" * depth}'
    shown = await result_of(OutputCompressionMiddleware(max_characters=1_000), text)
    assert len(shown.text) < 1_200


@given(st.text(), st.integers(1, 80), st.integers(1, 5))
def test_output_never_becomes_longer(text: str, characters: int, items: int) -> None:
    compression = OutputCompressionMiddleware(max_characters=characters, max_items=items)
    for output in (text, json.dumps([text] * 9)):
        assert len(compression.shortened(output)) <= len(output)


async def test_results_that_the_model_has_not_seen_stay_however_many() -> None:
    ids = [f"c{n}" for n in range(5)]
    batch: list[Message] = [
        AssistantMessage(content=[ToolCallBlock(id=each, name="look") for each in ids]),
        *(ToolMessage(tool_call_id=each, name="look", content="x" * 200) for each in ids),
    ]
    editing = ContextEditingMiddleware(keep_recent=1)
    given = [*history(2)[:3], *batch]
    cleared = [m.text == CLEARED for m in await sent(editing, given) if m.role == "tool"]
    assert cleared == [True, *[False] * 5]
    seen = [*given, AssistantMessage(content="I see."), UserMessage(content="and?")]
    cleared = [m.text == CLEARED for m in await sent(editing, seen) if m.role == "tool"]
    assert cleared == [*[True] * 5, False]


async def test_clearing_goes_by_what_the_provider_has_counted_after_the_last_one() -> None:
    """What was cleared already does not hide that the prompt is too long again."""
    used = [Usage(input_tokens=tokens, output_tokens=1) for tokens in (10, 900, 300, 900)]
    steps = [calls(call("look"), usage=usage) for usage in used]
    model = ScriptedModel([*steps, say("done")])
    agent = AgentHarness(
        model=model,
        tools=[FakeTool("look", "x" * 200)],
        middleware=[ContextEditingMiddleware(keep_recent=1, trigger_tokens=800)],
    )
    await agent.invoke(None, "go")
    cleared = [sum(m.text == CLEARED for m in r.messages) for r in model.requests]
    assert cleared == [0, 0, 1, 1, 3]


async def test_a_note_of_what_was_cleared_never_clears_a_recent_result() -> None:
    """Ids repeat, and a compacted transcript has fewer of them."""
    model = ScriptedModel([say("done")])
    agent = AgentHarness(model=model, middleware=[ContextEditingMiddleware(keep_recent=1)])
    run = await agent.invoke(None, [*history(3), UserMessage(content="and?")])
    run.snapshot.messages[:] = [UserMessage(content="so far"), *exchange(0)]
    later = ScriptedModel([say("two")])
    await agent.replace(model=later).resume(run.snapshot, None, input="more")
    assert CLEARED not in [m.text for m in later.requests[0].messages]


async def test_two_with_other_options_do_not_forget_what_the_other_has_cleared() -> None:
    model = ScriptedModel([*[call("look", q=n) for n in range(6)], say("done")])
    agent = AgentHarness(
        model=model,
        tools=[FakeTool("look", "found " + "x" * 400)],
        middleware=[
            ContextEditingMiddleware(keep_recent=1, clear_at_least=250),
            ContextEditingMiddleware(keep_recent=0, exclude_tools=["look"]),
        ],
    )
    await agent.invoke(None, "go")
    cleared = [sum(m.text == CLEARED for m in r.messages) for r in model.requests]
    assert cleared == sorted(cleared)
    assert cleared[-1] > 0


async def test_clearing_calls_whose_arguments_could_not_be_read_leaves_nothing_of_them() -> None:
    block = ToolCallBlock(
        id="c0", name="look", invalid=InvalidArguments(raw="{" * 500, reason="cut")
    )
    given: list[Message] = [AssistantMessage(content=[block]), exchange(0)[1], *exchange(1)]
    editing = ContextEditingMiddleware(keep_recent=1, clear_arguments=True)
    answer = (await sent(editing, given))[0]
    assert isinstance(answer, AssistantMessage)
    assert (answer.tool_calls[0].arguments, answer.tool_calls[0].invalid) == ({}, None)


async def test_the_latest_message_is_sent_even_where_the_strategy_keeps_nothing() -> None:
    long: list[Message] = [SystemMessage(content="rules"), *history(2), user(TextBlock(text="?"))]
    for strategy in (TrimStrategy.max_tokens(1), TrimStrategy.keep_last(0)):
        messages = await sent(MessageTrimMiddleware(strategy), long)
        assert [m.text for m in messages] == ["rules", "?"]
        messages = await sent(MessageTrimMiddleware(strategy), history(2))
        assert [m.role for m in messages] == ["user", "assistant", "tool"]
        assert is_well_paired(messages)


@EACH
async def test_a_request_without_messages_stays_one(
    middleware: Middleware[Any], given_messages: list[Message]
) -> None:
    seen: list[int] = []

    @before_model
    def empty(ctx: Any, request: ModelRequest) -> None:
        request.messages = []

    @before_model
    def look(ctx: Any, request: ModelRequest) -> None:
        seen.append(len(request.messages))
        request.messages = given_messages

    agent = AgentHarness(model=ScriptedModel([say("done")]), middleware=[empty, middleware, look])
    await agent.invoke(None, "go")
    assert seen == [0]


async def test_a_cut_in_steps_lets_prompts_go_on_from_each_other() -> None:
    model = ScriptedModel([*[call("look", q=n) for n in range(9)], say("done")])
    trim = MessageTrimMiddleware(TrimStrategy.keep_last(4, step=6), keep_user_turn=False)
    agent = AgentHarness(model=model, tools=[FakeTool("look", "found")], middleware=[trim])
    await agent.invoke(None, "go")
    moved = 0
    for before, after in pairwise(model.requests):
        if before.messages[0] == after.messages[0]:
            assert_prompt_prefix_preserved(before, after)
        else:
            moved += 1
    assert moved == 2


async def test_passages_in_the_instructions_are_of_the_latest_turn() -> None:
    facts = [retrieved_block(f"fact {n}", score=n) for n in range(3)]
    rules = SystemMessage(content=[TextBlock(text="rules"), *facts])
    given: list[Message] = [rules, user(TextBlock(text="?"))]
    assert await sent(RetrievalCompressionMiddleware(), given) == given
    (system, _) = await sent(RetrievalCompressionMiddleware(max_tokens=4), given)
    assert system.content == [rules.content[0], *facts[1:]]


async def test_passages_in_trusted_results_stay() -> None:
    answer, _ = exchange(0)
    trusted = ToolMessage(tool_call_id="c0", content=retrieved_block("fact"), trusted_verbatim=True)
    given: list[Message] = [user(), answer, trusted, user(TextBlock(text="?"))]
    assert await sent(RetrievalCompressionMiddleware(keep_turns=0), given) == given


@EACH
async def test_a_call_that_is_made_again_sends_the_same_and_it_is_told_once(
    middleware: Middleware[Any], given_messages: list[Message]
) -> None:
    recorder = EventRecorder()
    model = ScriptedModel([fail(ServerError("busy")), say("done")])
    agent = AgentHarness(
        model=model, middleware=[middleware], listeners=[recorder], sleep=FakeSleep()
    )
    await agent.invoke(None, given_messages)
    first, second = (request.messages for request in model.requests)
    assert first == second
    assert first != given_messages
    assert len(compressed(recorder)) == 1


@EACH
async def test_a_stream_sends_what_a_plain_call_does(
    middleware: Middleware[Any], given_messages: list[Message]
) -> None:
    plain = await sent(middleware, given_messages)
    model = ScriptedModel([say("do", "ne")])
    agent = AgentHarness(model=model, middleware=[middleware])
    async with agent.stream(None, given_messages) as stream:
        texts = [item.text async for item in stream if isinstance(item, TextDelta)]
    assert texts == ["do", "ne"]
    assert model.requests[0].messages == plain


async def test_runs_that_share_a_middleware_do_not_mix_what_they_have_cleared() -> None:
    editing = ContextEditingMiddleware(keep_recent=1, trigger_tokens=400)
    seen: dict[str, list[int]] = {}

    async def work(text: str) -> None:
        model = ScriptedModel([*[call("look", q=n) for n in range(4)], say("done")])
        agent = AgentHarness(model=model, tools=[FakeTool("look", text)], middleware=[editing])
        await agent.invoke(None, "go")
        seen[text] = [sum(m.text == CLEARED for m in r.messages) for r in model.requests]

    async with anyio.create_task_group() as group:
        group.start_soon(work, "x" * 1_600)
        group.start_soon(work, "short")
    assert seen == {"short": [0] * 5, "x" * 1_600: [0, 0, 1, 2, 3]}


@pytest.mark.parametrize(
    "block", [ImageBlock(url="https://x.test/a.png"), JsonBlock(value=["x" * 3_000])]
)
async def test_pictures_and_json_count_towards_the_trigger(block: Any) -> None:
    editing = ContextEditingMiddleware(keep_recent=0, trigger_tokens=500)
    seen = [*history(1, artifact={"rows": 3}), AssistantMessage(content="I see.")]
    assert CLEARED not in [m.text for m in await sent(editing, [*seen, user()])]
    shown = await sent(editing, [*seen, user(block)])
    (result,) = [m for m in shown if isinstance(m, ToolMessage)]
    assert (result.text, result.artifact) == (CLEARED, None)


async def test_the_order_of_middlewares_is_the_order_of_what_they_do() -> None:
    """Results that were cleared first leave nothing that comes twice."""
    first = ContextEditingMiddleware(keep_recent=0, exclude_tools=["other"])
    second = TranscriptCompressionMiddleware(keep_recent=0, step=1)
    given_messages = [*history(2, text="y" * 300), AssistantMessage(content="I see."), user()]
    counted: list[int] = []
    for order in ([first, second], [second, first]):
        recorder = EventRecorder()
        agent = AgentHarness(
            model=ScriptedModel([say("done")]), middleware=order, listeners=[recorder]
        )
        await agent.invoke(None, given_messages)
        counted.append(len(compressed(recorder)))
    assert counted == [1, 2]


async def test_very_long_output_is_shortened_as_any_other() -> None:
    log = "\n".join(f"request {n}" for n in range(30_000))
    shown = await result_of(OutputCompressionMiddleware(), log)
    assert shown.text == "request 0\n[… 29999 more lines like this …]"
