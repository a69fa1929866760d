import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = """
import socket
import anyio
import pytest

def reach():
    socket.getaddrinfo("example.org", 80)

def test_fixtures(event_recorder, deterministic_clock, deterministic_ids, fake_sleep):
    assert event_recorder.events == []
    assert deterministic_ids.new("run") == "run-0"
    anyio.run(fake_sleep, 2)
    assert deterministic_clock.monotonic() == 2

@pytest.mark.block_network
def test_marker():
    with pytest.raises(RuntimeError, match="the network is blocked"):
        reach()

def test_fixture(block_network):
    with pytest.raises(RuntimeError, match="the network is blocked"):
        reach()

def test_ini():
    with pytest.raises(RuntimeError, match="the network is blocked"):
        reach()

@pytest.mark.allow_network
def test_allowed():
    assert "connect" not in vars(socket.socket)

def test_nothing():
    pass
"""


def run(folder: Path, *arguments: str, ini: str = "") -> str:
    (folder / "test_it.py").write_text(TESTS)
    (folder / "pytest.ini").write_text(f"[pytest]\n{ini}")
    plugin = ["-p", "tinyagents.testkit.pytest_plugin"]
    place = ["--rootdir", str(folder), "-c", str(folder / "pytest.ini"), str(folder)]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *plugin, *arguments, *place],
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


def test_the_fixtures_the_markers_and_the_option_work(tmp_path: Path) -> None:
    output = run(tmp_path, "--strict-markers", ini="tinyagents_block_network = true\n")
    assert "6 passed" in output, output


def test_without_the_option_nothing_is_blocked(tmp_path: Path) -> None:
    output = run(
        tmp_path, "--deselect=test_it.py::test_ini", "--deselect=test_it.py::test_fixtures"
    )
    assert "4 passed" in output, output


def test_the_plugin_is_described(tmp_path: Path) -> None:
    output = run(tmp_path, "--markers")
    assert "@pytest.mark.block_network: refuse connections beyond this machine" in output
    assert "event_recorder" in run(tmp_path, "--fixtures")


def test_starting_pytest_loads_nothing_of_the_library() -> None:
    code = """
import sys, pytest
before = set(sys.modules)
import tinyagents.testkit.pytest_plugin
new = {name.partition(".")[0] for name in set(sys.modules) - before}
assert new == {"tinyagents"}, new
print(len([name for name in sys.modules if name.startswith("tinyagents.harness.")]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) <= 2  # the testkit's own root, and what finds its names


@pytest.mark.parametrize(
    ("name", "unwanted"),
    [
        ("DeterministicClock", ["pydantic", "tinyagents.harness.model"]),
        ("block_network", ["pydantic", "anyio", "tinyagents.harness.model"]),
        ("ScriptedModel", ["jsonschema", "httpx", "tinyagents.harness.runtime"]),
        ("say", ["jsonschema", "httpx", "tinyagents.harness.runtime"]),
    ],
)
def test_importing_one_name_loads_only_what_it_needs(name: str, unwanted: list[str]) -> None:
    code = f"""
import sys
from tinyagents.testkit import {name}
print(*[name for name in {unwanted!r} if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_every_public_name_can_be_loaded() -> None:
    import tinyagents.harness.testkit as harness_testkit
    import tinyagents.testkit as testkit

    assert testkit.__all__ == harness_testkit.__all__
    for name in testkit.__all__:
        assert getattr(testkit, name) is getattr(harness_testkit, name)
        assert name in dir(testkit)
    for module in (testkit, harness_testkit):
        with pytest.raises(AttributeError, match="has no attribute `nothing`"):
            module.nothing  # noqa: B018
