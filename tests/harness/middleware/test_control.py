"""What becomes of a run when a hook asks for something or fails: the tables of the documentation.

They are read from the page, and each of their cells is tried.
"""

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import anyio
import pytest

from tests.support import tables
from tinyagents import (
    AgentHarness,
    AgentRun,
    AssistantMessage,
    Message,
    RunContext,
    RunLimits,
    RunPolicy,
    RunSnapshot,
    ToolContext,
    ToolResult,
    tool,
)
from tinyagents.harness import middleware
from tinyagents.harness.context import Control, Interrupt, Jump, Pause, StopWithFinal
from tinyagents.harness.errors import (
    AuthenticationError,
    InvalidRequestError,
    RunCancelledError,
    ServerError,
)
from tinyagents.harness.message import ToolCallBlock, repair_messages
from tinyagents.harness.middleware import (
    Middleware,
    ModelDelta,
    ModelHandler,
    ToolCall,
    ToolDelta,
    ToolHandler,
    before_agent,
    before_model,
    compact,
)
from tinyagents.harness.model import ModelRequest, ModelResponse
from tinyagents.testkit import EventRecorder, ScriptedModel, assert_event_grammar, call, fail, say

PAGE = Path(__file__).parents[3] / "docs" / "middleware" / "index.md"
EFFECTS, ENDS, STRENGTH = (
    next(rows for rows in tables(PAGE) if rows[0][:2] == heading)
    for heading in (
        ["hook", "takes effect"],
        ["end", "`after_agent`"],
        ["request, the strongest first", "effect"],
    )
)

Ctx: TypeAlias = RunContext[Any]
Act: TypeAlias = Callable[[Ctx], object]
"""What a hook does once; what it returns is awaited where that can be."""


def asks(control: Control) -> Act:
    return lambda ctx: ctx.request_control(control)


def raises(make: Callable[[], Exception]) -> Act:
    def act(ctx: Ctx) -> None:
        raise make()

    return act


REQUESTS: dict[str, Control] = {
    "`Interrupt`": Interrupt("may I?", payload={"n": 1}),
    "`StopWithFinal`": StopWithFinal("stopped here"),
    "`Pause`": Pause("for a while"),
    '`Jump("end")`': Jump("end"),
    '`Jump("model")`': Jump("model"),
}
ACTS: dict[str, Act] = {
    **{name: asks(control) for name, control in REQUESTS.items()},
    "an error": raises(lambda: RuntimeError("bad hook")),
    "`RunCancelledError`": raises(lambda: RunCancelledError("enough")),
}
OUTCOMES = EFFECTS[0][2:]
TABLE = {row[0].strip("`"): dict(zip(EFFECTS[0], row, strict=True)) for row in EFFECTS[1:]}
"""Each hook's row: outcome by heading."""

CALLED = [hook for hook, row in TABLE.items() if row["takes effect"] != "not called yet"]
ASKING = [hook for hook in CALLED if not TABLE[hook]["takes effect"].startswith("never")]
"""Hooks whose requests have an effect."""
STREAMED = ("filter_deltas", "on_model_delta")
NOT_AWAITED = ("filter_deltas", "on_tool_delta")
WRAPS = ("wrap_model", "wrap_tool")

PLACES = {
    "before the model call": (0, 0),
    "after the model call": (1, 0),
    "after the tool calls": (1, 2),
    "never, for the run has ended": (2, 2),
    "never, for the run has failed": (1, 0),
}
"""How often the model was asked and how many tools have run when a run ends there."""
WHOLE = (2, 2)
FAILED_AT = {"wrap_model": (0, 0), "before_tool": (1, 0), "wrap_tool": (1, 1)}
"""The same of an error, where it ends the run earlier than a request."""


@dataclass
class Passing:
    """Pushes pieces through."""

    def push(self, delta: ModelDelta) -> list[ModelDelta]:
        return [delta]

    def flush(self) -> list[ModelDelta]:
        return []


class Acting(Passing):
    def __init__(self, act: Callable[[], object]) -> None:
        self.act = act

    def push(self, delta: ModelDelta) -> list[ModelDelta]:
        self.act()
        return [delta]


def acting(hook: str, act: Act) -> Middleware[Any]:
    """A middleware that does something once, in one hook."""
    done = False

    def once(ctx: Ctx, *_: object) -> Any:
        nonlocal done
        if not done:
            done = True
            return act(ctx)
        return None

    async def wrap(ctx: Ctx, value: Any, call_next: Any) -> Any:
        acted = once(ctx)
        if inspect.isawaitable(acted):
            await acted
        return await call_next(value)

    does: Any = once
    if hook in WRAPS:
        does = wrap
    if hook == "filter_deltas":
        does = lambda ctx: Acting(lambda: once(ctx))  # noqa: E731 - as the other two
    made: Middleware[Any] = getattr(middleware, hook)(does)
    return made


@dataclass
class Neighbour(Middleware[Any]):
    """Overrides every hook and changes nothing; notes how the run ends."""

    ends: list[str] = field(default_factory=list)

    __hash__ = object.__hash__

    async def before_agent(self, ctx: Ctx) -> None: ...

    async def after_agent(self, ctx: Ctx, run: AgentRun[Any, Any]) -> None:
        self.ends.append("after_agent")

    async def compact(self, ctx: Ctx, messages: object) -> None: ...

    async def before_model(self, ctx: Ctx, request: ModelRequest) -> None: ...

    async def wrap_model(
        self, ctx: Ctx, request: ModelRequest, call_next: ModelHandler
    ) -> ModelResponse:
        return await call_next(request)

    def filter_deltas(self, ctx: Ctx) -> Passing:
        return Passing()

    async def on_model_delta(self, ctx: Ctx, delta: ModelDelta) -> None: ...

    async def after_model(self, ctx: Ctx, response: ModelResponse) -> None: ...

    async def before_tool(self, ctx: Ctx, call: ToolCall) -> None: ...

    async def wrap_tool(self, ctx: Ctx, call: ToolCall, call_next: ToolHandler) -> ToolResult:
        return await call_next(call)

    def on_tool_delta(self, ctx: Ctx, delta: ToolDelta) -> None: ...

    async def after_tool(self, ctx: Ctx, call: ToolCall, result: ToolResult) -> None: ...

    async def on_error(self, ctx: Ctx, error: BaseException) -> None:
        self.ends.append("on_error")


@dataclass
class Ran:
    """What a run has come to."""

    snapshot: RunSnapshot
    error: BaseException | None = None
    run: AgentRun[Any, Any] | None = None
    """``None`` where steps have taken it to its end."""

    @property
    def messages(self) -> list[Message]:
        """The transcript as an application gets it."""
        return self.run.messages if self.run is not None else list(self.snapshot.messages)


@tool
async def add(a: int, b: int, ctx: ToolContext[list[int]]) -> int:
    """Add two integers, and note that it was done."""
    ctx.progress("adding")
    ctx.data.append(a + b)
    return a + b


class Trial:
    """An agent whose model makes two calls and then says that it is done."""

    def __init__(self, *stack: Middleware[Any], steps: Iterable[Any] = (), **options: Any) -> None:
        self.added: list[int] = []
        self.recorder = EventRecorder()
        calls = [call("add", a=1, b=2), call("add", a=3, b=4)]
        self.model = ScriptedModel([*steps] or [calls, say("done")])

        options.setdefault("tools", [add])
        self.agent = AgentHarness(
            model=self.model, middleware=stack, listeners=[self.recorder], **options
        )

    @property
    def counts(self) -> tuple[int, int]:
        return self.model.calls, len(self.added)

    @property
    def kinds(self) -> list[str]:
        return [kind for kind in self.recorder.kinds if not kind.startswith("middleware.")]

    async def take(self, way: str) -> Ran:
        try:
            match way:
                case "plain":
                    run = await self.agent.invoke(None, "go", data=self.added)
                case "stream":
                    run = await self.agent.stream(None, "go", data=self.added).result()
                case _:
                    snapshot = self.agent.snapshot("go")
                    while snapshot.phase != "done":
                        stored = snapshot.model_dump_json()
                        snapshot = RunSnapshot.model_validate_json(stored)
                        snapshot = await self.agent.step(snapshot, None, data=self.added)
                    return Ran(snapshot)
        except (RuntimeError, AuthenticationError, RunCancelledError) as error:
            broken: AgentRun[Any, Any] = error.run  # type: ignore[union-attr, assignment]
            return Ran(broken.snapshot, error, broken)
        return Ran(run.snapshot, run=run)


def expected(hook: str, outcome: str) -> tuple[str, tuple[int, int]]:
    """The end of the run that the table says, with the calls that were made until then."""
    row = TABLE[hook]
    cell, place = row[outcome], PLACES[row["takes effect"]]
    if cell == "goes on":
        return "completed", WHOLE
    if cell == "asked again":
        return "completed", (2, 0)
    status, _, when = cell.partition(" ")
    return status, FAILED_AT.get(hook, place) if when else place


def end_of(status: str) -> dict[str, str]:
    return next(dict(zip(ENDS[0], row, strict=True)) for row in ENDS[1:] if row[0] == status)


def check_end(trial: Trial, ran: Ran, status: str) -> None:
    """Compare with the table of ends, and with what holds for all of them."""
    assert ran.snapshot.status == status
    end = end_of(status)
    terminal = {end_of(row[0])["last event"].strip("`") for row in ENDS[1:]}
    last = trial.recorder.kinds[-1]
    assert [kind for kind in trial.kinds if kind in terminal] == [last]
    assert end["last event"] == f"`{last}`"
    assert_event_grammar(trial.recorder)
    stay_open = end["calls without a result"] == "stay open"
    if ran.run is not None or not stay_open:
        assert not repair_messages(ran.messages).changed
    if not stay_open:
        assert not ran.snapshot.pending
    if isinstance(ran.error, RunCancelledError):
        assert trial.recorder.events[-1].reason == "cancelled"  # type: ignore[attr-defined]


async def check_resume(trial: Trial, ran: Ran) -> None:
    """Take up a run that has ended, as the table of ends says."""
    agent, stored = trial.agent, ran.snapshot.model_dump_json()
    match end_of(ran.snapshot.status)["`resume`"]:
        case "takes new input":
            agent = agent.replace(model=ScriptedModel([say("more")]), middleware=[], listeners=[])
            run = await agent.resume(stored, None, input="and?")
            assert (run.status, run.text) == ("completed", "more")
        case "takes answers, and goes on where it was":
            run = await agent.resume(stored, None, answers="yes", data=trial.added)
        case resume:
            assert resume == "goes on where it was"
            run = await agent.resume(stored, None, data=trial.added)
    if ran.snapshot.status in ("interrupted", "paused"):
        assert (run.status, run.text, trial.counts) == ("completed", "done", WHOLE)
        assert (run.model_calls, run.tool_calls) == WHOLE
    assert not repair_messages(run.messages).changed
    assert_event_grammar(trial.recorder)


def test_the_table_has_every_hook_and_every_outcome() -> None:
    hooks = [
        name for name, _ in inspect.getmembers(Middleware, inspect.isfunction) if name[0] != "_"
    ]
    hooks.remove(
        "redaction"
    )  # gives an object before there is a run that anything could be asked of
    assert sorted(TABLE) == hooks
    assert sorted(OUTCOMES) == sorted(ACTS)
    assert [row[0] for row in ENDS[1:]] == [
        "completed",
        "stopped",
        "interrupted",
        "paused",
        "failed",
        "cancelled",
    ]


def make(hook: str, *stack: Middleware[Any], **options: Any) -> Trial:
    if hook == "on_error":
        options.setdefault("steps", [fail(AuthenticationError("no key"))])
    return Trial(*stack, **options)


@pytest.mark.parametrize("way", ["plain", "stream", "step"])
@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize("hook", CALLED)
async def test_what_a_hook_asks_or_raises_has_the_effect_of_the_table_beside_any_other(
    hook: str, outcome: str, way: str
) -> None:
    status, counts = expected(hook, outcome)
    if hook in STREAMED and way != "stream":
        status, counts = "completed", WHOLE
    seen: list[object] = []
    for neighbours in (False, True):
        before, after = Neighbour(), Neighbour()
        act = acting(hook, ACTS[outcome])
        trial = make(hook, *([before, act, after] if neighbours else [act]))
        ran = await trial.take(way)
        assert (ran.snapshot.status, trial.counts) == (status, counts)
        check_end(trial, ran, status)
        seen.append([trial.kinds, [(m.role, m.text) for m in ran.messages], ran.snapshot.reason])
        if neighbours:
            end = end_of(status)
            ended = [name for name in ("after_agent", "on_error") if end[f"`{name}`"] == "once"]
            assert before.ends == ended
            # Of those hooks the last is called first.
            first_called = hook == "after_agent" and "on_error" in ended
            assert after.ends == (["after_agent"] if first_called else []) + ended
        await check_resume(trial, ran)
    assert seen[0] == seen[1]


@pytest.mark.parametrize("hook", ASKING)
async def test_a_request_comes_with_what_it_says(hook: str) -> None:
    trial = Trial(acting(hook, asks(StopWithFinal("stopped here"))))
    run = (await trial.take("stream")).run
    assert run is not None
    assert (run.text, run.reason) == ("stopped here", "stop_with_final")
    trial = Trial(acting(hook, asks(Interrupt("may I?", payload={"n": 1}))))
    run = (await trial.take("stream")).run
    assert run is not None
    assert run.reason == "may I?"
    assert run.interrupts[0].payload == {"message": "may I?", "payload": {"n": 1}}
    answered: list[object] = []
    agent = trial.agent.replace(
        middleware=[middleware.after_agent(lambda ctx, _: answered.extend(ctx.answers.values()))]
    )
    await agent.resume(run.snapshot, None, answers="yes", data=trial.added)
    assert answered == ["yes"]


@pytest.mark.parametrize("hook", [hook for hook in CALLED if hook != "on_error"])
async def test_an_error_of_a_hook_is_not_taken_for_one_of_the_model_and_repeated(hook: str) -> None:
    error = ServerError("of the hook", retryable=True)
    trial = Trial(acting(hook, raises(lambda: error)))
    with pytest.raises(ServerError, match="of the hook"):
        await trial.agent.stream(None, "go", data=trial.added).result()
    assert "retry.scheduled" not in trial.kinds


@pytest.mark.parametrize("where", ["made", "pushed to", "flushed"])
async def test_so_is_an_error_of_a_filter_wherever_it_is_raised(where: str) -> None:
    class Bad(Passing):
        def push(self, delta: ModelDelta) -> list[ModelDelta]:
            if where == "pushed to":
                raise ServerError("of the filter", retryable=True)
            return []

        def flush(self) -> list[ModelDelta]:
            raise ServerError("of the filter", retryable=True)

    @middleware.filter_deltas
    def bad(ctx: Ctx) -> Passing:
        if where == "made":
            raise ServerError("of the filter", retryable=True)
        return Bad()

    trial = Trial(Neighbour(), bad, Neighbour())
    with pytest.raises(ServerError, match="of the filter"):
        await trial.agent.stream(None, "go", data=trial.added).result()
    assert "retry.scheduled" not in trial.kinds
    assert_event_grammar(trial.recorder)


def strength(name: str) -> int:
    return next(n for n, row in enumerate(STRENGTH[1:]) if name.split("(")[0].strip("`") in row[0])


@pytest.mark.parametrize("first", REQUESTS)
@pytest.mark.parametrize("hook", CALLED)
async def test_the_strongest_of_two_requests_wins_and_of_equals_the_first(
    hook: str, first: str
) -> None:
    for second in REQUESTS:
        winner = second if strength(second) < strength(first) else first
        status, counts = expected(hook, winner)

        def both(ctx: Ctx, then: str = second) -> None:
            ctx.request_control(REQUESTS[first])
            ctx.request_control(REQUESTS[then])

        pair = [acting(hook, asks(REQUESTS[name])) for name in (first, second)]
        if hook.startswith("after_"):
            pair.reverse()
        for stack in ([acting(hook, both)], pair):
            trial = make(hook, *stack)
            ran = await trial.take("stream")
            assert (ran.snapshot.status, trial.counts) == (status, counts), second
            check_end(trial, ran, status)


@pytest.mark.parametrize("strong_first", [True, False])
@pytest.mark.parametrize(
    ("first", "later"),
    [
        ("wrap_model", "after_model"),
        ("on_model_delta", "after_model"),
        ("before_tool", "after_tool"),
    ],
)
async def test_the_strongest_wins_of_requests_in_several_hooks_too(
    first: str, later: str, strong_first: bool
) -> None:
    strong, weak = asks(REQUESTS["`StopWithFinal`"]), asks(REQUESTS['`Jump("model")`'])
    acts = (strong, weak) if strong_first else (weak, strong)
    trial = Trial(acting(first, acts[0]), acting(later, acts[1]))
    check_end(trial, await trial.take("stream"), "stopped")
    assert trial.kinds.count("control.applied") == 1


@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize("times", ["never", "twice"])
@pytest.mark.parametrize("hook", WRAPS)
async def test_a_wrap_that_leaves_its_call_out_or_repeats_it_may_ask_and_raise_like_any_other(
    hook: str, times: str, outcome: str
) -> None:
    first = True
    blocks = [ToolCallBlock(id=f"call_{n}", name="add", arguments={"a": n, "b": n}) for n in (1, 2)]

    async def odd(ctx: Ctx, value: Any, call_next: Any) -> Any:
        nonlocal first
        if not first:
            return await call_next(value)
        first = False
        if times == "twice":
            await call_next(value)
            result = await call_next(value)
        elif hook == "wrap_model":
            result = ModelResponse(AssistantMessage(content=[*blocks]), "tool_calls")
        else:
            result = ToolResult.text("not run")
        ACTS[outcome](ctx)
        return result

    status, (asked, ran_tools) = expected(hook, outcome)
    calls = [call("add", a=1, b=2), call("add", a=3, b=4)]
    steps = {"never": [say("done")], "twice": [calls, calls, say("done")]}[times]
    wrap: Middleware[Any] = getattr(middleware, hook)(odd)
    for way in ("plain", "stream", "step"):
        first = True
        options: dict[str, Any] = {"steps": steps} if hook == "wrap_model" else {}
        trial = Trial(Neighbour(), wrap, Neighbour(), **options)
        ran = await trial.take(way)
        check_end(trial, ran, status)
        calls_of_its_own = {"never": 0, "twice": 2}[times]
        if status in ("failed", "cancelled"):
            # It raises when it has called.
            own, others = calls_of_its_own, FAILED_AT[hook]
        else:
            own, others = calls_of_its_own - 1, (asked, ran_tools)
        more = (own, 0) if hook == "wrap_model" else (0, own)
        assert trial.counts == (others[0] + more[0], others[1] + more[1])
        counters = ran.snapshot.counters
        assert counters.model_calls == max(asked, 1)
        assert hook == "wrap_model" or counters.tool_calls == 2


@pytest.mark.parametrize("hook", [h for h in CALLED if h not in (*NOT_AWAITED, "on_error")])
@pytest.mark.parametrize("native", [False, True])
async def test_a_run_that_is_cancelled_while_a_hook_waits_ends_at_once(
    hook: str, native: bool
) -> None:
    waiting = anyio.Event()

    async def wait(ctx: Ctx) -> None:
        waiting.set()
        await anyio.sleep_forever()

    before, after = Neighbour(), Neighbour()
    trial = Trial(before, acting(hook, wait), after)
    async with anyio.create_task_group() as tasks:
        if native:
            tasks.start_soon(trial.take, "stream")
            await waiting.wait()
            tasks.cancel_scope.cancel()
        else:
            handle = trial.agent.start(None, "go", data=trial.added)
            await waiting.wait()
            handle.cancel("enough")
            with pytest.raises(RunCancelledError, match="enough") as caught:
                await handle
            run = caught.value.run
            assert run is not None
            check_end(trial, Ran(run.snapshot, caught.value, run), "cancelled")
    assert trial.recorder.kinds.count("run.failed") == 1
    assert trial.recorder.kinds[-1] == "run.failed"
    assert before.ends == ["on_error"]
    assert after.ends == (["after_agent", "on_error"] if hook == "after_agent" else ["on_error"])
    assert_event_grammar(trial.recorder)


@pytest.mark.parametrize("way", ["plain", "stream", "step"])
@pytest.mark.parametrize("hook", ASKING)
async def test_a_hook_may_cancel_the_run(hook: str, way: str) -> None:
    trial = Trial(acting(hook, lambda ctx: ctx.cancellation.cancel("enough")))
    ran = await trial.take(way)
    called = hook not in STREAMED or way == "stream"
    check_end(trial, ran, "cancelled" if called else "completed")


class Wish(Middleware[Any]):
    """Asks for something once, when the first of the calls of a turn comes back."""

    def __init__(self, control: Control) -> None:
        self.control: Control | None = control

    async def before_tool(self, ctx: Ctx, call: ToolCall) -> None:
        if self.control is not None:
            ctx.request_control(self.control)
            self.control = None


@tool
async def ask(ctx: ToolContext[Any]) -> str:
    """Ask."""
    return str(ctx.ask("really?"))


@pytest.mark.parametrize("request_", REQUESTS)
async def test_a_request_comes_before_what_a_tool_waits_for(request_: str) -> None:
    status, _ = expected("before_tool", request_)
    trial = Trial(Wish(REQUESTS[request_]), steps=[call("ask"), say("done")], tools=[ask])
    ran = await trial.take("plain")
    assert ran.run is not None
    check_end(trial, ran, status)
    if status in ("interrupted", "paused"):
        own = {"interrupted": "me", "paused": None}[status]
        run = await trial.agent.resume(ran.snapshot.model_dump_json(), None, answers=own)
        assert (run.status, run.interrupts[0].payload) == ("interrupted", "really?")
        run = await trial.agent.resume(run.snapshot.model_dump_json(), None, answers="yes")
        assert (run.text, [m.text for m in run.messages if m.role == "tool"]) == ("done", ["yes"])
        assert list(run.snapshot.answers.values()) == [own] * (own is not None)
    else:
        assert [m.is_error for m in ran.messages if m.role == "tool"] == [True]


@pytest.mark.parametrize("request_", REQUESTS)
async def test_a_request_comes_before_the_limit_of_tool_calls(request_: str) -> None:
    status, _ = expected("before_tool", request_)
    policy = RunPolicy(limits=RunLimits(max_tool_calls=1))
    trial = Trial(Wish(REQUESTS[request_]), policy=policy)
    ran = await trial.take("plain")
    check_end(trial, ran, status)
    assert len(trial.added) == 1


async def test_a_jump_to_the_model_does_not_pass_over_the_hooks_that_shorten_the_transcript() -> (
    None
):
    lengths: list[int] = []
    shorten = compact(lambda ctx, messages: lengths.append(len(messages)))
    stack = [
        acting("before_agent", asks(Jump("model"))),
        acting("after_tool", asks(Jump("model"))),
        shorten,
    ]
    ran = await Trial(*stack).take("plain")
    assert ran.snapshot.status == "completed"
    assert lengths == [1, 4]


@pytest.mark.parametrize("hook", [before_agent, compact, before_model])
async def test_a_hook_before_the_model_that_always_jumps_there_does_not_hold_the_run_up(
    hook: Any,
) -> None:
    ran = await Trial(hook(lambda ctx, *_: ctx.request_control(Jump("model")))).take("plain")
    assert ran.snapshot.status == "completed"


@pytest.mark.parametrize("request_", REQUESTS)
@pytest.mark.parametrize("hook", ["before_model", "after_model"])
async def test_a_single_call_gives_no_answer_that_a_hook_has_withheld(
    hook: str, request_: str
) -> None:
    trial = Trial(acting(hook, asks(REQUESTS[request_])), steps=[say("secret"), say("done")])
    again = "done" if hook == "after_model" else "secret"
    if request_ == '`Jump("model")`':
        assert (await trial.agent.invoke_model("go")).text == again
    elif (hook, request_) == ("after_model", '`Jump("end")`'):
        assert (await trial.agent.invoke_model("go")).text == "secret"
    else:
        with pytest.raises(InvalidRequestError, match="stopped by a hook"):
            await trial.agent.invoke_model("go")
