"""Running git: by its arguments, within bounds, and with nothing that a repository says to run."""

import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from subprocess import DEVNULL, PIPE

import anyio
from anyio.abc import ByteReceiveStream, Process

from ..concurrency import CLEAN_UP_SECONDS
from ..errors import WorkspaceError

_SECONDS = 60.0
_MOST_OUTPUT = 20_000_000
_MOST_SHOWN = 300

# What a repository or its attributes can name to be run is switched off.
_SAFE = (
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "protocol.ext.allow=never",
    "-c",
    "submodule.recurse=false",
)


async def git(
    arguments: Sequence[str],
    *,
    repository: str,
    git_dir: str | None = None,
    check: bool = True,
) -> str | None:
    """Run git and return what it writes.

    Args:
        arguments: The command and what follows it.
        repository: The folder that it works on.
        git_dir: The repository's own data, where the folder's ``.git`` is not to be believed.
        check: Raise where git fails; else return ``None``.

    Raises:
        WorkspaceError: Git is missing, failed, took longer than a minute or wrote more than 20 MB.
    """
    process = await _start(arguments, repository, _environment(repository, git_dir))
    output, errors = bytearray(), bytearray()
    try:
        with anyio.move_on_after(_SECONDS) as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_read, process.stderr, errors, arguments)
                await _read(process.stdout, output, arguments)
            await process.wait()
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None
    finally:
        await _end(process)
    if scope.cancelled_caught:
        raise _failed(arguments, f"it did not end within {_SECONDS:g} s")
    if process.returncode == 0:
        return output.decode("utf-8", "surrogateescape")
    if not check:
        return None
    raise _failed(arguments, errors.decode("utf-8", "replace").strip()[:_MOST_SHOWN])


async def _start(
    arguments: Sequence[str], repository: str, environment: Mapping[str, str]
) -> Process:
    try:
        # Shielded: of a start that was cancelled nobody knows whether there is a process.
        with anyio.CancelScope(shield=True):
            return await anyio.open_process(
                ["git", *_SAFE, *arguments],
                stdin=DEVNULL,
                stdout=PIPE,
                stderr=PIPE,
                cwd=repository,
                env=environment,
                start_new_session=True,
            )
    except OSError as error:
        there = await anyio.Path(repository).is_dir()
        why = error.strerror if there else f"{repository!r} is no folder"
        raise _failed(arguments, f"it could not be started: {why}") from error
    raise AssertionError("a scope that nobody cancels swallows nothing")


async def _read(
    stream: ByteReceiveStream | None, into: bytearray, arguments: Sequence[str]
) -> None:
    assert stream is not None, "git was started with pipes"
    async for chunk in stream:
        into += chunk
        if len(into) > _MOST_OUTPUT:
            raise _failed(arguments, f"it wrote more than {_MOST_OUTPUT} bytes")


async def _end(process: Process) -> None:
    """Kill git if it still runs, with the programs that it started, and close its pipes."""
    with anyio.move_on_after(CLEAN_UP_SECONDS, shield=True):
        if process.returncode is None:
            _kill(process)
            # To the end: asyncio does not see that a pipe which it has stopped reading is closed.
            for stream in (process.stdout, process.stderr):
                if stream is not None:
                    async for _ in stream:
                        pass
        await process.aclose()


def _kill(process: Process) -> None:
    if os.name != "posix":
        process.kill()
        return
    # Its group: `git worktree add` has another git write the files, which would write on.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _environment(repository: str, git_dir: str | None) -> Mapping[str, str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    own |= {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}
    if git_dir is not None:
        own |= {"GIT_DIR": git_dir, "GIT_WORK_TREE": repository}
    return own


def _failed(arguments: Sequence[str], why: str) -> WorkspaceError:
    return WorkspaceError(f"`git {arguments[0]}` failed: {why}", reason="git")
