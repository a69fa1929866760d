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

from ..concurrency import in_thread, run_together
from ..errors import ConfigurationError, InvalidRequestError, ProcessError
from ._bubblewrap import in_bubblewrap, unavailable
from ._limits import ProcessLimits
from ._output import HeadAndTail
from ._policy import SandboxPolicy
from ._result import EndedBy, ProcessResult

Output: TypeAlias = Callable[[str], None]
"""Gets output as it comes. Must neither wait nor raise."""

_SUPERVISOR: Final = os.fspath(Path(__file__).with_name("_supervisor.py"))
_SUPERVISOR_SECONDS: Final = 6.0
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
    for text in (*argv, os.fspath(cwd)):
        if not _can_be_passed(text):
            raise ProcessError(
                f"the program {program!r} cannot be started: {text[:_SHOWN]!r} holds NUL or half of "
                "a character",
                program=program,
                reason="start",
            )
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


def _can_be_passed(text: str) -> bool:
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


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
        self._outcome: dict[str, Any] | None = None

    async def run(self) -> ProcessResult:
        began = time.monotonic()
        report, reporting = os.pipe()
        try:
            process = await self._start(reporting)
            try:
                streams = (each for each in (process.stdout, process.stderr) if each is not None)
                reads = [
                    partial(self._read, process, stream, kept)
                    for stream, kept in zip(streams, self._kept, strict=False)
                ]
                await run_together([*reads, partial(self._follow, process, report)])
            finally:
                if process.returncode is None:  # cancelled before it had its order
                    process.kill()
                with anyio.CancelScope(shield=True):
                    await process.aclose()
            return self._result(time.monotonic() - began)
        finally:
            os.close(report)

    async def _start(self, reporting: int) -> Process:
        try:
            # Shielded: of a start that was cancelled nobody knows whether there is a process.
            with anyio.CancelScope(shield=True):
                return await anyio.open_process(
                    [sys.executable, "-I", "-S", "-X", "utf8", _SUPERVISOR, str(reporting)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT if self._merge_stderr else subprocess.PIPE,
                    cwd="/",
                    env=_OWN_ENVIRONMENT,
                    start_new_session=True,
                    pass_fds=[reporting],
                )
        except OSError as exc:
            raise self._error("setup", exc.strerror or str(exc)) from exc
        finally:
            os.close(reporting)
        raise AssertionError("a scope that nobody cancels swallows nothing")

    async def _follow(self, process: Process, report: int) -> None:
        """Give the order, and leave nothing behind, whatever happens then."""
        limits = self._limits
        try:
            await _tell(process, self._plan.order)
            # The supervisor keeps the time: it is late only where it was stopped or killed.
            with anyio.move_on_after(
                limits.wall_clock + 2 * limits.kill_grace + _SUPERVISOR_SECONDS
            ):
                await process.wait()
        finally:
            with anyio.CancelScope(shield=True):
                if process.returncode is None:
                    await self._stop(process)
            self._outcome = _outcome(_read_all(report))
            for scope in self._readers:
                scope.deadline = anyio.current_time() + _DRAIN_SECONDS

    async def _stop(self, process: Process) -> None:
        process.send_signal(signal.SIGCONT)  # its program may have stopped it
        await _tell(process, b"stop\n")
        with anyio.move_on_after(self._limits.kill_grace + _SUPERVISOR_SECONDS):
            await process.wait()
        if process.returncode is None:
            process.kill()
            await process.wait()

    async def _read(self, process: Process, stream: ByteReceiveStream, kept: HeadAndTail) -> None:
        decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        with anyio.CancelScope() as scope:
            self._readers.append(scope)
            while True:
                try:
                    chunk = await stream.receive(_CHUNK)
                except (anyio.EndOfStream, anyio.BrokenResourceError):
                    return
                room = self._limits.kept_output_bytes - kept.total
                if self._on_output and room > 0:
                    self._on_output(decode(chunk[:room]))
                kept.add(chunk)
                written = sum(each.total for each in self._kept)
                if written > self._limits.output_bytes and not self._flooded:
                    self._flooded = True
                    await _tell(process, b"kill\n")

    def _result(self, duration: float) -> ProcessResult:
        out, err = self._kept
        outcome = self._outcome
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


def _outcome(report: bytes) -> dict[str, Any] | None:
    """Return what the supervisor tells at its end; without that, end what can still be found."""
    command, _, told = report.partition(b"\n")
    if command.isdigit() and not told:
        # What stayed in the group of the command, of which one process is there at least.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(int(command), signal.SIGKILL)
    lines = report.splitlines()
    outcome: object = json.loads(lines[-1]) if lines else None
    return cast("dict[str, Any]", outcome) if isinstance(outcome, dict) else None


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
