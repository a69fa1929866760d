"""Running one program under a supervisor."""

import codecs
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePath
from typing import Any, Final, TypeAlias, cast

import anyio
from anyio.abc import ByteReceiveStream, Process

from ..concurrency import DeadlineExpired, in_thread, run_together, within
from ..errors import ConfigurationError, InvalidRequestError, ProcessError
from ._bubblewrap import in_bubblewrap, unavailable
from ._limits import ProcessLimits
from ._output import HeadAndTail
from ._policy import SandboxPolicy
from ._result import EndedBy, ProcessResult

Output: TypeAlias = Callable[[str], None]
"""Gets output as it comes. Must neither wait nor raise."""

_SUPERVISOR: Final = os.fspath(Path(__file__).with_name("_supervisor.py"))
_SUPERVISOR_SECONDS: Final = 12.0
"""How long the supervisor may take beyond what it was told; only one that was stopped does."""
_OWN_ENVIRONMENT: Final = {
    name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ
}
"""All that the supervisor gets: without this, some Pythons do not start."""
_DRAIN_SECONDS: Final = 5.0
"""For what is left in the pipes when all is over; forever only if somebody still holds them."""
_CHUNK: Final = 64 * 1024
_SHOWN: Final = 200
_SIGNALLED: Final = 128
"""What shells add to the number of a signal to get an exit code."""


async def run_process(
    argv: Sequence[str],
    *,
    root: str | os.PathLike[str],
    sandbox: SandboxPolicy,
    limits: ProcessLimits | None = None,
    cwd: str | os.PathLike[str] = ".",
    env: Mapping[str, str] | None = None,
    merge_stderr: bool = False,
    on_output: Output | None = None,
) -> ProcessResult:
    """Run a program to its end and return what it said, whatever its exit code.

    Its input is empty. When it ends, all that it started and left running is ended too; a
    cancellation ends it and returns when nothing is left. Costs one small Python process beside it.

    Args:
        argv: The program, by name or path, and its arguments.
        root: The working folder, which a sandbox shows.
        sandbox: What the program may be and reach.
        limits: How much it may use; by default those of :class:`ProcessLimits`.
        cwd: Where it starts: the root or a folder inside, relative to it or absolute.
        env: Variables besides those of the policy.
        merge_stderr: Keep errors where they were written, within ``stdout``.
        on_output: Gets output while it comes, up to ``limits.kept_output_bytes`` of each stream.

    Raises:
        ProcessRefusedError: The policy does not allow the program.
        ProcessError: It could not be started, or its supervisor was killed.
        SandboxUnavailableError: The policy demands a sandbox that there is none of.
        ConfigurationError: The policy or the folder cannot work, or this is not a POSIX system.
    """
    if isinstance(argv, str) or not argv:
        raise InvalidRequestError(
            f"`argv` is a list of a program and its arguments, got {argv!r}; nothing splits a text"
        )
    bounds = limits or ProcessLimits()
    plan = await in_thread(
        partial(_planned, argv, root=root, cwd=cwd, sandbox=sandbox, env=env, limits=bounds)
    )
    return await _Run(plan, bounds, merge_stderr=merge_stderr, on_output=on_output).run()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """What is to be run, checked."""

    program: str
    """As it was given, shortened."""
    sandboxed: bool
    order: bytes
    """What the supervisor is told."""


def _planned(
    argv: Sequence[str],
    *,
    root: str | os.PathLike[str],
    cwd: str | os.PathLike[str],
    sandbox: SandboxPolicy,
    env: Mapping[str, str] | None,
    limits: ProcessLimits,
) -> _Plan:
    if os.name != "posix" or not sys.executable:
        raise ConfigurationError("programs can be run on POSIX systems only, from a usual Python")
    program = argv[0][:_SHOWN]
    real_root = os.path.realpath(root)
    if not os.path.isdir(real_root):
        raise ConfigurationError(f"the working folder {os.fspath(root)!r} is no folder")
    folder = os.path.realpath(os.path.join(real_root, cwd))
    if not PurePath(folder).is_relative_to(real_root):
        raise ProcessError(
            f"the folder {os.fspath(cwd)[:_SHOWN]!r} is outside of the working folder",
            program=program,
            reason="cwd",
        )
    variables = sandbox.environ(env)
    sandbox.check_program(argv, path=variables.get("PATH"))
    command = list(argv)
    if sandbox.sandboxed:
        command = in_bubblewrap(argv, sandbox, root=real_root, cwd=folder)
    order = {
        "argv": command,
        "cwd": folder,
        "env": variables,
        "limits": limits.model_dump(mode="json"),
        "sandboxed": sandbox.sandboxed,
    }
    return _Plan(
        program=program, sandboxed=sandbox.sandboxed, order=f"{json.dumps(order)}\n".encode()
    )


class _Run:
    """One program on its way, and what it has said so far."""

    def __init__(
        self, plan: _Plan, limits: ProcessLimits, *, merge_stderr: bool, on_output: Output | None
    ) -> None:
        self._plan = plan
        self._limits = limits
        self._merge_stderr = merge_stderr
        self._on_output = on_output
        self._kept = (HeadAndTail(limits.kept_output_bytes), HeadAndTail(limits.kept_output_bytes))
        self._readers: list[anyio.CancelScope] = []
        self._flooded = False

    async def run(self) -> ProcessResult:
        began = time.monotonic()
        report, reporting = os.pipe()
        try:
            process = await self._start(reporting)
            try:
                await self._follow(process)
            finally:
                outcome = await self._end(process, report)
            return self._result(outcome, time.monotonic() - began)
        finally:
            os.close(report)

    async def _start(self, reporting: int) -> Process:
        command = [sys.executable, "-I", "-S", "-X", "utf8", _SUPERVISOR, str(reporting)]
        try:
            # Shielded, because of a start that is cancelled nobody knows whether there is a process.
            with anyio.CancelScope(shield=True):
                process = await anyio.open_process(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT if self._merge_stderr else subprocess.PIPE,
                    cwd="/",
                    env=_OWN_ENVIRONMENT,
                    start_new_session=True,
                    pass_fds=[reporting],
                )
        except OSError as exc:
            raise ProcessError(
                f"the supervisor of {self._plan.program!r} cannot be started: {exc.strerror}",
                program=self._plan.program,
                reason="setup",
            ) from exc
        finally:
            os.close(reporting)
        return process

    async def _follow(self, process: Process) -> None:
        """Give the order, and take the output until all is over."""
        limits = self._limits
        streams = (each for each in (process.stdout, process.stderr) if each is not None)
        calls = [
            partial(self._read, process, stream, kept)
            for stream, kept in zip(streams, self._kept, strict=False)
        ]

        async def together() -> None:
            await _tell(process, self._plan.order)
            await run_together([*calls, partial(self._await_exit, process)])

        try:
            await within(limits.wall_clock + 2 * limits.kill_grace + _SUPERVISOR_SECONDS, together)
        except DeadlineExpired:
            pass  # the supervisor hangs, or was stopped: the end is the same for all

    async def _read(self, process: Process, stream: ByteReceiveStream, kept: HeadAndTail) -> None:
        decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        with anyio.CancelScope() as scope:
            self._readers.append(scope)
            while True:
                try:
                    chunk = await stream.receive(_CHUNK)
                except (anyio.EndOfStream, anyio.BrokenResourceError):
                    return
                kept.add(chunk)
                if self._on_output and kept.total <= self._limits.kept_output_bytes:
                    self._on_output(decode(chunk))
                written = sum(each.total for each in self._kept)
                if written > self._limits.output_bytes and not self._flooded:
                    self._flooded = True
                    await _tell(process, b"kill\n")

    async def _await_exit(self, process: Process) -> None:
        await process.wait()
        for scope in self._readers:
            scope.deadline = anyio.current_time() + _DRAIN_SECONDS

    async def _end(self, process: Process, report: int) -> dict[str, Any] | None:
        """Leave nothing behind, whatever has happened; return what the supervisor tells, if it could."""
        with anyio.CancelScope(shield=True):
            if process.returncode is None:
                process.send_signal(signal.SIGCONT)  # a program may have stopped it
                await _tell(process, b"stop\n")
                with anyio.move_on_after(self._limits.kill_grace + _SUPERVISOR_SECONDS):
                    await process.wait()
            if process.returncode is None:
                process.kill()
            await process.aclose()
        command, _, told = _read_all(report).partition(b"\n")
        if told:
            outcome: dict[str, Any] = json.loads(told)
            return outcome
        if command.isdigit():
            # The supervisor was killed: what stayed in the group of the command can still be found.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(int(command), signal.SIGKILL)
        elif command:
            return dict(json.loads(command))
        return None

    def _result(self, outcome: dict[str, Any] | None, duration: float) -> ProcessResult:
        out, err = self._kept
        if outcome is None:
            raise self._error("lost", "its supervisor was killed, and the program with it")
        if "refused" in outcome:
            raise self._error(outcome["refused"], outcome["error"])
        ended_by = self._ended_by(outcome["ended_by"])
        code, number = _exit_of(outcome["status"], outcome["inside"])
        if self._plan.sandboxed and outcome["inside"] is None and ended_by is None:
            raise self._failed_sandbox(code, out.text() + err.text())
        return ProcessResult(
            exit_code=code,
            signal=_signal_name(number),
            stdout=out.text(),
            stderr=err.text(),
            dropped_bytes=out.dropped + err.dropped,
            ended_by=ended_by,
            left_behind=outcome["left_behind"],
            duration=duration,
        )

    def _ended_by(self, told: str) -> EndedBy | None:
        if self._flooded:
            return "output"
        # Told to stop without a cancellation: its own look at the clock came too late.
        return "wall_clock" if told == "stopped" else cast("EndedBy | None", told)

    def _failed_sandbox(self, code: int, said: str) -> Exception:
        if code > _SIGNALLED:
            return self._error("lost", "its sandbox was killed")
        if said.startswith("bwrap: execvp "):
            return self._error("not_found", said.rpartition(": ")[2].strip())
        return unavailable(said)

    def _error(self, reason: str, error: str) -> ProcessError:
        program = self._plan.program
        said = {
            "not_found": f"there is no program {program!r}",
            "cwd": f"the folder to run {program!r} in cannot be entered",
            "lost": f"it is not known how {program!r} ended",
        }.get(reason, f"the program {program!r} cannot be started")
        return ProcessError(f"{said}: {error}", program=program, reason=reason)


async def _tell(process: Process, line: bytes) -> None:
    if process.stdin is None:
        return
    try:
        await process.stdin.send(line)
    except (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        pass  # it has ended already


def _read_all(handle: int) -> bytes:
    """Return what is in a pipe that nobody writes to any more."""
    os.set_blocking(handle, False)
    told = b""
    try:
        while more := os.read(handle, _CHUNK):
            told += more
    except BlockingIOError:
        pass
    return told


def _exit_of(status: int | None, inside: int | None) -> tuple[int, int]:
    """Return the exit code as shells tell it, and the number of the signal or 0."""
    if inside is not None:
        return inside, inside - _SIGNALLED
    code = -signal.SIGKILL if status is None else os.waitstatus_to_exitcode(status)
    return (code, 0) if code >= 0 else (_SIGNALLED - code, -code)


def _signal_name(number: int) -> str | None:
    try:
        return signal.Signals(number).name
    except ValueError:
        return None
