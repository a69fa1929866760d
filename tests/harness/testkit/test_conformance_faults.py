"""The suite can fail: each fault of a model is found by the tests that are there for it."""

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

from tests.harness.testkit import broken_models, broken_wire_models
from tests.harness.testkit.broken_models import CAUGHT_BY

ROOT = Path(__file__).parents[3]


def file_of(suite: str) -> str | None:
    module = broken_wire_models if suite in vars(broken_wire_models) else broken_models
    return module.__file__


def without_fault(suite: str) -> str:
    on_the_wire = suite in vars(broken_wire_models)
    return "TestNoFaultOnTheWire" if on_the_wire else "TestNoFault"


def run(tests: set[tuple[str, str]], report: Path) -> tuple[set[tuple[str, str]], str]:
    """Run tests of the broken models; return those that fail, and what pytest writes."""
    ids = [f"{file_of(name)}::{name}::{test}" for name, test in sorted(tests)]
    plain = ["-o", "addopts=", "--import-mode=importlib", "--noconftest", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *plain, f"--junitxml={report}", *ids],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    failed = {
        (case.attrib["classname"].rpartition(".")[2], case.attrib["name"].partition("[")[0])
        for case in ElementTree.parse(report).iter("testcase")
        if case.find("failure") is not None or case.find("error") is not None
    }
    return failed, done.stdout


def test_each_fault_is_found_by_its_tests_which_pass_without_it(tmp_path: Path) -> None:
    faults = {(name, test) for name, tests in CAUGHT_BY.items() for test in tests}
    controls = {(without_fault(name), test) for name, test in faults}
    failed, output = run(faults | controls, tmp_path / "report.xml")
    assert faults - failed == set(), f"not found:\n{output}"
    assert failed - faults == set(), f"found where there is nothing:\n{output}"
    assert len(CAUGHT_BY) > 35


def test_a_failure_says_what_an_application_would_suffer(tmp_path: Path) -> None:
    _, output = run({("TestReusesIds", "test_calls_may_come_in_parallel")}, tmp_path / "report.xml")
    assert "their results could not be told apart" in output


def test_a_failure_that_goes_by_or_is_of_a_foreign_class_is_told_as_such(tmp_path: Path) -> None:
    test = "test_a_failure_has_its_class"
    swallowed, foreign = ("TestAnswersAFailure", test), ("TestRaisesWhatAClientRaised", test)
    _, output = run({swallowed, foreign}, tmp_path / "report.xml")
    assert "the run would go on as if it had an answer" in output
    assert "became `ConnectionError`, which is no `ModelError`" in output
