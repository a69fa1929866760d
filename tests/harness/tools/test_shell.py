"""The shell tool: what a model gives and reads, and what its policy says."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tinyagents import AgentHarness, Tool, ToolMessage, ToolProgress
from tinyagents.harness.approval import Approve
from tinyagents.harness.errors import ConfigurationError
from tinyagents.harness.process import ProcessLimits, SandboxPolicy
from tinyagents.harness.tools import shell_tool
from tinyagents.harness.workspace import WorkspaceDescriptor
from tinyagents.testkit import ScriptedModel, call, say

if sys.platform != "linux":
    pytest.skip("programs are supervised on Linux", allow_module_level=True)

NONE = SandboxPolicy(kind="none")
COMMANDS = SandboxPolicy(kind="none", commands="shell")


def free_shell(
    root: Path, sandbox: SandboxPolicy = NONE, limits: ProcessLimits | None = None
) -> Tool:
    """Return a shell tool that asks nobody."""
    return shell_tool(sandbox=sandbox, root=root, limits=limits, approval_required=False)


async def result_of(tool: Tool, **arguments: Any) -> ToolMessage:
    """Return what a model reads of one call of the tool."""
    model = ScriptedModel([call(tool.name, **arguments), say("done")])
    run = await AgentHarness(model=model, tools=[tool]).invoke(None, "go")
    (message,) = (each for each in run.messages if isinstance(each, ToolMessage))
    return message


def test_there_is_no_tool_without_a_policy(tmp_path: Path) -> None:
    without: Any = shell_tool
    with pytest.raises(TypeError, match="sandbox"):
        without(root=tmp_path)
    with pytest.raises(ConfigurationError, match="the shell tool is off without a policy"):
        without(sandbox=None, root=tmp_path)


async def test_a_model_reads_the_exit_code_and_the_output(tmp_path: Path) -> None:
    message = await result_of(free_shell(tmp_path), argv=["echo", "$HOME; id"])
    assert message.text == "exit code 0\n$HOME; id\n"
    assert not message.is_error
    assert isinstance(message.artifact, dict)
    assert message.artifact["exit_code"] == 0


async def test_a_program_that_fails_is_a_result(tmp_path: Path) -> None:
    tool = free_shell(tmp_path, COMMANDS)
    message = await result_of(tool, command="echo oops >&2; exit 4")
    assert (message.text, message.is_error) == ("exit code 4\noops\n", False)
    silent = await result_of(tool, command="kill -KILL $$")
    assert silent.text == "exit code 137 (SIGKILL)\n(no output)"


def test_a_model_gives_what_the_policy_lets_it(tmp_path: Path) -> None:
    argv = shell_tool(sandbox=NONE, root=tmp_path).schema
    assert set(argv.parameters["properties"]) == {"argv", "cwd", "timeout_seconds"}  # type: ignore[arg-type]
    command = shell_tool(sandbox=COMMANDS, root=tmp_path).schema
    assert set(command.parameters["properties"]) == {"command", "cwd", "timeout_seconds"}  # type: ignore[arg-type]
    assert "no network" in shell_tool(sandbox=SandboxPolicy(), root=tmp_path).description


@pytest.mark.parametrize(
    ("limits", "command", "said"),
    [
        ({"wall_clock": 0.3}, "sleep 600", "ended after 0.3 seconds, its time limit"),
        ({"output_bytes": 2**20}, "yes", "ended for writing more than 1 MiB"),
        ({"processes": 5}, "for i in 1 2 3 4 5 6 7 8; do sleep 9 & done; wait", "more than 5 proc"),
        ({"memory_bytes": 2**20}, "tail /dev/zero", "ended for using more than 1 MiB of memory"),
        ({}, "sleep 600 & echo", "1 process(es) that it left running were ended"),
    ],
)
async def test_what_ended_a_program_is_told_in_words(
    tmp_path: Path, limits: dict[str, Any], command: str, said: str
) -> None:
    bounds = ProcessLimits.model_validate({"kill_grace": 0.2, **limits})
    tool = free_shell(tmp_path, COMMANDS, bounds)
    assert said in (await result_of(tool, command=command)).text


async def test_a_model_may_shorten_the_time_but_not_lengthen_it(tmp_path: Path) -> None:
    tool = free_shell(tmp_path, limits=ProcessLimits(wall_clock=0.5))
    shorter = await result_of(tool, argv=["sleep", "600"], timeout_seconds=0.2)
    assert "ended after 0.2 seconds" in shorter.text
    longer = await result_of(tool, argv=["sleep", "600"], timeout_seconds=100)
    assert "ended after 0.5 seconds" in longer.text


async def test_a_model_is_told_what_it_can_mend(tmp_path: Path) -> None:
    tool = free_shell(tmp_path)
    missing = await result_of(tool, argv=["no-such-program"])
    assert missing.is_error
    assert missing.text.startswith("there is no program 'no-such-program'")
    outside = await result_of(tool, argv=["pwd"], cwd="../..")
    assert outside.is_error
    assert "outside of the working folder" in outside.text


async def test_a_refusal_is_an_error_by_its_type(tmp_path: Path) -> None:
    policy = SandboxPolicy(kind="none", programs=("ls",))
    message = await result_of(free_shell(tmp_path, policy), argv=["rm", "-rf", "."])
    assert message.is_error
    assert "ProcessRefusedError" in message.text
    assert "allowed: `ls`" in message.text


async def test_output_is_progress(tmp_path: Path) -> None:
    tool = free_shell(tmp_path, COMMANDS)
    model = ScriptedModel([call("shell", command="echo one; echo two; printf three"), say("done")])
    stream = AgentHarness(model=model, tools=[tool]).stream(None, "go", modes={"tools"})
    assert "".join([text async for text in progress(stream)]) in ("onetwo", "one\ntwo")


async def progress(stream: AsyncIterator[object]) -> AsyncIterator[str]:
    async for chunk in stream:
        if isinstance(chunk, ToolProgress):
            yield chunk.content


async def test_nothing_runs_before_somebody_has_approved(tmp_path: Path) -> None:
    model = ScriptedModel([call("shell", argv=["touch", "ran"]), say("done")])
    agent = AgentHarness(model=model, tools=[shell_tool(sandbox=NONE, root=tmp_path)])
    run = await agent.invoke(None, "go")
    assert run.status == "interrupted"
    assert not (tmp_path / "ran").exists()
    assert run.snapshot is not None
    answers = {run.interrupts[0].id: Approve()}
    run = await agent.resume(run.snapshot, None, answers=answers)
    assert (run.text, (tmp_path / "ran").exists()) == ("done", True)


@pytest.mark.parametrize("kind", ["auto", "none"])
def test_the_policy_says_what_it_may_do(tmp_path: Path, kind: str) -> None:
    sandbox = SandboxPolicy.model_validate({"kind": kind})
    policy = shell_tool(sandbox=sandbox, root=tmp_path).policy
    assert policy.classified
    assert policy.side_effects.destructive
    assert policy.side_effects.network is (kind == "none")
    assert policy.access.approval_required
    assert policy.access.workspace == ("any" if kind == "none" else "scoped")
    assert policy.runtime.sandbox == ("disabled" if kind == "none" else "required")
    assert policy.runtime.cancelable
    free = shell_tool(sandbox=sandbox, root=tmp_path, approval_required=False)
    assert not free.policy.access.approval_required


async def in_workspace(tool: Tool, workspace: WorkspaceDescriptor | None) -> ToolMessage:
    """Return what a model reads of a program that shows its folder, in a run with this workspace."""
    model = ScriptedModel([call(tool.name, argv=["pwd"]), say("done")])
    run = await AgentHarness(model=model, tools=[tool], workspace=workspace).invoke(None, "go")
    (message,) = (each for each in run.messages if isinstance(each, ToolMessage))
    return message


async def test_programs_run_in_the_workspace_of_the_run(tmp_path: Path) -> None:
    shell = shell_tool(sandbox=NONE, approval_required=False)
    message = await in_workspace(shell, WorkspaceDescriptor(root=str(tmp_path)))
    assert message.text == f"exit code 0\n{tmp_path}\n"


async def test_without_a_folder_nothing_runs_and_the_way_out_is_named() -> None:
    message = await in_workspace(shell_tool(sandbox=NONE, approval_required=False), None)
    assert message.is_error
    assert "pass `root=` to `shell_tool`, or `workspace=`" in message.text


async def test_a_folder_outside_the_workspace_is_refused(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    message = await in_workspace(free_shell(tmp_path), WorkspaceDescriptor(root=str(inner)))
    assert message.is_error
    assert "outside the workspace" in message.text


async def test_a_workspace_that_requires_a_sandbox_gets_one(tmp_path: Path) -> None:
    workspace = WorkspaceDescriptor(root=str(tmp_path), sandbox="required")
    message = await in_workspace(free_shell(tmp_path), workspace)
    assert message.is_error
    assert "requires a sandbox" in message.text
