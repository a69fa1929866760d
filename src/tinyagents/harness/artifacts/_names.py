"""Names of artifacts, and which are none."""

import hashlib
import re
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

from ..context import RunContext
from ..errors import UnsafePathError

_LONGEST_PART = 80
_LONGEST_SHOWN = 200
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")
_DIGEST_DIGITS = 16
_DIGESTED = re.compile(rf"-[0-9a-f]{{{_DIGEST_DIGITS}}}\Z")


def default_name(agent: str, task: str) -> str:
    """Return ``{agent}/{task}-result.md``, each made of at most 80 safe characters."""
    return f"{safe_part(agent)}/{safe_part(task)}-result.md"


def artifact_scope(run: RunContext[Any]) -> str:
    """Return the folder that the artifacts of a run's conversation are in.

    It is the thread's id, or that of the outermost run, so that runs inside it and later runs of
    the thread can read them and others cannot.
    """
    own = f"thread-{run.thread_id}" if run.thread_id is not None else f"run-{run.root_run_id}"
    safe = safe_part(own)
    if safe == own and not _DIGESTED.search(own):
        return own
    # Two ids that look the same when they are made safe are still two, and so is one that is
    # written as another looks.
    digest = hashlib.sha256(own.encode()).hexdigest()[:_DIGEST_DIGITS]
    return f"{safe[: _LONGEST_PART - _DIGEST_DIGITS - 1]}-{digest}"


def checked_name(name: str) -> PurePosixPath:
    """Return the path that a name is.

    Raises:
        UnsafePathError: It is blank, absolute, holds ``..``, a backslash or what is not printable.
    """
    if not name.strip():
        raise unsafe("empty", name, "is blank")
    if not name.isprintable():
        raise unsafe("name", name, "holds a character that does not print")
    if PurePosixPath(name).anchor or PureWindowsPath(name).anchor or PureWindowsPath(name).drive:
        raise unsafe("absolute", name, "is absolute")
    if ".." in PurePosixPath(name).parts or ".." in PureWindowsPath(name).parts:
        raise unsafe("parent", name, "holds `..`")
    if "\\" in name:
        raise unsafe("name", name, "holds a backslash")
    path = PurePosixPath(name)
    if not path.parts:
        raise unsafe("empty", name, "names nothing")
    return path


def unsafe(reason: str, name: str, why: str) -> UnsafePathError:
    shown = name if len(name) <= _LONGEST_SHOWN else f"{name[:_LONGEST_SHOWN]}…"
    return UnsafePathError(f"the artifact {shown!r} {why}", path=shown, reason=reason)


def safe_part(part: str) -> str:
    """Return a text as one part of a name: at most 80 safe characters, and never hidden or ``..``."""
    safe = _UNSAFE.sub("_", part[:_LONGEST_PART])
    return f"_{safe[1:]}" if safe.startswith(".") else safe or "unknown"
