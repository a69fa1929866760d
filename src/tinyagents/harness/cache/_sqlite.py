"""Responses kept in a file."""

import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from os import PathLike, fspath
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import anyio

from ..clock import Clock, SystemClock
from ..concurrency import CLEAN_UP_SECONDS, asyncio_loop
from ..errors import CacheError, ConfigurationError, MissingDependencyError
from ..model import ModelResponse
from ._flight import SingleFlight
from ._stored import decode_response, encode_response
from ._types import CacheStats

if TYPE_CHECKING:
    import aiosqlite

_SCHEMA_VERSION = 1
_BUSY_SECONDS = 5.0
_TABLE = """
CREATE TABLE IF NOT EXISTS tinyagents_responses (
    namespace TEXT NOT NULL,
    key TEXT NOT NULL,
    response BLOB NOT NULL,
    expires_ms INTEGER,
    PRIMARY KEY (namespace, key)
)
"""
_GET = "SELECT response, expires_ms FROM tinyagents_responses WHERE namespace = ? AND key = ?"
_PUT = "INSERT OR REPLACE INTO tinyagents_responses VALUES (?, ?, ?, ?)"
# Only what was read: another process may have replaced it in the meantime.
_FORGET = """
DELETE FROM tinyagents_responses
WHERE namespace = ? AND key = ? AND response IS ? AND expires_ms IS ?
"""
_CLEAR = "DELETE FROM tinyagents_responses WHERE namespace = ?"
_HELD = """
SELECT count(*), coalesce(sum(length(CAST(response AS BLOB))), 0)
FROM tinyagents_responses WHERE namespace = ?
"""


class _File:
    """The connection, shared by the handles of one file."""

    __slots__ = ("connection", "flights", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self.connection: aiosqlite.Connection | None = None
        self.flights: dict[str, SingleFlight] = {}

    async def run(self, statement: str, values: Sequence[Any] = ()) -> list[Sequence[Any]]:
        """Run one statement, which is a transaction of its own."""
        if self.connection is None:
            raise CacheError(
                f"the response cache `{self.path}` is not open: use it in "
                "`async with SqliteResponseCache(...) as cache`"
            )
        try:
            return list(await self.connection.execute_fetchall(statement, values))
        # aiosqlite's own word for a connection that is being closed is a ValueError.
        except (sqlite3.Error, ValueError) as exc:
            raise CacheError(f"the response cache `{self.path}` failed: {exc}") from exc


class SqliteResponseCache:
    """Keeps responses in an SQLite file, which many processes may share and which outlives them.

    Open it with ``async with``; making one touches no file. A row that expired is deleted when it is
    asked for, one that cannot be read too, and counts as an eviction. There is no limit to its size.
    What it counts is this object's own; entries and bytes are those of its namespace in the file.

    It needs asyncio, which aiosqlite is made for, and does not run on trio.

    Args:
        path: The file; it is made where there is none.
        namespace: Keeps its entries apart from others in the same file.
        clock: Tells when an entry expires: its wall clock, which processes have in common.

    Raises:
        ConfigurationError: On entering: the file is no SQLite database, was made by a later version,
            cannot be opened, or the event loop is trio's.
        MissingDependencyError: On entering: the extra ``sqlite`` is not installed.
        CacheError: By the methods: the database failed, or is not open.
    """

    def __init__(
        self, path: str | PathLike[str], *, namespace: str = "default", clock: Clock | None = None
    ) -> None:
        self._file = _File(fspath(path))
        self._set_up(namespace, clock or SystemClock())

    def _set_up(self, namespace: str, clock: Clock) -> None:
        self._namespace = namespace
        self._clock: Clock = clock
        self._hits = self._misses = self._writes = self._evictions = self._expirations = 0

    def with_namespace(self, namespace: str) -> "SqliteResponseCache":
        """Return a handle to other entries of the same file, open for as long as this one is."""
        handle = object.__new__(SqliteResponseCache)
        handle._file = self._file
        handle._set_up(namespace, self._clock)
        return handle

    @property
    def flights(self) -> SingleFlight:
        """The calls under way, of all harnesses that share this namespace of this object."""
        return self._file.flights.setdefault(self._namespace, SingleFlight())

    def __repr__(self) -> str:
        return f"SqliteResponseCache({self._file.path!r}, namespace={self._namespace!r})"

    async def __aenter__(self) -> Self:
        if self._file.connection is not None:
            raise ConfigurationError(f"the response cache `{self._file.path}` is open already")
        self._file.connection = await _opened(self._file.path)
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        connection, self._file.connection = self._file.connection, None
        if connection is not None:
            await _close(connection)

    async def get(self, key: str) -> ModelResponse | None:
        """Return what is kept under a key.

        Raises:
            CacheError: The database failed, or is not open.
        """
        rows = await self._file.run(_GET, (self._namespace, key))
        if not rows:
            self._misses += 1
            return None
        data, expires_ms = rows[0]
        if expires_ms is not None and expires_ms <= self._clock.now_ms():
            self._misses += 1
            self._expirations += 1
            await self._forget(key, data, expires_ms)
            return None
        try:
            response = decode_response(data)
        except ValueError:
            self._misses += 1
            self._evictions += 1
            await self._forget(key, data, expires_ms)
            return None
        self._hits += 1
        return response

    async def put(self, key: str, response: ModelResponse, *, ttl: float | None = None) -> None:
        """Keep a response; when this returns it outlives the process.

        Raises:
            CacheError: The database failed, or is not open.
            ValueError: Something in the response has no form in JSON.
        """
        expires_ms = None if ttl is None else self._clock.now_ms() + int(ttl * 1000)
        row = (self._namespace, key, encode_response(response), expires_ms)
        await self._file.run(_PUT, row)
        self._writes += 1

    async def clear(self) -> None:
        """Forget the entries of this namespace; what was counted stays.

        Raises:
            CacheError: The database failed, or is not open.
        """
        await self._file.run(_CLEAR, (self._namespace,))

    async def stats(self) -> CacheStats:
        """Return what this object has done, and what its namespace holds.

        Raises:
            CacheError: The database failed, or is not open.
        """
        ((entries, size),) = await self._file.run(_HELD, (self._namespace,))
        return CacheStats(
            hits=self._hits,
            misses=self._misses,
            writes=self._writes,
            evictions=self._evictions,
            expirations=self._expirations,
            entries=entries,
            bytes=size,
        )

    async def _forget(self, key: str, data: object, expires_ms: object) -> None:
        await self._file.run(_FORGET, (self._namespace, key, data, expires_ms))


async def _opened(path: str) -> "aiosqlite.Connection":
    """Open the file and make its table, or leave nothing open."""
    try:
        import aiosqlite
    except ImportError as exc:
        raise MissingDependencyError("aiosqlite>=0.22", extra="sqlite") from exc
    if asyncio_loop() is None:
        raise ConfigurationError(
            "`SqliteResponseCache` needs asyncio, which aiosqlite is made for: run with asyncio, or "
            "use `InMemoryResponseCache`"
        )
    # Without an isolation level each statement is committed by itself.
    opening = aiosqlite.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)
    connection: aiosqlite.Connection | None = None
    try:
        connection = await opening
        await _prepare(connection, path)
    except sqlite3.Error as exc:
        raise ConfigurationError(f"the response cache `{path}` cannot be opened: {exc}") from exc
    else:
        opened, connection = connection, None
        return opened
    finally:
        if connection is not None:
            await _close(connection)


async def _prepare(connection: "aiosqlite.Connection", path: str) -> None:
    # Readers do not wait for a writer then; where that cannot be, it is slower and right.
    with suppress(sqlite3.OperationalError):
        await connection.execute_fetchall("PRAGMA journal_mode = WAL")
    await connection.execute_fetchall("PRAGMA synchronous = NORMAL")
    ((version,),) = await connection.execute_fetchall("PRAGMA user_version")
    if version > _SCHEMA_VERSION:
        raise ConfigurationError(
            f"the response cache `{path}` has version {version}, and this release knows "
            f"{_SCHEMA_VERSION}: use another file, or a newer release"
        )
    await connection.execute_fetchall(_TABLE)
    if version < _SCHEMA_VERSION:
        await connection.execute_fetchall(f"PRAGMA user_version = {_SCHEMA_VERSION}")


async def _close(connection: "aiosqlite.Connection") -> None:
    with anyio.move_on_after(CLEAN_UP_SECONDS, shield=True):
        await connection.close()
