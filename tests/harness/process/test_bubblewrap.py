"""Programs in bubblewrap: what they cannot reach, whatever they try."""

import os
import socket
from pathlib import Path

import anyio
import pytest

from tests.harness.process.programs import (
    BOMB,
    BUBBLEWRAP,
    DAEMON,
    MIB,
    Programs,
    python_policy,
)
from tinyagents.harness.errors import ConfigurationError, ProcessError, SandboxUnavailableError
from tinyagents.harness.process import ProcessLimits, SandboxPolicy, run_process

in_sandbox = pytest.mark.usefixtures("sandbox")
PYTHON = python_policy("bubblewrap")


def exists(path: str) -> bool:
    return os.path.exists(path)


@in_sandbox
async def test_a_program_works_in_its_folder(programs: Programs) -> None:
    (programs.root / "in").write_text("given")
    result = await programs.run("sh", "-c", "pwd; cat in; echo made > out", sandbox=BUBBLEWRAP)
    assert result.stdout == f"{programs.root}\ngiven"
    assert (programs.root / "out").read_text() == "made\n"
    assert (programs.root / "out").stat().st_uid == os.getuid()


@in_sandbox
async def test_exit_codes_and_signals_come_through(programs: Programs) -> None:
    failed = await programs.run("sh", "-c", "echo err >&2; exit 3", sandbox=BUBBLEWRAP)
    assert (failed.exit_code, failed.stderr, failed.signal) == (3, "err\n", None)
    killed = await programs.run("sh", "-c", "kill -KILL $$", sandbox=BUBBLEWRAP)
    assert (killed.exit_code, killed.signal) == (137, "SIGKILL")


@in_sandbox
async def test_files_outside_are_not_there(programs: Programs, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    (programs.root / "link").symlink_to(secret)
    for path in (
        secret,
        "../secret",
        "link",
        "/etc/shadow",
        "/root",
        Path.home(),
    ):
        result = await programs.run("cat", os.fspath(path), sandbox=BUBBLEWRAP)
        assert result.exit_code != 0 or result.stdout == "", path
        assert "secret" not in result.stdout


@in_sandbox
@pytest.mark.parametrize("path", ["/usr/made", "/etc/made", "/made", "/dev/made", "/proc/made"])
async def test_nothing_is_written_outside(programs: Programs, path: str) -> None:
    result = await programs.run("sh", "-c", f"echo x > {path}", sandbox=BUBBLEWRAP)
    assert result.exit_code != 0
    assert not exists(path)


@in_sandbox
@pytest.mark.parametrize(
    "path", ["/proc/sys/kernel/core_pattern", "/proc/sys/vm/swappiness", "/proc/self/comm"]
)
async def test_the_kernel_s_settings_cannot_be_changed_by_root_either(
    programs: Programs, path: str
) -> None:
    result = await programs.run("sh", "-c", f"cat {path} > {path}", sandbox=BUBBLEWRAP)
    assert result.exit_code != 0
    assert "Read-only file system" in result.stderr or "Permission denied" in result.stderr


@in_sandbox
async def test_what_may_be_written_is_the_working_folder_and_temporary_folders(
    programs: Programs,
) -> None:
    find = "find / -writable -not -type l -not -path '/proc/[0-9]*' 2>/dev/null"
    result = await programs.run("sh", "-c", find, sandbox=BUBBLEWRAP)
    devices = {f"/dev/{name}" for name in ("full", "null", "random", "tty", "urandom", "zero")}
    free = ("/tmp", "/dev/pts", "/dev/shm", str(programs.root))
    found = {path for path in result.stdout.split() if not path.startswith(free)}
    assert found <= devices


@in_sandbox
async def test_private_keys_of_the_system_are_not_there(programs: Programs) -> None:
    result = await programs.run("sh", "-c", "ls /etc/ssl; ls /etc/shadow", sandbox=BUBBLEWRAP)
    assert "private" not in result.stdout
    assert "No such file" in result.stderr


@in_sandbox
async def test_temporary_files_are_private_and_bounded(programs: Programs) -> None:
    policy = SandboxPolicy(kind="bubblewrap", temporary_bytes=MIB)
    for folder in ("/tmp", "/dev/shm"):
        code = f"head -c 100k /dev/zero > {folder}/small && head -c 5M /dev/zero > {folder}/big"
        result = await programs.run("sh", "-c", code, sandbox=policy)
        assert "No space left on device" in result.stderr
        assert not exists(f"{folder}/small")


@in_sandbox
async def test_paths_are_shown_as_the_policy_says_and_the_more_exact_one_wins(
    programs: Programs, tmp_path: Path
) -> None:
    for name in ("shown", "shared", "root/fixed"):
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / "file").write_text(name)
    policy = SandboxPolicy(
        kind="bubblewrap",
        readable=(f"{tmp_path}/shown", f"{programs.root}/fixed"),
        writable=(f"{tmp_path}/shared",),
    )
    result = await programs.run("sh", "-c", "cat ../*/file fixed/file", sandbox=policy)
    assert result.stdout == "sharedshownroot/fixed"
    for folder, may in (("../shown", False), ("fixed", False), ("../shared", True), (".", True)):
        written = await programs.run("touch", f"{folder}/new", sandbox=policy)
        assert (written.exit_code == 0) is may


@in_sandbox
async def test_the_working_folder_may_be_read_only(programs: Programs) -> None:
    policy = SandboxPolicy(kind="bubblewrap", writable_root=False)
    result = await programs.run("touch", "new", sandbox=policy)
    assert "Read-only file system" in result.stderr


@in_sandbox
async def test_a_root_that_is_a_link_is_shown_at_its_real_path(programs: Programs) -> None:
    link = programs.root.parent / "link"
    link.symlink_to(programs.root)
    result = await run_process(["pwd"], root=link, sandbox=BUBBLEWRAP)
    assert result.stdout == f"{programs.root}\n"


@in_sandbox
async def test_there_is_a_network_only_where_the_policy_says_so(programs: Programs) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"/dev/tcp/127.0.0.1/{server.getsockname()[1]}"
        command = ("bash", "-c", f"exec 3<>{address} && echo connected")
        shut = await programs.run(*command, sandbox=BUBBLEWRAP)
        assert shut.exit_code != 0
        open_policy = SandboxPolicy(kind="bubblewrap", network=True)
        assert (await programs.run(*command, sandbox=open_policy)).stdout == "connected\n"


@in_sandbox
async def test_abstract_sockets_of_the_machine_are_not_there(programs: Programs) -> None:
    name = f"\0{programs.mark}"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(name)
        server.listen()
        code = f"import socket; socket.socket(socket.AF_UNIX).connect('\\x00{programs.mark}')"
        result = await programs.python(code, sandbox=PYTHON)
        assert "ConnectionRefusedError" in result.stderr
        outside = await programs.python(code)
        assert outside.exit_code == 0


@in_sandbox
async def test_other_processes_are_neither_seen_nor_reached(programs: Programs) -> None:
    code = f"ls -d /proc/[0-9]* | wc -l; kill -KILL {os.getpid()}"
    result = await programs.run("sh", "-c", code, sandbox=BUBBLEWRAP)
    assert int(result.stdout) <= 5
    assert "No such process" in result.stderr


@in_sandbox
async def test_the_environment_of_the_application_is_out_of_reach(
    programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_KEY", "to-be-kept")
    code = "env; cat /proc/*/environ; echo $HOME"
    result = await programs.run("sh", "-c", code, sandbox=BUBBLEWRAP)
    assert "to-be-kept" not in result.stdout
    assert result.stdout.endswith("/tmp\n")


@in_sandbox
async def test_a_program_gets_no_rights_back(programs: Programs) -> None:
    code = "grep -E '^(CapEff|NoNewPrivs)' /proc/self/status; unshare --user true; id -u"
    result = await programs.run("sh", "-c", code, sandbox=BUBBLEWRAP)
    capabilities, privileges, user = result.stdout.split("\n")[:3]
    assert int(capabilities.split()[1], 16) == 0
    assert privileges.split()[1] == "1"
    assert user == "1000"
    assert "unshare" in result.stderr


@in_sandbox
async def test_a_bomb_of_processes_is_ended(programs: Programs) -> None:
    result = await programs.python(BOMB, sandbox=PYTHON, limits={"processes": 40, "wall_clock": 5})
    # The kernel lets no more begin, or (for root) their number is seen.
    assert result.ended_by == "processes" or "Resource temporarily unavailable" in result.stderr


@in_sandbox
async def test_a_memory_hog_is_ended(programs: Programs) -> None:
    result = await programs.run(
        "tail", "/dev/zero", sandbox=BUBBLEWRAP, limits={"memory_bytes": 100 * MIB}
    )
    assert (result.ended_by, result.signal) == ("memory", "SIGKILL")


@in_sandbox
async def test_time_ends_what_ignores_the_request_to_end(programs: Programs) -> None:
    code = "trap '' TERM; echo begun; setsid sleep 600 & sleep 600; sleep 600"
    result = await programs.run("sh", "-c", code, sandbox=BUBBLEWRAP, limits={"wall_clock": 0.5})
    assert (result.ended_by, result.signal, result.stdout) == ("wall_clock", "SIGKILL", "begun\n")


@in_sandbox
async def test_a_program_may_end_itself_in_its_grace(programs: Programs) -> None:
    code = "trap 'echo bye; exit 7' TERM; echo begun; while :; do sleep 0.01; done"
    result = await programs.run(
        "sh", "-c", code, sandbox=BUBBLEWRAP, limits={"wall_clock": 1.0, "kill_grace": 20}
    )
    assert (result.ended_by, result.exit_code, result.stdout) == ("wall_clock", 7, "begun\nbye\n")


@in_sandbox
async def test_a_daemon_ends_with_its_sandbox(programs: Programs) -> None:
    result = await programs.python(DAEMON, sandbox=PYTHON)
    assert (result.exit_code, result.stdout) == (0, "left\n")
    assert programs.left() == []


@in_sandbox
@pytest.mark.parametrize("anyio_backend", ["trio"])
async def test_a_sandbox_outlives_the_thread_that_started_it(
    programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    # trio starts processes in threads, and ends those that have had nothing to do for a while.
    monkeypatch.setattr("trio._core._thread_cache.IDLE_TIMEOUT", 0.01)
    result = await programs.run("sh", "-c", "sleep 1; echo there", sandbox=BUBBLEWRAP)
    assert (result.stdout, result.ended_by) == ("there\n", None)


@in_sandbox
@pytest.mark.parametrize("delay", [step / 200 for step in range(0, 40, 4)])
async def test_a_cancellation_at_any_moment_leaves_nothing(
    programs: Programs, delay: float
) -> None:
    handles = len(os.listdir("/proc/self/fd"))
    with anyio.move_on_after(delay):
        await programs.run("sh", "-c", "setsid sleep 600 & yes", sandbox=BUBBLEWRAP)
    assert programs.left() == []
    assert len(os.listdir("/proc/self/fd")) == handles


@in_sandbox
async def test_a_program_that_the_sandbox_does_not_show_is_not_found(
    programs: Programs, tmp_path: Path
) -> None:
    (tmp_path / "outside").symlink_to("/bin/true")
    for name in ("no-such-program", os.fspath(tmp_path / "outside")):
        with pytest.raises(ProcessError, match="there is no program") as caught:
            await programs.run(name, sandbox=BUBBLEWRAP)
        assert caught.value.reason == "not_found"


# Where there is none


@pytest.mark.parametrize("kind", ["auto", "bubblewrap"])
async def test_without_bubblewrap_nothing_runs(
    programs: Programs, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr("shutil.which", lambda name, path=None: None)
    policy = SandboxPolicy.model_validate({"kind": kind})
    with pytest.raises(SandboxUnavailableError, match="apt-get install bubblewrap"):
        await programs.run("touch", "ran", sandbox=policy)
    assert not (programs.root / "ran").exists()


async def test_a_bubblewrap_that_cannot_make_a_sandbox_runs_nothing(
    programs: Programs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / "bin" / "bwrap"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:{os.environ['PATH']}")
    with pytest.raises(SandboxUnavailableError, match="setting up uid map: Permission denied"):
        await programs.run("touch", "ran", sandbox=BUBBLEWRAP)
    assert not (programs.root / "ran").exists()


@in_sandbox
@pytest.mark.parametrize("root", ["/", "/usr"])
async def test_a_folder_with_the_system_in_it_is_no_working_folder(root: str) -> None:
    with pytest.raises(ConfigurationError, match="holds folders of the system"):
        await run_process(["true"], root=root, sandbox=BUBBLEWRAP)


async def test_a_path_to_show_must_exist(programs: Programs) -> None:
    policy = SandboxPolicy(kind="bubblewrap", readable=("/no/such/path",))
    with pytest.raises(ConfigurationError, match="'/no/such/path', which does not exist"):
        await programs.run("true", sandbox=policy)


@in_sandbox
async def test_auto_takes_bubblewrap(programs: Programs) -> None:
    result = await run_process(
        ["cat", "/proc/1/comm"],
        root=programs.root,
        sandbox=SandboxPolicy(),
        limits=ProcessLimits(),
    )
    assert result.stdout == "bwrap\n"
