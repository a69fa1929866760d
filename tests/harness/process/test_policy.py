"""What a policy takes and refuses before anything runs."""

import os
from typing import Any

import pytest
from pydantic import ValidationError

from tinyagents.harness.errors import ProcessRefusedError
from tinyagents.harness.process import ProcessLimits, SandboxPolicy


def test_a_policy_and_limits_are_data() -> None:
    policy = SandboxPolicy(kind="bubblewrap", programs=("git",), variables={"A": "b"})
    assert SandboxPolicy.model_validate_json(policy.model_dump_json()) == policy
    limits = ProcessLimits(memory_bytes=None, processes=3)
    assert ProcessLimits.model_validate_json(limits.model_dump_json()) == limits


def test_values_of_variables_are_not_shown() -> None:
    assert "secret" not in repr(SandboxPolicy(variables={"KEY": "secret"}))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"commands": "shell", "programs": ["git"]}, "a command can run any program"),
        ({"commands": "shell", "denied_programs": ["rm"]}, "a command can run any program"),
        ({"readable": ["relative"]}, "'relative' is no absolute path"),
        ({"writable": ["/nul\0"]}, "is no absolute path"),
        ({"kind": "docker"}, "kind"),
        ({"limits": {}}, "limits"),
    ],
)
def test_a_policy_that_holds_nothing_is_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        SandboxPolicy.model_validate(settings)


def test_programs_of_the_working_folder_are_not_found_by_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", ".:/usr/bin::relative/bin:/bin")
    assert SandboxPolicy().environ()["PATH"] == "/usr/bin:/bin"


def test_home_is_the_sandbox_s_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    assert SandboxPolicy().environ()["HOME"] == "/tmp"
    assert SandboxPolicy(kind="none").environ()["HOME"] == "/home/somebody"
    assert "HOME" not in SandboxPolicy(environment=()).environ()


def test_variables_of_the_call_win() -> None:
    policy = SandboxPolicy(variables={"A": "policy", "B": "policy"})
    variables = policy.environ({"A": "call"})
    assert (variables["A"], variables["B"]) == ("call", "policy")


@pytest.mark.parametrize("name", ["rm", "/bin/rm", "./rm", "remover"])
def test_a_denied_program_is_refused_under_all_its_names(
    name: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    os.symlink("/bin/rm", tmp_path / "remover")
    policy = SandboxPolicy(denied_programs=("rm",))
    with pytest.raises(ProcessRefusedError, match="does not allow the program `rm`") as caught:
        policy.check_program([name, "x"], path=f"/usr/bin:/bin:{tmp_path}")
    assert caught.value.reason == "refused"
    policy.check_program(["ls"], path="/usr/bin:/bin")
