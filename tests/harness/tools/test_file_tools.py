"""The file tools: what a model reads of them, and what it cannot do with them."""

import os
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support import PATIENCE
from tinyagents import AgentHarness, CancellationToken, RunConfig, RunPolicy
from tinyagents.harness.agent_loop import AgentRun
from tinyagents.harness.errors import ConfigurationError, ToolFailedError
from tinyagents.harness.tools import FileToolLimits, file_tools
from tinyagents.harness.workspace import WorkspaceDescriptor
from tinyagents.testkit import ScriptedModel, call, say

SECRET = "outside-secret"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    (folder / "src").mkdir(parents=True)
    (folder / "a.txt").write_text("one\ntwo\nthree\n")
    (folder / "src" / "main.py").write_text("def main():\n    return 1\n")
    (tmp_path / "secret.txt").write_text(SECRET)
    return folder


class Files:
    """Calls the tools through a run, as a model does."""

    def __init__(
        self, root: Path | WorkspaceDescriptor | None, limits: FileToolLimits | None = None
    ) -> None:
        self.root = root
        self.tools = file_tools(limits=limits)
        self.run: AgentRun[Any, Any] | None = None

    async def __call__(self, tool_name: str, /, **arguments: Any) -> str:
        result, is_error = await self.result(tool_name, **arguments)
        assert not is_error, result
        return result

    async def refused(self, tool_name: str, /, **arguments: Any) -> str:
        result, is_error = await self.result(tool_name, **arguments)
        assert is_error, result
        return result

    async def result(self, tool_name: str, /, **arguments: Any) -> tuple[str, bool]:
        model = ScriptedModel([[call(tool_name, **arguments)], say("done")])
        harness = AgentHarness(model=model, tools=self.tools, workspace=self.root)
        self.run = await harness.invoke(None, "go")
        (message,) = [m for m in self.run.messages if m.role == "tool"]
        return message.text, message.is_error

    @property
    def violations(self) -> int:
        assert self.run is not None
        return sum(event.kind == "workspace.violation" for event in self.run.events)


def test_the_set_can_leave_out_what_changes_files() -> None:
    names = ["read_file", "list_files", "glob_files", "grep_files"]
    assert [tool.name for tool in file_tools(read_only=True)] == names
    assert [tool.name for tool in file_tools()] == [*names, "write_file", "edit_file"]


def test_the_policies_say_what_the_tools_do() -> None:
    for tool in file_tools():
        policy = tool.policy
        changes = tool.name in ("write_file", "edit_file")
        assert policy.classified
        assert policy.access.workspace == "scoped"
        assert policy.side_effects.writes_files is changes
        assert policy.side_effects.read_only is not changes
        assert policy.runtime.exclusive is changes
        assert "ctx" not in str(tool.schema.parameters)


async def test_without_a_workspace_they_refuse_and_say_how_to_give_one() -> None:
    model = ScriptedModel([[call("list_files")]])
    policy = RunPolicy(tool_errors="fail")
    with pytest.raises(ToolFailedError) as caught:
        await AgentHarness(model=model, tools=file_tools(), policy=policy).invoke(None, "go")
    assert isinstance(caught.value.__cause__, ConfigurationError)
    assert "pass `workspace=`" in str(caught.value.__cause__)


@pytest.mark.parametrize("kind", ["missing", "file"])
async def test_a_workspace_without_a_folder_is_told_as_that_and_not_made(
    tmp_path: Path, kind: str
) -> None:
    root = tmp_path / "root"
    if kind == "file":
        root.write_text("a")
    for name, arguments in (
        ("list_files", {}),
        ("read_file", {"path": "a.txt"}),
        ("write_file", {"path": "a.txt", "content": "a"}),
        ("edit_file", {"path": "a.txt", "old_text": "a", "new_text": "b"}),
        ("grep_files", {"pattern": "a"}),
        ("glob_files", {"pattern": "*"}),
    ):
        text = await Files(root).refused(name, **arguments)
        assert text == "the workspace has no folder: it was never made, or has been removed"
    assert not root.is_dir()


async def test_a_file_is_read_with_line_numbers(root: Path) -> None:
    text = await Files(root)("read_file", path="a.txt")
    assert text.startswith(
        "     1\tone\n     2\ttwo\n     3\tthree\n[lines 1-3 of 3; 14 bytes; sha256 "
    )


async def test_a_window_says_how_to_go_on(root: Path) -> None:
    files = Files(root)
    text = await files("read_file", path="a.txt", start_line=2, line_count=1)
    assert text.startswith("     2\ttwo\n[lines 2-2 of 3; go on with start_line=3; ")
    assert "no line 9: the file has 3 lines" in await files("read_file", path="a.txt", start_line=9)
    (root / "empty").touch()
    assert (await files("read_file", path="empty")).startswith("[empty file; 0 bytes")


async def test_long_lines_long_files_and_long_results_are_cut_and_say_so(root: Path) -> None:
    limits = FileToolLimits(max_line_chars=5, max_lines=2, max_output_chars=60, max_file_bytes=100)
    files = Files(root, limits)
    (root / "b.txt").write_text("123456789\n" * 30)
    text = await files("read_file", path="b.txt")
    assert text.splitlines()[0] == "     1\t12345 [cut: 4 more characters]"
    assert "[lines 1-1 of 10+; go on with start_line=2" in text
    assert "only the first 100 bytes can be read" in text
    assert "sha256" not in text


async def test_a_binary_file_is_described_and_not_shown(root: Path) -> None:
    (root / "x.png").write_bytes(b"\x89PNG\0\0data")
    text = await Files(root)("read_file", path="x.png")
    assert text == "[binary file, image/png, 10 bytes: not shown]"


async def test_what_is_no_utf8_is_replaced_and_that_is_said(root: Path) -> None:
    (root / "latin.txt").write_bytes("caf\xe9\r\nb\r\n".encode("latin-1"))
    text = await Files(root)("read_file", path="latin.txt")
    assert "     1\tcaf\N{REPLACEMENT CHARACTER}\n     2\tb\n" in text
    assert "not UTF-8" in text
    assert "lines end with CRLF" in text


async def test_a_missing_file_is_told_with_names_that_look_like_it(root: Path) -> None:
    text = await Files(root).refused("read_file", path="src/mian.py")
    assert text == "there is no 'src/mian.py'; there is 'src/main.py'"
    assert (
        await Files(root).refused("read_file", path="a.txt/x") == "a part of 'a.txt/x' is no folder"
    )


async def test_a_file_is_created_and_overwritten_only_if_that_was_asked_for(root: Path) -> None:
    files = Files(root)
    text = await files("write_file", path="new/n.txt", content="hä\n")
    assert text.startswith("created 'new/n.txt': 4 bytes; sha256 ")
    assert (root / "new" / "n.txt").read_bytes() == "hä\n".encode()
    assert "set overwrite=true" in await files.refused("write_file", path="a.txt", content="x")
    assert (root / "a.txt").read_text() == "one\ntwo\nthree\n"
    text = await files("write_file", path="a.txt", content="x", overwrite=True)
    assert text.startswith("overwrote 'a.txt'")


async def test_a_file_is_replaced_only_while_it_has_the_expected_content(root: Path) -> None:
    files = Files(root)
    shown = await files("read_file", path="a.txt")
    digits = shown.rpartition("sha256 ")[2].rstrip("]")
    await files("write_file", path="a.txt", content="new", expected_sha256=digits)
    for wrong in (digits, "", "0", digits[:3]):
        text = await files.refused("write_file", path="a.txt", content="x", expected_sha256=wrong)
        assert "the file has changed" in text
    assert (root / "a.txt").read_text() == "new"


async def test_a_text_that_is_too_large_is_not_written(root: Path) -> None:
    files = Files(root, FileToolLimits(max_file_bytes=3))
    assert "a file may have 3" in await files.refused("write_file", path="n", content="1234")
    assert not (root / "n").exists()
    assert "larger than 3 bytes" in await files.refused(
        "edit_file", path="a.txt", old_text="one", new_text="1"
    )


async def test_an_edit_replaces_one_piece_and_shows_it(root: Path) -> None:
    text = await Files(root)("edit_file", path="a.txt", old_text="two\n", new_text="2\n2b\n")
    assert (root / "a.txt").read_text() == "one\n2\n2b\nthree\n"
    assert text.startswith("edited 'a.txt': 1 place, first at line 2; sha256 ")
    assert "     3\t2b" in text


async def test_an_edit_keeps_line_endings_permissions_and_what_is_no_text(root: Path) -> None:
    content = b"\xff\xfe one\r\ntwo\r\nthree\r\n"
    (root / "w.txt").write_bytes(content)
    (root / "w.txt").chmod(0o640)
    files = Files(root)
    await files("edit_file", path="w.txt", old_text="two\nthree", new_text="2\n2b\n3")
    assert (root / "w.txt").read_bytes() == b"\xff\xfe one\r\n2\r\n2b\r\n3\r\n"
    assert (root / "w.txt").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    ("old", "said"),
    [
        ("", "old_text is empty"),
        ("e\n", "more than once, at lines 1, 3"),
        ("  two", "line 2 begins the same with other indentation"),
        ("     2\ttwo", "leave out the line numbers"),
        ("two\nfour", "its first line is, at line 2"),
        ("nothing", "read the file again"),
        ("aa", "more than once, at lines 4, 4"),
    ],
)
async def test_an_edit_that_cannot_be_made_says_why(root: Path, old: str, said: str) -> None:
    (root / "a.txt").write_text("one\ntwo\nthree\naaa\n")
    text = await Files(root).refused("edit_file", path="a.txt", old_text=old, new_text="x")
    assert said in text
    assert (root / "a.txt").read_text() == "one\ntwo\nthree\naaa\n"


async def test_every_place_is_replaced_when_that_is_asked_for(root: Path) -> None:
    files = Files(root)
    text = await files("edit_file", path="a.txt", old_text="e", new_text="E", replace_all=True)
    assert "3 places, first at line 1" in text
    assert (root / "a.txt").read_text() == "onE\ntwo\nthrEE\n"


async def test_edits_of_one_file_in_one_turn_do_not_lose_each_other(root: Path) -> None:
    (root / "n.txt").write_text("".join(f"<{n}>\n" for n in range(20)))
    edits = [
        call("edit_file", path="n.txt", old_text=f"<{n}>", new_text=f"[{n}]") for n in range(20)
    ]
    model = ScriptedModel([edits, say("done")])
    await AgentHarness(model=model, tools=file_tools(), workspace=root).invoke(None, "go")
    assert (root / "n.txt").read_text() == "".join(f"[{n}]\n" for n in range(20))


async def test_a_list_is_sorted_bounded_and_escapes_names(root: Path, tmp_path: Path) -> None:
    (root / "evil\n[lines 1-1]").touch()
    (root / "out").symlink_to(tmp_path)
    os.mkfifo(root / "pipe")
    assert (await Files(root)("list_files")).splitlines() == [
        "a.txt  14 bytes",
        "evil\\n[lines 1-1]  0 bytes",
        "out  link",
        "pipe  no file",
        "src/",
    ]
    text = await Files(root, FileToolLimits(max_entries=2))("list_files")
    assert text.endswith("[3 more: search with glob_files]")
    (root / "none").mkdir()
    assert await Files(root)("list_files", path="none") == "[empty folder]"
    assert "a part of" in await Files(root).refused("list_files", path="a.txt")


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.txt", ["a.txt"]),
        ("**/*.py", ["src/deep/x.py", "src/main.py"]),
        ("src/*.py", ["src/main.py"]),
        ("**", ["a.txt", "src/deep/x.py", "src/main.py"]),
        ("./src/**/x.*", ["src/deep/x.py"]),
        ("src/{main,other}.py", ["src/main.py"]),
        ("src/deep/**/x.py", ["src/deep/x.py"]),
        ("[ab].txt", ["a.txt"]),
        ("A.TXT", []),
        ("src", []),
    ],
)
async def test_files_are_found_by_patterns_of_their_paths(
    root: Path, pattern: str, found: list[str]
) -> None:
    (root / "src" / "deep").mkdir()
    (root / "src" / "deep" / "x.py").touch()
    (root / "node_modules" / "m").mkdir(parents=True)
    (root / "node_modules" / "m" / "x.py").touch()
    text = await Files(root)("glob_files", pattern=pattern)
    assert text == ("\n".join(found) or "[no files]")


async def test_a_pattern_is_looked_for_below_a_folder(root: Path) -> None:
    assert await Files(root)("glob_files", pattern="*", path="src") == "src/main.py"
    assert await Files(root)("glob_files", pattern="*", path="./src/") == "src/main.py"
    text = await Files(root, FileToolLimits(max_entries=1))("glob_files", pattern="**")
    assert text == "a.txt\n[only the first 1: narrow the search]"


@pytest.mark.parametrize(
    "pattern", ["", "/etc/*", "../*", "a/../../*", "x" * 2_000, "{a,b}" * 20, "a/" * 100]
)
async def test_a_pattern_that_cannot_be_is_refused(root: Path, pattern: str) -> None:
    await Files(root).refused("glob_files", pattern=pattern)


async def test_a_pattern_made_to_explode_does_not(root: Path) -> None:
    (root / ("a" * 200)).touch()
    files = Files(root)
    assert await files("glob_files", pattern="*a" * 100 + "b") == "[no files]"
    assert await files("glob_files", pattern="**/" * 60 + "b") == "[no files]"


async def test_lines_are_found_with_their_files_and_numbers(root: Path) -> None:
    files = Files(root)
    assert await files("grep_files", pattern="return") == "src/main.py:2:    return 1"
    assert await files("grep_files", pattern="RETURN", ignore_case=True) != "[nothing found]"
    assert await files("grep_files", pattern="t", glob="*.txt") == "a.txt:2:two\na.txt:3:three"
    assert await files("grep_files", pattern="two", path="a.txt", context_lines=1) == (
        "a.txt-1-one\na.txt:2:two\na.txt-3-three"
    )
    assert await files("grep_files", pattern="t.o") == "[nothing found]"
    assert await files("grep_files", pattern="^t.o$", regex=True) == "a.txt:2:two"
    assert await files("grep_files", pattern="^T.O$", regex=True, ignore_case=True) == "a.txt:2:two"


async def test_places_that_are_apart_are_shown_apart(root: Path) -> None:
    (root / "n.txt").write_text("x\n1\n2\n3\n4\nx\nx\n")
    text = await Files(root)("grep_files", pattern="x", path="n.txt", context_lines=1)
    assert text.splitlines() == [
        "n.txt:1:x",
        "n.txt-2-1",
        "--",
        "n.txt-5-4",
        "n.txt:6:x",
        "n.txt:7:x",
    ]


@pytest.mark.parametrize(
    "pattern", ["(", "(?=x)", r"(x)\1", "x" * 501, "((a{0,100}){0,100}){0,10}b"]
)
async def test_an_expression_that_is_none_or_too_large_is_refused(root: Path, pattern: str) -> None:
    text = await Files(root).refused("grep_files", pattern=pattern, regex=True)
    assert "the pattern" in text


async def test_an_expression_made_to_explode_does_not(root: Path) -> None:
    (root / "evil.txt").write_text("a" * 100_000 + "!\n")
    files = Files(root)
    for pattern in ("(a+)+$", "(a|aa)+$", "(.*)*b", "(a|a)*c"):
        await files("grep_files", pattern=pattern, regex=True, path="evil.txt")


async def test_binary_files_skipped_folders_and_links_are_not_searched(
    root: Path, tmp_path: Path
) -> None:
    (root / "x.bin").write_bytes(b"needle\0")
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text("needle")
    (root / "link").symlink_to(tmp_path)
    (root / "file").symlink_to(tmp_path / "secret.txt")
    os.mkfifo(root / "pipe")
    files = Files(root)
    assert await files("grep_files", pattern="needle") == "[nothing found]"
    assert await files("grep_files", pattern=SECRET) == "[nothing found]"
    assert await files("grep_files", pattern="needle", path=".git") == ".git/config:1:needle"


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({"max_matches": 2}, "only the first 2 lines"),
        ({"max_output_chars": 10}, "only the first 1 lines"),
        ({"max_file_bytes": 5}, "of 'big.txt' only the first 5 bytes were searched"),
        ({"max_searched_bytes": 10}, "stopped after 10 bytes"),
        ({"max_walked_entries": 1}, "stopped after 1 names"),
        ({"max_seconds": 1e-9}, "stopped after 1e-09 s"),
    ],
)
async def test_a_search_stops_at_its_bounds_and_says_so(
    root: Path, limits: dict[str, Any], said: str
) -> None:
    (root / "big.txt").write_text("needle in a line\n" * 10)
    text = await Files(root, FileToolLimits(**limits))("grep_files", pattern="n")
    assert said in text.splitlines()[-1]
    assert text.endswith(": narrow the search]")


async def test_long_lines_of_a_search_are_cut(root: Path) -> None:
    (root / "long.txt").write_text("needle" + "x" * 1_000)
    text = await Files(root)("grep_files", pattern="needle")
    assert text.endswith("[cut: 706 more characters]")


async def test_a_search_of_a_cancelled_run_ends(root: Path) -> None:
    token = CancellationToken()
    tools = {tool.name: tool for tool in file_tools()}
    harness = AgentHarness(
        model=ScriptedModel([[call("grep_files", pattern="x")], say("done")]),
        tools=[tools["grep_files"]],
        workspace=root,
    )
    token.cancel("enough")
    with pytest.raises(Exception, match="cancelled"):
        await harness.invoke(None, "go", cancellation=token)


ESCAPES = [
    "../secret.txt",
    "src/../../secret.txt",
    "/etc/passwd",
    "//etc/passwd",
    "link",
    "folder/secret.txt",
    "chain",
    "folder",
]


@pytest.mark.parametrize("path", ESCAPES)
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("read_file", {}),
        ("write_file", {"content": "x", "overwrite": True}),
        ("write_file", {"content": "x", "expected_sha256": "0"}),
        ("edit_file", {"old_text": SECRET, "new_text": "x"}),
        ("list_files", {}),
        ("glob_files", {"pattern": "**"}),
        ("grep_files", {"pattern": "outside"}),
    ],
)
async def test_no_path_leads_out(
    root: Path, tmp_path: Path, path: str, name: str, arguments: dict[str, Any]
) -> None:
    (root / "link").symlink_to(tmp_path / "secret.txt")
    (root / "folder").symlink_to(tmp_path)
    (root / "chain").symlink_to("folder/secret.txt")
    before = sorted(p.name for p in tmp_path.rglob("*"))
    files = Files(root)
    text = await files.refused(name, path=path, **arguments)
    assert SECRET not in text
    assert str(tmp_path) not in text
    assert (tmp_path / "secret.txt").read_text() == SECRET
    assert sorted(p.name for p in tmp_path.rglob("*")) == before
    if "outside" in text:
        assert files.violations == 1


@pytest.mark.parametrize("path", ["", "x" * 300, "d/" * 3_000, "d/" * 200, "pipe", "s", "src"])
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("read_file", {}),
        ("write_file", {"content": "x", "overwrite": True}),
        ("edit_file", {"old_text": "a", "new_text": "b"}),
    ],
)
async def test_what_is_no_file_is_refused_and_never_waited_for(
    root: Path, monkeypatch: pytest.MonkeyPatch, path: str, name: str, arguments: dict[str, Any]
) -> None:
    os.mkfifo(root / "pipe")
    monkeypatch.chdir(root)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("s")
    text = await Files(root).refused(name, path=path, **arguments)
    assert len(text) < 400


async def test_a_device_is_not_opened() -> None:
    files = Files(WorkspaceDescriptor(root="/dev"))
    assert "no regular file" in await files.refused("read_file", path="zero")
    text = await files.refused("write_file", path="null", content="x", overwrite=True)
    assert "no regular file" in text


async def test_a_trusted_root_is_reached_by_absolute_paths(root: Path, tmp_path: Path) -> None:
    trusted = tmp_path / "trusted"
    trusted.mkdir()
    (trusted / "t.txt").write_text("trust")
    workspace = WorkspaceDescriptor(root=str(root), trusted_roots=(str(trusted),))
    files = Files(workspace)
    assert "trust" in await files("read_file", path=f"{trusted}/t.txt")
    assert await files("glob_files", pattern="*", path=str(trusted)) == f"{trusted}/t.txt"
    assert await files("grep_files", pattern="t", path=str(trusted)) == f"{trusted}/t.txt:1:trust"
    assert "one" in await files("read_file", path=f"{root}/a.txt")
    await files.refused("read_file", path=f"{trusted}/../secret.txt")


async def test_a_root_that_is_a_link_is_a_root(root: Path, tmp_path: Path) -> None:
    (tmp_path / "name").symlink_to(root)
    files = Files(tmp_path / "name")
    assert "one" in await files("read_file", path="a.txt")
    assert "one" in await files("read_file", path=f"{root}/a.txt")
    await files("write_file", path="n.txt", content="n")
    assert (root / "n.txt").read_text() == "n"


async def test_a_part_of_a_workspace_that_became_a_link_leads_nowhere(
    root: Path, tmp_path: Path
) -> None:
    part = RunConfig(workspace=WorkspaceDescriptor(root=str(root / "src")))
    (root / "src").rename(root / "held")
    (root / "src").symlink_to(tmp_path)
    model = ScriptedModel([[call("read_file", path="secret.txt")], say("done")])
    harness = AgentHarness(model=model, tools=file_tools(), workspace=root)
    run = await harness.invoke(None, "go", config=part)
    (message,) = [m for m in run.messages if m.role == "tool"]
    assert message.is_error
    assert SECRET not in message.text


async def test_a_file_swapped_for_a_link_while_a_run_works_on_it_never_leads_out(
    root: Path, tmp_path: Path
) -> None:
    place = root / "a.txt"

    def swap() -> None:
        (root / "link").symlink_to(tmp_path / "secret.txt")
        (root / "link").rename(place)
        (root / "file").write_text("one\n")
        (root / "file").rename(place)

    rounds = [
        [
            call("read_file", path="a.txt"),
            call("grep_files", pattern="o"),
            call("edit_file", path="a.txt", old_text="o", new_text="0"),
            call("write_file", path="a.txt", content="x", overwrite=True),
        ]
        for _ in range(12)
    ]
    model = ScriptedModel([*rounds, say("done")])
    harness = AgentHarness(model=model, tools=file_tools(), workspace=root)
    with swapping(swap):
        run = await harness.invoke(None, "go")
    assert SECRET not in "".join(m.text for m in run.messages if m.role == "tool")
    assert (tmp_path / "secret.txt").read_text() == SECRET


class swapping:
    """Another thread that goes on doing something."""

    def __init__(self, swap: Callable[[], None]) -> None:
        self._swap = swap
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._work)

    def _work(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while not self._done.is_set() and time.monotonic() < deadline:
            self._swap()

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join(PATIENCE)


async def test_a_huge_file_takes_no_longer_than_what_is_read_of_it(root: Path) -> None:
    with (root / "huge.bin").open("wb") as file:
        file.truncate(20_000_000_000)
    with (root / "huge.log").open("wb") as file:
        file.write(b"line\n" * 10)
        file.truncate(20_000_000_000)
    files = Files(root, FileToolLimits(max_file_bytes=50))
    assert "20000000000 bytes: not shown" in await files("read_file", path="huge.bin")
    text = await files("read_file", path="huge.log")
    assert "[lines 1-10 of 10+; 20000000000 bytes; only the first 50 bytes can be read" in text
    assert "huge.log:1:line" in await files("grep_files", pattern="line")
    for name, arguments in (
        ("edit_file", {"old_text": "line", "new_text": "x"}),
        ("write_file", {"content": "x", "expected_sha256": "0" * 16}),
    ):
        text = await files.refused(name, path="huge.log", **arguments)
        assert "larger than 50 bytes" in text
