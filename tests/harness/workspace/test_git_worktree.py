"""A git worktree for each run: a real git, in repositories of the test."""

import os
import shutil
import subprocess
from pathlib import Path

import anyio
import pytest

from tests.support import PATIENCE
from tinyagents.harness.errors import WorkspaceError
from tinyagents.harness.workspace import (
    GitWorktreeWorkspace,
    WorkspaceDescriptor,
    open_workspace,
)

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")


def run_git(folder: Path, *arguments: str) -> str:
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    command = ["git", "-c", "user.name=t", "-c", "user.email=t@t", *arguments]
    done = subprocess.run(
        command, cwd=folder, env=environment, check=True, capture_output=True, text=True
    )
    return done.stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    run_git(folder, "init", "--quiet", "--initial-branch=main")
    (folder / "a.txt").write_text("one\ntwo\n")
    (folder / "b.txt").write_text("b\n")
    run_git(folder, "add", ".")
    run_git(folder, "commit", "--quiet", "-m", "first")
    return folder


def branches(repository: Path) -> set[str]:
    output = run_git(repository, "for-each-ref", "--format=%(refname:short)", "refs/heads")
    return set(output.split())


async def test_a_run_works_on_its_own_branch_and_leaves_nothing_if_it_did_nothing(
    repository: Path,
) -> None:
    isolation = GitWorktreeWorkspace(repository)
    async with open_workspace(isolation, run_id="run-1") as workspace:
        root = Path(workspace.root)
        assert root == repository / ".claude" / "worktrees" / "run-1"
        assert workspace.policy_id == "run-1"
        assert (root / "a.txt").read_text() == "one\ntwo\n"
        assert run_git(root, "branch", "--show-current").strip() == "worker/run-1"
        assert run_git(repository, "status", "--porcelain") == ""
        assert await isolation.worktrees() == (workspace.root,)
    assert not root.exists()
    assert branches(repository) == {"main"}
    assert await isolation.worktrees() == ()
    await isolation.cleanup(workspace)  # gone already


async def test_work_that_is_not_committed_keeps_the_worktree(repository: Path) -> None:
    isolation = GitWorktreeWorkspace(repository)
    async with open_workspace(isolation, run_id="r") as workspace:
        (Path(workspace.root) / "new file.txt").write_text("new")
    assert await isolation.status(workspace) == ("new file.txt",)
    # The run goes on later, where it was.
    assert await isolation.prepare("r", "agent") == workspace
    with pytest.raises(WorkspaceError, match="not committed") as caught:
        await isolation.remove(workspace)
    assert (caught.value.reason, caught.value.paths) == ("dirty", ("new file.txt",))
    await isolation.remove(workspace, force=True)
    assert not Path(workspace.root).exists()


async def test_dirty_worktrees_are_refused_or_discarded_where_that_is_wanted(
    repository: Path,
) -> None:
    refusing = GitWorktreeWorkspace(repository, on_dirty="refuse")
    workspace = await refusing.prepare("r", "agent")
    (Path(workspace.root) / "a.txt").write_text("changed\n")
    with pytest.raises(WorkspaceError, match="not committed"):
        await refusing.cleanup(workspace)
    assert Path(workspace.root).exists()
    await GitWorktreeWorkspace(repository, on_dirty="discard").cleanup(workspace)
    assert not Path(workspace.root).exists()


async def test_commits_stay_on_their_branch_and_a_run_gets_it_again(repository: Path) -> None:
    isolation = GitWorktreeWorkspace(repository)
    async with open_workspace(isolation, run_id="r") as workspace:
        (Path(workspace.root) / "a.txt").write_text("changed\n")
        run_git(Path(workspace.root), "commit", "--quiet", "-am", "work")
    assert not Path(workspace.root).exists()
    assert branches(repository) == {"main", "worker/r"}
    async with open_workspace(isolation, run_id="r") as again:
        assert (Path(again.root) / "a.txt").read_text() == "changed\n"
        assert (await isolation.diff(again)).paths == ("a.txt",)


async def test_a_diff_counts_what_was_committed_what_was_not_and_what_is_new(
    repository: Path,
) -> None:
    isolation = GitWorktreeWorkspace(repository)
    workspace = await isolation.prepare("r", "agent")
    root = Path(workspace.root)
    (root / "a.txt").write_text("one\n2\n3\n")
    run_git(root, "commit", "--quiet", "-am", "work")
    (root / "b.txt").unlink()
    (root / "c\nd.txt").write_text("new\n")
    diff = await isolation.diff(workspace)
    assert [(f.path, f.added_lines, f.removed_lines) for f in diff.files] == [
        ("a.txt", 2, 1),
        ("b.txt", 0, 1),
        ("c\nd.txt", None, None),
    ]
    assert (diff.added_lines, diff.removed_lines) == (2, 2)


async def test_files_that_two_runs_have_changed_are_found(repository: Path) -> None:
    isolation = GitWorktreeWorkspace(repository)
    one, two = await isolation.prepare("one", "a"), await isolation.prepare("two", "a")
    for workspace, names in ((one, ("a.txt", "x.txt")), (two, ("a.txt", "y.txt"))):
        for name in names:
            (Path(workspace.root) / name).write_text("mine")
    assert await isolation.overlaps([one, two]) == {"a.txt": (one, two)}
    assert await isolation.overlaps([one]) == {}


async def test_a_branch_can_begin_at_the_default_branch_of_the_remote(
    repository: Path, tmp_path: Path
) -> None:
    run_git(tmp_path, "clone", "--quiet", str(repository), "clone")
    clone = tmp_path / "clone"
    run_git(clone, "checkout", "--quiet", "-b", "feature")
    (clone / "a.txt").write_text("feature\n")
    run_git(clone, "commit", "--quiet", "-am", "feature")
    isolation = GitWorktreeWorkspace(clone, base="remote_default")
    async with open_workspace(isolation, run_id="r") as workspace:
        assert (Path(workspace.root) / "a.txt").read_text() == "one\ntwo\n"
    with pytest.raises(WorkspaceError, match="set-head"):
        await GitWorktreeWorkspace(repository, base="remote_default").prepare("r", "agent")


async def test_hooks_and_programs_that_a_run_names_are_not_run(
    repository: Path, tmp_path: Path
) -> None:
    evil = tmp_path / "evil.sh"
    evil.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    evil.chmod(0o755)
    shutil.copy(evil, repository / ".git" / "hooks" / "post-checkout")
    isolation = GitWorktreeWorkspace(repository)
    workspace = await isolation.prepare("r", "agent")
    root = Path(workspace.root)
    # A run that can write files makes the worktree look like another repository.
    fake = root / "fake"
    run_git(root, "init", "--quiet", str(fake))
    run_git(fake, "config", "core.fsmonitor", str(evil))
    run_git(fake, "config", "diff.external", str(evil))
    (root / ".git").write_text(f"gitdir: {fake}/.git\n")
    (root / "a.txt").write_text("changed\n")
    assert "a.txt" in await isolation.status(workspace)
    assert "a.txt" in (await isolation.diff(workspace)).paths
    assert not (tmp_path / "ran").exists()


async def test_only_its_own_worktrees_are_touched(repository: Path) -> None:
    isolation = GitWorktreeWorkspace(repository)
    for root in (repository, repository / ".claude" / "worktrees", Path("/")):
        with pytest.raises(WorkspaceError) as caught:
            await isolation.cleanup(WorkspaceDescriptor(root=str(root), policy_id="r"))
        assert caught.value.reason == "foreign"
    assert (repository / "a.txt").exists()


@pytest.mark.parametrize(
    "run_id", ["../../x", "-f", "a b", "", "x" * 300, "ünï", "a..b.lock", "a/b"]
)
async def test_any_text_can_be_the_id_of_a_run(repository: Path, run_id: str) -> None:
    isolation = GitWorktreeWorkspace(repository)
    async with open_workspace(isolation, run_id=run_id) as workspace:
        assert Path(workspace.root).parent == repository / ".claude" / "worktrees"
        assert (Path(workspace.root) / "a.txt").exists()
    assert branches(repository) == {"main"}


async def test_a_folder_that_is_no_repository_is_an_error_that_says_so(tmp_path: Path) -> None:
    with pytest.raises(WorkspaceError, match="not a git repository") as caught:
        await GitWorktreeWorkspace(tmp_path).prepare("r", "agent")
    assert caught.value.reason == "git"
    assert list(tmp_path.iterdir()) == []


async def test_a_folder_that_is_not_there_is_an_error_and_is_not_made(repository: Path) -> None:
    missing = repository / "missing"
    with pytest.raises(WorkspaceError, match="missing' is no folder") as caught:
        await GitWorktreeWorkspace(missing).prepare("r", "agent")
    assert caught.value.reason == "git"
    assert not missing.exists()


@pytest.mark.parametrize("kind", ["link out", "link to another worktree", "dangling", "folder"])
async def test_what_is_no_worktree_is_not_taken_up_as_one(
    repository: Path, tmp_path: Path, kind: str
) -> None:
    isolation = GitWorktreeWorkspace(repository)
    other = await isolation.prepare("other", "agent")
    place = repository / ".claude" / "worktrees" / "r"
    match kind:
        case "link out":
            place.symlink_to(tmp_path)
        case "link to another worktree":
            place.symlink_to(other.root)
        case "dangling":
            place.symlink_to(tmp_path / "missing")
        case _:
            place.mkdir()
    with pytest.raises(WorkspaceError, match="git knows of no worktree at"):
        await isolation.prepare("r", "agent")
    assert os.path.lexists(place)
    assert (await isolation.prepare("other", "agent")) == other


@pytest.fixture
def fake_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stands in the place of git, and does what a test writes into it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return folder / "git"


def script(file: Path, *lines: str) -> None:
    file.write_text("\n".join(("#!/bin/sh", *lines)))
    file.chmod(0o755)


async def test_git_that_is_cancelled_is_killed(fake_git: Path, tmp_path: Path) -> None:
    script(
        fake_git,
        f"echo $$ > {tmp_path}/pid.new",
        f"mv {tmp_path}/pid.new {tmp_path}/pid",
        "exec sleep 600",
    )
    isolation = GitWorktreeWorkspace(tmp_path)
    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(isolation.prepare, "r", "agent")
            while not (tmp_path / "pid").exists():  # noqa: ASYNC110 - another process
                await anyio.sleep(0.01)
            tasks.cancel_scope.cancel()
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def is_held(pipe: int) -> bool:
    """Whether somebody has a pipe open for writing."""
    try:
        return os.read(pipe, 1) != b""
    except BlockingIOError:
        return True


async def test_what_git_has_started_ends_with_it(fake_git: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    script(fake_git, f"sleep 600 > {tmp_path}/pipe &", "wait")
    pipe = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(GitWorktreeWorkspace(tmp_path).prepare, "r", "agent")
                while not is_held(pipe):  # noqa: ASYNC110 - another process
                    await anyio.sleep(0.01)
                tasks.cancel_scope.cancel()
            while is_held(pipe):  # noqa: ASYNC110 - another process
                await anyio.sleep(0.01)
    finally:
        os.close(pipe)


async def test_git_that_floods_is_ended(fake_git: Path, tmp_path: Path) -> None:
    for stream in ("1", "2"):
        script(fake_git, f"exec yes >&{stream}")
        with pytest.raises(WorkspaceError, match="wrote more than"):
            await GitWorktreeWorkspace(tmp_path).worktrees()


async def test_git_that_is_missing_is_an_error_that_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(WorkspaceError, match="could not be started"):
        await GitWorktreeWorkspace(tmp_path).worktrees()


async def test_a_worktree_that_cannot_be_added_leaves_no_branch(repository: Path) -> None:
    # A folder where the branch's reference would have to be a file.
    run_git(repository, "branch", "worker/r/taken")
    with pytest.raises(WorkspaceError):
        await GitWorktreeWorkspace(repository).prepare("r", "agent")
    assert branches(repository) == {"main", "worker/r/taken"}
    assert run_git(repository, "for-each-ref", "refs/tinyagents") == ""
    assert not (repository / ".claude" / "worktrees" / "r").exists()


async def test_a_run_cannot_be_named_so_that_it_gets_the_worktree_of_another(
    repository: Path,
) -> None:
    isolation = GitWorktreeWorkspace(repository)
    workspace = await isolation.prepare("ann/1", "a")
    imitated = Path(workspace.root).name
    other = await isolation.prepare(imitated, "a")
    assert other.root != workspace.root
