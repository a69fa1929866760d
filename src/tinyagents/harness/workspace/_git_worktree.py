"""A git worktree for each run, on a branch of its own."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import anyio

from ..concurrency import CLEAN_UP_SECONDS, in_thread
from ..errors import WorkspaceError
from ._descriptor import SandboxMode, WorkspaceDescriptor
from ._git import git
from ._names import safe_name

_NO_PROGRAMS = ("--no-ext-diff", "--no-textconv", "--ignore-submodules=all")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDiff:
    """How much of a file is different."""

    path: str
    added_lines: int | None
    """``None`` for a binary file, or one that is not tracked yet."""
    removed_lines: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffSummary:
    """What a worktree holds that its branch did not begin with, committed or not; sorted by path."""

    files: tuple[FileDiff, ...]

    @property
    def paths(self) -> tuple[str, ...]:
        """The files."""
        return tuple(file.path for file in self.files)

    @property
    def added_lines(self) -> int:
        """Lines that were added, as far as lines are counted."""
        return sum(file.added_lines or 0 for file in self.files)

    @property
    def removed_lines(self) -> int:
        """Lines that were removed, as far as lines are counted."""
        return sum(file.removed_lines or 0 for file in self.files)


class GitWorktreeWorkspace:
    """Gives each run a worktree of a repository, on the branch ``worker/{run id}``.

    A run that goes on after its end gets its branch again. At the clean-up the worktree is removed; a
    branch with commits of its own stays, one without goes. What is not committed would be lost, so
    that a worktree with such changes stays, unless ``on_dirty`` says otherwise.

    Git runs without hooks and without programs that a repository names, and looks at the repository's
    own data rather than at the ``.git`` that a run can write.

    Args:
        repository: The repository's folder.
        base: Where a branch begins: the commit that is checked out, or the default branch of the
            remote as it was fetched last.
        remote: The remote's name.
        folder: Where the worktrees are, from the repository's folder. It gets a ``.gitignore``.
        branch_prefix: What the names of branches begin with.
        on_dirty: What the clean-up does with changes that are not committed: ``keep`` the worktree,
            ``refuse`` with an error, or ``discard`` them.
        sandbox: Whether programs that tools start must run in a sandbox.
    """

    def __init__(
        self,
        repository: str | os.PathLike[str],
        *,
        base: Literal["head", "remote_default"] = "head",
        remote: str = "origin",
        folder: str = ".claude/worktrees",
        branch_prefix: str = "worker/",
        on_dirty: Literal["keep", "refuse", "discard"] = "keep",
        sandbox: SandboxMode = "inherit",
    ) -> None:
        self._repository = os.path.abspath(repository)
        self._folder = os.path.join(self._repository, folder)
        self._base: Literal["head", "remote_default"] = base
        self._remote = remote
        self._prefix = branch_prefix
        self._on_dirty: Literal["keep", "refuse", "discard"] = on_dirty
        self._sandbox: SandboxMode = sandbox

    async def prepare(self, run_id: str, agent: str) -> WorkspaceDescriptor:
        """Add the worktree, or take up the one that the run has left.

        Raises:
            WorkspaceError: Git failed, or there is something else in the worktree's place (``git``).
        """
        name = safe_name(run_id)
        root, branch = os.path.join(self._folder, name), self._prefix + name
        if await in_thread(partial(os.path.lexists, root)):
            await self._data_of(root)
        else:
            tip = await self._commit(f"refs/heads/{branch}")
            start = tip or await self._start()
            await self._ignore_folder()
            if tip is None or await self._commit(self._base_ref(name)) is None:
                await self._git("update-ref", self._base_ref(name), start)
            what = ("-b", branch, root, start) if tip is None else (root, branch)
            try:
                await self._git("worktree", "add", "--quiet", *what)
            except BaseException:
                await self._undo(root, None if tip else f"refs/heads/{branch}", name)
                raise
        return WorkspaceDescriptor(root=root, policy_id=run_id, sandbox=self._sandbox)

    async def cleanup(self, workspace: WorkspaceDescriptor) -> None:
        """Remove the worktree, according to ``on_dirty``.

        Raises:
            WorkspaceError: It has changes that are not committed and ``on_dirty`` is ``refuse``
                (``dirty``), is none of this provider (``foreign``), or git failed (``git``).
        """
        self._name(workspace)
        if not await anyio.Path(workspace.root).exists():
            return
        if self._on_dirty == "keep" and await self.status(workspace):
            return
        await self.remove(workspace, force=self._on_dirty == "discard")

    async def remove(self, workspace: WorkspaceDescriptor, *, force: bool = False) -> None:
        """Remove the worktree, and its branch if that has no commits of its own.

        Args:
            workspace: What :meth:`prepare` gave.
            force: Lose what is not committed.

        Raises:
            WorkspaceError: There are changes that are not committed (``dirty``): ``paths`` names them.
                Or as for :meth:`cleanup`.
        """
        name = self._name(workspace)
        if not force and (dirty := await self.status(workspace)):
            raise WorkspaceError(
                f"the worktree {workspace.root!r} has {len(dirty)} changes that are not committed: "
                "commit them, or remove it with `force=True`",
                reason="dirty",
                paths=dirty,
            )
        await self._git("worktree", "remove", "--force", workspace.root)
        branch, start = f"refs/heads/{self._prefix}{name}", self._base_ref(name)
        base = await self._commit(start)
        if base is not None and await self._commit(branch) == base:
            await self._git("update-ref", "-d", branch, base)
            await self._git("update-ref", "-d", start)

    async def status(self, workspace: WorkspaceDescriptor) -> tuple[str, ...]:
        """Return the files with changes that are not committed, new ones included; sorted.

        Raises:
            WorkspaceError: It is none of this provider, or git failed.
        """
        arguments = ("status", "--porcelain", "-z", "--no-renames", "--untracked-files=all")
        output = await self._inside(workspace, *arguments, "--ignore-submodules=all")
        return tuple(sorted(entry[3:] for entry in output.split("\0") if entry))

    async def diff(self, workspace: WorkspaceDescriptor) -> DiffSummary:
        """Return what is different from the commit where the branch began, committed or not.

        Raises:
            WorkspaceError: It is none of this provider, or git failed.
        """
        start = self._base_ref(self._name(workspace))
        output = await self._inside(
            workspace, "diff", "--numstat", "-z", "--no-renames", *_NO_PROGRAMS, start, "--"
        )
        files = {diff.path: diff for diff in map(_file_diff, filter(None, output.split("\0")))}
        for path in await self.status(workspace):
            files.setdefault(path, FileDiff(path=path, added_lines=None, removed_lines=None))
        return DiffSummary(files=tuple(files[path] for path in sorted(files)))

    async def overlaps(
        self, workspaces: Sequence[WorkspaceDescriptor]
    ) -> dict[str, tuple[WorkspaceDescriptor, ...]]:
        """Return the files that several of the worktrees have changed, each with those worktrees.

        Raises:
            WorkspaceError: One is none of this provider, or git failed.
        """
        changed: dict[str, list[WorkspaceDescriptor]] = {}
        for workspace in workspaces:
            for path in (await self.diff(workspace)).paths:
                changed.setdefault(path, []).append(workspace)
        return {path: tuple(who) for path, who in sorted(changed.items()) if len(who) > 1}

    async def worktrees(self) -> tuple[str, ...]:
        """Return the roots of the worktrees that there are, sorted.

        Raises:
            WorkspaceError: Git failed.
        """
        output = await self._git("worktree", "list", "--porcelain", "-z")
        roots = [line.removeprefix("worktree ") for line in output.split("\0")]
        return await in_thread(partial(self._ours, roots))

    def _ours(self, roots: Sequence[str]) -> tuple[str, ...]:
        folder = os.path.realpath(self._folder)
        found = [root for root in roots if os.path.dirname(os.path.realpath(root)) == folder]
        return tuple(sorted(os.path.join(self._folder, os.path.basename(root)) for root in found))

    def _name(self, workspace: WorkspaceDescriptor) -> str:
        """Return what a worktree is named, if it is one of ours: it may be removed."""
        name = safe_name(workspace.policy_id)
        if workspace.root != os.path.join(self._folder, name):
            raise WorkspaceError(
                f"the workspace {workspace.root!r} is no worktree that this provider has made",
                reason="foreign",
            )
        return name

    def _base_ref(self, name: str) -> str:
        """Return the reference that remembers where a branch began."""
        return f"refs/tinyagents/base/{name}"

    async def _start(self) -> str:
        if self._base == "head":
            return (await self._git("rev-parse", "--verify", "HEAD^{commit}")).strip()
        default = f"refs/remotes/{self._remote}/HEAD"
        commit = await self._commit(default)
        if commit is None:
            raise WorkspaceError(
                f"the default branch of the remote `{self._remote}` is not known: run "
                f"`git remote set-head {self._remote} --auto`",
                reason="git",
            )
        return commit

    async def _commit(self, ref: str) -> str | None:
        arguments = ("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}")
        output = await git(arguments, repository=self._repository, check=False)
        return None if output is None else output.strip()

    async def _undo(self, root: str, branch: str | None, name: str) -> None:
        """Remove half a worktree, in which nobody has worked, and the branch that was made for it."""
        commands: list[tuple[str, ...]] = [("worktree", "remove", "--force", root)]
        if branch is not None:
            commands += [("update-ref", "-d", branch), ("update-ref", "-d", self._base_ref(name))]
        with anyio.move_on_after(CLEAN_UP_SECONDS, shield=True):
            for command in commands:
                await git(command, repository=self._repository, check=False)

    async def _ignore_folder(self) -> None:
        folder = anyio.Path(self._folder)
        await folder.mkdir(parents=True, exist_ok=True)
        ignore = folder / ".gitignore"
        if not await ignore.exists():
            await ignore.write_text("*\n")

    async def _git(self, *arguments: str) -> str:
        return await git(arguments, repository=self._repository) or ""

    async def _inside(self, workspace: WorkspaceDescriptor, *arguments: str) -> str:
        """Run git on a worktree, by the repository's own data about it."""
        self._name(workspace)
        git_dir = await self._data_of(workspace.root)
        return await git(arguments, repository=workspace.root, git_dir=git_dir) or ""

    async def _data_of(self, root: str) -> str:
        common = (await self._git("rev-parse", "--git-common-dir")).strip()
        return await in_thread(partial(_data_of, Path(self._repository, common, "worktrees"), root))


def _data_of(worktrees: Path, root: str) -> str:
    """Find where a repository keeps its data about a worktree: not always under its name."""
    # What is a link itself is no worktree, wherever it leads.
    wanted = os.path.join(os.path.realpath(os.path.dirname(root)), os.path.basename(root))
    for place in worktrees.glob("*/gitdir"):
        if os.path.realpath(os.path.dirname(place.read_text("utf-8").strip())) == wanted:
            return str(place.parent)
    raise WorkspaceError(f"git knows of no worktree at {root!r}", reason="git")


def _file_diff(line: str) -> FileDiff:
    added, removed, path = line.split("\t", 2)
    return FileDiff(path=path, added_lines=_count(added), removed_lines=_count(removed))


def _count(digits: str) -> int | None:
    return int(digits) if digits.isdecimal() else None
