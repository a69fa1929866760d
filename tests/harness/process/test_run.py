"""Programs: what is told of them, what ends them, and that nothing stays behind."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from tests.harness.process.programs import BOMB, DAEMON, MIB, NONE, Programs, wait_until
from tests.support import PATIENCE
from tinyagents.harness.concurrency import run_together
from tinyagents.harness.errors import (
    ConfigurationError,
    InvalidRequestError,
    ProcessError,
    ProcessRefusedError,
)
from tinyagents.harness.process import ProcessLimits, SandboxPolicy, run_process


async def test_a_program_tells_its_output_and_its_exit_code(programs: Programs) -> None:
    result = await programs.run("sh", "-c", "echo out; echo err >&2; exit 3")
    assert (result.stdout, result.stderr, result.exit_code) == ("out\n", "err\n", 3)
    assert result.signal is None
    assert result.ended_by is None
    assert result.duration > 0
    assert not result.truncated


async def test_merged_errors_stand_where_they_were_written(programs: Programs) -> None:
    result = await programs.run("sh", "-c", "echo 1; echo 2 >&2; echo 3", merge_stderr=True)
    assert (result.stdout, result.stderr) == ("1\n2\n3\n", "")


async def test_arguments_never_meet_a_shell(programs: Programs) -> None:
    result = await programs.run("printf", "%s|", "$(id)", "; ls *", "a b", "`x`", "")
    assert result.stdout == "$(id)|; ls *|a b|`x`||"


async def test_the_end_by_a_signal_is_told_by_name(programs: Programs) -> None:
    result = await programs.run("sh", "-c", "kill -SEGV $$")
    assert (result.exit_code, result.signal) == (128 + signal.SIGSEGV, "SIGSEGV")


async def test_broken_pipes_end_programs_as_usual(programs: Programs) -> None:
    result = await programs.run("sh", "-c", "yes | head -n 1")
    assert (result.stdout, result.stderr, result.exit_code) == ("y\n", "", 0)


async def test_there_is_no_input(programs: Programs) -> None:
    assert (await programs.run("cat")).stdout == ""


async def test_a_program_leads_a_session_of_its_own(programs: Programs) -> None:
    code = "import os; print(os.getsid(0) == os.getpid() == os.getpgid(0))"
    assert (await programs.python(code)).stdout == "True\n"


async def test_output_that_is_no_text_is_replaced(programs: Programs) -> None:
    result = await programs.run("printf", r"a\377\303\244")
    assert result.stdout == "a�ä"


async def test_the_middle_of_a_long_output_is_left_out(programs: Programs) -> None:
    result = await programs.run("sh", "-c", "seq 1 100000", limits={"kept_output_bytes": 100})
    assert result.stdout.startswith("1\n2\n3\n")
    assert result.stdout.endswith("99999\n100000\n")
    size = sum(len(f"{number}\n") for number in range(1, 100_001))
    assert result.dropped_bytes == size - 100
    assert f"[… {size - 100} bytes left out …]" in result.stdout
    assert result.truncated


async def test_output_of_just_the_limit_is_whole(programs: Programs) -> None:
    result = await programs.run("printf", "0123456789", limits={"kept_output_bytes": 10})
    assert (result.stdout, result.truncated) == ("0123456789", False)


async def test_a_gigabyte_passes_without_being_kept(programs: Programs) -> None:
    limits = {"output_bytes": 2048 * MIB, "kept_output_bytes": 1000}
    result = await programs.run("head", "-c", "1G", "/dev/zero", limits=limits)
    assert (result.exit_code, result.ended_by) == (0, None)
    assert result.dropped_bytes == 1024 * MIB - 1000
    assert len(result.stdout) < 1100


async def test_a_flood_is_ended(programs: Programs) -> None:
    result = await programs.run("yes", limits={"output_bytes": 10 * MIB})
    assert result.ended_by == "output"
    assert result.stdout.startswith("y\ny\n")


async def test_output_is_shown_while_it_comes_and_only_as_much_as_is_kept(
    programs: Programs,
) -> None:
    shown: list[str] = []
    go_on = programs.root / "go-on"

    def show(text: str) -> None:
        shown.append(text)
        go_on.touch()

    result = await run_process(
        [
            "sh",
            "-c",
            r"printf 'a\303'; while [ ! -e go-on ]; do :; done; printf '\244'; seq 1 9999",
        ],
        root=programs.root,
        sandbox=NONE,
        limits=ProcessLimits(kept_output_bytes=1000),
        on_output=show,
    )
    assert result.exit_code == 0
    assert "".join(shown)[:2] == "aä"
    assert sum(map(len, shown)) <= 1000


# Limits


async def test_time_ends_what_does_not_end(programs: Programs) -> None:
    result = await programs.run("sh", "-c", "echo begun; sleep 600", limits={"wall_clock": 0.3})
    assert (result.ended_by, result.signal, result.stdout) == ("wall_clock", "SIGTERM", "begun\n")


async def test_a_program_may_end_itself_in_its_grace(programs: Programs) -> None:
    code = "trap 'echo bye; exit 7' TERM; echo begun; while :; do sleep 0.01; done"
    result = await programs.run(
        "sh", "-c", code, limits={"wall_clock": 1.0, "kill_grace": PATIENCE}
    )
    assert (result.ended_by, result.exit_code, result.stdout) == ("wall_clock", 7, "begun\nbye\n")


async def test_who_ignores_the_request_to_end_is_killed(programs: Programs) -> None:
    code = "trap '' TERM; sleep 600; sleep 600"
    result = await programs.run("sh", "-c", code, limits={"wall_clock": 0.3})
    assert (result.ended_by, result.signal) == ("wall_clock", "SIGKILL")


async def test_a_memory_hog_is_ended(programs: Programs) -> None:
    code = "held = []\nwhile True: held.append(b'x' * (1 << 20))"
    result = await programs.python(code, limits={"memory_bytes": 100 * MIB})
    assert (result.ended_by, result.signal) == ("memory", "SIGKILL")


async def test_memory_is_counted_over_all_processes_and_shared_pages_once(
    programs: Programs,
) -> None:
    code = """
import os, time
held = b'x' * (60 << 20)
for _ in range(4):
    if os.fork() == 0:
        OWN
        time.sleep(1)
        os._exit(0)
for _ in range(4): os.wait()
"""
    limits = {"memory_bytes": 150 * MIB}
    sharing = await programs.python(code.replace("OWN", ""), limits=limits)
    assert sharing.ended_by is None
    each_its_own = await programs.python(
        code.replace("OWN", "mine = bytearray(held)"), limits=limits
    )
    assert each_its_own.ended_by == "memory"


async def test_a_bomb_of_processes_is_ended(programs: Programs) -> None:
    result = await programs.python(BOMB, limits={"processes": 40})
    assert (result.ended_by, result.signal) == ("processes", "SIGKILL")


@pytest.mark.parametrize(
    ("limit", "most", "code", "said"),
    [
        ("address_space_bytes", 300 * MIB, "b'x' * (400 << 20)", "MemoryError"),
        ("open_files", 20, "[open('/dev/null') for _ in range(30)]", "Too many open files"),
        ("processes", 5, "import resource as r; print(r.getrlimit(r.RLIMIT_CORE))", "(0, 0)"),
    ],
)
async def test_limits_of_the_system_are_set(
    programs: Programs, limit: str, most: int, code: str, said: str
) -> None:
    result = await programs.python(code, limits={limit: most})
    assert said in result.stdout + result.stderr


async def test_a_file_grows_to_its_limit_only(programs: Programs) -> None:
    result = await programs.run(
        "sh", "-c", "head -c 5M /dev/zero > big; echo $?", limits={"file_bytes": MIB}
    )
    assert (programs.root / "big").stat().st_size == MIB
    assert result.stdout.strip() != "0"


async def test_processor_time_has_a_limit(programs: Programs) -> None:
    result = await programs.python("while True: pass", limits={"cpu_seconds": 1})
    assert result.signal in ("SIGXCPU", "SIGKILL")
    assert result.ended_by is None


# What is left behind


async def test_a_daemon_that_forked_twice_is_ended_with_its_program(programs: Programs) -> None:
    result = await programs.python(DAEMON)
    assert (result.exit_code, result.stdout, result.left_behind) == (0, "left\n", 1)
    assert programs.left() == []


async def test_what_runs_in_the_background_is_ended_and_counted(programs: Programs) -> None:
    result = await programs.run("sh", "-c", "sleep 600 & sleep 600 & echo done")
    assert (result.stdout, result.left_behind) == ("done\n", 2)


async def test_the_end_of_a_pipeline_may_finish(programs: Programs) -> None:
    code = "(while [ ! -e over ]; do :; done; echo last) & touch over"
    result = await programs.run("sh", "-c", code)
    assert (result.stdout, result.left_behind) == ("last\n", 0)


async def test_a_supervisor_that_its_program_kills_is_told(programs: Programs) -> None:
    with pytest.raises(ProcessError) as caught:
        await programs.run("sh", "-c", "sleep 600 & kill -KILL $PPID; sleep 600")
    assert caught.value.reason == "lost"


async def test_a_supervisor_that_its_program_stops_goes_on(programs: Programs) -> None:
    result = await programs.run(
        "sh", "-c", "kill -STOP $PPID; sleep 600", limits={"wall_clock": 0.5}
    )
    assert result.ended_by == "wall_clock"


def test_a_killed_application_takes_its_programs_with_it(
    programs: Programs, tmp_path: Path
) -> None:
    script = tmp_path / "application.py"
    script.write_text(f"""
import anyio
from tinyagents.harness.process import SandboxPolicy, run_process
argv = ["sh", "-c", "trap '' TERM; touch begun; sleep 600 & setsid sleep 600"]
anyio.run(lambda: run_process(argv, root={os.fspath(programs.root)!r},
    sandbox=SandboxPolicy(kind="none"), env={{"MARK_OF_TEST": {programs.mark!r}}}))
""")
    application = subprocess.Popen([sys.executable, script])
    try:
        wait_until(lambda: (programs.root / "begun").exists())
    finally:
        application.kill()
        application.wait()
    wait_until(lambda: not programs.left())


# Cancellation


async def test_a_cancelled_program_is_gone_with_all_its_processes(programs: Programs) -> None:
    begun = programs.root / "begun"
    async with anyio.create_task_group() as group:
        group.start_soon(
            programs.run, "sh", "-c", "trap '' TERM; setsid sleep 600 & touch begun; sleep 600"
        )
        await anyio.to_thread.run_sync(wait_until, begun.exists)
        assert programs.left()
        group.cancel_scope.cancel()
    assert programs.left() == []


@pytest.mark.parametrize("delay", [step / 200 for step in range(0, 40, 2)])
async def test_a_cancellation_at_any_moment_leaves_nothing(
    programs: Programs, delay: float
) -> None:
    handles = open_handles()
    with anyio.move_on_after(delay):
        await programs.run("sh", "-c", "sleep 600 & setsid sleep 600 & yes")
    assert programs.left() == []
    assert open_handles() == handles


async def test_twenty_at_once_keep_their_outputs_apart_and_leave_no_handles(
    programs: Programs,
) -> None:
    await programs.run("true")
    handles = open_handles()
    calls = [lambda n=n: programs.run("sh", "-c", f"seq {n} 2000; exit {n}") for n in range(20)]
    results = await run_together(calls)
    for number, result in enumerate(results):
        assert result.exit_code == number
        assert result.stdout == "".join(f"{line}\n" for line in range(number, 2001))
    assert open_handles() == handles


def open_handles() -> int:
    return len(os.listdir("/proc/self/fd"))


# What cannot be run


async def test_a_program_that_there_is_none_of_is_an_error(programs: Programs) -> None:
    with pytest.raises(ProcessError, match="there is no program 'no-such-program'") as caught:
        await programs.run("no-such-program")
    assert caught.value.reason == "not_found"


@pytest.mark.parametrize("name", ["/", "./plain", "nul\0byte", "half\ud800"])
async def test_what_is_no_program_is_an_error(programs: Programs, name: str) -> None:
    (programs.root / "plain").write_text("no program")
    with pytest.raises(ProcessError, match="cannot be started") as caught:
        await programs.run(name)
    assert caught.value.reason == "start"


async def test_too_many_arguments_are_an_error(programs: Programs) -> None:
    with pytest.raises(ProcessError, match="Argument list too long"):
        await programs.run("true", *["x" * 100_000] * 60)


@pytest.mark.parametrize("argv", ["ls -l", []])
async def test_a_text_is_no_list_of_arguments(programs: Programs, argv: str | list[str]) -> None:
    with pytest.raises(InvalidRequestError, match="`argv` is a list"):
        await run_process(argv, root=programs.root, sandbox=NONE)


async def test_the_working_folder_must_be_one(programs: Programs) -> None:
    with pytest.raises(ConfigurationError, match="is no folder"):
        await run_process(["true"], root=programs.root / "missing", sandbox=NONE)


@pytest.mark.parametrize("cwd", ["..", "/", "../root-beside", "link", "inner/../.."])
async def test_a_program_starts_inside_its_working_folder_only(
    programs: Programs, cwd: str
) -> None:
    (programs.root / "inner").mkdir()
    (programs.root / "link").symlink_to("/etc")
    (programs.root.parent / "root-beside").mkdir()
    with pytest.raises(ProcessError, match="outside of the working folder") as caught:
        await programs.run("pwd", cwd=cwd)
    assert caught.value.reason == "cwd"
    assert (await programs.run("pwd", cwd="inner")).stdout == f"{programs.root}/inner\n"


async def test_a_folder_that_is_missing_is_an_error(programs: Programs) -> None:
    with pytest.raises(ProcessError, match="cannot be entered") as caught:
        await programs.run("pwd", cwd="missing")
    assert caught.value.reason == "cwd"


async def test_only_chosen_variables_reach_a_program(
    programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_KEY", "secret")
    monkeypatch.setenv("LANG", "C.UTF-8")
    policy = SandboxPolicy(kind="none", environment=("PATH", "LANG"), variables={"MORE": "yes"})
    shown = (await programs.run("env", sandbox=policy)).stdout.splitlines()
    assert {line.partition("=")[0] for line in shown} == {"PATH", "LANG", "MORE", "MARK_OF_TEST"}
    assert "secret" not in "".join(shown)


async def test_programs_that_are_not_allowed_do_not_run(programs: Programs) -> None:
    policy = SandboxPolicy(kind="none", programs=("touch",))
    (programs.root / "touch").symlink_to("/bin/sh")
    for argv in (["sh", "-c", "touch x"], ["./touch", "-c", "touch x"], ["/usr/bin/touch", "x"]):
        with pytest.raises(ProcessRefusedError, match="allowed: `touch`"):
            await programs.run(*argv, sandbox=policy)
    assert not (programs.root / "x").exists()
    await programs.run("touch", "x", sandbox=policy)
    assert (programs.root / "x").exists()
