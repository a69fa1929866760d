"""The pytest plugin of tinyagents; pytest loads it wherever tinyagents is installed.

Fixtures: ``event_recorder``, ``deterministic_clock``, ``deterministic_ids``, ``fake_sleep`` (which
moves that clock on) and ``block_network``. The marker ``block_network`` and the ini option
``tinyagents_block_network`` refuse connections beyond this machine, for one test or for all;
``allow_network`` makes an exception of the latter.

Nothing of the library is imported until a test asks for it.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from . import DeterministicClock, DeterministicIds, EventRecorder, FakeSleep

_INI = "tinyagents_block_network"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the ini option."""
    parser.addini(
        _INI, "refuse connections beyond this machine in every test", type="bool", default=False
    )


def pytest_configure(config: pytest.Config) -> None:
    """Add the markers."""
    config.addinivalue_line(
        "markers", "block_network: refuse connections beyond this machine during the test"
    )
    config.addinivalue_line(
        "markers", f"allow_network: let the test connect in spite of the ini option {_INI}"
    )


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Block the network for the whole of a test, its fixtures included, where that is asked for."""
    if not _is_blocked(item):
        yield
        return
    from . import block_network

    with block_network():
        yield


def _is_blocked(item: pytest.Item) -> bool:
    if item.get_closest_marker("block_network") is not None:
        return True
    return bool(item.config.getini(_INI)) and item.get_closest_marker("allow_network") is None


@pytest.fixture(name="block_network")
def _block_network() -> Iterator[None]:
    """Refuse connections beyond this machine."""
    from . import block_network

    with block_network():
        yield


@pytest.fixture
def event_recorder() -> "EventRecorder":
    """A listener that keeps the events of a run."""
    from . import EventRecorder

    return EventRecorder()


@pytest.fixture
def deterministic_clock() -> "DeterministicClock":
    """A clock that stands still at 0."""
    from . import DeterministicClock

    return DeterministicClock()


@pytest.fixture
def deterministic_ids() -> "DeterministicIds":
    """Ids that count up from 0."""
    from . import DeterministicIds

    return DeterministicIds()


@pytest.fixture
def fake_sleep(deterministic_clock: "DeterministicClock") -> "FakeSleep":
    """A sleep that returns at once and moves ``deterministic_clock`` on."""
    from . import FakeSleep

    return FakeSleep(deterministic_clock)
