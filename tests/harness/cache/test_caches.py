"""The two caches: what every cache does, and what each does besides."""

import sqlite3
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from tinyagents import AssistantMessage, TextBlock
from tinyagents.harness.cache import (
    CacheStats,
    InMemoryResponseCache,
    ResponseCache,
    SqliteResponseCache,
    encode_response,
)
from tinyagents.harness.errors import CacheError, ConfigurationError
from tinyagents.harness.model import ModelResponse
from tinyagents.testkit import DeterministicClock
from tinyagents.testkit.conformance import ResponseCacheConformance


def answer(text: str) -> ModelResponse:
    return ModelResponse(AssistantMessage(content=text), "stop")


class TestInMemory(ResponseCacheConformance):
    @asynccontextmanager
    async def cache(self, clock: DeterministicClock) -> AsyncIterator[ResponseCache]:
        yield InMemoryResponseCache(clock=clock)

    @asynccontextmanager
    async def bounded(
        self, clock: DeterministicClock, entries: int
    ) -> AsyncIterator[ResponseCache]:
        yield InMemoryResponseCache(clock=clock, max_entries=entries)


class TestSqlite(ResponseCacheConformance):
    @pytest.fixture
    def anyio_backend(self) -> str:
        return "asyncio"  # what aiosqlite is made for

    @pytest.fixture(autouse=True)
    def _path(self, tmp_path: Path) -> None:
        self.path = tmp_path / "responses.db"

    @asynccontextmanager
    async def cache(self, clock: DeterministicClock) -> AsyncIterator[ResponseCache]:
        async with SqliteResponseCache(self.path, clock=clock) as cache:
            yield cache

    async def corrupt(self, cache: ResponseCache, key: str) -> None:
        connection = sqlite3.connect(self.path)
        connection.execute("UPDATE tinyagents_responses SET response = 'nonsense'")
        connection.commit()
        connection.close()

    def neighbour(self, cache: ResponseCache) -> ResponseCache:
        assert isinstance(cache, SqliteResponseCache)
        return cache.with_namespace("other")


class _Broken(InMemoryResponseCache):
    """A cache with no fault, to be given one."""


class _Forgets(_Broken):
    async def get(self, key: str) -> ModelResponse | None:
        return None


class _MixesKeys(_Broken):
    async def get(self, key: str) -> ModelResponse | None:
        return await super().get("any")

    async def put(self, key: str, response: ModelResponse, *, ttl: float | None = None) -> None:
        await super().put("any", response, ttl=ttl)


class _SharesObjects(_Broken):
    def __init__(self, *, clock: DeterministicClock) -> None:
        super().__init__(clock=clock)
        self.kept: dict[str, ModelResponse] = {}

    async def get(self, key: str) -> ModelResponse | None:
        return self.kept.get(key)

    async def put(self, key: str, response: ModelResponse, *, ttl: float | None = None) -> None:
        self.kept[key] = response


class _NeverExpires(_Broken):
    async def put(self, key: str, response: ModelResponse, *, ttl: float | None = None) -> None:
        await super().put(key, response)


class _LosesParts(_Broken):
    async def put(self, key: str, response: ModelResponse, *, ttl: float | None = None) -> None:
        await super().put(key, replace(response, notices=()), ttl=ttl)


class _CountsNothing(_Broken):
    async def stats(self) -> CacheStats:
        return CacheStats()


class _ClearsNothing(_Broken):
    async def clear(self) -> None:
        pass


@pytest.mark.parametrize(
    ("broken", "test"),
    [
        (_Forgets, "test_what_was_kept_comes_back_and_nothing_else_does"),
        (_MixesKeys, "test_what_was_kept_comes_back_and_nothing_else_does"),
        (_MixesKeys, "test_requests_that_differ_in_any_field_do_not_share_an_answer"),
        (_LosesParts, "test_what_was_kept_comes_back_and_nothing_else_does"),
        (_SharesObjects, "test_nobody_can_change_what_is_kept"),
        (_NeverExpires, "test_a_response_expires_when_its_time_is_up"),
        (_CountsNothing, "test_it_counts"),
        (_ClearsNothing, "test_clearing_forgets_the_entries_and_keeps_the_counts"),
    ],
)
async def test_the_suite_finds_a_broken_cache(broken: type[_Broken], test: str) -> None:
    class Suite(ResponseCacheConformance):
        @asynccontextmanager
        async def cache(self, clock: DeterministicClock) -> AsyncIterator[ResponseCache]:
            yield broken(clock=clock)

    with pytest.raises(AssertionError):
        await getattr(Suite(), test)()


async def test_in_memory_the_bytes_are_bounded_too() -> None:
    size = len(encode_response(answer("a")))
    cache = InMemoryResponseCache(max_bytes=2 * size)
    for key in ("a", "b", "c"):
        await cache.put(key, answer(key))
    stats = await cache.stats()
    assert (stats.entries, stats.bytes, stats.evictions) == (2, 2 * size, 1)
    assert await cache.get("a") is None


async def test_in_memory_a_response_larger_than_all_is_kept_alone() -> None:
    cache = InMemoryResponseCache(max_bytes=1)
    await cache.put("a", answer("a"))
    await cache.put("b", answer("b"))
    assert await cache.get("a") is None
    assert await cache.get("b") is not None


@pytest.mark.parametrize("limits", [{"max_entries": 0}, {"max_bytes": 0}])
def test_a_cache_without_room_is_refused(limits: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="at least 1"):
        InMemoryResponseCache(**limits)


class TestSqliteFile:
    @pytest.fixture
    def anyio_backend(self) -> str:
        return "asyncio"

    async def test_entries_outlive_the_handle_and_the_process(self, tmp_path: Path) -> None:
        path = tmp_path / "responses.db"
        program = (
            "import anyio, os, sys\n"
            "from tinyagents.harness.cache import SqliteResponseCache\n"
            "from tinyagents.harness.model import ModelResponse\n"
            "from tinyagents import AssistantMessage\n"
            "async def main():\n"
            "    async with SqliteResponseCache(sys.argv[1]) as cache:\n"
            "        await cache.put('a', ModelResponse(AssistantMessage(content='blue'), 'stop'))\n"
            "        os._exit(7)\n"
            "anyio.run(main)\n"
        )
        done = await anyio.run_process([sys.executable, "-c", program, str(path)], check=False)
        assert done.returncode == 7
        for _ in range(2):
            async with SqliteResponseCache(path) as cache:
                found = await cache.get("a")
                assert found is not None
                assert found.text == "blue"

    async def test_two_connections_to_one_file_share_entries(self, tmp_path: Path) -> None:
        path = tmp_path / "responses.db"
        async with SqliteResponseCache(path) as one, SqliteResponseCache(path) as other:
            await one.put("a", answer("blue"))
            assert await other.get("a") is not None
            await other.clear()
            assert await one.get("a") is None

    async def test_making_one_touches_no_file_and_it_must_be_open(self, tmp_path: Path) -> None:
        path = tmp_path / "responses.db"
        cache = SqliteResponseCache(path)
        assert not path.exists()
        with pytest.raises(CacheError, match="not open"):
            await cache.get("a")

    async def test_a_file_that_is_no_database_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "responses.db"
        path.write_text("nothing of the kind, and long enough to tell" * 10)
        with pytest.raises(ConfigurationError, match="cannot be opened"):
            async with SqliteResponseCache(path):
                pass

    async def test_a_file_of_a_later_version_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "responses.db"
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA user_version = 99")
        connection.close()
        with pytest.raises(ConfigurationError, match="version 99"):
            async with SqliteResponseCache(path):
                pass

    @pytest.mark.parametrize(
        "damage",
        [
            b"{}",
            b'{"version": 2}',
            b"\xff\x00",
            7,
            None,
            b'{"version":1,"message":{"role":"user"}}',
        ],
    )
    async def test_whatever_stands_in_a_row_is_a_miss_at_most(
        self, tmp_path: Path, damage: object
    ) -> None:
        path = tmp_path / "responses.db"
        async with SqliteResponseCache(path) as cache:
            await cache.put("a", answer("blue"))
            _damage(path, ["UPDATE OR REPLACE tinyagents_responses SET response = ?"], damage)
            assert await cache.get("a") is None
            assert (await cache.stats()).entries == 0


def _damage(path: Path, statements: Sequence[str], value: object) -> None:
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement, (b"" if value is None else value,))
    connection.commit()
    connection.close()


@pytest.mark.parametrize("anyio_backend", ["trio"])
async def test_on_trio_the_file_is_refused_with_a_reason(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="needs asyncio"):
        async with SqliteResponseCache(tmp_path / "responses.db"):
            pass


async def test_a_response_that_says_more_than_text_comes_back_whole() -> None:
    cache = InMemoryResponseCache()
    kept = ModelResponse(
        AssistantMessage(content=[TextBlock(text="a\ud800b")], provider_data={"x": {"y": [1]}}),
        "stop",
        safety={"ok": True},
        request_id="q1",
        continue_turn="go on",
    )
    await cache.put("a", kept)
    found = await cache.get("a")
    assert found is not None
    assert found == kept
