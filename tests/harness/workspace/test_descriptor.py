"""What a descriptor lets pass, by what a path says."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from tinyagents.harness.errors import UnsafePathError, WorkspaceViolationError
from tinyagents.harness.workspace import WorkspaceDescriptor

WORKSPACE = WorkspaceDescriptor(root="/ws/project", trusted_roots=("/data",))


class Recorder:
    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []

    def emit(self, kind: str, **payload: Any) -> None:
        self.events.append((kind, payload))


@pytest.mark.parametrize(
    "path",
    ["/ws/project", "/ws/project/a/b", "/ws/project/a/../b", "/data/x", "/ws/other/../project/a"],
)
def test_what_is_inside_the_root_or_a_trusted_root_is_allowed(path: str) -> None:
    assert WORKSPACE.allows(path)
    assert WORKSPACE.allows(Path(path))


@pytest.mark.parametrize(
    "path",
    ["/ws", "/ws/projects", "/ws/project/../a", "/ws/project/../../etc", "/datax", "", "a\0", "/"],
)
def test_everything_else_is_not(path: str) -> None:
    assert not WORKSPACE.allows(path)


def test_a_relative_path_is_one_from_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    workspace = WorkspaceDescriptor(root=str(tmp_path / "ws"))
    assert workspace.allows("ws/a.txt")
    assert not workspace.allows("a.txt")
    assert workspace.resolve("a.txt") == str(tmp_path / "ws" / "a.txt")


def test_a_relative_root_is_made_absolute_and_lets_no_sibling_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    workspace = WorkspaceDescriptor(root="ws")
    assert workspace.root == str(tmp_path / "ws")
    assert not workspace.allows("../ws-sibling/a")
    assert not workspace.allows("ws/../ws-sibling")
    assert not WorkspaceDescriptor(root="../x").allows("../y")


def test_links_are_not_looked_at(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "link").symlink_to("/etc")
    assert WorkspaceDescriptor(root=str(tmp_path / "ws")).allows(tmp_path / "ws/link/passwd")


def test_enforcing_reports_a_violation_and_raises() -> None:
    recorder = Recorder()
    assert WORKSPACE.enforce("/ws/project/./a", recorder) == "/ws/project/a"
    assert recorder.events == []
    with pytest.raises(WorkspaceViolationError) as caught:
        WORKSPACE.enforce("/etc/passwd", recorder)
    assert isinstance(caught.value, UnsafePathError)
    assert (caught.value.path, caught.value.reason) == ("/etc/passwd", "outside")
    assert recorder.events == [("workspace.violation", {"path": "/etc/passwd"})]
    with pytest.raises(WorkspaceViolationError):
        WORKSPACE.enforce("x/" * 10_000, recorder)
    assert len(recorder.events[-1][1]["path"]) < 300


def test_a_descriptor_goes_through_json() -> None:
    again = WorkspaceDescriptor.model_validate_json(WORKSPACE.model_dump_json())
    assert again == WORKSPACE
    assert WorkspaceDescriptor.model_validate({"root": "/ws"}) == WorkspaceDescriptor(root="/ws")


@pytest.mark.parametrize("root", ["", "a\0b", 7, None])
def test_what_is_no_folder_is_refused(root: Any) -> None:
    with pytest.raises(ValidationError):
        WorkspaceDescriptor(root=root)


def test_a_part_keeps_what_it_is_a_part_of() -> None:
    part = WORKSPACE.narrowed(WorkspaceDescriptor(root="/ws/project/sub"))
    assert part.within == ("/ws/project",)
    assert part.narrowed(WorkspaceDescriptor(root="/ws/project/sub/a")).within == (
        "/ws/project",
        "/ws/project/sub",
    )
    assert WORKSPACE.narrowed(WORKSPACE) == WORKSPACE
    assert part.narrowed(part) == part
    assert WORKSPACE.narrowed(part) == part
    assert WORKSPACE.narrowed(WorkspaceDescriptor(root="/data/a")).within == ("/data",)


@pytest.mark.parametrize(
    "inner",
    [
        WorkspaceDescriptor(root="/ws"),
        WorkspaceDescriptor(root="/ws/project2"),
        WorkspaceDescriptor(root="/ws/project", trusted_roots=("/etc",)),
        WorkspaceDescriptor(root="/ws/project", trusted_roots=("/data/sub",)),
    ],
)
def test_a_part_that_is_no_part_is_refused(inner: WorkspaceDescriptor) -> None:
    with pytest.raises(WorkspaceViolationError):
        WORKSPACE.narrowed(inner)


def test_a_sandbox_that_is_required_stays_so() -> None:
    outer = WorkspaceDescriptor(root="/ws", sandbox="required")
    for mode in ("inherit", "disabled", "required"):
        inner = WorkspaceDescriptor.model_validate({"root": "/ws/a", "sandbox": mode})
        assert outer.narrowed(inner).sandbox == "required"
    loose = WorkspaceDescriptor(root="/ws", sandbox="disabled")
    assert loose.narrowed(WorkspaceDescriptor(root="/ws")).sandbox == "disabled"
    assert loose.narrowed(WorkspaceDescriptor(root="/ws", sandbox="required")).sandbox == "required"
