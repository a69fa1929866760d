"""Fixtures of the tests that run programs."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.process.programs import Programs, why_no_sandbox

if sys.platform != "linux":
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[Programs]:
    """Programs whose working folder is empty, and of which nothing is left in the end."""
    root = tmp_path / "root"
    root.mkdir()
    programs = Programs(root)
    yield programs
    assert programs.left() == []


@pytest.fixture
def sandbox(request: pytest.FixtureRequest) -> None:
    """For tests in a sandbox. Missing it fails in CI, except where the kernel forbids it."""
    if why := why_no_sandbox():
        if shutil.which("bwrap") is None:
            request.node.add_marker("service")
        pytest.skip(why)
