"""How a call runs: every kind of function, its time, its tries, and what cancels it."""

import threading
from collections.abc import AsyncGenerator, Awaitable, Generator
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

import anyio
import anyio.lowlevel
import httpx
import pytest

from tests.support import PATIENCE
from tinyagents.harness.concurrency import DeadlineExpired
from tinyagents.harness.errors import RateLimitError, ServerError
from tinyagents.harness.message import ImageBlock
from tinyagents.harness.tool import (
    FunctionTool,
    InterruptSignal,
    ToolContext,
    ToolError,
    ToolPolicy,
    ToolResult,
    ToolRuntime,
    tool,
)

from .calls import context, execute, only_text, text_of

who: ContextVar[str] = ContextVar("who", default="nobody")


async def test_an_async_function_is_awaited_in_the_callers_task() -> None:
    before = anyio.get_current_task().id

    @tool
    async def f() -> bool:
        return anyio.get_current_task().id == before

    assert await text_of(f) == "true"


async def test_a_plain_function_runs_in_a_thread_with_the_callers_context_variables() -> None:
    @tool
    def f() -> list[object]:
        return [threading.current_thread() is threading.main_thread(), who.get()]

    who.set("Ada")
    assert await text_of(f) == '[false,"Ada"]'


async def test_a_quick_plain_function_can_run_in_place() -> None:
    @tool(thread=False)
    def f() -> bool:
        return threading.current_thread() is threading.main_thread()

    assert await text_of(f) == "true"


async def test_a_plain_function_can_give_something_to_await() -> None:
    async def later() -> str:
        return "later"

    @tool
    def threaded() -> Awaitable[str]:
        return later()

    @tool(thread=False)
    def inline() -> Awaitable[str]:
        return later()

    assert await text_of(threaded) == "later"
    assert await text_of(inline) == "later"


async def test_an_async_generator_reports_its_texts_and_gives_its_last_value() -> None:
    @tool
    async def f() -> AsyncGenerator[str | dict[str, int]]:
        yield "half"
        yield {"done": 1}
        yield "cleaning up"

    said: list[str] = []
    result = await execute(f, ctx=context(report=said.append))
    assert said == ["half", "cleaning up"]
    assert only_text(result.content) == '{"done":1}'


async def test_a_generator_of_texts_gives_the_last_one() -> None:
    @tool
    async def f() -> AsyncGenerator[str]:
        yield "one"
        yield "two"

    assert await text_of(f) == "two"


async def test_a_generator_that_yields_nothing_gives_null() -> None:
    @tool
    async def f() -> AsyncGenerator[str]:
        if False:
            yield "never"  # type: ignore[unreachable]

    assert await text_of(f) == "null"


async def test_a_generator_can_give_a_whole_result() -> None:
    @tool
    async def f() -> AsyncGenerator[ToolResult]:
        yield ToolResult.error("no luck")

    assert (await execute(f)) == ToolResult.error("no luck")


async def test_a_plain_generator_reports_from_its_thread() -> None:
    @tool
    def f() -> Generator[str, None, int]:
        yield "half"
        return 42

    @tool(thread=False)
    def g() -> Generator[str | int]:
        yield "half"
        yield 43

    said: list[str] = []
    for made, result in ((f, "42"), (g, "43")):
        found = await execute(made, ctx=context(report=said.append))
        assert only_text(found.content) == result
    assert said == ["half", "half"]


async def test_an_async_generator_is_closed_when_its_call_is_cancelled() -> None:
    closed: list[bool] = []

    @tool
    async def f() -> AsyncGenerator[str]:
        try:
            yield "waiting"
            await anyio.sleep_forever()
        finally:
            closed.append(True)

    with pytest.raises(DeadlineExpired):
        await execute(f, timeout=0.01)
    assert closed == [True]


async def test_reports_from_a_thread_arrive_in_the_event_loop_before_the_result() -> None:
    @tool
    def f(ctx: ToolContext[Any]) -> str:
        for step in range(3):
            ctx.progress(f"step {step}")
        return "done"

    said: list[object] = []

    def report(text: str) -> None:
        said.append((text, threading.current_thread() is threading.main_thread()))

    await execute(f, ctx=context(report=report))
    assert said == [("step 0", True), ("step 1", True), ("step 2", True)]


@pytest.mark.parametrize(
    "error", [ToolError("no"), RuntimeError("disk"), InterruptSignal("k1.0", 1)]
)
@pytest.mark.parametrize("seconds", [None, 5.0])
async def test_what_a_tool_raises_passes_unchanged(
    error: BaseException, seconds: float | None
) -> None:
    @tool
    async def f() -> None:
        raise error

    @tool
    def g() -> None:
        raise error

    for made in (f, g):
        with pytest.raises(type(error)) as caught:
            await execute(made, timeout=seconds)
        assert caught.value is error


async def test_a_timeout_of_the_tools_own_is_not_the_deadline() -> None:
    @tool
    async def f() -> None:
        raise TimeoutError("the server")

    with pytest.raises(TimeoutError, match="the server"):
        await execute(f, timeout=5)


async def test_an_async_tool_is_cancelled_at_its_deadline_and_cleans_up() -> None:
    cleaned: list[bool] = []

    @tool
    async def f() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            cleaned.append(True)

    with pytest.raises(DeadlineExpired):
        await execute(f, timeout=0.01)
    assert cleaned == [True]


async def test_a_cancelled_caller_cancels_an_async_tool() -> None:
    started = anyio.Event()
    cancelled: list[bool] = []

    @tool
    async def f() -> None:
        started.set()
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            cancelled.append(True)
            raise

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(execute, f)
        await started.wait()
        tasks.cancel_scope.cancel()
    assert cancelled == [True]


async def test_a_cancelled_caller_does_not_wait_for_a_thread() -> None:
    started, release = threading.Event(), threading.Event()
    said: list[str] = []

    @tool
    def f(ctx: ToolContext[Any]) -> str:
        started.set()
        release.wait(10)
        return "too late"

    results: list[ToolResult] = []

    async def call() -> None:
        results.append(await execute(f, ctx=context(report=said.append)))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        await anyio.to_thread.run_sync(started.wait, PATIENCE)
        tasks.cancel_scope.cancel()
    release.set()
    assert results == []


async def test_a_thread_that_was_left_behind_changes_nothing() -> None:
    began, release, ended = threading.Event(), threading.Event(), threading.Event()

    @tool
    def f() -> str:
        began.set()
        release.wait(10)
        ended.set()
        raise RuntimeError("too late")

    with pytest.raises(DeadlineExpired):
        await execute(f, timeout=0.2)
    release.set()
    if began.is_set():  # on a busy machine the time may be up before the thread has begun
        await anyio.to_thread.run_sync(ended.wait, PATIENCE)
    await anyio.lowlevel.checkpoint()


def failing(*errors: Exception, **settings: Any) -> tuple[FunctionTool[..., Any], list[int]]:
    """Return a tool that raises these one by one and then works, and the tries that it saw."""
    tries: list[int] = []
    left = list(errors)

    @tool(name="flaky", **settings)
    async def flaky(ctx: ToolContext[Any]) -> str:
        tries.append(ctx.attempt)
        if left:
            raise left.pop(0)
        return "done"

    return flaky, tries


class Slept:
    """A sleep that takes no time."""

    def __init__(self) -> None:
        self.delays: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.delays.append(seconds)


def refusal(status: int) -> httpx.HTTPStatusError:
    request = httpx.Request("GET", "http://test")
    return httpx.HTTPStatusError("no", request=request, response=httpx.Response(status))


PASSING = [
    ConnectionResetError("reset"),
    TimeoutError("read"),
    httpx.ReadTimeout("read"),
    httpx.ConnectError("connect"),
    RuntimeError("busy"),
    ServerError("down"),
    refusal(429),
    refusal(503),
    refusal(408),
    ExceptionGroup("both", [OSError("a"), refusal(500)]),
]
FINAL = [
    ToolError("no such city"),
    ValueError("bad"),
    TypeError("bad"),
    KeyError("bad"),
    FileNotFoundError("gone"),
    PermissionError("no"),
    RateLimitError("quota", retryable=False),
    refusal(400),
    refusal(401),
    refusal(404),
    ExceptionGroup("both", [OSError("a"), ValueError("b")]),
]


@pytest.mark.parametrize("error", PASSING, ids=repr)
async def test_an_idempotent_tool_is_tried_again_after_what_may_pass(error: Exception) -> None:
    flaky, tries = failing(error, error, retries=2, idempotent=True)
    slept = Slept()
    result = await execute(flaky, ctx=context(sleep=slept))
    assert only_text(result.content) == "done"
    assert tries == [1, 2, 3]
    assert slept.delays == [0.2, 0.4]


@pytest.mark.parametrize("error", FINAL, ids=repr)
async def test_what_does_not_pass_is_raised_at_once(error: Exception) -> None:
    flaky, tries = failing(error, retries=2, idempotent=True)
    with pytest.raises(type(error)):
        await execute(flaky, ctx=context(sleep=Slept()))
    assert tries == [1]


@pytest.mark.parametrize("error", PASSING, ids=repr)
async def test_a_tool_without_the_mark_is_never_tried_again(error: Exception) -> None:
    policy = ToolPolicy(runtime=ToolRuntime(max_retries=5))
    flaky, tries = failing(error, idempotent=True, retries=5)
    unmarked = replace(flaky, policy=policy)
    with pytest.raises(type(error)):
        await execute(unmarked, ctx=context(sleep=Slept()))
    assert tries == [1]
    assert unmarked.retries == 0


async def test_the_last_error_is_raised_when_the_tries_are_used_up() -> None:
    flaky, tries = failing(OSError("a"), OSError("b"), OSError("c"), retries=1, idempotent=True)
    with pytest.raises(OSError, match="b") as caught:
        await execute(flaky, ctx=context(sleep=Slept()))
    assert tries == [1, 2]
    assert caught.value.__context__ is None


async def test_a_wait_that_the_error_asks_for_is_kept() -> None:
    flaky, _ = failing(RateLimitError("busy", retry_after=7), retries=1, idempotent=True)
    slept = Slept()
    await execute(flaky, ctx=context(sleep=slept))
    assert slept.delays == [7]


async def test_each_retry_is_an_event() -> None:
    flaky, _ = failing(OSError("reset"), retries=1, idempotent=True)
    ctx = context(sleep=Slept())
    await execute(flaky, ctx=ctx)
    (event,) = ctx.run.events.events()
    assert event.kind == "retry.scheduled"
    assert event.model_dump(include={"call_id", "attempt", "delay", "error", "error_kind"}) == {
        "call_id": "k1",
        "attempt": 1,
        "delay": 0.2,
        "error": "reset",
        "error_kind": "OSError",
    }


async def test_the_deadline_holds_for_all_tries_together() -> None:
    flaky, tries = failing(OSError("a"), retries=3, idempotent=True)
    with pytest.raises(DeadlineExpired):
        await execute(flaky, ctx=context(sleep=_forever), timeout=0.01)
    assert tries == [1]


async def _forever(seconds: float) -> None:
    await anyio.sleep_forever()


async def test_each_try_asks_its_questions_from_the_start() -> None:
    asked: list[str] = []

    @tool(retries=1, idempotent=True)
    async def f(ctx: ToolContext[Any]) -> str:
        asked.append(ctx.ask("sure?"))
        if ctx.attempt == 1:
            raise OSError("reset")
        return "done"

    await execute(f, ctx=context(answers={"k1.0": "yes"}, sleep=Slept()))
    assert asked == ["yes", "yes"]


async def test_a_call_that_is_executed_twice_asks_its_questions_from_the_start() -> None:
    @tool
    async def f(ctx: ToolContext[Any]) -> str:
        return str(ctx.ask("sure?"))

    ctx = context(answers={"k1.0": "yes"})
    assert await execute(f, ctx=ctx) == await execute(f, ctx=ctx)


@pytest.mark.parametrize("text", ["a" * 25, "\u00e9" * 25, "\U0001f642" * 25])
async def test_a_long_result_is_cut_and_says_how_long_it_was(text: str) -> None:
    @tool(max_result_chars=10)
    async def f() -> str:
        return text

    result = await execute(f)
    assert result.joined_text() == f"{text[:10]}\n[cut: the first 10 of 25 characters]"


async def test_what_is_no_text_is_not_cut() -> None:
    image = ImageBlock.from_bytes(b"png", "image/png")

    @tool(max_result_chars=4)
    async def f() -> list[object]:
        return ["abc", "def", image, "ghi"]

    result = await execute(f)
    assert [block.type for block in result.content] == ["text", "text", "image"]
    assert result.content[2] is image
    assert result.joined_text() == "abc\nd\n[cut: the first 4 of 9 characters]"


async def test_a_result_that_fits_is_left_alone() -> None:
    given = ToolResult.text("abcd", summary="letters")

    @tool(max_result_chars=4)
    async def f() -> ToolResult:
        return given

    assert await execute(f) == given


async def test_cutting_keeps_the_rest_of_a_result() -> None:
    @tool(max_result_chars=1)
    async def f() -> ToolResult:
        return ToolResult(
            "abc", value=[1], artifacts=["a"], summary="s", is_error=True, trusted_verbatim=True
        )

    result = await execute(f)
    kept = (result.value, result.artifacts, result.summary, result.is_error)
    assert kept == ([1], ("a",), "s", True)
    assert result.trusted_verbatim


async def test_a_question_inside_a_task_group_is_still_a_question() -> None:
    @tool
    async def f(ctx: ToolContext[Any]) -> list[str]:
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.sleep_forever)
            async with anyio.create_task_group():
                answer = ctx.ask("sure?")
            group.cancel_scope.cancel()
        return [answer]

    with pytest.raises(InterruptSignal) as raised:
        await execute(f)
    assert raised.value.payload == "sure?"
    answered = await execute(f, ctx=context(answers={"k1.0": "yes"}))
    assert only_text(answered.content) == '["yes"]'


async def test_a_failure_beside_a_question_is_the_tools_failure() -> None:
    async def fail() -> None:
        raise OSError("reset")

    @tool
    async def f(ctx: ToolContext[Any]) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(fail)
            with anyio.CancelScope(shield=True):
                await anyio.sleep(0.01)
                ctx.ask("sure?")

    with pytest.raises(ExceptionGroup) as raised:
        await execute(f)
    assert [str(error) for error in raised.value.exceptions] == ["reset"]
