"""Which files a run may touch, as data, and who makes them."""

import os
from pathlib import PurePath
from typing import Any, ClassVar, Literal, Protocol, TypeAlias, cast, runtime_checkable

from pydantic import BaseModel, ConfigDict, field_validator

from ..errors import WorkspaceViolationError
from ..text import clean_text

SandboxMode: TypeAlias = Literal["inherit", "disabled", "required"]
"""Whether programs that tools start must run in a sandbox; ``inherit`` leaves it to each tool."""

_LONGEST_SHOWN = 200


class Emits(Protocol):
    """What records events: a run's context."""

    def emit(self, kind: str, **payload: Any) -> None:
        """Record an event; ``payload`` holds the fields of its kind."""
        ...


class WorkspaceDescriptor(BaseModel):
    """The folder that a run works in, and the other folders that it may touch.

    Paths are made absolute when the descriptor is made: it means the same wherever it is loaded.
    :meth:`allows` and :meth:`enforce` judge a path by what it says; they look at no file. Links are
    for whoever opens the file: :mod:`tinyagents.harness.safe_open` does it safely, and the file tools
    use that.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    root: str
    trusted_roots: tuple[str, ...] = ()
    """Further folders whose files may be touched, by absolute paths."""
    policy_id: str = ""
    """Whose rules these are: an isolation provider puts the run's id here."""
    sandbox: SandboxMode = "inherit"
    within: tuple[str, ...] = ()
    """The folders from which the root is walked to, the outermost first: see :meth:`narrowed`."""

    @field_validator("root", mode="before")
    @classmethod
    def _absolute(cls, path: object) -> str:
        return _absolute(path)

    @field_validator("trusted_roots", "within", mode="before")
    @classmethod
    def _all_absolute(cls, paths: object) -> object:
        if isinstance(paths, list | tuple):
            return tuple(map(_absolute, cast("tuple[object, ...]", paths)))
        return paths

    @property
    def roots(self) -> tuple[str, ...]:
        """The root and the trusted roots."""
        return (self.root, *self.trusted_roots)

    def allows(self, path: str | os.PathLike[str]) -> bool:
        """Whether a path is inside the root or a trusted root by what it says, ``..`` resolved.

        A relative path is taken as the system takes it, from the process's working directory: what is
        allowed here is what `open(path)` opens. :meth:`resolve` is for paths that are meant from the
        root.
        """
        text = os.fspath(path)
        if not text or "\0" in text:
            return False
        return self._covers(os.path.abspath(text))

    def resolve(self, path: str | os.PathLike[str]) -> str:
        """Return the absolute form of a path that is meant from the root; it may lead outside."""
        return os.path.abspath(os.path.join(self.root, path))

    def enforce(self, path: str | os.PathLike[str], events: Emits | None = None) -> str:
        """Return the absolute form of a path that :meth:`allows` lets pass.

        Args:
            path: The path.
            events: The run's context, which is told of a refusal: ``workspace.violation``.

        Raises:
            WorkspaceViolationError: The path is outside.
        """
        if self.allows(path):
            return os.path.abspath(path)
        shown = shown_path(os.fspath(path))
        if events is not None:
            events.emit("workspace.violation", path=shown)
        raise WorkspaceViolationError(
            f"the path {shown!r} is outside the workspace", path=shown, reason="outside"
        )

    def narrowed(self, inner: "WorkspaceDescriptor") -> "WorkspaceDescriptor":
        """Return ``inner`` as a part of this workspace: what a run inside another one gets.

        Its root is this one's, a trusted root, or below one of them; its trusted roots are some of
        these; a sandbox that is required stays required. Tools walk to its root from the one that it
        is in, so that a link which somebody puts in its place does not lead out.

        Raises:
            WorkspaceViolationError: One of its folders is outside this workspace.
        """
        around = next((r for r in self.roots if PurePath(inner.root).is_relative_to(r)), None)
        if around is None:
            raise _not_inside(inner.root)
        for root in inner.trusted_roots:
            if root not in self.trusted_roots:
                raise _not_inside(root)
        # A trusted root is the application's word; a root may be where tools of this workspace write.
        way = self.within if around == self.root else ()
        within = way if inner.root == around else (*way, around)
        if within == inner.within[len(inner.within) - len(within) :]:
            within = inner.within  # it was a part of something larger before
        required = inner.sandbox == "inherit" or self.sandbox == "required"
        sandbox = self.sandbox if required else inner.sandbox
        return inner.model_copy(update={"sandbox": sandbox, "within": within})

    def _covers(self, path: str) -> bool:
        pure = PurePath(path)
        return any(pure.is_relative_to(root) for root in self.roots)


@runtime_checkable
class WorkspaceIsolation(Protocol):
    """Gives each run files of its own.

    One object serves any number of runs at once. What :meth:`cleanup` needs is in the descriptor: it
    may be called in another process than :meth:`prepare`.
    """

    async def prepare(self, run_id: str, agent: str) -> WorkspaceDescriptor:
        """Make the workspace of a run; when it is cancelled or fails, nothing is left.

        Args:
            run_id: The run's id; any text.
            agent: What events call the agent.

        Raises:
            WorkspaceError: It cannot be made.
        """
        ...

    async def cleanup(self, workspace: WorkspaceDescriptor) -> None:
        """Remove what :meth:`prepare` has made. What is gone already is no error.

        Raises:
            WorkspaceError: It cannot be removed.
        """
        ...


def _not_inside(root: str) -> WorkspaceViolationError:
    shown = shown_path(root)
    return WorkspaceViolationError(
        f"the folder {shown!r} is outside the workspace around it: a run inside another one, and a "
        "run of a harness that has a workspace, can be given a part of that only",
        path=shown,
        reason="outside",
    )


def shown_path(path: str) -> str:
    """Return a path short and clean enough for events and errors."""
    path = clean_text(path)
    return path if len(path) <= _LONGEST_SHOWN else f"{path[:_LONGEST_SHOWN]}…"


def _absolute(path: object) -> str:
    text = cast("object", os.fspath(path)) if isinstance(path, str | os.PathLike) else path
    if not isinstance(text, str) or not text or "\0" in text:
        raise ValueError("a folder is a path that is not empty and holds no NUL")
    return os.path.abspath(text)
