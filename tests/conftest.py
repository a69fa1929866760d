"""Every test: async ones on asyncio and trio, no network, and nothing skipped unseen in CI."""

import inspect
import os
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support import IN_CI, shared_folder
from tinyagents.testkit import block_network

# A busy machine is slow, not wrong.
settings.register_profile("tinyagents", deadline=None)
settings.load_profile("tinyagents")

OPT_IN = {"real": "TINYAGENTS_REAL", "aimock": "TINYAGENTS_AIMOCK"}
"""Folders whose tests need what a session of their own installs, which sets the variable."""

collect_ignore = [folder for folder, variable in OPT_IN.items() if not os.environ.get(variable)]


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """The event loop of an async test."""
    backend: str = request.param
    return backend


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of recorded traffic and other shared material."""
    folder = shared_folder()
    if folder is None:
        pytest.skip("no shared folder: set TINYAGENTS_SHARED, or put it beside the repository")
    return folder


@pytest.fixture(autouse=True)
def _no_network() -> Iterator[None]:
    """Refuse connections to anything but loopback."""
    with block_network():
        yield


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: object, name: str, obj: object) -> None:
    """Let anyio run each async test, marked or not."""
    hypothesis = getattr(obj, "hypothesis", None)
    function = hypothesis.inner_test if hypothesis else obj
    if name.startswith("test") and inspect.iscoroutinefunction(function):
        pytest.mark.anyio(obj)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI, fail a test that was skipped for want of the shared folder or of a service."""
    report = yield
    if IN_CI and report.skipped and not hasattr(report, "wasxfail") and _needs_more(item):
        report.outcome = "failed"
        report.longrepr = f"skipped in CI: {report.longrepr}"
    return report


def _needs_more(item: pytest.Item) -> bool:
    fixtures: list[str] = getattr(item, "fixturenames", [])
    return "shared" in fixtures or item.get_closest_marker("service") is not None
