"""Artifacts as files: where they go, and where they cannot be made to go."""

import os
import threading
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from tests.support import PATIENCE
from tinyagents.harness.artifacts import ArtifactStore, FileArtifactStore
from tinyagents.harness.errors import ConfigurationError, UnsafePathError


def files(folder: Path) -> list[str]:
    """Every file and link below a folder."""
    return sorted(
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_symlink() or not path.is_dir()
    )


async def refused(store: ArtifactStore, name: str) -> str:
    with pytest.raises(UnsafePathError) as caught:
        await store.write(name, "text")
    return caught.value.reason


async def test_a_text_is_stored_and_read_again(tmp_path: Path) -> None:
    store: ArtifactStore = FileArtifactStore(tmp_path / "not" / "there yet")
    stored = await store.write("a/b.md", "héllo\0\ud800")
    assert stored.kind == "output"
    assert stored.path == stored.shown_path == "outputs/a/b.md"
    assert stored.absolute_path == str(tmp_path / "not/there yet/outputs/a/b.md")
    assert (stored.bytes, stored.original_bytes, stored.redacted) == (12, 12, False)
    assert (tmp_path / "not/there yet/outputs/a/b.md").read_bytes() == "héllo\ufffd\ufffd".encode()
    assert await store.read(stored.path) == "héllo\ufffd\ufffd"
    assert (await store.write("s.txt", "x", kind="scratch")).path == "workspace/s.txt"
    assert await store.read("workspace/s.txt") == "x"


async def test_nothing_is_overwritten(tmp_path: Path) -> None:
    store = FileArtifactStore(tmp_path)
    paths = [(await store.write("a/b.md", text)).path for text in ("1", "2", "3")]
    assert paths == ["outputs/a/b.md", "outputs/a/b-2.md", "outputs/a/b-3.md"]
    assert [await store.read(path) for path in paths] == ["1", "2", "3"]


async def test_writers_of_one_name_at_the_same_time_all_keep_their_text(tmp_path: Path) -> None:
    store = FileArtifactStore(tmp_path)
    stored: dict[str, str] = {}

    async def write(text: str) -> None:
        stored[(await store.write("a.md", text)).path] = text

    async with anyio.create_task_group() as group:
        for number in range(20):
            group.start_soon(write, str(number))
    assert len(stored) == 20
    assert {path: await store.read(path) for path in stored} == stored
    assert len(files(tmp_path)) == 20


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "empty"),
        ("  ", "empty"),
        (".", "empty"),
        ("/etc/passwd", "absolute"),
        ("//x", "absolute"),
        ("C:\\x", "absolute"),
        ("c:x", "absolute"),
        ("\\\\host\\share", "absolute"),
        ("..", "parent"),
        ("a/../b", "parent"),
        ("../../x", "parent"),
        ("a\\..\\b", "parent"),
        ("a\\b", "name"),
        ("a\nb", "name"),
        ("a\0b", "name"),
        ("a/" + "x" * 300, "name"),
    ],
)
async def test_a_name_that_leads_elsewhere_is_refused_and_nothing_is_written(
    tmp_path: Path, name: str, reason: str
) -> None:
    store = FileArtifactStore(tmp_path / "root")
    assert await refused(store, name) == reason
    assert files(tmp_path) == []
    if reason != "name":
        with pytest.raises(UnsafePathError):
            await store.read(f"outputs/{name}" if reason == "parent" else name)


@pytest.mark.parametrize("to", ["{outside}", "../../outside", "/", "loop"])
async def test_a_link_that_leads_out_is_refused_and_nothing_is_written(
    tmp_path: Path, to: str
) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    outside.mkdir()
    (root / "outputs").mkdir(parents=True)
    (outside / "secret.md").write_text("secret")
    (root / "outputs/loop").symlink_to(to.format(outside=outside))
    store = FileArtifactStore(root)
    assert await refused(store, "loop/x.md") in ("outside", "link")
    with pytest.raises(UnsafePathError):
        await store.read("outputs/loop/secret.md")
    assert files(outside) == ["secret.md"]


async def test_a_folder_of_artifacts_that_is_a_link_out_is_refused(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    (root / "outputs").symlink_to(outside)
    assert await refused(FileArtifactStore(root), "x.md") == "outside"
    assert files(outside) == []


async def test_a_link_that_a_name_ends_with_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "outputs").mkdir()
    (tmp_path / "kept.txt").write_text("kept")
    (tmp_path / "outputs/a.md").symlink_to("../kept.txt")
    store = FileArtifactStore(tmp_path)
    try:
        stored = await store.write("a.md", "new")
    except UnsafePathError:
        pass
    else:
        assert stored.path != "outputs/a.md"
    assert (tmp_path / "kept.txt").read_text() == "kept"


def swapping(link: Path, targets: list[Path], stop: threading.Event) -> Callable[[], None]:
    """Let a link lead to one place and another in turn, as fast as it goes."""
    other = link.with_name("other")

    def swap() -> None:
        while not stop.is_set():
            for target in targets:
                other.symlink_to(target)
                other.replace(link)

    return swap


async def test_a_link_that_is_swapped_in_meanwhile_leads_nowhere(tmp_path: Path) -> None:
    root, inside, outside = tmp_path / "root", tmp_path / "root/inside", tmp_path / "outside"
    for folder in (root / "outputs", inside, outside):
        folder.mkdir(parents=True)
    link = root / "outputs/agent"
    link.symlink_to(inside)
    store, stop = FileArtifactStore(root), threading.Event()
    thread = threading.Thread(target=swapping(link, [outside, inside], stop))
    thread.start()
    written = refusals = 0
    try:
        with anyio.fail_after(PATIENCE):
            while written < 100 or refusals < 100:  # until both sides were seen often
                try:
                    await store.write(f"agent/{written}.md", "text")
                    written += 1
                except UnsafePathError:
                    refusals += 1
    finally:
        stop.set()
        thread.join()
    assert files(outside) == []
    assert len(files(inside)) == written


async def test_internal_folders_hold_no_artifacts(tmp_path: Path) -> None:
    store = FileArtifactStore(tmp_path, internal=["outputs/.state", tmp_path / "workspace/db"])
    assert await refused(store, ".state/x.md") == "internal"
    assert await refused(store, ".state") == "internal"
    with pytest.raises(UnsafePathError):
        await store.write("db/x", "y", kind="scratch")
    (tmp_path / "outputs/.state").mkdir(parents=True)
    (tmp_path / "outputs/.state/key").write_text("secret")
    (tmp_path / "outputs/link").symlink_to(".state")
    assert await refused(store, "link/x.md") == "internal"
    for path in ("outputs/.state/key", "outputs/link/key"):
        with pytest.raises(UnsafePathError):
            await store.read(path)
    assert await store.read((await store.write(".stateful/x.md", "y")).path) == "y"
    for internal in (tmp_path, tmp_path.parent):
        with pytest.raises(ConfigurationError):
            FileArtifactStore(tmp_path, internal=[internal])


@pytest.mark.parametrize(
    "path", ["secret.txt", "outputs", "outputs/", "other/x", "outputs/missing"]
)
async def test_only_artifacts_are_read(tmp_path: Path, path: str) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "other").mkdir()
    (tmp_path / "other/x").write_text("secret")
    (tmp_path / "outputs").mkdir()
    with pytest.raises((UnsafePathError, OSError)):
        await FileArtifactStore(tmp_path).read(path)


async def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "outputs").mkdir()
    os.mkfifo(tmp_path / "outputs/pipe")
    with pytest.raises(UnsafePathError):
        await FileArtifactStore(tmp_path).read("outputs/pipe")


async def test_a_scope_is_not_left(tmp_path: Path) -> None:
    store = FileArtifactStore(tmp_path)
    mine = (await store.write("me/a.md", "mine")).path
    theirs = (await store.write("you/a.md", "theirs")).path
    bare = (await store.write("a.md", "nobody's")).path
    (tmp_path / "outputs/me/link.md").symlink_to("../you/a.md")
    assert await store.read(mine, scope="me") == "mine"
    for path in (theirs, bare, "outputs/me", "outputs/me/../you/a.md", "outputs/me/link.md"):
        with pytest.raises(UnsafePathError):
            await store.read(path, scope="me")


async def test_paths_are_shown_relative_to_where_the_model_works(tmp_path: Path) -> None:
    inside = FileArtifactStore(tmp_path / "run/agent", render_root=tmp_path / "run")
    stored = await inside.write("a.md", "x")
    assert (stored.path, stored.shown_path) == ("outputs/a.md", "agent/outputs/a.md")
    outside = FileArtifactStore(tmp_path / "kept", render_root=tmp_path / "run")
    other = await outside.write("a.md", "y")
    assert other.shown_path == other.absolute_path == str(tmp_path / "kept/outputs/a.md")
    for store, shown, text in ((inside, stored, "x"), (outside, other, "y")):
        assert await store.read(shown.shown_path) == await store.read(shown.path) == text
        for path in ("../secret", "/etc/passwd", "x\0y"):
            with pytest.raises((UnsafePathError, OSError)):
                await store.read(path)


async def test_a_text_that_is_too_large_is_refused(tmp_path: Path) -> None:
    store = FileArtifactStore(tmp_path, max_bytes=10)
    with pytest.raises(UnsafePathError) as caught:
        await store.write("a.md", "x" * 11)
    assert caught.value.reason == "size"
    await store.write("a.md", "x" * 10)
    (tmp_path / "outputs/big.md").write_text("x" * 11)
    with pytest.raises(UnsafePathError):
        await store.read("outputs/big.md")
