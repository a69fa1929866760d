"""A copy of a folder for each run."""

import os
from pathlib import Path

import anyio
import pytest

from tests.support import PATIENCE
from tinyagents.harness.errors import WorkspaceError
from tinyagents.harness.workspace import (
    CopyLimits,
    TemporaryCopyWorkspace,
    WorkspaceChanges,
    WorkspaceDescriptor,
    open_workspace,
)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.txt").write_text("a")
    (folder / "sub" / "run.sh").write_text("#!/bin/sh\n")
    (folder / "sub" / "run.sh").chmod(0o755)
    (folder / "gone.txt").write_text("g")
    return folder


@pytest.fixture
def copies(tmp_path: Path) -> Path:
    folder = tmp_path / "copies"
    folder.mkdir()
    return folder


async def test_a_run_works_on_a_copy_that_is_gone_afterwards(source: Path, copies: Path) -> None:
    isolation = TemporaryCopyWorkspace(source, parent=copies)
    async with open_workspace(isolation, run_id="r1") as workspace:
        root = Path(workspace.root)
        assert workspace.policy_id == "r1"
        assert (root / "a.txt").read_text() == "a"
        assert os.access(root / "sub" / "run.sh", os.X_OK)
        (root / "a.txt").write_text("changed")
    assert (source / "a.txt").read_text() == "a"
    assert list(copies.iterdir()) == []


async def test_links_stay_links_and_none_leads_out(
    source: Path, copies: Path, tmp_path: Path
) -> None:
    (source / "in").symlink_to("a.txt")
    (source / "absolute").symlink_to(source / "sub")
    (source / "out").symlink_to(tmp_path / "secret")
    (source / "up").symlink_to("../secret")
    (source / "chain").symlink_to("out")
    os.mkfifo(source / "pipe")
    isolation = TemporaryCopyWorkspace(source, parent=copies)
    async with open_workspace(isolation, run_id="r") as workspace:
        root = Path(workspace.root)
        names = sorted(path.name for path in root.iterdir())
        assert names == ["a.txt", "absolute", "gone.txt", "in", "sub"]
        assert os.readlink(root / "in") == "a.txt"
        assert os.readlink(root / "absolute") == "sub"


async def test_what_is_ignored_is_not_copied(source: Path, copies: Path) -> None:
    isolation = TemporaryCopyWorkspace(source, parent=copies, ignore=("sub",))
    async with open_workspace(isolation, run_id="r") as workspace:
        assert not (Path(workspace.root) / "sub").exists()


@pytest.mark.parametrize("limits", [CopyLimits(max_files=2), CopyLimits(max_bytes=3)])
async def test_more_than_the_limits_is_refused_and_leaves_nothing(
    source: Path, copies: Path, limits: CopyLimits
) -> None:
    isolation = TemporaryCopyWorkspace(source, parent=copies, limits=limits)
    with pytest.raises(WorkspaceError, match="CopyLimits") as caught:
        await isolation.prepare("r", "agent")
    assert caught.value.reason == "limit"
    assert list(copies.iterdir()) == []


async def test_a_copy_that_nobody_waits_for_any_more_is_removed(source: Path, copies: Path) -> None:
    isolation = TemporaryCopyWorkspace(source, parent=copies)
    with anyio.CancelScope() as scope:
        scope.cancel()
        await isolation.prepare("r", "agent")
    with anyio.fail_after(PATIENCE):
        while list(copies.iterdir()):  # noqa: ASYNC110 - the thread tells nobody
            await anyio.sleep(0.01)


async def test_changes_tell_what_a_run_has_done(source: Path, copies: Path) -> None:
    isolation = TemporaryCopyWorkspace(source, parent=copies)
    async with open_workspace(isolation, run_id="r") as workspace:
        assert not await isolation.changes(workspace)
        work(Path(workspace.root))
        assert await isolation.changes(workspace) == WorkspaceChanges(
            added=("sub/new.txt",), changed=("a.txt",), removed=("gone.txt",)
        )
    assert (source / "gone.txt").exists()


async def test_changes_can_be_brought_back(source: Path, copies: Path, tmp_path: Path) -> None:
    (source / "theirs.txt").write_text("t")
    isolation = TemporaryCopyWorkspace(source, parent=copies)
    async with open_workspace(isolation, run_id="r") as workspace:
        work(Path(workspace.root))
        (Path(workspace.root) / "out").symlink_to(tmp_path)
        (source / "theirs.txt").write_text("changed by somebody else")
        changes = await isolation.apply(workspace)
        assert changes.added == ("sub/new.txt",)
        assert not await anyio.Path(source / "out").is_symlink()
    assert (source / "a.txt").read_text() == "changed"
    assert (source / "sub" / "new.txt").read_text() == "new"
    assert (source / "sub" / "new.txt").stat().st_mode & 0o100
    assert not (source / "gone.txt").exists()
    assert (source / "theirs.txt").read_text() == "changed by somebody else"


async def test_what_was_changed_on_both_sides_is_not_brought_back(
    source: Path, copies: Path
) -> None:
    isolation = TemporaryCopyWorkspace(source, parent=copies)
    async with open_workspace(isolation, run_id="r") as workspace:
        work(Path(workspace.root))
        (source / "a.txt").write_text("theirs")
        with pytest.raises(WorkspaceError) as caught:
            await isolation.apply(workspace)
        assert (caught.value.reason, caught.value.paths) == ("conflict", ("a.txt",))
    assert (source / "a.txt").read_text() == "theirs"
    assert (source / "gone.txt").exists()


async def test_only_its_own_copies_are_removed(source: Path, copies: Path) -> None:
    isolation = TemporaryCopyWorkspace(source, parent=copies)
    (copies / "tinyagents-x").symlink_to(source.parent)
    (source.parent / "files").mkdir()
    for root in (source, copies, copies / "tinyagents-x" / "files", Path("/")):
        with pytest.raises(WorkspaceError) as caught:
            await isolation.cleanup(WorkspaceDescriptor(root=str(root)))
        assert caught.value.reason == "foreign"
    assert (source / "a.txt").exists()


async def test_a_copy_with_folders_that_may_not_be_written_is_removed(
    source: Path, copies: Path, tmp_path: Path
) -> None:
    (source / "sub").chmod(0o555)
    isolation = TemporaryCopyWorkspace(source, parent=copies)
    async with open_workspace(isolation, run_id="../../r\n") as workspace:
        (Path(workspace.root) / "out").symlink_to(tmp_path)
    assert list(copies.iterdir()) == []
    assert (source / "a.txt").exists()
    await isolation.cleanup(workspace)  # gone already


def work(root: Path) -> None:
    (root / "a.txt").write_text("changed")
    (root / "sub" / "new.txt").write_text("new")
    (root / "sub" / "new.txt").chmod(0o700)
    (root / "gone.txt").unlink()


async def test_a_file_that_is_said_to_be_huge_is_not_read(source: Path, copies: Path) -> None:
    isolation = TemporaryCopyWorkspace(source, parent=copies)
    async with open_workspace(isolation, run_id="r") as workspace:
        sparse = Path(workspace.root, "sparse")
        sparse.touch()
        os.truncate(sparse, 2**42)  # without a byte on the disk, and hours of reading
        with pytest.raises(WorkspaceError) as caught:
            await isolation.changes(workspace)
    assert caught.value.reason == "limit"
