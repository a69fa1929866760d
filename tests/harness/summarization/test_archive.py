"""What was dropped: where it is kept, and how a model finds it again."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tinyagents import AgentHarness, AssistantMessage, RunConfig, ToolMessage, UserMessage
from tinyagents.harness.errors import ConfigurationError
from tinyagents.harness.message import Message, ToolCallBlock
from tinyagents.harness.middleware import ContextWindowMiddleware
from tinyagents.harness.summarization import (
    ContextArchive,
    InMemoryContextArchive,
    JsonlContextArchive,
    TrimOldest,
    message_ref,
    search_dropped_tool,
    search_messages,
)
from tinyagents.testkit import ScriptedModel, call, say

SAID: list[Message] = [
    UserMessage(content="The code word is heron."),
    AssistantMessage(content=[ToolCallBlock(id="c1", name="look", arguments={"q": "port"})]),
    ToolMessage(tool_call_id="c1", content=f"{'noise ' * 2_000} the port is 8443 {'hum ' * 2_000}"),
]


@pytest.fixture(params=["memory", "files"])
def archive(request: pytest.FixtureRequest, tmp_path: Path) -> ContextArchive:
    return InMemoryContextArchive() if request.param == "memory" else JsonlContextArchive(tmp_path)


async def test_what_is_added_is_there_in_its_order(archive: ContextArchive) -> None:
    await archive.add("a", SAID[:1])
    await archive.add("a", SAID[1:])
    await archive.add("b", SAID[2:])
    assert list(await archive.load("a")) == SAID
    assert list(await archive.load("b")) == SAID[2:]
    assert not await archive.load("c")
    await archive.add("c", [])
    assert not await archive.load("c")


async def test_what_is_added_again_stays_single(archive: ContextArchive) -> None:
    await archive.add("a", SAID)
    await archive.add("a", [message.model_copy() for message in SAID])
    assert list(await archive.load("a")) == SAID


async def test_memory_is_bounded() -> None:
    archive = InMemoryContextArchive(max_messages=2, max_conversations=2)
    await archive.add("a", SAID)
    assert list(await archive.load("a")) == SAID[1:]
    for key in ("b", "c"):
        await archive.add(key, SAID[:1])
    assert not await archive.load("a")
    with pytest.raises(ConfigurationError):
        InMemoryContextArchive(max_messages=0)


class TestFiles:
    async def test_they_outlive_the_process_and_any_key_makes_a_safe_name(
        self, tmp_path: Path
    ) -> None:
        key = "thread-../../etc/passwd\0"
        await JsonlContextArchive(tmp_path / "deep").add(key, SAID)
        again = JsonlContextArchive(tmp_path / "deep")
        assert list(await again.load(key)) == SAID
        (file,) = (tmp_path / "deep").iterdir()
        assert file == again.path(key)
        assert file.stat().st_mode & 0o077 == 0
        assert [json.loads(line)["role"] for line in file.read_text().splitlines()] == [
            "user",
            "assistant",
            "tool",
        ]

    @pytest.mark.parametrize(
        "line",
        [b"{}", b"null", b"", b"\xff", b'{"role":"user","content":"a"},' * 2 + b"{}", b"1,2"],
    )
    async def test_a_line_that_is_no_message_is_passed_over(
        self, line: bytes, tmp_path: Path
    ) -> None:
        archive = JsonlContextArchive(tmp_path)
        archive.path("a").write_bytes(line + b"\n")
        await archive.add("a", SAID[:1])
        assert list(await archive.load("a")) == SAID[:1]

    async def test_two_lines_that_have_run_into_one_do_not_hide_the_others(
        self, tmp_path: Path
    ) -> None:
        archive = JsonlContextArchive(tmp_path)
        await archive.add("a", SAID[:2])
        path = archive.path("a")
        path.write_bytes(path.read_bytes().replace(b"}\n{", b"},{"))
        await archive.add("a", SAID[2:])
        assert list(await archive.load("a")) == SAID[2:]

    async def test_a_line_that_a_crash_has_cut_is_passed_over(self, tmp_path: Path) -> None:
        archive = JsonlContextArchive(tmp_path)
        await archive.add("a", SAID[:2])
        path = archive.path("a")
        path.write_bytes(path.read_bytes()[:-20])
        assert list(await archive.load("a")) == SAID[:1]
        await archive.add("a", SAID[2:])
        assert list(await archive.load("a")) == [SAID[0], SAID[2]]

    async def test_only_the_end_of_a_long_file_is_loaded(self, tmp_path: Path) -> None:
        archive = JsonlContextArchive(tmp_path, max_bytes=300)
        many = [UserMessage(content=f"message {n}") for n in range(50)]
        await archive.add("a", many)
        loaded = await archive.load("a")
        assert 0 < len(loaded) < 6
        assert loaded[-1] == many[-1]

    async def test_a_link_is_not_written_through(self, tmp_path: Path) -> None:
        archive = JsonlContextArchive(tmp_path / "root")
        (tmp_path / "root").mkdir()
        (tmp_path / "other").write_text("mine")
        archive.path("a").symlink_to(tmp_path / "other")
        with pytest.raises(OSError, match=r".*"):
            await archive.add("a", SAID)
        assert (tmp_path / "other").read_text() == "mine"


class TestSearching:
    def test_the_passage_with_the_words_is_found_inside_a_long_message(self) -> None:
        (found,) = search_messages(SAID, "port 8443", limit=1)
        assert (found.ref, found.role) == (message_ref(SAID[2]), "tool")
        assert "the port is 8443" in found.text
        assert found.of > 5
        assert len(found.text) <= 2_000

    def test_nothing_is_found_without_the_words(self) -> None:
        assert search_messages(SAID, "zebra") == []


def agent(
    archive: ContextArchive, query: str, answer: Callable[[str], None] | None = None, **options: Any
) -> AgentHarness:
    window = ContextWindowMiddleware([TrimOldest()], window=2_000, reserve=0, archive=archive)
    model = ScriptedModel([call("search_dropped", query=query), say("done")])
    return AgentHarness(
        model=model, tools=[search_dropped_tool(archive, **options)], middleware=[window]
    )


def told(messages: Sequence[Message]) -> str:
    return [message.text for message in messages if message.role == "tool"][-1]


async def test_a_model_finds_what_was_dropped_in_its_own_conversation() -> None:
    archive = InMemoryContextArchive()
    now = UserMessage(content="What was the code word?")
    run = await agent(archive, "code word").invoke(None, [*SAID, now])
    assert not any("heron" in m.text for m in run.messages if m.role == "user")
    assert "user, part 1 of 1 ---\nuser:\nThe code word is heron." in told(run.messages)


async def test_another_conversation_is_not_searched() -> None:
    archive = InMemoryContextArchive()
    first = agent(archive, "code word")
    await first.invoke(None, [*SAID, UserMessage(content="x")], config=RunConfig(thread_id="t1"))
    run = await agent(archive, "code word").invoke(None, "x", config=RunConfig(thread_id="t2"))
    assert told(run.messages) == "Nothing was left out of this conversation."
    same = await agent(archive, "code word").invoke(None, "x", config=RunConfig(thread_id="t1"))
    assert "heron" in told(same.messages)


async def test_words_that_are_nowhere_are_told_and_answers_are_bounded() -> None:
    archive = InMemoryContextArchive()
    now = UserMessage(content="?")
    run = await agent(archive, "zebra").invoke(None, [*SAID, now])
    assert (
        told(run.messages) == "None of the 3 messages that were left out has a word of the query."
    )
    run = await agent(archive, "noise", max_characters=100).invoke(None, [*SAID, now])
    assert len(told(run.messages)) == 100


@pytest.mark.parametrize("option", ["max_results", "max_characters"])
def test_a_search_for_nothing_is_refused(option: str) -> None:
    options: dict[str, Any] = {option: 0}
    with pytest.raises(ConfigurationError, match="search_dropped"):
        search_dropped_tool(InMemoryContextArchive(), **options)


async def test_a_search_does_not_find_earlier_searches() -> None:
    archive = InMemoryContextArchive()
    asked = AssistantMessage(
        content=[ToolCallBlock(id="s", name="search_dropped", arguments={"query": "code word"})]
    )
    answered = ToolMessage(tool_call_id="s", name="search_dropped", content="code word " * 900)
    given = [SAID[0], asked, answered, *SAID[1:], UserMessage(content="?")]
    run = await agent(archive, "code word").invoke(None, given)
    assert told(run.messages).count("---\n") == 1
    assert "heron" in told(run.messages)
