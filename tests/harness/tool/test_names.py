"""Names on the wire: what every provider takes, and the same in every process."""

import re
import subprocess
import sys

from hypothesis import given, strategies as st

from tinyagents.harness.tool import wire_names

NAMES = ["files.read/v2", "a.b", "a_b", "x" * 90]


def test_wire_names_match_what_every_provider_takes_and_differ() -> None:
    wire = wire_names(NAMES)
    assert list(map(bool, map(re.compile(r"[A-Za-z0-9_-]{1,64}").fullmatch, wire.values()))) == [
        True
    ] * len(NAMES)
    assert len(set(wire.values())) == len(NAMES)


def test_a_name_that_fits_is_not_changed() -> None:
    assert wire_names(["get_weather", "A-1"]) == {"get_weather": "get_weather", "A-1": "A-1"}


def test_a_wire_name_is_still_readable() -> None:
    assert wire_names(["files.read/v2"])["files.read/v2"].startswith("files_read_v2_")


def test_wire_names_are_the_same_in_another_process_and_in_another_order() -> None:
    code = f"from tinyagents.harness.tool import wire_names; print(wire_names({NAMES[::-1]!r}))"
    told = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env={"PYTHONHASHSEED": "1", "PYTHONPATH": ":".join(sys.path)},
    ).stdout  # fmt: skip
    assert eval(told) == wire_names(NAMES)


def test_a_name_that_equals_a_derived_one_keeps_it() -> None:
    derived = wire_names(["a.b"])["a.b"]
    both = wire_names(["a.b", derived])
    assert both[derived] == derived
    assert both["a.b"] != derived


@given(st.lists(st.text(min_size=1, max_size=80), unique=True, max_size=20))
def test_any_names_get_wire_names_that_fit_and_differ(names: list[str]) -> None:
    wire = wire_names(names)
    assert set(wire) == set(names)
    assert len(set(wire.values())) == len(names)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in wire.values())
