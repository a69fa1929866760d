"""Workspaces: which files a run may touch, and how each run gets files of its own."""

from typing import TYPE_CHECKING

from .. import _lazy
from ._descriptor import Emits, SandboxMode, WorkspaceDescriptor, WorkspaceIsolation

if TYPE_CHECKING:
    from ._copy import CopyLimits, TemporaryCopyWorkspace, WorkspaceChanges
    from ._git_worktree import DiffSummary, FileDiff, GitWorktreeWorkspace
    from ._isolation import (
        SharedRootWorkspace,
        cleanup_workspace,
        open_workspace,
        prepare_workspace,
    )

__all__ = (
    "CopyLimits",
    "DiffSummary",
    "Emits",
    "FileDiff",
    "GitWorktreeWorkspace",
    "SandboxMode",
    "SharedRootWorkspace",
    "TemporaryCopyWorkspace",
    "WorkspaceChanges",
    "WorkspaceDescriptor",
    "WorkspaceIsolation",
    "cleanup_workspace",
    "open_workspace",
    "prepare_workspace",
)

if not TYPE_CHECKING:
    _HOMES = {
        "_copy": ("CopyLimits", "TemporaryCopyWorkspace", "WorkspaceChanges"),
        "_git_worktree": ("DiffSummary", "FileDiff", "GitWorktreeWorkspace"),
        "_isolation": (
            "SharedRootWorkspace",
            "cleanup_workspace",
            "open_workspace",
            "prepare_workspace",
        ),
    }
    __getattr__, __dir__ = _lazy.names(__name__, _HOMES)
