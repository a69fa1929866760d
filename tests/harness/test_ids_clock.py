import re
import time

import pytest

from tinyagents.harness.clock import SystemClock
from tinyagents.harness.ids import RandomIds


def test_an_id_names_its_kind_and_is_of_one_form() -> None:
    assert re.fullmatch(r"run_[0-9a-f]{28}", RandomIds().new("run"))


def test_ids_differ() -> None:
    ids = RandomIds()
    assert len({ids.new("call") for _ in range(10_000)}) == 10_000


def test_ids_sort_by_the_time_they_were_made(monkeypatch: pytest.MonkeyPatch) -> None:
    ids = RandomIds()
    made: list[str] = []
    for seconds in (1, 2, 1_800_000_000, 9_000_000_000):
        monkeypatch.setattr(time, "time_ns", lambda seconds=seconds: seconds * 10**9)
        made.append(ids.new("run"))
    assert made == sorted(made)


def test_the_system_clock_tells_milliseconds_since_the_epoch() -> None:
    before = time.time_ns() // 10**6
    now = SystemClock().now_ms()
    assert before <= now <= time.time_ns() // 10**6


def test_the_monotonic_clock_never_runs_backwards() -> None:
    clock = SystemClock()
    times = [clock.monotonic() for _ in range(100)]
    assert times == sorted(times)
