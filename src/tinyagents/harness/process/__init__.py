"""Running a program: within limits, in a sandbox where the policy says so, and never beyond its end.

:func:`run_process` is for whatever a tool starts. Nothing goes through a shell; the program gets an
environment that was chosen for it, a session and process group of its own and no input; and when it has
ended, been ended or been cancelled, nothing that it started is still there.
"""

from ._limits import ProcessLimits
from ._policy import SandboxPolicy
from ._result import EndedBy, ProcessResult
from ._run import Output, run_process

__all__ = (
    "EndedBy",
    "Output",
    "ProcessLimits",
    "ProcessResult",
    "SandboxPolicy",
    "run_process",
)
