"""The command line of bubblewrap (bwrap(1), 0.8 or newer)."""

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import PurePath

from ..errors import ConfigurationError, SandboxUnavailableError
from ._policy import SandboxPolicy

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store")
_SETTINGS = (
    "alternatives", "ca-certificates", "ca-certificates.conf", "crypto-policies", "group", "hosts",
    "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "mime.types", "nsswitch.conf",
    "os-release", "passwd", "pki/ca-trust", "pki/tls/certs", "protocols", "resolv.conf", "services",
    "ssl/cert.pem", "ssl/certs", "ssl/openssl.cnf", "terminfo",
)  # fmt: skip
"""Of /etc what programs need; of the rest some are secrets, which root would read inside as well."""
_INSTALL = (
    "install it (Debian, Ubuntu: `apt-get install bubblewrap`), or say `SandboxPolicy(kind='none')` "
    "to run programs without a sandbox"
)


def find_bubblewrap() -> str:
    """Return where bubblewrap is.

    Raises:
        SandboxUnavailableError: It is not installed, or this is not Linux.
    """
    if sys.platform != "linux":
        raise SandboxUnavailableError(
            f"there is no sandbox for programs on {sys.platform}: bubblewrap needs Linux"
        )
    found = shutil.which("bwrap", path=os.pathsep.join((os.environ.get("PATH", ""), "/usr/bin")))
    if found is None or not os.path.isabs(found):
        raise SandboxUnavailableError(f"bubblewrap (`bwrap`) is not installed: {_INSTALL}")
    return found


def unavailable(said: str) -> SandboxUnavailableError:
    """Return the error for a bubblewrap that could not make its sandbox."""
    return SandboxUnavailableError(
        f"bubblewrap could not make a sandbox: {said.strip()[:500] or 'it does not say why'}. It needs "
        "bubblewrap 0.8 or newer and a kernel that lets this user make user namespaces, which many "
        "containers do not"
    )


def in_bubblewrap(argv: Sequence[str], policy: SandboxPolicy, *, root: str, cwd: str) -> list[str]:
    """Return the command that runs ``argv`` in a sandbox of the policy.

    Args:
        argv: The program and its arguments.
        policy: What the sandbox shows.
        root: The real path of the working folder.
        cwd: Where the program starts, inside of it.

    Raises:
        SandboxUnavailableError: There is no bubblewrap.
        ConfigurationError: The working folder cannot be shown without showing more.
    """
    if root == "/" or any(_holds(root, each) for each in ("/proc", "/dev", *_SYSTEM)):
        raise ConfigurationError(
            f"the working folder {root!r} holds folders of the system: choose one of its own"
        )
    options = [
        "--unshare-user", "--disable-userns", "--uid", str(policy.uid), "--gid", str(policy.uid),
        "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try",
        "--hostname", "sandbox", "--die-with-parent", "--new-session",
        *(() if policy.network else ("--unshare-net",)),
        *_system(),
        # The kernel's settings belong to root, also to one that only seems to be another user inside.
        "--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev",
        *_memory_folder("/dev/shm", policy), "--remount-ro", "/dev", *_memory_folder("/tmp", policy),
    ]  # fmt: skip
    for path, writable in _shown(policy, root):
        options += ["--bind" if writable else "--ro-bind", path, path]
    # The folder that all of this hangs in is memory as well, without a limit.
    return [find_bubblewrap(), *options, "--remount-ro", "/", "--chdir", cwd, "--", *argv]


def _shown(policy: SandboxPolicy, root: str) -> list[tuple[str, bool]]:
    """Return what is shown and whether it may be changed, so that the more exact path wins."""
    shown = dict.fromkeys(policy.readable, False) | dict.fromkeys(policy.writable, True)
    for path in shown:
        if not os.path.exists(path):
            raise ConfigurationError(f"the sandbox is to show {path!r}, which does not exist")
    shown.setdefault(root, policy.writable_root)
    return sorted(shown.items(), key=lambda item: len(PurePath(item[0]).parts))


def _system() -> list[str]:
    options: list[str] = []
    for path in _SYSTEM:
        if os.path.islink(path):
            options += ["--symlink", os.readlink(path), path]
        else:
            options += ["--ro-bind-try", path, path]
    for name in _SETTINGS:
        options += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    return options


def _memory_folder(path: str, policy: SandboxPolicy) -> tuple[str, ...]:
    return ("--size", str(policy.temporary_bytes), "--tmpfs", path)


def _holds(folder: str, path: str) -> bool:
    return os.path.commonpath((folder, path)) == folder
