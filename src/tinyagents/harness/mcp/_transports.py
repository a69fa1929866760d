"""Where a tool server is: a program to start, or an address."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import urlsplit

from ..errors import ConfigurationError, MissingDependencyError

if TYPE_CHECKING:
    import httpx2


@dataclass(frozen=True, slots=True)
class McpStdio:
    """A server that is started as a child process and spoken to over its standard streams.

    Args:
        command: The program; no shell is involved.
        args: Its arguments; keys are given in them as well, so they are not shown in reprs and errors.
        env: Added to the few variables that a server inherits (``PATH``, ``HOME`` and such: no
            keys). Values are not shown in reprs and errors.
        cwd: The folder that it runs in; the caller's by default.
    """

    command: str
    args: Sequence[str] = field(default=(), repr=False)
    _: KW_ONLY
    env: Mapping[str, str] | None = field(default=None, repr=False)
    cwd: str | Path | None = None

    def __post_init__(self) -> None:
        if not self.command.strip():
            raise ConfigurationError("a tool server needs a `command` to start it with")
        given: object = self.args
        if isinstance(given, str):
            raise ConfigurationError(f"`args` is a sequence of arguments: write args=[{given!r}]")

    @property
    def label(self) -> str:
        """How messages call the server, unless it is given a name."""
        return PurePath(self.command).name


@dataclass(frozen=True, slots=True)
class McpHttp:
    """A server behind an address, spoken to over streamable HTTP.

    Args:
        url: The address of its endpoint, such as ``https://example.com/mcp``.
        headers: Sent with every request; not shown in reprs and errors.
        auth: Signs the requests, as the OAuth providers of the ``mcp`` package do.
    """

    url: str = field(repr=False)
    _: KW_ONLY
    headers: Mapping[str, str] | None = field(default=None, repr=False)
    auth: "httpx2.Auth | None" = field(default=None, repr=False)

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigurationError(
                "the `url` of a tool server begins with `http://` or `https://` and names a host"
            )

    @property
    def label(self) -> str:
        """How messages call the server, unless it is given a name."""
        return urlsplit(self.url).hostname or "server"


McpTransport: TypeAlias = McpStdio | McpHttp


def require_mcp() -> None:
    """Load the official package.

    Raises:
        MissingDependencyError: It is not there, or in a version before 2.3.
    """
    try:
        # Only looked for: what uses it imports it.
        from mcp import Client  # noqa: F401  # pyright: ignore[reportUnusedImport]
    except ImportError as exc:
        raise MissingDependencyError("mcp>=2.3", extra="mcp") from exc
