"""Preparing a workspace and cleaning it up, and the simplest provider."""

import logging
import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

import anyio

from ..errors import WorkspaceError
from ..text import error_text
from ._descriptor import Emits, SandboxMode, WorkspaceDescriptor, WorkspaceIsolation

CLEAN_UP_SECONDS = 30.0
"""How long removing a workspace may take, cancelled or not: it may be a large tree."""

_log = logging.getLogger("tinyagents.workspace")


class SharedRootWorkspace:
    """The same folder for all runs; nothing is made and nothing removed.

    Args:
        root: The folder.
        trusted_roots: Further folders whose files may be touched.
        sandbox: Whether programs that tools start must run in a sandbox.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        trusted_roots: Sequence[str | os.PathLike[str]] = (),
        sandbox: SandboxMode = "inherit",
    ) -> None:
        self._descriptor = WorkspaceDescriptor(
            root=os.fspath(root),
            trusted_roots=tuple(os.fspath(each) for each in trusted_roots),
            sandbox=sandbox,
        )

    async def prepare(self, run_id: str, agent: str) -> WorkspaceDescriptor:
        """Return the folder, with the run's id as its policy."""
        return self._descriptor.model_copy(update={"policy_id": run_id})

    async def cleanup(self, workspace: WorkspaceDescriptor) -> None:
        """Do nothing."""


async def prepare_workspace(
    isolation: WorkspaceIsolation, *, run_id: str, agent: str, events: Emits | None
) -> WorkspaceDescriptor:
    """Prepare a workspace and say so: ``workspace.prepared``."""
    workspace = await isolation.prepare(run_id, agent)
    if events is not None:
        events.emit("workspace.prepared", policy_id=workspace.policy_id, root=workspace.root)
    return workspace


async def cleanup_workspace(
    isolation: WorkspaceIsolation, workspace: WorkspaceDescriptor, *, events: Emits | None
) -> None:
    """Clean a workspace up and say so: ``workspace.cleanup``, with the error if there was one.

    It is done even where the caller is being cancelled, and takes at most 30 seconds.

    Raises:
        WorkspaceError: The time was up. What the provider raises is raised as it is.
    """
    error: BaseException | None = None
    try:
        with anyio.move_on_after(CLEAN_UP_SECONDS, shield=True) as scope:
            await isolation.cleanup(workspace)
        if scope.cancelled_caught:
            raise WorkspaceError(
                f"the workspace {workspace.root!r} was not removed within {CLEAN_UP_SECONDS:g} s",
                reason="timeout",
            )
    except BaseException as exc:
        error = exc
        raise
    finally:
        if events is not None:
            said = None if error is None else error_text(error) or type(error).__name__
            events.emit("workspace.cleanup", policy_id=workspace.policy_id, error=said)


@asynccontextmanager
async def open_workspace(
    isolation: WorkspaceIsolation,
    *,
    run_id: str,
    agent: str = "agent",
    events: Emits | None = None,
) -> AsyncGenerator[WorkspaceDescriptor]:
    """Prepare a workspace, and clean it up at the end of the ``async with``, however that comes.

    Args:
        isolation: Who makes it.
        run_id: What the workspace is for; providers name it after that.
        agent: Who works in it.
        events: A run's context, which is told: ``workspace.prepared`` and ``workspace.cleanup``.

    Raises:
        WorkspaceError: It cannot be made or removed. An error of the body stands before one of the
            clean-up, which is logged.
    """
    workspace = await prepare_workspace(isolation, run_id=run_id, agent=agent, events=events)
    try:
        yield workspace
    except BaseException:
        try:
            await cleanup_workspace(isolation, workspace, events=events)
        except Exception:  # noqa: BLE001 - the body's own error stands
            _log.exception("the workspace %r could not be cleaned up", workspace.root)
        raise
    await cleanup_workspace(isolation, workspace, events=events)
