"""The files of its own that a run works on: made when it begins, removed when it has ended."""

import logging

from ..workspace import WorkspaceDescriptor
from ._run import LoopRun

_log = logging.getLogger("tinyagents.agent_loop")


async def take_workspace(run: LoopRun) -> None:
    """Prepare the run's workspace, where its harness gives each run one and it has none yet.

    Raises:
        WorkspaceViolationError: It is outside the workspace of the run around this one.
        WorkspaceError: It cannot be made.
    """
    isolation = run.spec.isolation
    if isolation is None or run.ctx.workspace is not None or run.single_call:
        return
    from ..workspace import cleanup_workspace, prepare_workspace

    ctx = run.ctx
    made = await prepare_workspace(isolation, run_id=ctx.run_id, agent=run.spec.name, events=ctx)
    around = None if ctx.parent is None else ctx.parent.workspace
    try:
        workspace = made if around is None else around.narrowed(made)
    except BaseException:
        await cleanup_workspace(isolation, made, events=ctx)
        raise
    _set(run, workspace)


async def leave_workspace(run: LoopRun) -> None:
    """Remove the workspace that was prepared for the run; a run that can go on keeps it.

    Raises:
        WorkspaceError: It cannot be removed. What the provider raises is raised as it is.
    """
    isolation, workspace = run.spec.isolation, run.ctx.workspace
    if isolation is None or workspace is None or run.snapshot.status in ("interrupted", "paused"):
        return
    from ..workspace import cleanup_workspace

    _set(run, None)
    await cleanup_workspace(isolation, workspace, events=run.ctx)


async def leave_workspace_quietly(run: LoopRun) -> None:
    """Remove the workspace of a run that has failed: its own error stands."""
    try:
        await leave_workspace(run)
    except Exception:  # noqa: BLE001 - an isolation provider may raise anything
        _log.exception("the workspace of the run `%s` could not be cleaned up", run.ctx.run_id)


def _set(run: LoopRun, workspace: WorkspaceDescriptor | None) -> None:
    run.ctx.workspace = workspace
    config = run.snapshot.config.model_copy(update={"workspace": workspace})
    run.snapshot.config = run.ctx.config = config
