"""When hooks run, what they may change, and what happens when they fail."""

from typing import Any

import anyio
import pytest

from tinyagents import (
    AgentHarness,
    AgentRun,
    AssistantMessage,
    RunContext,
    RunLimits,
    RunPolicy,
    TextBlock,
    ToolContext,
    ToolMessage,
    ToolResult,
    UserMessage,
    tool,
)
from tinyagents.harness.errors import AuthenticationError, RunCancelledError, ServerError
from tinyagents.harness.events import ToolProgress as ToolProgressEvent
from tinyagents.harness.message import repair_messages
from tinyagents.harness.middleware import (
    Middleware,
    ModelDelta,
    ModelHandler,
    ToolCall,
    ToolDelta,
    ToolHandler,
    wrap_tool,
)
from tinyagents.harness.model import MessageDelta, ModelRequest, ModelResponse
from tinyagents.harness.stream import TextDelta, ToolProgress
from tinyagents.testkit import (
    EventRecorder,
    ScriptedModel,
    assert_event_grammar,
    call,
    fail,
    hang,
    say,
)

Ctx = RunContext[Any]


@tool
async def add(a: int, b: int, ctx: ToolContext[Any]) -> int:
    """Add two integers."""
    ctx.progress("adding")
    return a + b


class Diary(Middleware[Any]):
    """Notes each hook that is called."""

    def __init__(self, label: str, notes: list[str]) -> None:
        self.label = label
        self.notes = notes

    @property
    def name(self) -> str:
        return self.label

    def note(self, what: str) -> None:
        self.notes.append(f"{self.label} {what}")

    async def before_agent(self, ctx: Ctx) -> None:
        self.note("before_agent")

    async def after_agent(self, ctx: Ctx, run: AgentRun[Any, Any]) -> None:
        self.note(f"after_agent {run.status}")

    async def before_model(self, ctx: Ctx, request: ModelRequest) -> None:
        self.note("before_model")

    async def on_model_delta(self, ctx: Ctx, delta: ModelDelta) -> None:
        self.note("on_model_delta")

    async def after_model(self, ctx: Ctx, response: ModelResponse) -> None:
        self.note("after_model")

    async def before_tool(self, ctx: Ctx, call: ToolCall) -> None:
        self.note("before_tool")

    def on_tool_delta(self, ctx: Ctx, delta: ToolDelta) -> None:
        self.note("on_tool_delta")

    async def after_tool(self, ctx: Ctx, call: ToolCall, result: ToolResult) -> None:
        self.note("after_tool")

    async def on_error(self, ctx: Ctx, error: BaseException) -> None:
        self.note(f"on_error {type(error).__name__}")

    async def wrap_model(
        self, ctx: Ctx, request: ModelRequest, call_next: ModelHandler
    ) -> ModelResponse:
        self.note("wrap_model in")
        response = await call_next(request)
        self.note("wrap_model out")
        return response

    async def wrap_tool(self, ctx: Ctx, call: ToolCall, call_next: ToolHandler) -> ToolResult:
        self.note("wrap_tool in")
        result = await call_next(call)
        self.note("wrap_tool out")
        return result


class ErrorDiary(Middleware[Any]):
    """Notes the errors that it is told."""

    def __init__(self) -> None:
        self.errors: list[BaseException] = []

    async def on_error(self, ctx: Ctx, error: BaseException) -> None:
        self.errors.append(error)


def make(*steps: object, **options: Any) -> AgentHarness:
    return AgentHarness(model=ScriptedModel(list(steps)), tools=[add], **options)  # type: ignore[arg-type]


def kinds(run: AgentRun[Any, Any]) -> list[str]:
    return [event.kind for event in run.events]


async def test_hooks_run_in_their_order_around_everything() -> None:
    notes: list[str] = []
    stack = [Diary("A", notes), Diary("B", notes)]
    agent = make(call("add", a=1, b=2), say("3"), middleware=stack)
    run = await agent.invoke(None, "go")
    model = [
        "A before_model",
        "B before_model",
        "A wrap_model in",
        "B wrap_model in",
        "B wrap_model out",
        "A wrap_model out",
        "B after_model",
        "A after_model",
    ]
    assert notes == [
        "A before_agent",
        "B before_agent",
        *model,
        "A before_tool",
        "B before_tool",
        "A wrap_tool in",
        "B wrap_tool in",
        "A on_tool_delta",
        "B on_tool_delta",
        "B wrap_tool out",
        "A wrap_tool out",
        "B after_tool",
        "A after_tool",
        *model,
        "B after_agent completed",
        "A after_agent completed",
    ]
    assert_event_grammar(run.events)


async def test_deltas_go_through_hooks_in_the_order_of_registration() -> None:
    notes: list[str] = []
    stack = [Diary("A", notes), Diary("B", notes)]
    agent = AgentHarness(model=ScriptedModel([say("one two")]), middleware=stack)
    await agent.stream(None, "go").result()
    deltas = [note for note in notes if "delta" in note]
    assert deltas == ["A on_model_delta", "B on_model_delta"] * 2


async def test_each_hook_stands_between_its_events_and_deltas_do_not() -> None:
    recorder = EventRecorder()
    agent = AgentHarness(
        model=ScriptedModel([say("one two")]),
        middleware=[Diary("A", [])],
        listeners=[recorder],
    )
    await agent.stream(None, "go").result()
    bracket = ["middleware.started", "middleware.completed"]
    assert recorder.kinds == [
        "run.started",
        *bracket,  # before_agent
        *bracket,  # before_model
        "model.started",
        "middleware.started",  # wrap_model
        "model.delta",
        "model.delta",
        "middleware.completed",
        *bracket,  # after_model
        "usage.recorded",
        "model.completed",
        *bracket,  # after_agent
        "run.completed",
    ]
    hooks = [e.hook for e in recorder.of("middleware.started")]  # type: ignore[attr-defined]
    assert hooks == ["before_agent", "before_model", "wrap_model", "after_model", "after_agent"]
    assert {e.name for e in recorder.of("middleware.started")} == {"A"}  # type: ignore[attr-defined]
    assert_event_grammar(recorder)


async def test_a_hook_that_is_not_overridden_leaves_no_trace() -> None:
    run = await make(call("add", a=1, b=2), say("3"), middleware=[ErrorDiary()]).invoke(None, "go")
    assert not [kind for kind in kinds(run) if kind.startswith("middleware.")]


FAILING = [
    "before_agent",
    "before_model",
    "wrap_model",
    "after_model",
    "before_tool",
    "after_tool",
    "after_agent",
]


@pytest.mark.parametrize("hook", FAILING)
async def test_a_hook_that_fails_ends_the_run_and_each_is_told_once(hook: str) -> None:
    async def bad(self: object, *_: object) -> None:
        raise RuntimeError(f"bad {hook}")

    failing = type("Failing", (Middleware,), {hook: bad})()
    first, last = ErrorDiary(), ErrorDiary()
    agent = make(call("add", a=1, b=2), say("3"), middleware=[first, failing, last])
    with pytest.raises(RuntimeError, match=f"bad {hook}") as caught:
        await agent.invoke(None, "go")
    assert first.errors == last.errors == [caught.value]
    run: AgentRun[Any, Any] = caught.value.run  # type: ignore[attr-defined]
    failed = [e for e in run.events if e.kind == "middleware.failed"]
    assert [(e.name, e.hook) for e in failed] == [("Failing", hook)]  # type: ignore[attr-defined]
    assert kinds(run)[-1] == "run.failed"
    assert kinds(run).count("run.failed") == 1
    assert not repair_messages(run.messages).changed
    assert_event_grammar(run.events)


async def test_on_error_is_told_of_other_failures_once_and_may_fail_itself() -> None:
    class Worse(Middleware[Any]):
        async def on_error(self, ctx: Ctx, error: BaseException) -> None:
            raise ValueError("worse")

    diary = ErrorDiary()
    agent = make(fail(AuthenticationError("no key")), middleware=[Worse(), diary])
    with pytest.raises(AuthenticationError) as caught:
        await agent.invoke(None, "go")
    assert diary.errors == [caught.value]
    run = caught.value.run
    assert run is not None
    assert kinds(run)[-5:] == [
        "middleware.started",
        "middleware.failed",
        "middleware.started",
        "middleware.completed",
        "run.failed",
    ]


async def test_on_error_sees_a_cancellation() -> None:
    diary, began = ErrorDiary(), anyio.Event()

    class Begin(Middleware[Any]):
        async def before_model(self, ctx: Ctx, request: ModelRequest) -> None:
            began.set()

    handle = make(hang(), middleware=[diary, Begin()]).start(None, "go")
    await began.wait()
    handle.cancel()
    with pytest.raises(RunCancelledError):
        await handle
    assert [type(error) for error in diary.errors] == [RunCancelledError]


async def test_a_wrap_that_does_not_call_the_model_answers_in_its_place() -> None:
    class Canned(Middleware[Any]):
        async def wrap_model(
            self, ctx: Ctx, request: ModelRequest, call_next: ModelHandler
        ) -> ModelResponse:
            return ModelResponse(AssistantMessage(content="canned"), "stop")

    notes: list[str] = []
    model = ScriptedModel([])
    agent = AgentHarness(model=model, middleware=[Diary("A", notes), Canned()])
    run = await agent.invoke(None, "go")
    assert run.text == "canned"
    assert model.calls == 0
    assert "A after_model" in notes
    assert (run.model_calls, run.steps) == (1, 1)
    assert_event_grammar(run.events)


async def test_a_wrap_may_call_the_model_again() -> None:
    class Again(Middleware[Any]):
        async def wrap_model(
            self, ctx: Ctx, request: ModelRequest, call_next: ModelHandler
        ) -> ModelResponse:
            try:
                return await call_next(request)
            except ServerError:
                return await call_next(request)

    agent = make(fail(ServerError("down", retryable=False)), say("up"), middleware=[Again()])
    run = await agent.invoke(None, "go")
    assert run.text == "up"
    assert kinds(run).count("model.started") == kinds(run).count("model.completed") == 1


@pytest.mark.parametrize("hook", ["before_model", "wrap_model"])
async def test_a_hook_may_choose_another_model(hook: str) -> None:
    class Choose(Middleware[Any]):
        pass

    async def before(self: object, ctx: Ctx, request: ModelRequest) -> None:
        request.model = "other"

    async def wrap(
        self: object, ctx: Ctx, request: ModelRequest, call_next: ModelHandler
    ) -> ModelResponse:
        request.model = "other"
        return await call_next(request)

    setattr(Choose, hook, before if hook == "before_model" else wrap)
    first, other = ScriptedModel([]), ScriptedModel([say("from the other")])
    agent = AgentHarness(models={"first": first, "other": other}, middleware=[Choose()])
    run = await agent.invoke(None, "go")
    assert run.text == "from the other"
    assert first.calls == 0
    assert run.resolved_model is not None
    assert run.resolved_model.name == "other"


async def test_what_a_hook_does_to_the_request_is_mended_sent_and_not_kept() -> None:
    class Forget(Middleware[Any]):
        async def before_model(self, ctx: Ctx, request: ModelRequest) -> None:
            # Cuts between a call and its result.
            request.messages = [UserMessage(content="extra"), *request.messages[-1:]]

    model = ScriptedModel([call("add", a=1, b=2), say("3")])
    agent = AgentHarness(model=model, tools=[add], middleware=[Forget()])
    run = await agent.invoke(None, "go")
    assert [m.role for m in run.messages] == ["user", "assistant", "tool", "assistant"]
    assert model.requests[1].messages[0].text == "extra"
    assert not repair_messages(model.requests[1].messages).changed


async def test_a_hook_may_change_the_answer() -> None:
    class Polite(Middleware[Any]):
        async def after_model(self, ctx: Ctx, response: ModelResponse) -> None:
            text = response.message.text + ", please"
            response.message = AssistantMessage(content=text)

    run = await make(say("go away"), middleware=[Polite()]).invoke(None, "go")
    assert run.text == "go away, please"


async def test_before_tool_may_change_the_name_and_the_arguments() -> None:
    class Redirect(Middleware[Any]):
        async def before_tool(self, ctx: Ctx, call: ToolCall) -> None:
            if call.name == "plus":
                call.name = "add"
                call.arguments["b"] = 40

    agent = make(call("plus", a=2, b=2), say("done"), middleware=[Redirect()])
    run = await agent.invoke(None, "go")
    assert [m.text for m in run.messages if isinstance(m, ToolMessage)] == ["42"]
    assert "tool.unknown" not in kinds(run)
    sent = run.messages[1]
    assert sent.tool_calls[0].arguments == {"a": 2, "b": 2}  # type: ignore[union-attr]


async def test_a_wrap_may_change_the_arguments_and_the_result_of_a_tool() -> None:
    class Double(Middleware[Any]):
        async def wrap_tool(self, ctx: Ctx, call: ToolCall, call_next: ToolHandler) -> ToolResult:
            doubled = ToolCall(call.id, call.name, {**call.arguments, "a": 10}, call.tool)
            result = await call_next(doubled)
            return ToolResult(f"about {result.joined_text()}")

    agent = make(call("add", a=1, b=2), say("done"), middleware=[Double()])
    run = await agent.invoke(None, "go")
    assert [m.text for m in run.messages if isinstance(m, ToolMessage)] == ["about 12"]


async def test_a_wrap_may_answer_in_a_tools_place_or_call_it_twice() -> None:
    calls: list[int] = []

    @tool
    async def count() -> int:
        """Count."""
        calls.append(1)
        return len(calls)

    class Twice(Middleware[Any]):
        async def wrap_tool(self, ctx: Ctx, call: ToolCall, call_next: ToolHandler) -> ToolResult:
            await call_next(call)
            return await call_next(call)

    class Never(Middleware[Any]):
        async def wrap_tool(self, ctx: Ctx, call: ToolCall, call_next: ToolHandler) -> ToolResult:
            return ToolResult.error("not today")

    for wrap, text in ((Twice(), "2"), (Never(), "not today")):
        model = ScriptedModel([call("count"), say("done")])
        agent = AgentHarness(model=model, tools=[count], middleware=[wrap])
        run = await agent.invoke(None, "go")
        assert [m.text for m in run.messages if isinstance(m, ToolMessage)] == [text]
        assert_event_grammar(run.events)
    assert len(calls) == 2


async def test_a_question_passes_a_wrap_without_failing_it() -> None:
    @tool
    async def ask(ctx: ToolContext[Any]) -> str:
        """Ask."""
        return str(ctx.ask("really?"))

    agent = AgentHarness(
        model=ScriptedModel([call("ask"), say("done")]), tools=[ask], middleware=[Diary("A", [])]
    )
    run = await agent.invoke(None, "go")
    assert run.status == "interrupted"
    assert "middleware.failed" not in kinds(run)
    assert_event_grammar(run.events)
    assert (await agent.resume(run.snapshot, None, answers="yes")).text == "done"


async def test_after_tool_may_change_the_result() -> None:
    class Redact(Middleware[Any]):
        async def after_tool(self, ctx: Ctx, call: ToolCall, result: ToolResult) -> None:
            result.content = [TextBlock(text="[hidden]")]

    run = await make(call("add", a=1, b=2), say("done"), middleware=[Redact()]).invoke(None, "go")
    assert [m.text for m in run.messages if isinstance(m, ToolMessage)] == ["[hidden]"]


async def test_a_changed_delta_is_shown_and_the_answer_keeps() -> None:
    class Shout(Middleware[Any]):
        async def on_model_delta(self, ctx: Ctx, delta: ModelDelta) -> None:
            if isinstance(delta, MessageDelta):
                delta.text = delta.text.upper()

        def on_tool_delta(self, ctx: Ctx, delta: ToolDelta) -> None:
            delta.content = delta.content.upper()

    agent = make(call("add", a=1, b=2), say("quiet"), middleware=[Shout()])
    stream = agent.stream(None, "go")
    chunks = [chunk async for chunk in stream]
    run = await stream.result()
    assert "".join(c.text for c in chunks if isinstance(c, TextDelta)) == "QUIET"
    assert [c.content for c in chunks if isinstance(c, ToolProgress)] == ["ADDING"]
    assert run.text == "quiet"
    progress = [event for event in run.events if isinstance(event, ToolProgressEvent)]
    assert [(event.characters, event.message) for event in progress] == [(6, None)]


@pytest.mark.parametrize(
    ("limit", "status"), [({}, "completed"), ({"max_model_calls": 1}, "stopped")]
)
async def test_after_agent_sees_every_end_that_is_no_error(
    limit: dict[str, int], status: str
) -> None:
    notes: list[str] = []
    policy = RunPolicy(on_limit="stop_with_partial", limits=RunLimits(**limit))
    stack = [Diary("A", notes)]
    agent = make(call("add", a=1, b=2), say("3"), middleware=stack, policy=policy)
    run = await agent.invoke(None, "go")
    assert run.status == status
    assert notes[-1] == f"A after_agent {status}"


async def test_an_error_of_a_hook_around_a_tool_is_not_taken_for_the_tools() -> None:
    @wrap_tool
    async def broken(ctx: RunContext[Any], call: ToolCall, call_next: ToolHandler) -> ToolResult:
        await call_next(call)
        raise RuntimeError("hook")

    @tool
    async def fine() -> str:
        """Work."""
        return "ok"

    model = ScriptedModel([call("fine"), say("done")])
    with pytest.raises(RuntimeError, match="hook") as caught:
        await AgentHarness(model=model, tools=[fine], middleware=[broken]).invoke(None, "go")
    run: AgentRun[Any, Any] = caught.value.run  # type: ignore[attr-defined]
    assert run.status == "failed"
    assert not repair_messages(run.messages).changed


async def test_a_tools_error_passes_a_hook_around_it_and_stays_the_tools() -> None:
    seen: list[str] = []

    @wrap_tool
    async def watch(ctx: RunContext[Any], call: ToolCall, call_next: ToolHandler) -> ToolResult:
        try:
            return await call_next(call)
        except OSError as error:
            seen.append(str(error))
            raise

    @tool
    async def broken() -> str:
        """Fail."""
        raise OSError("disk")

    model = ScriptedModel([call("broken"), say("done")])
    run = await AgentHarness(model=model, tools=[broken], middleware=[watch]).invoke(None, "go")
    assert seen == ["disk"]
    assert run.status == "completed"
    assert "OSError: disk" in run.messages[2].text


async def test_what_a_wrap_does_to_the_arguments_reaches_the_tool_and_not_the_transcript() -> None:
    class Double(Middleware[Any]):
        async def wrap_tool(self, ctx: Ctx, call: ToolCall, call_next: ToolHandler) -> ToolResult:
            call.arguments["a"] = 10
            return await call_next(call)

    agent = make(call("add", a=1, b=2), say("done"), middleware=[Double()])
    run = await agent.invoke(None, "go")
    sent = run.messages[1]
    assert isinstance(sent, AssistantMessage)
    assert sent.tool_calls[0].arguments == {"a": 1, "b": 2}
    assert [m.text for m in run.messages if isinstance(m, ToolMessage)] == ["12"]


async def test_a_hook_that_changes_a_result_leaves_the_tools_own_alone() -> None:
    constant = ToolResult.text("yes")

    @tool
    async def answer() -> ToolResult:
        """Say yes."""
        return constant

    class Loud(Middleware[Any]):
        async def after_tool(self, ctx: Ctx, call: ToolCall, result: ToolResult) -> None:
            result.content.append(TextBlock(text="!"))
            result.is_error = True

    model = ScriptedModel([[call("answer"), call("answer")], say("done")])
    agent = AgentHarness(model=model, tools=[answer], middleware=[Loud()])
    run = await agent.invoke(None, "go")
    assert [m.text for m in run.messages if isinstance(m, ToolMessage)] == ["yes!", "yes!"]
    assert constant == ToolResult.text("yes")


@pytest.mark.parametrize("returned", ["text", None])
async def test_a_wrap_that_returns_no_result_fails_the_run_and_says_so(returned: object) -> None:
    class Wrong(Middleware[Any]):
        async def wrap_tool(self, ctx: Ctx, call: ToolCall, call_next: ToolHandler) -> Any:
            return returned

    agent = make([call("add", a=1, b=2), call("add", a=1, b=3)], say("x"), middleware=[Wrong()])
    with pytest.raises(TypeError, match="wrap_tool") as caught:
        await agent.invoke(None, "go")
    assert_event_grammar(getattr(caught.value, "run").events)  # noqa: B009


@pytest.mark.parametrize("content", ["text", [TextBlock(text="text")]])
async def test_the_content_that_a_hook_puts_into_a_result_is_made_of_blocks(content: Any) -> None:
    class Change(Middleware[Any]):
        async def after_tool(self, ctx: Ctx, call: ToolCall, result: ToolResult) -> None:
            result.content = content

    agent = make(call("add", a=1, b=2), say("done"), middleware=[Change()])
    run = await agent.invoke(None, "go")
    assert [m.content for m in run.messages if isinstance(m, ToolMessage)] == [
        [TextBlock(text="text")]
    ]


async def test_a_run_ends_with_its_event_whatever_a_hook_has_left_behind() -> None:
    class Break(Middleware[Any]):
        async def after_tool(self, ctx: Ctx, call: ToolCall, result: ToolResult) -> None:
            result.content = [object()]  # type: ignore[list-item]

    agent = make([call("add", a=1, b=2), call("add", a=1, b=3)], say("x"), middleware=[Break()])
    with pytest.raises(ValueError, match="ToolMessage") as caught:
        await agent.invoke(None, "go")
    run = getattr(caught.value, "run")  # noqa: B009
    assert (run.status, run.events[-1].kind) == ("failed", "run.failed")
    assert not repair_messages(run.messages).changed
