"""Runs one command and ends everything that it started. A script: nothing in it is imported.

It stands between the application and the command for what neither can do alone. It sets limits in
a process of one thread, where that is safe after a fork. On Linux it adopts what the command leaves
behind, so that a daemon that forked twice is found and ended. It ends the command when the application
dies. And bubblewrap, which dies with the *thread* that started it, gets a parent of one thread.

The first line of its standard input is the order, in JSON; after it, `kill` means at once, and
anything else, the end too, means stop. The pipe whose number is its argument gets two lines: the id
of the command's process when it runs, and in JSON how it went when it has ended.
"""

import ctypes
import json
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable
from typing import Any, Final

POLL: Final = 0.02
"""Seconds between two looks at how many processes there are and how much memory they use."""
LINGER: Final = 0.1
"""Seconds for what the command leaves behind to end by itself, as the end of a pipeline does."""
PATIENCE: Final = 5.0
"""Seconds in which what was killed must be gone; only what hangs in the kernel is not."""

SLACK: Final = 4
"""Outside of a sandbox the kernel can only limit all processes of the user together. So it gets a
limit that other programs do not reach by chance: of what there is, and so many times the limit more."""

# Numbers of prctl(2).
PR_SET_PDEATHSIG: Final = 1
PR_SET_CHILD_SUBREAPER: Final = 36
PR_SET_NO_NEW_PRIVS: Final = 38

LINUX: Final = sys.platform == "linux"
PAGE: Final = os.sysconf("SC_PAGE_SIZE")


def prctl(option: int, value: int) -> None:
    if LINUX:
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


class Refused(Exception):
    """The command was not started."""

    def __init__(self, reason: str, error: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.error = error


class Tree:
    """The command and all that descends from it."""

    def __init__(self, order: dict[str, Any]) -> None:
        self.order = order
        self.limits: dict[str, Any] = order["limits"]
        self.sandboxed: bool = order["sandboxed"]
        self.extra = 2 if self.sandboxed else 0
        """Processes of bubblewrap itself: one outside, one that is the first inside."""
        self.status: int | None = None
        self.childless = False
        self.wake, wake_in = os.pipe()
        os.set_blocking(wake_in, False)
        os.set_blocking(self.wake, False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(wake_in, warn_on_full_buffer=False)
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        go_first()
        self.root, self._status_pipe = start(order)

    # What there is

    def reap(self) -> None:
        """Take leave of everything that has ended."""
        while not self.childless:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self.childless = True
                return
            if pid == 0:
                return
            if pid == self.root:
                self.status = status

    def descendants(self) -> list[int]:
        """Return all descendants that are alive; elsewhere than on Linux only the command."""
        if not LINUX:
            return [self.root] if self.status is None else []
        found, waiting = list[int](), [os.getpid()]
        while waiting:
            children = children_of(waiting.pop())
            found.extend(children)
            waiting.extend(children)
        return found

    def excess(self) -> str | None:
        """Return which limit all of them together have passed."""
        if not LINUX:
            return None
        pids = self.descendants()
        if len(pids) - self.extra > self.limits["processes"]:
            return "processes"
        most = self.limits["memory_bytes"]
        if most is None or sum(map(resident, pids)) <= most:
            return None
        # Pages that several share count only once in this figure, which is slow to get.
        return "memory" if sum(map(proportional, pids)) > most else None

    # What is done to them

    def wait(self, seconds: float, *also: int) -> list[int]:
        """Wait for an end, for input, or for so many seconds; return where there is input."""
        try:
            ready = select.select([self.wake, *also], [], [], max(0.0, seconds))[0]
        except InterruptedError:
            ready = []
        if self.wake in ready:
            os.read(self.wake, 4096)
        self.reap()
        return [each for each in ready if each != self.wake]

    def wait_while(self, still: Callable[[], bool], seconds: float) -> None:
        """Wait until ``still()`` is not, for so many seconds, or until a limit is passed."""
        end = time.monotonic() + seconds
        while still() and (left := end - time.monotonic()) > 0 and self.excess() is None:
            self.wait(min(POLL, left))

    def ask_to_end(self) -> None:
        """Send SIGTERM to all but bubblewrap, which would take the others with it at once."""
        if not self.sandboxed:
            signal_group(self.root, signal.SIGTERM)
        for pid in self.descendants():
            if not (self.sandboxed and pid == self.root):
                signal_one(pid, signal.SIGTERM)

    def kill(self) -> None:
        """End all of them, and those that they start meanwhile."""
        # The whole group at one blow: nothing in it can fork in between.
        signal_group(self.root, signal.SIGKILL)
        end = time.monotonic() + PATIENCE
        self.reap()
        while not self.childless and time.monotonic() < end:
            self.kill_found()
            self.wait(0.002)

    def kill_found(self) -> None:
        waiting = children_of(os.getpid()) if LINUX else []
        while waiting:
            pid = waiting.pop()
            # Stopped first: it then has no more children than those that are listed.
            signal_one(pid, signal.SIGSTOP)
            waiting.extend(children_of(pid))
            signal_one(pid, signal.SIGKILL)

    def run(self) -> dict[str, Any]:
        """Follow the command to its end and return how it went."""
        deadline = time.monotonic() + self.limits["wall_clock"]
        ended_by = self.follow(deadline)
        if ended_by in ("wall_clock", "stopped"):
            self.ask_to_end()
            self.wait_while(lambda: not self.childless, self.limits["kill_grace"])
        left_behind = 0
        if ended_by is None and not self.childless and LINUX:
            self.wait_while(lambda: not self.childless, LINGER)
            if left_behind := len(self.descendants()):
                self.ask_to_end()
                self.wait_while(lambda: not self.childless, self.limits["kill_grace"])
        self.kill()
        return {
            "status": self.status,
            "ended_by": ended_by,
            "left_behind": left_behind,
            "survivors": 0 if self.childless else len(self.descendants()),
            "inside": self.exit_inside() if self.sandboxed else None,
        }

    def follow(self, deadline: float) -> str | None:
        """Wait for the command, and return what ended it if it did not end by itself."""
        while True:
            self.reap()
            if self.status is not None:
                return None
            left = deadline - time.monotonic()
            if left <= 0:
                return "wall_clock"
            if self.wait(min(POLL, left), 0):
                return "killed" if os.read(0, 64).startswith(b"kill") else "stopped"
            if excess := self.excess():
                return excess

    def exit_inside(self) -> int | None:
        """Return the exit code that bubblewrap tells; none where no command ran in it."""
        os.set_blocking(self._status_pipe, False)
        try:
            told = os.read(self._status_pipe, 4096).decode()
        except BlockingIOError:
            return None
        for line in told.splitlines():
            code = json.loads(line).get("exit-code")
            if code is not None:
                return int(code)
        return None


def go_first() -> None:
    """Run before all others, where that is allowed: where the kernel counts no processes, as for root.

    Processes that do nothing but multiply would otherwise leave no time to end them.
    """
    if LINUX:
        try:
            policy = os.SCHED_FIFO | os.SCHED_RESET_ON_FORK
            os.sched_setscheduler(0, policy, os.sched_param(1))
        except OSError:
            pass


def children_of(pid: int) -> list[int]:
    found = list[int]()
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children") as file:
                found.extend(map(int, file.read().split()))
    except OSError:  # it has ended meanwhile
        pass
    return found


def resident(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/statm") as file:
            return int(file.read().split()[1]) * PAGE
    except (OSError, IndexError):
        return 0


def proportional(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            for line in file:
                if line.startswith("Pss:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        return resident(pid)
    return 0


def signal_one(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        pass


def signal_group(leader: int, number: int) -> None:
    try:
        os.killpg(leader, number)
    except (ProcessLookupError, PermissionError):
        pass


def start(order: dict[str, Any]) -> tuple[int, int]:
    """Start the command; return its id, and the pipe on which bubblewrap tells its status."""
    failed, failing = os.pipe()
    argv: list[str] = order["argv"]
    status, status_in, gate_out, gate = -1, -1, -1, -1
    if order["sandboxed"]:
        status, status_in = os.pipe()
        gate_out, gate = os.pipe()
        told = ["--json-status-fd", str(status_in), "--block-fd", str(gate_out)]
        argv = [argv[0], *told, *argv[1:]]
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        become(order, argv, failing, parent, [each for each in (status_in, gate_out) if each >= 0])
    for each in (failing, status_in, gate_out):
        if each >= 0:
            os.close(each)
    # The output belongs to the command alone: it ends where the command's last process ends.
    silence(1, 2)
    if told_error := os.read(failed, 4096):
        os.waitpid(pid, 0)
        reason, _, error = told_error.decode().partition("\n")
        raise Refused(reason, error)
    os.close(failed)
    if order["sandboxed"]:
        open_gate(status, gate, order["limits"]["processes"])
    return pid, status


def open_gate(status: int, gate: int, processes: int) -> None:
    """Limit how many processes the sandbox may hold, then let the command begin.

    Inside it the kernel counts the processes of the sandbox alone (not for root, whom it lets pass).
    """
    told = b""
    while not told.endswith(b"\n") and (more := os.read(status, 4096)):
        told += more
    if told.endswith(b"\n"):
        first = int(json.loads(told)["child-pid"])
        try:
            resource.prlimit(first, resource.RLIMIT_NPROC, (processes + 2, processes + 2))
        except (OSError, ValueError):
            pass  # it failed already, which its status will say, or may have less already
        try:
            os.write(gate, b"1")
        except BrokenPipeError:
            pass
    os.close(gate)


def become(
    order: dict[str, Any], argv: list[str], failing: int, parent: int, keep: list[int]
) -> None:
    """Turn this new process into the command."""
    stage = "setup"
    try:
        os.setsid()
        silence(0)
        for each in keep:
            os.set_inheritable(each, True)
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
        prctl(PR_SET_NO_NEW_PRIVS, 1)
        for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        set_limits(order["limits"])
        if LINUX and not order["sandboxed"]:
            most = tasks_of(os.getuid()) + SLACK * order["limits"]["processes"]
            set_limit(resource.RLIMIT_NPROC, most)
        stage = "cwd"
        os.chdir(order["cwd"])
        stage = "start"
        os.execvpe(argv[0], argv, order["env"])
    except BaseException as exc:  # noqa: BLE001 - whatever it is, it is told, and nothing goes on here
        text = os.strerror(exc.errno) if isinstance(exc, OSError) and exc.errno else str(exc)
        missing = stage == "start" and isinstance(exc, FileNotFoundError | NotADirectoryError)
        os.write(failing, f"{'not_found' if missing else stage}\n{text}".encode())
    finally:
        os._exit(127)


def set_limits(limits: dict[str, Any]) -> None:
    wanted = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_CPU: limits["cpu_seconds"],
        resource.RLIMIT_AS: limits["address_space_bytes"],
        resource.RLIMIT_FSIZE: limits["file_bytes"],
        resource.RLIMIT_NOFILE: limits["open_files"],
    }
    for kind, most in wanted.items():
        if most is not None:
            set_limit(kind, most)


def set_limit(kind: int, most: int) -> None:
    hard = resource.getrlimit(kind)[1]
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(kind, (most, most))


def tasks_of(user: int) -> int:
    """Return how many processes and threads a user has."""
    count = 0
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                if os.stat(f"/proc/{name}").st_uid == user:
                    count += len(os.listdir(f"/proc/{name}/task"))
            except OSError:  # it has ended meanwhile, or is hidden
                pass
    return count


def silence(*handles: int) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for handle in handles:
        os.dup2(null, handle)
    os.close(null)


def read_order() -> dict[str, Any] | None:
    """Return the order; none where the application went away, or changed its mind at once."""
    told = b""
    while b"\n" not in told:
        more = os.read(0, 65536)
        if not more:
            return None
        told += more
    line, _, stop = told.partition(b"\n")
    return None if stop else json.loads(line)


def main() -> None:
    """Run the command that is ordered."""
    report = int(sys.argv[1])
    os.set_inheritable(report, False)
    order = read_order()
    if order is None:
        return
    try:
        tree = Tree(order)
        os.write(report, f"{tree.root}\n".encode())
        outcome = tree.run()
    except Refused as exc:
        outcome = {"refused": exc.reason, "error": exc.error}
    os.write(report, json.dumps(outcome).encode())


if __name__ == "__main__":
    main()
