"""What the tests of programs share: running one, and looking for what it leaves."""

import os
import shutil
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

from tests.support import PATIENCE
from tinyagents.harness.process import ProcessLimits, ProcessResult, SandboxPolicy, run_process

NONE = SandboxPolicy(kind="none")
BUBBLEWRAP = SandboxPolicy(kind="bubblewrap")
MIB = 2**20

BOMB = """
import os, time
for _ in range(9):  # 512 processes at the most, all of them busy
    if os.fork() == 0: os.setsid()
end = time.monotonic() + 20
while time.monotonic() < end: pass
"""
"""Doubles itself, each process in a session of its own; small enough for any machine."""

DAEMON = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for handle in range(3): os.close(handle)
        open("daemon", "w").write("there")
        time.sleep(600)
    os._exit(0)
while not os.path.exists("daemon"): time.sleep(0.01)
print("left")
"""
"""A daemon by the book: forked twice, in another session, without files, and deaf to SIGTERM."""


@dataclass(slots=True)
class Programs:
    """Runs programs in one folder, each with a mark that all its descendants carry."""

    root: Path
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)

    async def run(
        self,
        *argv: str,
        sandbox: SandboxPolicy = NONE,
        limits: Mapping[str, Any] | None = None,
        merge_stderr: bool = False,
        cwd: str = ".",
    ) -> ProcessResult:
        return await run_process(
            argv,
            root=self.root,
            cwd=cwd,
            sandbox=sandbox,
            limits=ProcessLimits.model_validate({"kill_grace": 0.3, **(limits or {})}),
            env={"MARK_OF_TEST": self.mark},
            merge_stderr=merge_stderr,
        )

    async def python(
        self, code: str, *, sandbox: SandboxPolicy = NONE, limits: Mapping[str, Any] | None = None
    ) -> ProcessResult:
        return await self.run(sys.executable, "-I", "-c", code, sandbox=sandbox, limits=limits)

    def left(self) -> list[int]:
        """Return the processes that carry the mark."""
        found: list[int] = []
        for entry in os.listdir("/proc"):
            try:
                if entry.isdigit() and self.mark in Path(f"/proc/{entry}/environ").read_text():
                    found.append(int(entry))
            except (OSError, UnicodeDecodeError):
                continue
        return found


def wait_until(state: Callable[[], bool]) -> None:
    """Wait until ``state()`` is true; blocks."""
    waiting = threading.Event()
    for _ in range(int(PATIENCE * 100)):
        if state():
            return
        waiting.wait(0.01)
    raise AssertionError("it never happened")


def python_policy(kind: Literal["none", "bubblewrap"]) -> SandboxPolicy:
    """Return a policy under which this Python runs in the sandbox, wherever it is installed."""
    homes = tuple({sys.prefix, sys.base_prefix})
    return SandboxPolicy(kind=kind, readable=homes)


@cache
def why_no_sandbox() -> str | None:
    """Return why bubblewrap makes no sandbox here, if it does not."""
    found = shutil.which("bwrap")
    if found is None:
        return "bubblewrap is not installed"
    command = [found, "--unshare-user", "--unshare-pid", "--disable-userns", "--ro-bind", "/", "/"]
    made = subprocess.run(
        [*command, "--proc", "/proc", "--dev", "/dev", "true"], capture_output=True, check=False
    )
    return None if made.returncode == 0 else f"the kernel forbids it: {made.stderr.decode()}"
