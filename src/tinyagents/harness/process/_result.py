"""What became of a program."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

EndedBy: TypeAlias = Literal["wall_clock", "memory", "processes", "output"]
"""The limit that a program was ended for; see :class:`ProcessLimits`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessResult:
    """What a program has said, and how it ended. One that failed is a result like any other."""

    exit_code: int
    """As shells tell it: 128 and the number of the signal for a program that a signal ended."""
    signal: str | None
    """The name of that signal, such as ``SIGKILL``. In a sandbox a program that itself exits with such
    a code looks the same."""
    stdout: str
    """As UTF-8, with U+FFFD for what is none. Of a long one the middle is cut, and the text says so."""
    stderr: str
    """Empty where it was merged into ``stdout``."""
    dropped_bytes: int
    """How much of the output was cut."""
    ended_by: EndedBy | None
    """``None`` for a program that ended by itself."""
    left_behind: int
    """How many processes the program left running, which were then ended. In a sandbox they end with
    the program, uncounted."""
    duration: float
    """Seconds."""

    @property
    def truncated(self) -> bool:
        """Whether output was cut."""
        return self.dropped_bytes > 0
