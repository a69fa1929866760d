from typing import Any

import anyio
import anyio.lowlevel
import pytest

from tinyagents import AgentHarness
from tinyagents.harness.concurrency import BackgroundTask
from tinyagents.testkit import (
    EventRecorder,
    FakeTool,
    ScriptedModel,
    assert_event_grammar,
    call,
    delay,
    say,
)
from tinyagents.testkit.checkpoints import (
    CheckpointOutcome,
    cancel_at_checkpoint,
    for_every_checkpoint,
)


class Boom(Exception):
    pass


async def two_waits(seen: list[str]) -> str:
    seen.append("start")
    await anyio.lowlevel.checkpoint()
    seen.append("middle")
    await anyio.lowlevel.checkpoint()
    seen.append("end")
    return "done"


@pytest.mark.parametrize(
    ("number", "expected"),
    [(1, ["start"]), (2, ["start", "middle"]), (3, ["start", "middle", "end"])],
)
async def test_a_scenario_is_cancelled_where_it_waits(number: int, expected: list[str]) -> None:
    seen: list[str] = []
    outcome = await cancel_at_checkpoint(number, lambda: two_waits(seen))
    assert seen == expected
    assert outcome.reached == (number <= 2) == outcome.cancelled
    assert outcome.result == ("done" if number == 3 else None)
    assert (outcome.number, outcome.tasks_left) == (number, ())


async def test_every_checkpoint_is_visited_and_then_the_scenario_runs_through() -> None:
    outcomes: list[CheckpointOutcome[str]] = []
    assert await for_every_checkpoint(lambda: two_waits([]), check=outcomes.append) == 2
    assert [(o.number, o.cancelled, o.result) for o in outcomes] == [
        (1, True, None),
        (2, True, None),
        (3, False, "done"),
    ]


async def test_a_scenario_that_never_waits_has_no_checkpoints() -> None:
    async def scenario() -> None:
        pass

    assert await for_every_checkpoint(scenario) == 0


async def test_the_waits_of_child_tasks_are_checkpoints() -> None:
    places: set[str] = set()

    async def child(name: str) -> None:
        try:
            await anyio.sleep(0.001)
            await anyio.sleep(0.001)
        except anyio.get_cancelled_exc_class():
            places.add(name)
            raise

    async def scenario() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(child, "a")
            group.start_soon(child, "b")

    assert await for_every_checkpoint(scenario) >= 5
    assert places == {"a", "b"}


@pytest.mark.parametrize("error", [Boom("x"), Boom])
async def test_a_scenario_can_be_made_to_fail_where_it_waits(error: Boom | type[Boom]) -> None:
    seen: list[str] = []
    outcome = await cancel_at_checkpoint(2, lambda: two_waits(seen), error=error)
    assert isinstance(outcome.error, Boom)
    assert not outcome.cancelled
    assert seen == ["start", "middle"]


async def test_a_failure_can_be_handled_by_the_scenario() -> None:
    async def scenario() -> str:
        try:
            await anyio.lowlevel.checkpoint()
        except Boom:
            await anyio.lowlevel.checkpoint()
            return "handled"
        return "undisturbed"

    results: list[str | None] = []
    points = await for_every_checkpoint(
        scenario, error=Boom, check=lambda outcome: results.append(outcome.result)
    )
    assert (points, results) == (1, ["handled", "undisturbed"])


async def test_a_task_that_was_left_running_is_found() -> None:
    async def left_behind() -> None:
        await anyio.sleep_forever()

    async def scenario() -> None:
        BackgroundTask(left_behind)
        await anyio.lowlevel.checkpoint()

    outcome = await cancel_at_checkpoint(9, scenario)
    assert len(outcome.tasks_left) == 1


async def test_a_task_left_running_fails_the_whole_with_its_place() -> None:
    async def left_behind() -> None:
        await anyio.sleep_forever()

    async def scenario() -> None:
        BackgroundTask(left_behind)
        await anyio.lowlevel.checkpoint()

    with pytest.raises(AssertionError, match="tasks were left running") as raised:
        await for_every_checkpoint(scenario)
    assert raised.value.__notes__ == ["at checkpoint 1"]


async def test_a_scenario_that_does_not_end_is_told_from_one_that_does() -> None:
    async def scenario() -> None:
        with anyio.CancelScope(shield=True):
            await anyio.sleep(0.05)
            await anyio.sleep(0.05)

    with pytest.raises(
        AssertionError, match=r"did not end within 0\.01 s after it was interrupted"
    ):
        await cancel_at_checkpoint(3, lambda: anyio.sleep(1), seconds=0.01)
    outcome = await cancel_at_checkpoint(1, scenario, seconds=5)
    assert outcome.reached


async def test_what_a_check_raises_says_at_which_checkpoint() -> None:
    async def check(outcome: CheckpointOutcome[str]) -> None:
        assert outcome.number < 2

    with pytest.raises(AssertionError) as raised:
        await for_every_checkpoint(lambda: two_waits([]), check=check)
    assert raised.value.__notes__ == ["at checkpoint 2"]


async def test_an_error_of_the_undisturbed_scenario_is_raised() -> None:
    async def scenario() -> None:
        await anyio.lowlevel.checkpoint()
        raise Boom

    with pytest.raises(Boom):
        await for_every_checkpoint(scenario)


async def test_a_scenario_with_more_checkpoints_than_allowed_is_given_up() -> None:
    with pytest.raises(AssertionError, match="still waits after 1 checkpoints"):
        await for_every_checkpoint(lambda: two_waits([]), most=1)


async def test_checkpoints_are_counted_from_one() -> None:
    with pytest.raises(ValueError, match="counted from 1: 0"):
        await cancel_at_checkpoint(0, lambda: two_waits([]))


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_run_that_is_cancelled_anywhere_leaves_its_account_in_order(streamed: bool) -> None:
    recorders: list[EventRecorder] = []
    runs: list[Any] = []

    async def scenario() -> None:
        recorder = EventRecorder()
        recorders.append(recorder)
        script = [delay(0, [call("fine"), call("slow")]), delay(0, say("Sunny."))]
        model = ScriptedModel(script)
        slow = FakeTool("slow")
        harness = AgentHarness(model=model, tools=[FakeTool("fine"), slow], listeners=[recorder])
        try:
            if streamed:
                async with harness.stream(None, "hi") as stream:
                    runs.append(await stream.result())
            else:
                runs.append(await harness.invoke(None, "hi"))
        except BaseException as error:
            runs.append(getattr(error, "run", None))
            raise

    def check(outcome: CheckpointOutcome[None]) -> None:
        assert_event_grammar(recorders[-1], complete=bool(recorders[-1].events))
        run = runs[-1]
        if run is None:
            return
        calls = [c.id for m in run.messages if m.role == "assistant" for c in m.tool_calls]
        answers = [m.tool_call_id for m in run.messages if m.role == "tool"]
        assert calls == answers

    assert await for_every_checkpoint(scenario, check=check) >= 3
