"""Which files a run may touch: what its harness, its configuration and the run around it say."""

import os
from typing import Any, TypeAlias, cast

from ..agent_loop import AgentSpec, RunSnapshot
from ..context import RunConfig, RunContext
from ..errors import ConfigurationError, InvalidRequestError
from ..workspace import WorkspaceDescriptor, WorkspaceIsolation

WorkspaceLike: TypeAlias = WorkspaceDescriptor | WorkspaceIsolation | str | os.PathLike[str]
"""A workspace for all runs, a folder that is one, or who gives each run one of its own."""


def workspace_parts(
    workspace: object,
) -> tuple[WorkspaceDescriptor | None, WorkspaceIsolation | None]:
    """Return a workspace for all runs, or who makes those of single ones.

    Raises:
        ConfigurationError: It is neither.
    """
    if workspace is None or isinstance(workspace, WorkspaceDescriptor):
        return workspace, None
    if isinstance(workspace, str | os.PathLike):
        try:
            return WorkspaceDescriptor(root=cast("str", workspace)), None
        except ValueError as exc:
            raise ConfigurationError(f"`workspace` is no folder: {workspace!r}") from exc
    if isinstance(workspace, type) or not isinstance(workspace, WorkspaceIsolation):
        raise ConfigurationError(
            f"`workspace` is a folder, a `WorkspaceDescriptor`, or an object with `prepare` and "
            f"`cleanup`, not {workspace!r}"
        )
    return None, workspace


def run_workspace(
    spec: AgentSpec, snapshot: RunSnapshot, parent: RunContext[Any] | None
) -> RunConfig:
    """Return a run's configuration with the workspace that the run has.

    Raises:
        InvalidRequestError: A workspace was given to a run for which the harness makes one.
        WorkspaceViolationError: A workspace is outside the one around it.
    """
    config = snapshot.config
    workspace = None if parent is None else parent.workspace
    if spec.isolation is not None:
        if config.workspace is None:
            return config  # it is prepared when the run begins
        if snapshot.phase == "start":
            raise InvalidRequestError(
                "the harness makes a workspace for each run, so that `RunConfig.workspace` cannot "
                "give one: use a harness with `workspace=` a descriptor"
            )
    for inner in (spec.workspace, config.workspace):
        if inner is not None:
            workspace = inner if workspace is None else workspace.narrowed(inner)
    if workspace is config.workspace:
        return config
    return config.model_copy(update={"workspace": workspace})
