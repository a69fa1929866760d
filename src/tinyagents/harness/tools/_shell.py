"""A tool that runs programs."""

import os
import shlex
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from pydantic import Field

from ..errors import ConfigurationError, ProcessError
from ..process import Output, ProcessLimits, ProcessResult, SandboxPolicy, run_process
from ..tool import (
    Tool,
    ToolAccess,
    ToolContext,
    ToolError,
    ToolPolicy,
    ToolResult,
    ToolRuntime,
    ToolSideEffects,
    tool,
)

_MIB = 2**20
_MODEL_CAN_MEND = ("not_found", "cwd", "start")
_LONGEST_SUMMARY = 100

Seconds = Annotated[float | None, Field(gt=0)]


def shell_tool(
    *,
    sandbox: SandboxPolicy,
    root: str | os.PathLike[str] | None = None,
    limits: ProcessLimits | None = None,
    name: str = "shell",
    approval_required: bool = True,
) -> Tool:
    """Make a tool that runs programs; there is none without a policy that says what they may reach.

    The model reads the exit code and the output, errors where they were written among it; a program
    that fails is a result like any other, and a limit that ended one is told in words. Output is
    reported as progress while it comes. When the call ends or is cancelled, nothing of it still runs.

    Args:
        sandbox: What may be run, and what it may reach. With ``commands="shell"`` the model writes
            commands for ``/bin/sh``, else a program and its arguments, which no shell sees.
        root: The working folder, inside the run's workspace if it has one; not given, its root.
        limits: How much one call may use.
        name: The tool's name.
        approval_required: Whether each call waits for an approval.

    Raises:
        ConfigurationError: ``sandbox`` is no policy.
    """
    if not isinstance(sandbox, SandboxPolicy):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigurationError(
            "the shell tool is off without a policy: pass `sandbox=SandboxPolicy()` to run programs "
            "in a sandbox, or `SandboxPolicy(kind='none')` to run them with all that this process may do"
        )
    programs = _Programs(sandbox=sandbox, root=root, limits=limits or ProcessLimits())
    run: Callable[..., Any]
    run = programs.run_command if sandbox.commands == "shell" else programs.run
    return tool(
        run,
        name=name,
        description=_description(sandbox, programs.limits),
        policy=_policy(sandbox, approval_required=approval_required),
    )


def _policy(sandbox: SandboxPolicy, *, approval_required: bool) -> ToolPolicy:
    return ToolPolicy(
        side_effects=ToolSideEffects(
            writes_files=True, destructive=True, network=sandbox.network or not sandbox.sandboxed
        ),
        runtime=ToolRuntime(
            timeout=None,  # the program's own limit, after which its output so far is told
            cancelable=True,
            sandbox="required" if sandbox.sandboxed else "disabled",
            streaming=True,
        ),
        access=ToolAccess(
            workspace="scoped" if sandbox.sandboxed else "any", approval_required=approval_required
        ),
    )


def _description(sandbox: SandboxPolicy, limits: ProcessLimits) -> str:
    what = "a command with /bin/sh" if sandbox.commands == "shell" else "a program, without a shell"
    facts = [
        f"Runs {what}, in the working folder, and returns its exit code and its output.",
        f"It has no input, at most {limits.wall_clock:g} seconds, and may leave nothing running.",
    ]
    if sandbox.sandboxed:
        network = "It has" if sandbox.network else "It has no"
        facts.append(f"Files are kept in the working folder only. {network} network.")
    if sandbox.programs is not None:
        facts.append(f"Programs: {', '.join(sandbox.programs)}.")
    return " ".join(facts)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Programs:
    """Runs what a model asks for, within one policy."""

    sandbox: SandboxPolicy
    root: str | os.PathLike[str] | None
    limits: ProcessLimits

    async def run(
        self,
        argv: Annotated[list[str], Field(min_length=1)],
        ctx: ToolContext[Any],
        cwd: str = ".",
        timeout_seconds: Seconds = None,
    ) -> ToolResult:
        """Run a program.

        Args:
            argv: The program and its arguments, each an item of its own.
            ctx: Not the model's.
            cwd: The folder to run it in, relative to the working folder.
            timeout_seconds: Ends it earlier than the limit does.
        """
        root = self._root_of(ctx)
        limits = self.limits
        if timeout_seconds is not None and timeout_seconds < limits.wall_clock:
            limits = limits.model_copy(update={"wall_clock": timeout_seconds})
        try:
            result = await run_process(
                argv,
                root=root,
                cwd=cwd,
                sandbox=self.sandbox,
                limits=limits,
                merge_stderr=True,
                on_output=_by_line(ctx),
            )
        except ProcessError as exc:
            if exc.reason in _MODEL_CAN_MEND:
                raise ToolError(exc.message) from exc
            raise
        return _told(argv, result, limits)

    async def run_command(
        self,
        command: str,
        ctx: ToolContext[Any],
        cwd: str = ".",
        timeout_seconds: Seconds = None,
    ) -> ToolResult:
        """Run a command.

        Args:
            command: Text for /bin/sh.
            ctx: Not the model's.
            cwd: The folder to run it in, relative to the working folder.
            timeout_seconds: Ends it earlier than the limit does.
        """
        return await self.run(["/bin/sh", "-c", command], ctx, cwd, timeout_seconds)

    def _root_of(self, ctx: ToolContext[Any]) -> str | os.PathLike[str]:
        """Return the folder to run in; a run's workspace bounds it and may require a sandbox."""
        workspace = ctx.workspace
        if workspace is None:
            if self.root is None:
                raise ConfigurationError(
                    f"the tool `{ctx.tool_name}` has no folder to run programs in: pass `root=` to "
                    "`shell_tool`, or `workspace=` a folder to `AgentHarness`"
                )
            return self.root
        if workspace.sandbox == "required" and not self.sandbox.sandboxed:
            raise ConfigurationError(
                f"the run's workspace requires a sandbox, and the tool `{ctx.tool_name}` runs "
                "programs without one: make it with `SandboxPolicy()`"
            )
        return workspace.enforce(self.root or workspace.root, ctx.run)


def _by_line(ctx: ToolContext[Any]) -> Output:
    """Return what reports output as progress: whole lines, as many at once as have come."""
    begun = ""

    def report(text: str) -> None:
        nonlocal begun
        lines, end, begun = (begun + text).rpartition("\n")
        if end:
            ctx.progress(lines)

    return report


def _told(argv: Sequence[str], result: ProcessResult, limits: ProcessLimits) -> ToolResult:
    facts = asdict(result)
    for text in ("stdout", "stderr"):
        del facts[text]
    exit_code = f"exit code {result.exit_code}"
    status = f"{exit_code} ({result.signal})" if result.signal else exit_code
    told = [status, *_notes(result, limits)]
    command = shlex.join(argv)
    if len(command) > _LONGEST_SUMMARY:
        command = f"{command[:_LONGEST_SUMMARY]}…"
    return ToolResult(
        f"{'; '.join(told)}\n{result.stdout or '(no output)'}",
        value=facts,
        summary=f"{command}: {status}",
    )


def _notes(result: ProcessResult, limits: ProcessLimits) -> list[str]:
    notes: list[str] = []
    match result.ended_by:
        case "wall_clock":
            notes.append(f"ended after {limits.wall_clock:g} seconds, its time limit")
        case "memory":
            notes.append(f"ended for using more than {_size(limits.memory_bytes)} of memory")
        case "processes":
            notes.append(f"ended for having more than {limits.processes} processes at once")
        case "output":
            notes.append(f"ended for writing more than {_size(limits.output_bytes)}")
        case None:
            pass
    if result.left_behind:
        notes.append(
            f"{result.left_behind} process(es) that it left running were ended: nothing runs on "
            "in the background"
        )
    return notes


def _size(size: int | None) -> str:
    return f"{(size or 0) / _MIB:g} MiB"
