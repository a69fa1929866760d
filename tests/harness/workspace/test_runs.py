"""The workspace of a run: how it reaches tools, what runs inside get, and when it is cleaned up."""

from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from tests.support import PATIENCE
from tinyagents import (
    AgentHarness,
    Middleware,
    RunConfig,
    RunContext,
    RunSnapshot,
    ToolContext,
    tool,
)
from tinyagents.harness.agent_loop import AgentRun
from tinyagents.harness.context import Pause
from tinyagents.harness.errors import (
    ConfigurationError,
    InvalidRequestError,
    ResumeError,
    ServerError,
    WorkspaceError,
    WorkspaceViolationError,
)
from tinyagents.harness.workspace import (
    SharedRootWorkspace,
    TemporaryCopyWorkspace,
    WorkspaceDescriptor,
    open_workspace,
)
from tinyagents.testkit import ScriptedModel, assert_event_grammar, call, fail, say

LOOK = [call("look"), say("done")]


class Kept:
    """An isolation provider that remembers what was asked of it."""

    def __init__(self, folder: Path, error: Exception | None = None) -> None:
        self.folder = folder
        self.error = error
        self.open: dict[str, str] = {}
        self.prepared = 0

    async def prepare(self, run_id: str, agent: str) -> WorkspaceDescriptor:
        self.prepared += 1
        root = self.folder / f"{run_id}-{self.prepared}"
        await anyio.Path(root).mkdir()
        self.open[str(root)] = agent
        return WorkspaceDescriptor(root=str(root), policy_id=run_id)

    async def cleanup(self, workspace: WorkspaceDescriptor) -> None:
        await anyio.lowlevel.checkpoint()
        del self.open[workspace.root]
        if self.error is not None:
            raise self.error


@tool
async def look(ctx: ToolContext[Any]) -> str:
    """Tell which workspace there is."""
    return "none" if ctx.workspace is None else ctx.workspace.root


def told(run: AgentRun[Any, Any]) -> list[str]:
    return [message.text for message in run.messages if message.role == "tool"]


def kinds(run: AgentRun[Any, Any]) -> list[str]:
    return [event.kind for event in run.events if event.kind.startswith(("workspace", "run."))]


def agent(workspace: Any, *turns: Any, **settings: Any) -> AgentHarness:
    model = ScriptedModel.per_run(list(turns) or LOOK)
    return AgentHarness(model=model, tools=[look], workspace=workspace, **settings)


async def test_a_folder_or_a_descriptor_reaches_tools(tmp_path: Path) -> None:
    for workspace in (str(tmp_path), tmp_path, WorkspaceDescriptor(root=str(tmp_path))):
        run = await agent(workspace).invoke(None, "go")
        assert told(run) == [str(tmp_path)]
        assert kinds(run) == ["run.started", "run.completed"]
    assert told(await agent(None).invoke(None, "go")) == ["none"]


@pytest.mark.parametrize("workspace", [7, "", "a\0", SharedRootWorkspace])
def test_what_is_no_workspace_is_refused(workspace: Any) -> None:
    with pytest.raises(ConfigurationError, match="workspace"):
        agent(workspace)


async def test_a_changed_copy_of_a_harness_can_have_another_workspace(tmp_path: Path) -> None:
    isolation = Kept(tmp_path)
    first = agent(tmp_path)
    assert told(await first.replace(name="b").invoke(None, "go")) == [str(tmp_path)]
    assert told(await first.replace(workspace=isolation).invoke(None, "go")) != [str(tmp_path)]
    assert told(await agent(isolation).replace(workspace="/x").invoke(None, "go")) == ["/x"]


async def test_a_run_can_be_given_a_part_of_it_and_no_more(tmp_path: Path) -> None:
    part = WorkspaceDescriptor(root=str(tmp_path / "user"))
    run = await agent(tmp_path).invoke(None, "go", config=RunConfig(workspace=part))
    assert told(run) == [part.root]
    assert run.snapshot.config.workspace == part.model_copy(update={"within": (str(tmp_path),)})
    outside = RunConfig(workspace=WorkspaceDescriptor(root="/etc"))
    with pytest.raises(WorkspaceViolationError):
        await agent(tmp_path).invoke(None, "go", config=outside)
    assert told(await agent(None).invoke(None, "go", config=outside)) == ["/etc"]


async def test_a_run_inside_another_one_inherits_and_can_only_have_less(tmp_path: Path) -> None:
    inner_agents = [agent(None), agent(tmp_path / "sub"), agent("/etc"), agent(Kept(Path("/tmp")))]
    seen: list[str] = []

    @tool
    async def delegate(ctx: ToolContext[Any], number: int) -> str:
        """Ask another agent."""
        try:
            seen.extend(told(await inner_agents[number].invoke(None, "go", context=ctx.run)))
        except WorkspaceViolationError:
            seen.append("refused")
        return "ok"

    calls = [[call("delegate", number=number)] for number in range(3)]
    outer = AgentHarness(
        model=ScriptedModel([*calls, say("done")]), tools=[delegate], workspace=tmp_path
    )
    await outer.invoke(None, "go")
    assert seen == [str(tmp_path), str(tmp_path / "sub"), "refused"]


async def test_a_workspace_made_for_an_inner_run_must_be_inside_as_well(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    inside, outside = Kept(tmp_path / "ws"), Kept(tmp_path)
    seen: list[str] = []

    @tool
    async def delegate(ctx: ToolContext[Any]) -> str:
        """Ask two agents."""
        for isolation in (inside, outside):
            try:
                await agent(isolation).invoke(None, "go", context=ctx.run)
                seen.append("ran")
            except WorkspaceViolationError:
                seen.append("refused")
        return "ok"

    model = ScriptedModel([[call("delegate")], say("done")])
    outer = AgentHarness(model=model, tools=[delegate], workspace=tmp_path / "ws")
    run = await outer.invoke(None, "go")
    assert seen == ["ran", "refused"]
    assert inside.open == outside.open == {}
    assert_event_grammar(run.events)


async def test_each_run_gets_a_workspace_and_loses_it_at_its_end(tmp_path: Path) -> None:
    isolation = Kept(tmp_path)
    harness = agent(isolation, name="worker")
    run = await harness.invoke(None, "go", config=RunConfig(run_id="r"))
    assert told(run) == [str(tmp_path / "r-1")]
    assert kinds(run) == [
        "run.started",
        "workspace.prepared",
        "workspace.cleanup",
        "run.completed",
    ]
    prepared, cleanup = (event for event in run.events if event.kind.startswith("workspace"))
    assert (prepared.policy_id, prepared.root) == ("r", str(tmp_path / "r-1"))  # type: ignore[attr-defined]
    assert (cleanup.policy_id, cleanup.error) == ("r", None)  # type: ignore[attr-defined]
    assert isolation.open == {}
    assert run.snapshot.config.workspace is None
    assert_event_grammar(run.events)


async def test_a_run_that_fails_loses_its_workspace(tmp_path: Path) -> None:
    isolation = Kept(tmp_path)
    with pytest.raises(ServerError) as caught:
        await agent(isolation, fail(ServerError("no", retryable=False))).invoke(None, "go")
    run = caught.value.run
    assert run is not None
    assert kinds(run)[-2:] == ["workspace.cleanup", "run.failed"]
    assert isolation.open == {}


async def test_a_run_that_is_cancelled_loses_its_workspace(tmp_path: Path) -> None:
    isolation = Kept(tmp_path)
    started = anyio.Event()

    @tool
    async def wait(ctx: ToolContext[Any]) -> str:
        """Wait."""
        started.set()
        await anyio.sleep_forever()
        return "never"

    harness = AgentHarness(model=ScriptedModel([[call("wait")]]), tools=[wait], workspace=isolation)
    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(harness.invoke, None, "go")
            await started.wait()
            assert len(isolation.open) == 1
            tasks.cancel_scope.cancel()
    assert isolation.open == {}


async def test_a_clean_up_that_fails_ends_the_run_with_its_error(tmp_path: Path) -> None:
    isolation = Kept(tmp_path, WorkspaceError("stuck", reason="git"))
    with pytest.raises(WorkspaceError, match="stuck") as caught:
        await agent(isolation).invoke(None, "go")
    run = caught.value.run
    assert run is not None
    cleanups = [event for event in run.events if event.kind == "workspace.cleanup"]
    assert [event.error for event in cleanups] == ["stuck"]  # type: ignore[attr-defined]
    assert run.messages[-1].text == "done"
    assert_event_grammar(run.events)


async def test_the_error_of_a_run_stands_before_one_of_the_clean_up(tmp_path: Path) -> None:
    isolation = Kept(tmp_path, WorkspaceError("stuck", reason="git"))
    with pytest.raises(ServerError) as caught:
        await agent(isolation, fail(ServerError("no", retryable=False))).invoke(None, "go")
    assert caught.value.run is not None
    cleanups = [event for event in caught.value.run.events if event.kind == "workspace.cleanup"]
    assert [event.error for event in cleanups] == ["stuck"]  # type: ignore[attr-defined]


async def test_a_workspace_that_cannot_be_made_fails_the_run(tmp_path: Path) -> None:
    harness = agent(TemporaryCopyWorkspace(tmp_path / "none"))
    with pytest.raises(FileNotFoundError):
        await harness.invoke(None, "go")


@tool
async def question(ctx: ToolContext[Any]) -> str:
    """Ask somebody."""
    ctx.ask("may I?")
    return "none" if ctx.workspace is None else ctx.workspace.root


async def test_a_run_that_waits_keeps_its_workspace_and_takes_it_up_again(tmp_path: Path) -> None:
    isolation = Kept(tmp_path)
    harness = AgentHarness(
        model=ScriptedModel([[call("question")], say("done")]),
        tools=[question],
        workspace=isolation,
    )
    waiting = await harness.invoke(None, "go", config=RunConfig(run_id="r"))
    assert waiting.status == "interrupted"
    assert list(isolation.open) == [str(tmp_path / "r-1")]
    stored = waiting.snapshot.model_dump_json()
    workspace = RunSnapshot.model_validate_json(stored).config.workspace
    assert workspace is not None
    assert workspace.root == str(tmp_path / "r-1")

    run = await harness.resume(stored, None, answers="yes")
    assert told(run) == [str(tmp_path / "r-1")]
    assert (isolation.prepared, isolation.open) == (1, {})
    assert kinds(run)[-2:] == ["workspace.cleanup", "run.completed"]


class PauseOnce(Middleware[Any]):
    paused = False

    async def before_model(self, ctx: RunContext[Any], request: Any) -> None:
        if not self.paused:
            self.paused = True
            ctx.request_control(Pause())


async def test_a_paused_run_keeps_its_workspace(tmp_path: Path) -> None:
    isolation = Kept(tmp_path)
    harness = agent(isolation, middleware=[PauseOnce()])
    paused = await harness.invoke(None, "go")
    assert paused.status == "paused"
    assert len(isolation.open) == 1
    await harness.resume(paused.snapshot, None)
    assert (isolation.prepared, isolation.open) == (1, {})


async def test_a_run_that_goes_on_after_its_end_gets_a_new_workspace(tmp_path: Path) -> None:
    isolation = Kept(tmp_path)
    harness = agent(isolation, *LOOK, say("more"))
    first = await harness.invoke(None, "go")
    again = await harness.resume(first.snapshot, None, input="and?")
    assert (isolation.prepared, isolation.open) == (2, {})
    assert_event_grammar(again.events)


async def test_an_engine_that_steps_has_one_workspace_from_phase_to_phase(tmp_path: Path) -> None:
    isolation = Kept(tmp_path)
    harness = agent(isolation)
    snapshot = harness.snapshot("go")
    roots = set[str]()
    while snapshot.phase != "done":
        snapshot = await harness.step(snapshot, None)
        if snapshot.config.workspace is not None:
            roots.add(snapshot.config.workspace.root)
    assert len(roots) == isolation.prepared == 1
    assert isolation.open == {}


async def test_a_resumed_run_keeps_its_part_and_cannot_change_it(tmp_path: Path) -> None:
    part = WorkspaceDescriptor(root=str(tmp_path / "user"))
    harness = AgentHarness(
        model=ScriptedModel([[call("question")], say("done")]),
        tools=[question],
        workspace=tmp_path,
    )
    waiting = await harness.invoke(None, "go", config=RunConfig(workspace=part))
    other = RunConfig(workspace=WorkspaceDescriptor(root=str(tmp_path)))
    with pytest.raises(ResumeError, match="workspace"):
        await harness.resume(waiting.snapshot, None, answers="yes", config=other)
    with pytest.raises(WorkspaceViolationError):
        await harness.replace(workspace="/etc").resume(waiting.snapshot, None, answers="yes")
    assert told(await harness.resume(waiting.snapshot, None, answers="yes")) == [part.root]


async def test_a_run_for_which_one_is_made_cannot_be_given_one(tmp_path: Path) -> None:
    config = RunConfig(workspace=WorkspaceDescriptor(root=str(tmp_path)))
    with pytest.raises(InvalidRequestError, match="makes a workspace for each run"):
        await agent(Kept(tmp_path)).invoke(None, "go", config=config)


async def test_the_shared_root_carries_the_id_of_the_run(tmp_path: Path) -> None:
    isolation = SharedRootWorkspace(tmp_path, trusted_roots=[tmp_path.parent], sandbox="required")
    async with open_workspace(isolation, run_id="r9") as workspace:
        assert workspace == WorkspaceDescriptor(
            root=str(tmp_path),
            trusted_roots=(str(tmp_path.parent),),
            policy_id="r9",
            sandbox="required",
        )
    assert tmp_path.is_dir()


class Recorder:
    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []

    def emit(self, kind: str, **payload: Any) -> None:
        self.events.append((kind, payload))


async def test_a_workspace_is_cleaned_up_after_the_body_failed_or_was_cancelled(
    tmp_path: Path,
) -> None:
    isolation, recorder = Kept(tmp_path), Recorder()
    with pytest.raises(KeyError):
        async with open_workspace(isolation, run_id="r", events=recorder):
            raise KeyError
    with anyio.move_on_after(0.001):
        async with open_workspace(isolation, run_id="r", events=recorder):
            await anyio.sleep_forever()
    assert isolation.open == {}
    assert [kind for kind, _ in recorder.events] == ["workspace.prepared", "workspace.cleanup"] * 2


async def test_a_clean_up_that_fails_is_reported_and_raised(tmp_path: Path) -> None:
    isolation, recorder = Kept(tmp_path, OSError("busy")), Recorder()
    with pytest.raises(OSError, match="busy"):
        async with open_workspace(isolation, run_id="r", events=recorder):
            pass
    assert recorder.events[-1] == ("workspace.cleanup", {"policy_id": "r", "error": "busy"})
