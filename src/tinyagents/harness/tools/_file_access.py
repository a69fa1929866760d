"""From the path that a model gives to a file of the run's workspace, and from errors to its words."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from hashlib import sha256
from itertools import islice
from pathlib import PurePath
from typing import Any

from ..errors import ConfigurationError, UnsafePathError
from ..safe_open import list_inside
from ..text import clean_text
from ..tool import ToolContext, ToolError

_DIGEST_DIGITS = 16
_LONGEST_SHOWN = 200
_MOST_NEIGHBOURS = 2_000


@dataclass(frozen=True, slots=True)
class Target:
    """A path inside one of the folders that a run may touch."""

    root: str
    within: tuple[str, ...]
    path: str
    """From the root."""
    shown: str
    """What the model calls it: from the workspace's root, or absolute in a trusted root."""

    def below(self, path: str) -> str:
        """Return what the model calls something below it, the name escaped."""
        return printable(path if self.shown == "." else f"{self.shown}/{path}")


def target(ctx: ToolContext[Any], path: str) -> Target:
    """Find the folder of the workspace that a path belongs to.

    Raises:
        ConfigurationError: The run has no workspace.
        UnsafePathError: The path is absolute and in none of the folders.
    """
    workspace = ctx.workspace
    if workspace is None:
        raise ConfigurationError(
            f"the tool `{ctx.tool_name}` works on the files of a workspace, and the run has none: "
            "pass `workspace=` a folder to `AgentHarness`, or `RunConfig(workspace=…)` to the run"
        )
    pure = PurePath(path)
    if not pure.is_absolute():
        return Target(workspace.root, workspace.within, path, pure.as_posix())
    for number, root in enumerate(workspace.roots):
        for name in (root, os.path.realpath(root)):
            if pure.is_relative_to(name):
                inside = pure.relative_to(name).as_posix()
                if number == 0:
                    return Target(root, workspace.within, inside, inside)
                return Target(root, (), inside, pure.as_posix())
    raise UnsafePathError("it is outside", path=path[:_LONGEST_SHOWN], reason="outside")


@contextmanager
def told_to_model(ctx: ToolContext[Any], path: str) -> Generator[None]:
    """Turn what goes wrong with a path into words for the model, and report an attempt to leave.

    The words name the path as the model gave it, and nothing of what is outside the workspace.
    """
    name = repr(printable(path[:_LONGEST_SHOWN]))
    try:
        yield
    except UnsafePathError as error:
        if error.reason in ("outside", "link"):
            ctx.run.emit("workspace.violation", path=clean_text(path[:_LONGEST_SHOWN]))
        raise ToolError(_refusal(error, name)) from error
    except FileNotFoundError as error:
        _check_root(ctx)
        raise ToolError(f"there is no {name}{_alternatives(ctx, path)}") from error
    except NotADirectoryError as error:
        _check_root(ctx)
        raise ToolError(f"a part of {name} is no folder") from error
    except PermissionError as error:
        raise ToolError(f"{name} may not be opened: permission denied") from error
    except OSError as error:
        raise ToolError(f"{name} cannot be opened: {error.strerror or 'it failed'}") from error


def _check_root(ctx: ToolContext[Any]) -> None:
    """Say that the workspace itself is what is missing, which no other path would mend."""
    if ctx.workspace is not None and not os.path.isdir(ctx.workspace.root):
        raise ToolError("the workspace has no folder: it was never made, or has been removed")


def digest(content: bytes) -> str:
    """Return the first 16 hexadecimal digits of the SHA-256 of a file's content."""
    return sha256(content).hexdigest()[:_DIGEST_DIGITS]


def printable(text: str) -> str:
    """Return a name with everything escaped that could end its line or is no text."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def is_binary(content: bytes) -> bool:
    """Whether a file is no text, judged as git does: by a NUL near its beginning."""
    return b"\0" in content[:8_000]


def _refusal(error: UnsafePathError, name: str) -> str:
    match error.reason:
        case "outside":
            return f"{name} is outside the workspace: give a path relative to its root"
        case "link":
            return f"{name} is a link, or was changed while it was opened: it was not touched"
        case "changed":
            return f"{name} was changed by somebody else meanwhile: read it again first"
        case _:
            return str(error)


def _alternatives(ctx: ToolContext[Any], path: str) -> str:
    """Return names that look like a missing one."""
    folder, name = os.path.split(path)
    try:
        place = target(ctx, folder or ".")
        found = list_inside(place.root, place.path, within=place.within)
        names = [entry.path for entry in islice(found, _MOST_NEIGHBOURS)]
    except (OSError, UnsafePathError):
        return ""
    near = get_close_matches(name, names, n=3, cutoff=0.7)
    return f"; there is {', '.join(repr(place.below(each)) for each in near)}" if near else ""
