"""Streams and handles: what is shown, who owns the run, and what leaving early does."""

import gc

import anyio
import pytest

from tests.support import PATIENCE
from tinyagents import (
    AgentHarness,
    CancellationToken,
    Final,
    MessageCompleted,
    TextDelta,
    ToolCompleted,
    ToolContext,
    ToolStarted,
    tool,
)
from tinyagents.harness.errors import InvalidRequestError, RunCancelledError, ServerError
from tinyagents.harness.stream import (
    EventChunk,
    MessageDiscarded,
    ReasoningDelta,
    RefusalDelta,
    ToolCallDelta,
    ToolProgress,
    UsageUpdate,
)
from tinyagents.testkit import (
    EventRecorder,
    FakeSleep,
    ScriptedModel,
    assert_event_grammar,
    call,
    fail,
    refuse,
    say,
    think,
)


@tool
async def add(a: int, b: int, ctx: ToolContext[None]) -> int:
    """Add two integers."""
    ctx.progress("adding")
    return a + b


def harness(*steps: object, **options: object) -> AgentHarness:
    return AgentHarness(model=ScriptedModel(list(steps)), tools=[add], **options)  # type: ignore[arg-type]


async def test_a_stream_shows_text_tools_and_the_final_run_in_order() -> None:
    stream = harness(call("add", a=1, b=2), say("it is three")).stream(None, "1 + 2?")
    chunks = [chunk async for chunk in stream]
    assert "".join(c.text for c in chunks if isinstance(c, TextDelta)) == "it is three"
    kinds = [type(chunk) for chunk in chunks]
    order = [ToolStarted, ToolProgress, ToolCompleted, TextDelta, MessageCompleted, Final]
    assert [kinds.index(kind) for kind in order[:4]] == sorted(kinds.index(k) for k in order[:4])
    assert kinds[-1] is Final
    final = chunks[-1]
    assert isinstance(final, Final)
    assert final.run.text == "it is three"
    assert [chunk.offset for chunk in chunks] == list(range(len(chunks)))
    assert {chunk.run_id for chunk in chunks} == {final.run.run_id}


async def test_the_streamed_run_is_the_run_that_invoke_gives() -> None:
    steps = (call("add", a=1, b=2), [think("hm"), say("three")])
    streamed = await harness(*steps).stream(None, "go").result()
    plain = await harness(*steps).invoke(None, "go")
    assert streamed.messages == plain.messages
    assert streamed.usage == plain.usage
    assert [e.kind for e in streamed.events] == [e.kind for e in plain.events]


async def test_modes_choose_the_chunks() -> None:
    agent = harness(call("add", a=1, b=2), [think("hm"), say("three")])
    chunks = [c async for c in agent.stream(None, "go", modes={"events", "updates"})]
    assert {type(chunk) for chunk in chunks} == {EventChunk, UsageUpdate}
    kinds = [c.event.kind for c in chunks if isinstance(c, EventChunk)]
    assert kinds[0] == "run.started"
    assert "model.delta" in kinds
    assert kinds[-1] == "run.completed"


async def test_an_unknown_mode_is_refused_at_once() -> None:
    with pytest.raises(InvalidRequestError, match="token"):
        harness(say("x")).stream(None, "go", modes={"token"})  # type: ignore[arg-type]


async def test_reasoning_and_tool_calls_are_shown_as_they_come() -> None:
    agent = harness([think("hm"), call("add", a=1, b=2)], say("3"))
    chunks = [chunk async for chunk in agent.stream(None, "go", modes={"messages"})]
    assert "".join(c.text for c in chunks if isinstance(c, ReasoningDelta)) == "hm"
    arguments = "".join(c.arguments for c in chunks if isinstance(c, ToolCallDelta))
    assert arguments == '{"a":1,"b":2}'


async def test_a_refusal_is_shown_as_it_comes_and_is_no_text() -> None:
    chunks = [c async for c in harness(refuse("I can", "not.")).stream(None, "go")]
    shown = [c.text for c in chunks if isinstance(c, RefusalDelta)]
    assert shown == ["I can", "not."]
    assert not any(isinstance(chunk, TextDelta) for chunk in chunks)
    (whole,) = (c.message for c in chunks if isinstance(c, MessageCompleted))
    assert whole.refusal == "I cannot."


async def test_pieces_of_a_failed_attempt_are_declared_void() -> None:
    agent = harness(fail(ServerError("down"), after="half an "), say("answer"), sleep=FakeSleep())
    chunks = [chunk async for chunk in agent.stream(None, "go")]
    position = next(i for i, chunk in enumerate(chunks) if isinstance(chunk, MessageDiscarded))
    after = "".join(c.text for c in chunks[position:] if isinstance(c, TextDelta))
    assert after == "answer"


async def test_an_error_of_the_run_is_raised_by_the_iteration_with_the_run() -> None:
    stream = harness(fail(ServerError("down", retryable=False), after="half an ")).stream(
        None, "go"
    )
    with pytest.raises(ServerError) as caught:
        async for _ in stream:
            pass
    run = caught.value.run
    assert run is not None
    assert run.text == "half an "
    assert run.usage.source == "estimated"
    assert stream.partial is run
    with pytest.raises(ServerError):
        await stream.result()


async def test_leaving_the_stream_cancels_the_run_and_waits_for_its_clean_up() -> None:
    recorder = EventRecorder()
    agent = harness(say("a long text in many pieces"), listeners=[recorder])
    async with agent.stream(None, "go") as stream:
        async for chunk in stream:
            if isinstance(chunk, TextDelta):
                break
    assert recorder.kinds[-1] in ("run.failed", "run.completed")
    assert_event_grammar(recorder.events)


async def test_a_stream_that_is_dropped_cancels_its_run() -> None:
    ended = anyio.Event()

    @tool
    async def hang() -> str:
        """Hang."""
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()
        return ""

    agent = AgentHarness(model=ScriptedModel([call("hang")]), tools=[hang])

    async def look() -> None:
        async for chunk in agent.stream(None, "go"):
            if isinstance(chunk, ToolStarted):
                break

    await look()
    gc.collect()
    with anyio.fail_after(PATIENCE):
        await ended.wait()


async def test_a_cancelled_consumer_cancels_the_run_and_waits() -> None:
    started, cleaned = anyio.Event(), []

    @tool
    async def hang() -> str:
        """Hang."""
        started.set()
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(0.01)
            cleaned.append(True)
        return ""

    agent = AgentHarness(model=ScriptedModel([call("hang")]), tools=[hang])

    async def consume() -> None:
        async for _ in agent.stream(None, "go"):
            pass

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(consume)
        await started.wait()
        tasks.cancel_scope.cancel()
    assert cleaned == [True]


async def test_a_token_ends_a_stream_with_the_cancellation_error() -> None:
    token = CancellationToken()

    @tool
    async def stop() -> str:
        """Stop the run."""
        token.cancel("stop")
        await anyio.sleep_forever()
        return ""

    agent = AgentHarness(model=ScriptedModel([call("stop")]), tools=[stop])
    with pytest.raises(RunCancelledError, match="stop"):
        async for _ in agent.stream(None, "go", cancellation=token):
            pass


async def test_a_slow_consumer_holds_the_model_back() -> None:
    from tinyagents.harness.model import MessageDelta, ModelProfile, ModelResponse

    produced = 0

    class Endless:
        profile = ModelProfile()

        async def invoke(self, request: object, *, ctx: object = None) -> ModelResponse:
            raise NotImplementedError

        async def stream(self, request: object, *, ctx: object = None):  # type: ignore[no-untyped-def]
            nonlocal produced
            while True:
                produced += 1
                yield MessageDelta(text="x")

    async with AgentHarness(model=Endless()).stream(None, "go") as stream:
        await anext(stream)
        await anyio.wait_all_tasks_blocked()
        assert produced < 1000


async def test_a_handle_runs_on_whoever_looks_and_gives_the_result() -> None:
    handle = harness(call("add", a=1, b=2), say("three")).start(None, "go")
    first = [chunk async for chunk in handle.subscribe()]
    run = await handle
    second = [chunk async for chunk in handle.subscribe(from_offset=first[1].offset)]
    assert run.text == "three"
    assert second == first[1:]
    assert handle.status().status == "completed"
    assert handle.done


async def test_a_handle_keeps_the_chunks_of_the_modes_that_it_was_started_with() -> None:
    agent = harness(call("add", a=1, b=2), say("three"))
    handle = agent.start(None, "go", modes={"events", "final"})
    await handle
    kinds = {type(chunk) async for chunk in handle.subscribe()}
    assert kinds == {EventChunk, Final}
    assert [type(chunk) async for chunk in handle.subscribe(modes="final")] == [Final]
    with pytest.raises(InvalidRequestError, match="`messages`, `tools`"):
        handle.subscribe(modes=("messages", "tools", "final"))


async def test_a_handle_keeps_no_event_unless_it_is_asked_to() -> None:
    handle = harness(say("three")).start(None, "go")
    await handle
    assert {chunk.mode async for chunk in handle.subscribe()} == {"messages", "final"}
    with pytest.raises(InvalidRequestError, match="`events`"):
        handle.subscribe(modes="events")


async def test_a_handle_that_keeps_nothing_still_gives_the_result() -> None:
    handle = harness(say("three")).start(None, "go", modes=())
    assert [chunk async for chunk in handle.subscribe()] == []
    assert (await handle).text == "three"


async def test_a_stream_that_is_closed_before_its_first_step_has_no_run() -> None:
    recorder = EventRecorder()
    stream = harness(say("three"), listeners=[recorder]).stream(None, "go")
    await stream.aclose()
    with pytest.raises(RunCancelledError, match="before it began: the consumer left") as caught:
        await stream.result()
    assert caught.value.reason == "the consumer left the stream"
    assert [chunk async for chunk in stream] == []
    assert recorder.kinds == []


async def test_a_handle_cancels_the_run() -> None:
    started = anyio.Event()

    @tool
    async def hang() -> str:
        """Hang."""
        started.set()
        await anyio.sleep_forever()
        return ""

    handle = AgentHarness(model=ScriptedModel([call("hang")]), tools=[hang]).start(None, "go")
    await started.wait()
    assert handle.status().phase == "call_tools"
    handle.cancel("changed my mind")
    with pytest.raises(RunCancelledError, match="changed my mind"):
        await handle


def test_a_script_can_run_an_agent_without_a_loop() -> None:
    assert harness(say("hello")).invoke_sync(None, "hi").text == "hello"


async def test_the_synchronous_call_refuses_to_block_a_loop() -> None:
    with pytest.raises(InvalidRequestError, match="await"):
        harness(say("hello")).invoke_sync(None, "hi")


async def test_one_model_call_runs_no_tool() -> None:
    agent = harness(call("add", a=1, b=2))
    response = await agent.invoke_model("go", tools=[add])
    assert [block.name for block in response.message.tool_calls] == ["add"]


async def test_one_model_call_offers_no_tools_unless_they_are_given() -> None:
    model = ScriptedModel([say("rain")])
    response = await AgentHarness(model=model, tools=[add]).invoke_model("One word?")
    assert response.text == "rain"
    assert model.requests[0].tools == ()
