"""Files inside a root: what is opened, and that nothing leads out."""

import os
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import PATIENCE
from tinyagents.harness.errors import UnsafePathError
from tinyagents.harness.safe_open import open_inside

SECRET = b"outside"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root with a file, a folder with a file, and a secret beside it."""
    folder = tmp_path / "root"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.txt").write_bytes(b"a")
    (folder / "sub" / "b.txt").write_bytes(b"b")
    (tmp_path / "secret.txt").write_bytes(SECRET)
    (tmp_path / "root-beside").mkdir()
    (tmp_path / "root-beside" / "c.txt").write_bytes(SECRET)
    return folder


@pytest.fixture(params=["walking", "checking"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways to open: that of systems with handles of folders, and that of those without."""
    if request.param == "checking":
        monkeypatch.setattr(os, "supports_dir_fd", set[Callable[..., object]]())
    return str(request.param)


on_both_ways = pytest.mark.usefixtures("way")


def read(root: Path, path: str | os.PathLike[str]) -> bytes:
    with open_inside(root, path) as file:
        return file.read()


def refused(root: Path, path: str | os.PathLike[str]) -> str:
    with pytest.raises(UnsafePathError) as caught:
        read(root, path)
    return caught.value.reason


@on_both_ways
@pytest.mark.parametrize(
    "path", ["a.txt", "./a.txt", "sub/../a.txt", "sub//b.txt", "sub/./b.txt", Path("sub/b.txt")]
)
def test_a_relative_path_is_one_inside_the_root(root: Path, path: str | Path) -> None:
    assert read(root, path) in (b"a", b"b")


@on_both_ways
def test_an_absolute_path_may_begin_with_the_root(root: Path) -> None:
    assert read(root, root / "sub" / "b.txt") == b"b"


@on_both_ways
def test_the_root_may_be_a_link_and_its_paths_given_by_either_name(
    root: Path, tmp_path: Path
) -> None:
    link = tmp_path / "link"
    link.symlink_to(root, target_is_directory=True)
    assert read(link, "a.txt") == b"a"
    assert read(link, link / "a.txt") == b"a"
    assert read(link, root / "a.txt") == b"a"


@on_both_ways
@pytest.mark.parametrize(
    "path",
    [
        "../secret.txt",
        "sub/../../secret.txt",
        "../root-beside/c.txt",
        "../root/../secret.txt",
        "/etc/passwd",
        "//etc/passwd",
    ],
)
def test_a_path_that_leaves_the_root_is_refused(root: Path, path: str) -> None:
    assert refused(root, path) == "outside"


@on_both_ways
def test_an_absolute_path_that_begins_like_the_root_is_refused(root: Path, tmp_path: Path) -> None:
    assert refused(root, tmp_path / "root-beside" / "c.txt") == "outside"
    assert refused(root, f"{root}/../secret.txt") == "outside"


@on_both_ways
def test_links_that_stay_inside_are_followed(root: Path) -> None:
    (root / "file").symlink_to("sub/b.txt")
    (root / "folder").symlink_to(root / "sub")
    (root / "sub" / "up").symlink_to("../a.txt")
    assert read(root, "file") == b"b"
    assert read(root, "folder/b.txt") == b"b"
    assert read(root, "folder/up") == b"a"
    assert read(root, "folder/../a.txt") == b"a"


@on_both_ways
@pytest.mark.parametrize("target", ["../secret.txt", "sub/../../secret.txt", "/etc/passwd"])
def test_a_link_that_leads_out_is_refused(root: Path, target: str) -> None:
    (root / "link").symlink_to(target)
    assert refused(root, "link") == "outside"


@on_both_ways
def test_a_folder_that_is_a_link_out_is_refused(root: Path, tmp_path: Path) -> None:
    (root / "folder").symlink_to(tmp_path)
    (root / "parent").symlink_to("..")
    assert refused(root, "folder/secret.txt") == "outside"
    assert refused(root, "parent/secret.txt") == "outside"


@on_both_ways
def test_a_chain_of_links_that_leads_out_at_its_end_is_refused(root: Path) -> None:
    (root / "one").symlink_to("two")
    (root / "two").symlink_to("sub/three")
    (root / "sub" / "three").symlink_to("../../secret.txt")
    assert refused(root, "one") == "outside"


@on_both_ways
def test_links_in_a_circle_are_refused(root: Path) -> None:
    (root / "one").symlink_to("two")
    (root / "two").symlink_to("one")
    assert refused(root, "one") in ("link", "not_regular")
    assert refused(root, "one/x") in ("link", "not_regular")


@on_both_ways
def test_whether_something_exists_outside_is_not_told(root: Path) -> None:
    (root / "dangling").symlink_to("../no_such_file")
    assert refused(root, "dangling") == "outside"
    assert refused(root, "../no_such_file") == "outside"


@on_both_ways
def test_a_missing_file_is_a_plain_error_of_the_system(root: Path) -> None:
    (root / "dangling").symlink_to("missing")
    for path in ("missing", "missing/x", "dangling"):
        with pytest.raises(FileNotFoundError):
            read(root, path)
    with pytest.raises(NotADirectoryError):
        read(root, "a.txt/x")


@on_both_ways
@pytest.mark.parametrize("path", ["sub", ".", "sub/..", "./"])
def test_a_folder_is_refused(root: Path, path: str) -> None:
    assert refused(root, path) == "not_regular"


@on_both_ways
def test_a_pipe_is_refused_without_waiting_for_its_other_end(root: Path) -> None:
    os.mkfifo(root / "pipe")
    (root / "to_pipe").symlink_to("pipe")
    assert refused(root, "pipe") == "not_regular"
    assert refused(root, "to_pipe") == "not_regular"


@on_both_ways
def test_a_socket_is_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("s")
        assert refused(root, "s") == "not_regular"


@on_both_ways
def test_a_device_is_refused() -> None:
    assert refused(Path("/dev"), "zero") == "not_regular"


@on_both_ways
@pytest.mark.parametrize("path", ["", "a\0.txt", "x" * 300, "x/" * 3_000, "\ud800"])
def test_what_cannot_be_a_path_is_refused(root: Path, path: str) -> None:
    assert refused(root, path) == "name"


@on_both_ways
def test_a_long_path_is_shortened_in_the_error(root: Path) -> None:
    with pytest.raises(UnsafePathError) as caught:
        open_inside(root, "x" * 100_000)
    assert len(str(caught.value)) < 300
    assert len(caught.value.path) < 300


@on_both_ways
def test_a_hard_link_is_the_file_itself(root: Path, tmp_path: Path) -> None:
    os.link(tmp_path / "secret.txt", root / "hard")
    assert read(root, "hard") == SECRET


@on_both_ways
def test_no_handle_is_left_open(root: Path) -> None:
    os.mkfifo(root / "pipe")
    (root / "out").symlink_to("../secret.txt")
    handles = Path("/proc/self/fd")
    if not handles.is_dir():
        pytest.skip("this system does not list the handles")
    before = len(list(handles.iterdir()))
    for path in ("pipe", "out", "sub/../../x", "sub"):
        refused(root, path)
    assert read(root, "sub/" + "../sub/" * 300 + "b.txt") == b"b"
    assert len(list(handles.iterdir())) == before


def test_a_folder_swapped_for_a_link_while_it_is_opened_never_leads_out(
    root: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "root-beside"
    (outside / "b.txt").write_bytes(SECRET)
    (tmp_path / "link").symlink_to(outside)
    done = threading.Event()

    def swap() -> None:
        place, held = root / "sub", tmp_path / "held"
        while not done.is_set():
            place.rename(held)
            (tmp_path / "link").rename(place)
            place.rename(tmp_path / "link")
            held.rename(place)

    attacker = threading.Thread(target=swap)
    attacker.start()
    try:
        found = attempts(root, "sub/b.txt", until=b"b")
    finally:
        done.set()
        attacker.join(PATIENCE)
    assert SECRET not in found
    assert b"b" in found


def test_a_file_swapped_for_a_link_while_it_is_opened_never_leads_out(
    root: Path, tmp_path: Path
) -> None:
    place = root / "a.txt"
    done = threading.Event()

    def swap() -> None:
        while not done.is_set():
            (tmp_path / "link").symlink_to(tmp_path / "secret.txt")
            (tmp_path / "link").rename(place)
            (tmp_path / "file").write_bytes(b"a")
            (tmp_path / "file").rename(place)

    attacker = threading.Thread(target=swap)
    attacker.start()
    try:
        found = attempts(root, "a.txt", until=b"a")
    finally:
        done.set()
        attacker.join(PATIENCE)
    assert SECRET not in found
    assert b"a" in found


def test_a_file_swapped_for_a_pipe_is_never_waited_for(root: Path, tmp_path: Path) -> None:
    place = root / "a.txt"
    done = threading.Event()

    def swap() -> None:
        while not done.is_set():
            os.mkfifo(tmp_path / "pipe")
            (tmp_path / "pipe").rename(place)
            (tmp_path / "file").write_bytes(b"a")
            (tmp_path / "file").rename(place)

    attacker = threading.Thread(target=swap, daemon=True)
    attacker.start()
    try:
        found = attempts(root, "a.txt", until=b"a")
    finally:
        done.set()
        attacker.join(PATIENCE)
    assert b"a" in found
    assert found <= {b"a", None}


def attempts(root: Path, path: str, *, until: bytes) -> set[bytes | None]:
    """What many attempts read, of which one at least reads this."""
    found: set[bytes | None] = set()
    made, deadline = 0, time.monotonic() + PATIENCE
    while made < 3_000 or (until not in found and time.monotonic() < deadline):
        found.add(attempt(root, path))
        made += 1
    return found


def attempt(root: Path, path: str) -> bytes | None:
    try:
        return read(root, path)
    except (UnsafePathError, FileNotFoundError):
        return None
