"""Tokens: asked once, heard everywhere, forgotten when nobody listens."""

import gc
import threading
import weakref

import anyio
import pytest

from tinyagents import AgentHarness, CancellationToken
from tinyagents.harness.concurrency import in_thread
from tinyagents.harness.errors import RunCancelledError
from tinyagents.harness.stream import TextDelta
from tinyagents.testkit import ScriptedModel, hang, say


def listeners(token: CancellationToken) -> int:
    """How many a token still holds: it shows nowhere but in the memory of a long-lived one."""
    return len(token._callbacks)


def test_the_first_who_asks_gives_the_reason() -> None:
    token = CancellationToken()
    token.raise_if_cancelled()
    token.cancel("enough")
    token.cancel("again")
    assert token.cancelled
    assert token.reason == "enough"
    with pytest.raises(RunCancelledError, match="enough") as caught:
        token.raise_if_cancelled()
    assert caught.value.reason == "enough"


def test_a_callback_is_called_once_and_at_once_when_it_is_too_late() -> None:
    token, seen = CancellationToken(), []
    token.on_cancel(lambda: seen.append("early"))
    forget = token.on_cancel(lambda: seen.append("forgotten"))
    forget()
    token.cancel()
    token.cancel()
    token.on_cancel(lambda: seen.append("late"))
    assert seen == ["early", "late"]


def test_a_callback_that_raises_does_not_keep_others_from_being_told() -> None:
    token, seen = CancellationToken(), []

    def bad() -> None:
        raise ValueError("mine")

    token.on_cancel(bad)
    token.on_cancel(lambda: seen.append(1))
    token.cancel()
    assert seen == [1]


def test_a_child_is_cancelled_with_its_parent_and_can_be_alone() -> None:
    parent = CancellationToken()
    one, other = parent.child(), parent.child()
    one.cancel("only me")
    assert not parent.cancelled
    assert not other.cancelled
    parent.cancel("all")
    assert (one.reason, other.reason) == ("only me", "all")
    assert parent.child().reason == "all"


def test_a_long_lived_parent_forgets_children_that_are_gone() -> None:
    parent = CancellationToken()
    children = [parent.child() for _ in range(100)]
    gone = weakref.ref(children[0])
    children.clear()
    gc.collect()
    assert gone() is None
    assert listeners(parent) == 0


def test_a_chain_of_tokens_holds_though_nobody_keeps_its_middle() -> None:
    root = CancellationToken()
    last = root.child().child().child()
    gc.collect()
    root.cancel("down the line")
    assert last.reason == "down the line"


async def test_waiting_ends_when_another_thread_asks() -> None:
    token = CancellationToken()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(token.wait)
        await anyio.wait_all_tasks_blocked()
        await in_thread(token.cancel)
    await token.wait()
    assert listeners(token) == 0


async def test_a_wait_that_is_cancelled_leaves_nothing_behind() -> None:
    token = CancellationToken()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(token.wait)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    assert listeners(token) == 0


def test_one_token_stops_runs_in_two_event_loops() -> None:
    token, errors = CancellationToken(), []
    begun = threading.Barrier(3)

    async def run() -> None:
        def listen(event: object) -> None:
            if getattr(event, "kind", "") == "model.started":
                begun.wait(10)

        agent = AgentHarness(model=ScriptedModel([hang()]), listeners=[listen])
        try:
            await agent.invoke(None, "hi", cancellation=token)
        except RunCancelledError as error:
            errors.append(error.reason)

    threads = [
        threading.Thread(target=anyio.run, args=(run,), kwargs={"backend": backend})
        for backend in ("asyncio", "trio")
    ]
    for thread in threads:
        thread.start()
    begun.wait(10)
    token.cancel("both")
    for thread in threads:
        thread.join(10)
    assert errors == ["both", "both"]


async def test_leaving_one_stream_does_not_cancel_a_token_that_others_share() -> None:
    token = CancellationToken()
    agent = AgentHarness(model=ScriptedModel([say("a long answer"), say("fine")]))
    async with agent.stream(None, "hi", cancellation=token) as stream:
        async for chunk in stream:
            if isinstance(chunk, TextDelta):
                break
    assert not token.cancelled
    assert (await agent.invoke(None, "again", cancellation=token)).text == "fine"


async def test_cancelling_a_handle_does_not_cancel_a_token_that_others_share() -> None:
    token = CancellationToken()
    handle = AgentHarness(model=ScriptedModel([hang()])).start(None, "hi", cancellation=token)
    handle.cancel("only this")
    with pytest.raises(RunCancelledError, match="only this"):
        await handle
    assert not token.cancelled


async def test_a_shared_token_cancels_streams_and_handles() -> None:
    token = CancellationToken()
    agent = AgentHarness(model=ScriptedModel([hang()]))
    handle = agent.start(None, "hi", cancellation=token)
    await anyio.wait_all_tasks_blocked()
    token.cancel("all")
    with pytest.raises(RunCancelledError, match="all"):
        await handle
