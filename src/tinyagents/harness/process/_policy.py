"""What a program may reach."""

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, PositiveInt, field_validator, model_validator

from ..errors import ProcessRefusedError


class SandboxPolicy(BaseModel):
    """What programs may be run, and what they may reach.

    With a sandbox a program sees the system's programs and libraries, read-only; its working folder;
    what ``readable`` and ``writable`` name; a ``/tmp`` and a ``/proc`` of its own; and nothing else: no
    other files, processes or devices, and no network.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    kind: Literal["auto", "bubblewrap", "none"] = "auto"
    """``auto`` takes the sandbox that this system has, which today is bubblewrap or none; without
    one nothing runs. ``none`` holds nothing back but by ``programs`` and the limits: a program can
    then do what the user of this process can, its files, network and environment included."""
    commands: Literal["argv", "shell"] = "argv"
    """Whether a model gives a program with its arguments, or a text for ``/bin/sh``."""
    programs: tuple[str, ...] | None = None
    """The only ones that may be run: names that are looked up on ``PATH``, or absolute paths. Many
    programs run others for whoever asks (``env``, ``find``, ``git``, every interpreter)."""
    denied_programs: tuple[str, ...] = ()
    """Names that may not be run, wherever they are. A reminder for the model, not a wall: what is
    not named is allowed, and may do the same."""
    readable: tuple[str, ...] = ()
    """Absolute paths that the sandbox shows read-only, where they are."""
    writable: tuple[str, ...] = ()
    """Absolute paths besides the working folder that may be changed from inside."""
    writable_root: bool = True
    """Whether the working folder may be changed from inside the sandbox."""
    network: bool = False
    """Whether the sandbox shares this machine's network, its loopback included."""
    environment: tuple[str, ...] = ("HOME", "LANG", "LC_ALL", "PATH", "TZ")
    """The variables of this process that a program gets. ``HOME`` is ``/tmp`` in a sandbox."""
    variables: Mapping[str, str] = Field(default_factory=dict[str, str], repr=False)
    """Further variables."""
    temporary_bytes: PositiveInt = 256 * 2**20
    """How much ``/tmp``, and as much again ``/dev/shm``, hold inside the sandbox; it is memory."""
    uid: PositiveInt = 1000
    """The user and group that programs in the sandbox see themselves as. To files that they make it
    is the user of this process."""

    @field_validator("readable", "writable")
    @classmethod
    def _absolute(cls, paths: tuple[str, ...]) -> tuple[str, ...]:
        for path in paths:
            if not PurePath(path).is_absolute() or "\0" in path:
                raise ValueError(f"{path!r} is no absolute path")
        return paths

    @model_validator(mode="after")
    def _no_false_security(self) -> Self:
        if self.commands == "shell" and (self.programs is not None or self.denied_programs):
            raise ValueError(
                "with `commands='shell'` a command can run any program: `programs` and "
                "`denied_programs` only hold with `commands='argv'`"
            )
        return self

    @property
    def sandboxed(self) -> bool:
        """Whether programs run in a sandbox."""
        return self.kind != "none"

    def environ(self, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the variables of a program.

        Args:
            extra: More of them, which win.
        """
        taken = {name: os.environ[name] for name in self.environment if name in os.environ}
        if self.sandboxed and "HOME" in self.environment:
            taken["HOME"] = "/tmp"
        variables = {**taken, **self.variables, **(extra or {})}
        if "PATH" in variables:
            # An empty or relative entry would find programs in the working folder.
            folders = variables["PATH"].split(os.pathsep)
            variables["PATH"] = os.pathsep.join(filter(os.path.isabs, folders))
        return variables

    def check_program(self, argv: Sequence[str], *, path: str | None) -> None:
        """Check that the policy lets a program be run.

        Args:
            argv: The program and its arguments.
            path: The ``PATH`` where it is looked up.

        Raises:
            ProcessRefusedError: It is denied, or not among those that are allowed.
        """
        name = argv[0]
        if self.programs is not None and name not in self.programs:
            allowed = ", ".join(f"`{each}`" for each in self.programs) or "none"
            raise ProcessRefusedError(
                f"the policy does not allow the program {name[:200]!r}; allowed: {allowed}",
                program=name[:200],
            )
        if not self.denied_programs:
            return
        found = shutil.which(name, path=path) or name
        names = {os.path.basename(each) for each in (name, found, os.path.realpath(found))}
        if denied := names & set(self.denied_programs):
            raise ProcessRefusedError(
                f"the policy does not allow the program `{min(denied)}`", program=name[:200]
            )
