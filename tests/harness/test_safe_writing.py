"""Files inside a root: what is written, listed and walked, and that nothing leads out."""

import os
import socket
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest

from tests.support import PATIENCE
from tinyagents.harness.errors import UnsafePathError
from tinyagents.harness.safe_open import (
    change_inside,
    list_inside,
    open_inside,
    remove_inside,
    walk_inside,
    write_inside,
)

SECRET = b"outside"
ROUNDS = 2_000


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root with a file, a folder with a file, and a secret beside it."""
    folder = tmp_path / "root"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.txt").write_bytes(b"a")
    (folder / "sub" / "b.txt").write_bytes(b"b")
    (tmp_path / "secret.txt").write_bytes(SECRET)
    (tmp_path / "beside").mkdir()
    return folder


@pytest.fixture(params=["walking", "checking"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways to open: that of systems with handles of folders, and that of those without."""
    if request.param == "checking":
        monkeypatch.setattr(os, "supports_dir_fd", set[Callable[..., object]]())
    return str(request.param)


on_both_ways = pytest.mark.usefixtures("way")


def refused(root: Path, path: str) -> str:
    with pytest.raises(UnsafePathError) as caught:
        write_inside(root, path, b"new")
    return caught.value.reason


def tree(folder: Path) -> dict[str, bytes]:
    files = [p for p in folder.rglob("*") if p.is_file() and not p.is_symlink()]
    return {str(p.relative_to(folder)): p.read_bytes() for p in files}


@on_both_ways
def test_a_file_is_created_with_the_folders_on_its_way(root: Path) -> None:
    assert write_inside(root, "new/deep/c.txt", b"c")
    assert (root / "new" / "deep" / "c.txt").read_bytes() == b"c"
    assert not write_inside(root, "new/deep/c.txt", b"d")
    assert (root / "new" / "deep" / "c.txt").read_bytes() == b"d"


@on_both_ways
def test_a_file_that_is_there_is_not_overwritten_unless_it_may_be(root: Path) -> None:
    with pytest.raises(FileExistsError):
        write_inside(root, "a.txt", b"new", overwrite=False)
    assert write_inside(root, "n.txt", b"new", overwrite=False)
    assert tree(root) == {"a.txt": b"a", "n.txt": b"new", "sub/b.txt": b"b"}


@on_both_ways
def test_permissions_stay_and_no_bit_that_lends_rights_does(root: Path) -> None:
    (root / "a.txt").chmod(0o4751)
    write_inside(root, "a.txt", b"new")
    assert (root / "a.txt").stat().st_mode & 0o7777 == 0o751


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
def test_the_owner_stays_where_the_process_may_set_it(root: Path) -> None:
    os.chown(root / "a.txt", 1234, 1234)
    write_inside(root, "a.txt", b"new")
    assert (root / "a.txt").stat().st_uid == 1234


@on_both_ways
@pytest.mark.parametrize(
    "path", ["../x.txt", "sub/../../x.txt", "/etc/x.txt", "new/../../x.txt", "../root/../x.txt"]
)
def test_nothing_is_written_nor_made_outside(root: Path, tmp_path: Path, path: str) -> None:
    before = sorted(p.name for p in tmp_path.rglob("*"))
    assert refused(root, path) == "outside"
    assert sorted(p.name for p in tmp_path.rglob("*")) == before


@on_both_ways
def test_nothing_is_written_through_a_link_that_a_path_ends_with(
    root: Path, tmp_path: Path
) -> None:
    (root / "out").symlink_to(tmp_path / "secret.txt")
    (root / "in").symlink_to("a.txt")
    (root / "dangling").symlink_to(tmp_path / "new.txt")
    for name in ("out", "in", "dangling"):
        assert refused(root, name) == "not_regular"
    assert (tmp_path / "secret.txt").read_bytes() == SECRET
    assert (root / "a.txt").read_bytes() == b"a"
    assert not (tmp_path / "new.txt").exists()


@on_both_ways
def test_a_folder_that_is_a_link_is_written_to_only_inside(root: Path, tmp_path: Path) -> None:
    (root / "in").symlink_to("sub")
    (root / "out").symlink_to(tmp_path / "beside")
    (root / "chain").symlink_to("out")
    assert write_inside(root, "in/c.txt", b"c")
    assert refused(root, "out/c.txt") == "outside"
    assert refused(root, "chain/new/c.txt") == "outside"
    assert list((tmp_path / "beside").iterdir()) == []


@on_both_ways
def test_what_is_no_regular_file_is_not_replaced(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(root / "pipe")
    monkeypatch.chdir(root)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("s")
    for name in ("pipe", "s", "sub", "."):
        assert refused(root, name) == "not_regular"
    assert refused(Path("/dev"), "null") == "not_regular"


@on_both_ways
@pytest.mark.parametrize("path", ["", "a\0.txt", "x" * 300, "x/" * 3_000, "\ud800", "d/" * 200])
def test_what_cannot_be_a_path_is_refused(root: Path, way: str, path: str) -> None:
    if path == "d/" * 200 and way == "checking":
        pytest.skip("a depth of its own is for handles")
    assert refused(root, path) == "name"


@on_both_ways
def test_a_hard_link_to_a_file_outside_is_left_as_it_is(root: Path, tmp_path: Path) -> None:
    os.link(tmp_path / "secret.txt", root / "hard")
    write_inside(root, "hard", b"mine")
    assert (tmp_path / "secret.txt").read_bytes() == SECRET
    assert (root / "hard").read_bytes() == b"mine"


@on_both_ways
def test_a_change_gets_the_content_and_replaces_it(root: Path) -> None:
    change_inside(root, "a.txt", lambda content: content + b"!", max_bytes=1)
    assert (root / "a.txt").read_bytes() == b"a!"


@on_both_ways
def test_a_change_that_raises_leaves_the_file_and_nothing_beside_it(root: Path) -> None:
    def fail(content: bytes) -> bytes:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        change_inside(root, "a.txt", fail, max_bytes=10)
    assert tree(root) == {"a.txt": b"a", "sub/b.txt": b"b"}


@on_both_ways
def test_a_file_that_somebody_else_changes_meanwhile_is_not_replaced(root: Path) -> None:
    def slow(content: bytes) -> bytes:
        (root / "a.txt").write_bytes(b"theirs")
        return b"mine"

    with pytest.raises(UnsafePathError) as caught:
        change_inside(root, "a.txt", slow, max_bytes=10)
    assert caught.value.reason == "changed"
    assert tree(root) == {"a.txt": b"theirs", "sub/b.txt": b"b"}


@on_both_ways
def test_a_file_that_is_too_large_is_not_changed(root: Path) -> None:
    (root / "a.txt").write_bytes(b"12345")
    with pytest.raises(UnsafePathError) as caught:
        change_inside(root, "a.txt", lambda content: b"", max_bytes=4)
    assert caught.value.reason == "size"
    with pytest.raises(FileNotFoundError):
        change_inside(root, "none", lambda content: b"", max_bytes=4)


@on_both_ways
def test_removing_a_link_removes_the_link(root: Path, tmp_path: Path) -> None:
    (root / "out").symlink_to(tmp_path / "secret.txt")
    remove_inside(root, "out")
    assert not (root / "out").is_symlink()
    assert (tmp_path / "secret.txt").exists()
    with pytest.raises(UnsafePathError):
        remove_inside(root, "../secret.txt")


@on_both_ways
def test_a_list_is_sorted_and_follows_no_link(root: Path, tmp_path: Path) -> None:
    (root / "out").symlink_to(tmp_path)
    os.mkfifo(root / "pipe")
    (root / "line\nbreak").touch()
    assert [(e.path, e.kind) for e in list_inside(root)] == [
        ("a.txt", "file"),
        ("line\nbreak", "file"),
        ("out", "link"),
        ("pipe", "other"),
        ("sub", "folder"),
    ]
    with pytest.raises(UnsafePathError):
        list(list_inside(root, "out"))
    with pytest.raises(NotADirectoryError):
        list(list_inside(root, "a.txt"))


@on_both_ways
def test_a_walk_gives_each_folder_before_what_it_holds_and_leaves_out_what_is_skipped(
    root: Path, tmp_path: Path
) -> None:
    write_inside(root, "sub/.git/config", b"x")
    write_inside(root, "z/y/x.txt", b"x")
    (root / "loop").symlink_to("..")
    found = walk_inside(root, skip=lambda entry: entry.path.endswith(".git"))
    paths = [entry.path for entry in found]
    assert paths == ["a.txt", "loop", "sub", "sub/b.txt", "z", "z/y", "z/y/x.txt"]


@on_both_ways
def test_an_entry_opens_the_file_it_stands_for_and_no_link(root: Path, tmp_path: Path) -> None:
    with closing(walk_inside(root)) as found:
        entry = next(found)
        with entry.open() as file:
            assert file.read() == b"a"
        (root / "a.txt").unlink()
        (root / "a.txt").symlink_to(tmp_path / "secret.txt")
        with pytest.raises(UnsafePathError):
            entry.open()


def test_a_walk_does_not_go_deeper_than_it_can_hold_folders_open(root: Path) -> None:
    handle = os.open(root, os.O_RDONLY)
    for _ in range(200):
        os.mkdir("d", dir_fd=handle)
        below = os.open("d", os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = below
    os.close(handle)
    unread: list[str] = []
    depth = sum(1 for e in walk_inside(root, unread=lambda e: unread.append(e.path)) if e.path)
    assert len(unread) == 1
    assert unread[0].count("/") == 128
    assert depth == 129 + 3  # with the two files and the folder of the fixture


def test_a_root_inside_another_one_cannot_be_replaced_by_a_link_out_of_that(
    root: Path, tmp_path: Path
) -> None:
    inner = root / "sub"
    with open_inside(inner, "b.txt", within=[str(root)]) as file:
        assert file.read() == b"b"
    inner.rename(root / "held")
    inner.symlink_to(tmp_path)
    with open_inside(inner, "secret.txt") as file:
        assert file.read() == SECRET  # what it is about
    for attempt in (
        lambda: open_inside(inner, "secret.txt", within=[str(root)]),
        lambda: write_inside(inner, "new.txt", b"", within=[str(root)]),
        lambda: list(list_inside(inner, within=[str(root)])),
    ):
        with pytest.raises(UnsafePathError) as caught:
            attempt()
        assert caught.value.reason == "outside"
    # One that stays inside the outer root is a root, and nothing leads from there to the rest.
    inner.unlink()
    inner.symlink_to("held")
    with open_inside(inner, "b.txt", within=[str(root)]) as file:
        assert file.read() == b"b"
    with pytest.raises(UnsafePathError):
        open_inside(inner, "../a.txt", within=[str(root)])


def test_no_handle_is_left_open(root: Path) -> None:
    handles = Path("/proc/self/fd")
    if not handles.is_dir():
        pytest.skip("this system does not list the handles")
    before = len(list(handles.iterdir()))
    for path in ("../x", "sub", "a.txt/x", "new/x.txt"):
        with suppress(UnsafePathError, OSError):
            write_inside(root, path, b"x")
    with closing(walk_inside(root)) as found:
        next(found)
    list(walk_inside(root))
    list(list_inside(root))
    assert len(list(handles.iterdir())) == before


def test_a_link_turned_outside_while_it_is_written_through_never_leads_out(
    root: Path, tmp_path: Path
) -> None:
    beside, place = tmp_path / "beside", root / "link"
    place.symlink_to("sub")

    def swap() -> None:
        for target in (str(beside), "sub"):
            (root / "other").symlink_to(target)
            (root / "other").rename(place)

    def attempt() -> bool:
        try:
            write_inside(root, "link/new.txt", b"mine")
        except UnsafePathError:
            return False
        return True

    assert raced(swap, attempt) == {True, False}
    assert list(beside.iterdir()) == []


def test_a_folder_swapped_for_a_link_while_a_file_in_it_is_changed_never_leads_out(
    root: Path, tmp_path: Path
) -> None:
    (tmp_path / "beside" / "b.txt").write_bytes(SECRET)
    place, held = root / "sub", root / "held"
    (root / "link").symlink_to(tmp_path / "beside")

    def swap() -> None:
        place.rename(held)
        (root / "link").rename(place)
        place.rename(root / "link")
        held.rename(place)

    def attempt() -> bool:
        try:
            change_inside(root, "sub/b.txt", lambda content: b"mine", max_bytes=9)
        except (UnsafePathError, OSError):
            return False
        return True

    assert raced(swap, attempt) == {True, False}
    assert tree(tmp_path / "beside") == {"b.txt": SECRET}


def test_a_file_swapped_for_a_link_while_it_is_changed_never_leads_out(
    root: Path, tmp_path: Path
) -> None:
    place = root / "a.txt"

    def swap() -> None:
        (root / "link").symlink_to(tmp_path / "secret.txt")
        (root / "link").rename(place)
        (root / "file").write_bytes(b"a")
        (root / "file").rename(place)

    seen: set[bytes] = set()

    def change(content: bytes) -> bytes:
        seen.add(content)
        return content

    def attempt() -> bool:
        try:
            change_inside(root, "a.txt", change, max_bytes=9)
        except (UnsafePathError, OSError):
            return False
        return True

    assert raced(swap, attempt) == {True, False}
    assert SECRET not in seen
    assert (tmp_path / "secret.txt").read_bytes() == SECRET


def test_a_folder_swapped_for_a_link_while_it_is_walked_never_leads_out(
    root: Path, tmp_path: Path
) -> None:
    (tmp_path / "beside" / "secret.txt").write_bytes(SECRET)
    place, held = root / "sub", root / "held"
    (root / "link").symlink_to(tmp_path / "beside")

    def swap() -> None:
        place.rename(held)
        (root / "link").rename(place)
        place.rename(root / "link")
        held.rename(place)

    names: set[str] = set()

    def attempt() -> bool:
        found = [entry.path for entry in walk_inside(root)]
        names.update(found)
        return "sub/b.txt" in found

    assert raced(swap, attempt) == {True, False}
    assert not any("secret" in name for name in names)


def raced(swap: Callable[[], None], attempt: Callable[[], bool]) -> set[bool]:
    """What many attempts gave while another thread swapped, of which both outcomes are wanted."""
    done = threading.Event()

    def attack() -> None:
        while not done.is_set():
            swap()

    attacker = threading.Thread(target=attack)
    attacker.start()
    found: set[bool] = set()
    made, deadline = 0, time.monotonic() + PATIENCE
    try:
        while made < ROUNDS or (len(found) < 2 and time.monotonic() < deadline):
            found.add(attempt())
            made += 1
    finally:
        done.set()
        attacker.join(PATIENCE)
    return found
